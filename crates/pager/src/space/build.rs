//! Builds the free-space part of a meta record from a plan, and adopts it after the meta record was written.

use super::base::{
    Base, DIRECTORY_ENTRIES_AT, DIRECTORY_ENTRY_BYTES, ROOT_COUNT_AT, ROOT_ENTRIES_AT,
    ROOT_NEXT_AT, ROOT_PAGES_AT, directories_per_root, regions_per_directory,
};
use super::free_space::Space;
use super::lists::{self, BITS, Stack, entries_per_directory};
use super::plan::{BitmapPlan, Plan};
use super::ranges::Changes;
use super::read::ReadPage;
use crate::error::Result;
use crate::format::header::{Header, seal_block};
use crate::format::kind::Kind;
use crate::format::layout::first_page;
use crate::format::meta::{Change, FreedRange, fit};
use crate::format::ptr::{PTR_BYTES, Ptr};
use tidalite_base::{TxnId, put_u32, put_u64};

/// The part of a meta record that describes the free space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    /// Length of the file in pages.
    pub(crate) pages: u64,
    pub(crate) free_root: Ptr,
    pub(crate) freed_directory: Ptr,
    pub(crate) changes: Vec<Change>,
    pub(crate) pendings: Vec<FreedRange>,
}

/// The free-space part of a meta record, with the pages that must be written for it before the commit is complete.
pub(crate) struct Built {
    pub(crate) lists: Lists,
    /// Pages to write, each as byte offset in the file and contents.
    pub(crate) writes: Vec<(u64, Vec<u8>)>,
    plan: Plan,
    pieces: Vec<(u64, u64)>,
    base: Option<Base>,
    stacks: Vec<Stack>,
    directory: Option<Vec<Ptr>>,
    lists_written: u64,
    bitmaps_written: u64,
}

impl Built {
    /// Number of pages that the plan needs.
    pub(crate) fn pages(&self) -> u64 {
        self.plan.pages()
    }

    /// Returns the pages of the free-space structure that are replaced by new ones, as freed ranges.
    pub(crate) fn replaced(&self) -> &[FreedRange] {
        self.plan.replaced()
    }
}

/// Seals pages at the planned addresses, one after the other.
struct Builder {
    page_size: usize,
    txn: u64,
    addresses: std::vec::IntoIter<u64>,
    writes: Vec<(u64, Vec<u8>)>,
}

impl Builder {
    fn add(&mut self, mut page: Vec<u8>, kind: Kind, flags: u8, owner: u64) -> Ptr {
        assert_eq!(page.len(), self.page_size, "a whole page");
        let address = self.addresses.next();
        let address = address.expect("a rewrite takes exactly the pages that were planned");
        assert!(
            address.is_multiple_of(self.page_size as u64),
            "a page of the structure begins inside a page"
        );
        let header = Header {
            kind,
            flags,
            owner,
            address,
            birth: TxnId(self.txn),
        };
        let ptr = seal_block(&mut page, &header);
        match self.writes.last_mut() {
            Some((at, bytes)) if *at + bytes.len() as u64 == address => bytes.extend(page),
            _ => self.writes.push((address, page)),
        }
        ptr
    }
}

impl Space {
    /// Encodes the planned pages at the addresses of the allocated extents. `pieces` are these extents, each as first
    /// page and number of pages; together they have exactly as many pages as planned.
    pub(crate) fn build(
        &self,
        mut plan: Plan,
        pieces: Vec<(u64, u64)>,
        read: ReadPage<'_>,
    ) -> Result<Built> {
        let page_size = self.map.page_size;
        let each = pieces.iter().flat_map(|&(page, pages)| page..page + pages);
        let addresses: Vec<u64> = each.map(|page| page * page_size as u64).collect();
        assert_eq!(
            addresses.len() as u64,
            plan.pages(),
            "a rewrite takes exactly the pages that were planned"
        );
        let mut builder = Builder {
            page_size,
            txn: plan.txn,
            addresses: addresses.into_iter(),
            writes: Vec::new(),
        };
        let base = match &plan.bitmaps {
            Some(bitmaps) => Some(self.build_bitmaps(bitmaps, &mut builder, read)?),
            None => None,
        };
        let mut stacks = std::mem::take(&mut plan.kept);
        let mut lists_written = 0;
        for stack_plan in &plan.stacks {
            let mut stack = stack_plan.stack.clone();
            for list in &stack_plan.lists {
                let mut list = list.clone();
                (list.below, list.next) = (stack.lists, stack.top);
                for range in &list.ranges {
                    stack.pages += range.pages;
                    stack.newest_birth = stack.newest_birth.max(range.birth);
                    stack.oldest_freed = stack.oldest_freed.min(range.freed);
                }
                let flags = if list.bits { BITS } else { 0 };
                let bytes = list.encode(page_size);
                stack.top = builder.add(bytes, Kind::FreePending, flags, list.below);
                stack.lists += 1;
                lists_written += 1;
            }
            stacks.push(stack);
        }
        let directory = plan.directory.map(|_| {
            let mut pages = Vec::new();
            let mut next = Ptr::NULL;
            for entries in stacks.chunks(entries_per_directory(page_size)).rev() {
                let bytes = lists::encode_directory(page_size, entries, &next);
                next = builder.add(bytes, Kind::ReuseFreed, 0, pages.len() as u64);
                pages.push(next);
            }
            pages.reverse();
            pages
        });
        let left = builder.addresses.next();
        assert!(
            left.is_none(),
            "a rewrite takes exactly the pages that were planned"
        );
        let own = pieces.iter().map(|&(page, pages)| page + pages).max();
        let (pages, mut changes) = match &plan.bitmaps {
            Some(bitmaps) => (bitmaps.base_pages, Changes::default()),
            None => {
                let least = self.base.pages.max(first_page(page_size));
                (self.stored_pages(least), self.changes.clone())
            }
        };
        let pages = pages.max(own.unwrap_or(0));
        for &(page, pages) in &pieces {
            changes.set(page, pages, true);
        }
        let mut changes = changes.into_vec();
        // Pages beyond the stored length are free, so they need no entry.
        changes.retain(|change| change.page < pages);
        if let Some(last) = changes.last_mut() {
            last.pages = last.pages.min(pages - last.page);
        }
        assert!(
            fit(changes.len(), plan.inline.len()),
            "the lists do not fit into the record"
        );
        debug_assert!(
            changes.is_sorted_by(|a, b| a.page + a.pages <= b.page),
            "changes overlap"
        );
        assert!(
            changes
                .last()
                .is_none_or(|last| last.pages > 0 && last.page + last.pages <= pages),
            "a change behind the end of the file"
        );
        let freed_directory = directory
            .as_ref()
            .unwrap_or(&self.pending.directory)
            .first();
        Ok(Built {
            lists: Lists {
                pages,
                free_root: base.as_ref().unwrap_or(&self.base).root(),
                freed_directory: freed_directory.copied().unwrap_or(Ptr::NULL),
                changes,
                pendings: std::mem::take(&mut plan.inline),
            },
            writes: builder.writes,
            bitmaps_written: plan
                .bitmaps
                .as_ref()
                .map_or(0, |bitmaps| bitmaps.bitmaps.iter().flatten().count() as u64),
            plan,
            pieces,
            base,
            stacks,
            directory,
            lists_written,
        })
    }

    fn build_bitmaps(
        &self,
        plan: &BitmapPlan,
        builder: &mut Builder,
        read: ReadPage<'_>,
    ) -> Result<Base> {
        let page_size = self.map.page_size;
        let mut base = self.base.clone();
        base.pages = plan.base_pages;
        base.bitmaps.resize(
            plan.base_pages.div_ceil(self.map.region_pages) as usize,
            Ptr::NULL,
        );
        base.directories.resize(plan.directory_count, Ptr::NULL);
        assert!(
            plan.regions
                .last()
                .is_none_or(|&last| last < base.bitmaps.len()),
            "a bitmap of a region behind the end of the file"
        );
        for (&region, bitmap) in plan.regions.iter().zip(&plan.bitmaps) {
            base.bitmaps[region] = match bitmap {
                Some(bytes) => builder.add(bytes.clone(), Kind::FreeBitmap, 0, region as u64),
                None => Ptr::NULL,
            };
        }
        let per_directory = regions_per_directory(page_size);
        for &number in &plan.directories {
            let mut bytes = match self.base.directories.get(number) {
                Some(old) if !old.is_null() => read(old)?.to_vec(),
                _ => vec![0u8; page_size],
            };
            for (&region, (free, word)) in plan.regions.iter().zip(&plan.entries) {
                if region / per_directory == number {
                    let at = DIRECTORY_ENTRIES_AT + region % per_directory * DIRECTORY_ENTRY_BYTES;
                    base.bitmaps[region].encode(&mut bytes, at);
                    put_u32(&mut bytes, at + PTR_BYTES, *free);
                    put_u32(&mut bytes, at + PTR_BYTES + 4, *word);
                }
            }
            base.directories[number] = builder.add(bytes, Kind::FreeDirectory, 0, number as u64);
        }
        base.roots.clear();
        let mut next = Ptr::NULL;
        let chunks = base.directories.chunks(directories_per_root(page_size));
        for chunk in chunks.rev() {
            let mut bytes = vec![0u8; page_size];
            put_u64(&mut bytes, ROOT_PAGES_AT, base.pages);
            next.encode(&mut bytes, ROOT_NEXT_AT);
            put_u32(&mut bytes, ROOT_COUNT_AT, chunk.len() as u32);
            for (i, directory) in chunk.iter().enumerate() {
                directory.encode(&mut bytes, ROOT_ENTRIES_AT + i * PTR_BYTES);
            }
            next = builder.add(bytes, Kind::FreeRoot, 0, 0);
            base.roots.push(next);
        }
        base.roots.reverse();
        assert_eq!(
            base.roots.len(),
            plan.root_count,
            "as many roots as were planned"
        );
        Ok(base)
    }

    /// Adopts the new free-space structure after the meta record that refers to it was written.
    pub(crate) fn install(&mut self, built: Built, live: &[u64]) {
        let Built {
            plan,
            pieces,
            base,
            stacks,
            directory,
            ..
        } = built;
        self.work.lists_written += built.lists_written;
        self.work.bitmaps_written += built.bitmaps_written;
        if let (Some(base), Some(bitmaps)) = (base, &plan.bitmaps) {
            self.base = base;
            self.changes.clear();
            self.overflow = false;
            self.map.touched.clear();
            if self.pages() > bitmaps.base_pages {
                // Pages beyond the length that the bitmaps on disk describe count as free, and their regions as
                // changed.
                let first = (bitmaps.base_pages / self.map.region_pages) as usize;
                self.map.touched.extend(first..self.map.regions.len());
            }
        }
        for (page, pages) in pieces {
            self.note(page, pages, true);
        }
        let replaced = plan.replaced();
        self.pending.add(plan.txn - 1, &plan.freed_ranges);
        self.pending.add(plan.txn - 1, replaced);
        for ranges in self.pending.ranges.values_mut() {
            ranges.retain(|range| plan.target(range, live).is_none());
        }
        self.pending.ranges.retain(|_, ranges| !ranges.is_empty());
        self.pending.stacks = stacks;
        if let Some(directory) = directory {
            self.pending.directory = directory;
            self.pending.stacks_changed = false;
        }
        self.pending.popped.clear();
        assert!(
            self.pending
                .ranges
                .last_key_value()
                .is_none_or(|(&last, _)| last < plan.txn),
            "a later snapshot retains pages"
        );
        self.check();
    }
}
