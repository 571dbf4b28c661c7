//! The plan of the free-space part of the next meta record, made before pages are allocated for that part.
//!
//! The lists in the meta record itself suffice for most commits. Otherwise the freed ranges go to the stacks on disk
//! (`Level`), or the bitmaps are rewritten, or both. The plan knows the replaced pages and the number of new pages. So
//! the new pages are allocated once, and their allocation does not change the planned content: one pass suffices.

use super::base::{directories_per_root, regions_per_directory};
use super::free_space::Space;
use super::lists::{self, List, Stack, entries_per_directory, ranges_per_list, same_life};
use super::read::ReadPage;
use super::reclaim::read_list;
use crate::format::layout::first_page;
use crate::format::meta::{FreedRange, fit};
use crate::format::ptr::Ptr;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of extents into which the pages of a rewrite may be split. The meta record reserves room for this
/// many entries.
const PIECES_MIN: usize = 8;

/// Number of changes from which rewriting the bitmaps is better than writing a list to a stack.
const CHANGES_MANY: usize = 48;

/// Determines which freed ranges are moved to the stacks in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// No freed ranges are moved; all of them stay in the meta record.
    Inline,
    /// Freed ranges are moved if they are retained by a snapshot that is older than the kept durable commits. Such
    /// ranges are likely to be retained for long.
    Lasting,
    /// All freed ranges are moved.
    All,
}

/// Plan of a rewrite of bitmap pages.
pub(super) struct BitmapPlan {
    pub(super) base_pages: u64,
    pub(super) regions: Vec<usize>,
    /// Contents of the bitmap pages, in the order of `regions`; `None` if all pages of a region are free.
    pub(super) bitmaps: Vec<Option<Vec<u8>>>,
    /// Contents of the directory entry of each region: the number of free pages, and the word with the use and the
    /// longest free range of the region.
    pub(super) entries: Vec<(u32, u32)>,
    pub(super) directories: Vec<usize>,
    pub(super) directory_count: usize,
    pub(super) root_count: usize,
    /// Pages of the free-space structure that the rewrite replaces.
    replaced: Vec<Ptr>,
}

/// New list pages of one stack.
pub(super) struct StackPlan {
    /// The old stack, without its top list page if that page is rewritten.
    pub(super) stack: Stack,
    /// The new list pages, from the bottom of the stack to the top.
    pub(super) lists: Vec<List>,
}

/// The free-space part of a meta record, complete except for the addresses of its pages.
pub(crate) struct Plan {
    pub(super) txn: u64,
    pub(super) level: Level,
    pub(super) bitmaps: Option<BitmapPlan>,
    pub(super) stacks: Vec<StackPlan>,
    /// Stacks that the commit does not change.
    pub(super) kept: Vec<Stack>,
    /// Number of pages of the new directory of the stacks, if the directory is rewritten.
    pub(super) directory: Option<usize>,
    pub(super) inline: Vec<FreedRange>,
    /// The ranges that the transaction has freed.
    pub(super) freed_ranges: Vec<FreedRange>,
    replaced: Vec<FreedRange>,
    pieces_max: usize,
    lasting: u64,
    durable: u64,
}

impl BitmapPlan {
    fn pages(&self) -> usize {
        let bitmaps = self.bitmaps.iter().flatten().count();
        bitmaps + self.directories.len() + self.root_count
    }
}

impl Plan {
    /// Number of pages that must be allocated for the plan.
    pub(crate) fn pages(&self) -> u64 {
        let bitmaps = self.bitmaps.as_ref().map_or(0, BitmapPlan::pages);
        let lists: usize = self.stacks.iter().map(|stack| stack.lists.len()).sum();
        (bitmaps + lists + self.directory.unwrap_or(0)) as u64
    }

    /// Maximum number of extents in which the pages of the plan may be allocated.
    pub(crate) fn pieces_max(&self) -> usize {
        self.pieces_max
    }

    /// Returns the pages of the free-space structure that are replaced by new pages, as freed ranges.
    pub(crate) fn replaced(&self) -> &[FreedRange] {
        &self.replaced
    }

    /// Returns the snapshot to whose stack a freed range is moved; `None` if the range stays in the meta record.
    pub(super) fn target(&self, range: &FreedRange, live: &[u64]) -> Option<u64> {
        target(self.level, self.lasting, self.durable, range, live)
    }
}

/// Returns the youngest snapshot before transaction `end`, if this snapshot retains the range.
fn snapshot_txn(range: &FreedRange, live: &[u64], end: u64) -> Option<u64> {
    let older = live.partition_point(|&snapshot| snapshot < range.freed.min(end));
    let youngest = live[..older].last().copied();
    youngest.filter(|&snapshot| snapshot >= range.birth)
}

fn target(
    level: Level,
    lasting: u64,
    durable: u64,
    range: &FreedRange,
    live: &[u64],
) -> Option<u64> {
    match level {
        Level::Inline => None,
        Level::Lasting => snapshot_txn(range, live, lasting),
        // Snapshots of durable commits are tried first, since they are likely to live longer than others.
        Level::All => snapshot_txn(range, live, lasting)
            .or_else(|| snapshot_txn(range, live, durable + 1))
            .or_else(|| snapshot_txn(range, live, u64::MAX))
            .or(Some(range.freed - 1)),
    }
}

/// Widens the interval from `birth` to `freed` of a range as far as the same snapshots retain the range. Ranges with
/// many different intervals thus get a few common intervals and fit on common lists. `snapshot_txn` is one of these
/// snapshots.
fn widened(range: &FreedRange, snapshot_txn: u64, live: &[u64]) -> FreedRange {
    let first = live.partition_point(|&snapshot| snapshot < range.birth);
    let end = live.partition_point(|&snapshot| snapshot < range.freed);
    let widened = FreedRange {
        birth: live[..first].last().map_or(0, |&before| before + 1),
        freed: live[..end]
            .last()
            .map_or(snapshot_txn, |&last| last.max(snapshot_txn))
            + 1,
        ..*range
    };
    assert!(
        (widened.birth..widened.freed).contains(&snapshot_txn),
        "a snapshot retains a range that it does not see"
    );
    widened
}

/// Joins adjacent pages with the same birth into freed ranges; the pages are freed by `txn`.
fn join(mut ptrs: Vec<Ptr>, page_size: usize, txn: u64) -> Vec<FreedRange> {
    ptrs.sort_unstable_by_key(|ptr| ptr.addr);
    let mut freed_ranges: Vec<FreedRange> = Vec::new();
    for ptr in ptrs {
        let page = ptr.addr / page_size as u64;
        match freed_ranges.last_mut() {
            Some(last) if last.page + last.pages == page && last.birth == ptr.birth.0 => {
                last.pages += 1;
            }
            _ => freed_ranges.push(FreedRange {
                page,
                pages: 1,
                birth: ptr.birth.0,
                freed: txn,
            }),
        }
    }
    freed_ranges
}

/// Divides the ranges of one stack among list pages, from the bottom of the stack to the top.
fn lists_of(page_size: usize, mut ranges: Vec<FreedRange>) -> Vec<List> {
    ranges.sort_unstable_by_key(|range| (range.birth, range.freed, range.page));
    let (mut lists, mut rest) = (Vec::new(), Vec::new());
    let mut joined: Vec<FreedRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if same_life(last, &range) && last.page + last.pages == range.page => {
                last.pages += range.pages;
            }
            _ => joined.push(range),
        }
    }
    debug_assert!(
        joined.iter().all(|range| range.pages > 0),
        "a range without pages"
    );
    for alike in joined.chunk_by(same_life) {
        lists.extend(lists::cut(page_size, alike, &mut rest));
    }
    for ranges in rest.chunks(ranges_per_list(page_size)) {
        lists.push(List {
            ranges: ranges.to_vec(),
            bits: false,
            below: 0,
            next: Ptr::NULL,
        });
    }
    lists
}

impl Space {
    /// Plans the free-space part of the meta record of commit `txn`, which freed `freed_ranges`. `live` is ascending
    /// and contains at least the transactions of the live snapshots and of the previous commit.
    pub(crate) fn plan(
        &self,
        txn: u64,
        freed_ranges: &[FreedRange],
        live: &[u64],
        read: ReadPage<'_>,
    ) -> Plan {
        self.check();
        assert!(
            txn > self.durable[0],
            "a record is newer than the durable state"
        );
        debug_assert!(
            live.is_sorted_by(|a, b| a < b),
            "the live snapshots are not ascending"
        );
        debug_assert!(
            freed_ranges.is_sorted_by(|a, b| a.page + a.pages <= b.page),
            "freed ranges overlap"
        );
        let in_memory: usize = self.pending.ranges.values().map(Vec::len).sum();
        let [durable, before] = self.durable;
        let before_lives = live.binary_search(&before).is_ok();
        let mut plan = Plan {
            txn,
            level: Level::Inline,
            bitmaps: None,
            stacks: Vec::new(),
            kept: self.pending.stacks.clone(),
            directory: None,
            inline: Vec::new(),
            freed_ranges: freed_ranges.to_vec(),
            replaced: Vec::new(),
            pieces_max: 0,
            lasting: if before_lives { before } else { durable },
            durable,
        };
        let quiet =
            !self.overflow && !self.pending.stacks_changed && self.pending.popped.is_empty();
        if quiet && fit(self.changes.len(), in_memory + freed_ranges.len()) {
            plan.inline = self.retained().chain(freed_ranges).copied().collect();
            return plan;
        }
        // If rewriting the bitmaps makes room in the meta record for all pending ranges, the bitmaps are rewritten
        // now and then. Otherwise every commit would write to the stacks.
        let makes_room = self.changes.len() >= CHANGES_MANY
            && fit(PIECES_MIN, in_memory + freed_ranges.len() + PIECES_MIN);
        let mut rewrite = self.overflow || makes_room || !fit(self.changes.len() + PIECES_MIN, 0);
        loop {
            if rewrite && plan.bitmaps.is_none() {
                plan.bitmaps = Some(self.plan_bitmaps());
            }
            let directory = self.pending.stacks_changed || plan.level > Level::Inline;
            self.plan_stacks(&mut plan, directory, live, read);
            let changes = if rewrite { 0 } else { self.changes.len() };
            if fit(changes + PIECES_MIN, plan.inline.len()) || (rewrite && plan.level == Level::All)
            {
                let mut most = PIECES_MIN;
                while fit(changes + most + 1, plan.inline.len()) {
                    most += 1;
                }
                plan.pieces_max = most;
                return plan;
            }
            match plan.level {
                Level::Inline if plan.inline.len() >= PIECES_MIN => plan.level = Level::Lasting,
                Level::Lasting if plan.inline.len() >= PIECES_MIN => plan.level = Level::All,
                _ if !rewrite => rewrite = true,
                _ => plan.level = Level::All,
            }
        }
    }

    /// Assigns freed ranges to stacks as the level of the plan says; the other ranges stay in the meta record.
    fn plan_stacks(&self, plan: &mut Plan, directory: bool, live: &[u64], read: ReadPage<'_>) {
        let mut ptrs: Vec<Ptr> = self.pending.popped.clone();
        if directory {
            ptrs.extend(&self.pending.directory);
        }
        if let Some(bitmaps) = &plan.bitmaps {
            ptrs.extend(&bitmaps.replaced);
        }
        let mut groups: BTreeMap<u64, Vec<FreedRange>> = BTreeMap::new();
        let mut inline = Vec::new();
        let (level, lasting, durable) = (plan.level, plan.lasting, plan.durable);
        let mut assign =
            |groups: &mut BTreeMap<u64, Vec<FreedRange>>, range: &FreedRange| match target(
                level, lasting, durable, range, live,
            ) {
                Some(snapshot_txn) => {
                    let range = widened(range, snapshot_txn, live);
                    groups.entry(snapshot_txn).or_default().push(range);
                }
                None => inline.push(*range),
            };
        for range in self.retained().chain(&plan.freed_ranges) {
            assign(&mut groups, range);
        }
        for range in join(ptrs.clone(), self.map.page_size, plan.txn) {
            assign(&mut groups, &range);
        }
        // A top list page with room is rewritten together with the new ranges, so that stacks have no nearly empty
        // pages.
        let mut kept = self.pending.stacks.clone();
        let mut started: BTreeMap<u64, Stack> = BTreeMap::new();
        let mut tops = Vec::new();
        for (&snapshot_txn, ranges) in &mut groups {
            let stack = kept
                .iter()
                .position(|stack| stack.snapshot_txn == snapshot_txn && !stack.broken);
            let Some(number) = stack else {
                continue;
            };
            let mut stack = kept.remove(number);
            if let Ok(top) = read_list(&stack, read)
                && !top.bits
                && top.ranges.len() <= ranges_per_list(self.map.page_size) / 2
            {
                tops.push(stack.top);
                stack.pages -= top
                    .ranges
                    .iter()
                    .map(|range| range.pages)
                    .sum::<u64>()
                    .min(stack.pages);
                ranges.extend(&top.ranges);
                stack.top = top.next;
                stack.lists -= 1;
            }
            started.insert(snapshot_txn, stack);
        }
        for range in join(tops.clone(), self.map.page_size, plan.txn) {
            assign(&mut groups, &range);
        }
        ptrs.extend(tops);
        plan.replaced = join(ptrs, self.map.page_size, plan.txn);
        plan.inline = inline;
        plan.stacks = groups
            .into_iter()
            .map(|(snapshot_txn, ranges)| {
                // The loop above skipped stacks that had no new ranges at that time. Meanwhile, the freed top list
                // page of another stack may have become the first new range of such a stack, which is still in
                // `kept`.
                let found = kept
                    .iter()
                    .position(|stack| stack.snapshot_txn == snapshot_txn && !stack.broken);
                let old = started
                    .remove(&snapshot_txn)
                    .or_else(|| found.map(|number| kept.remove(number)));
                StackPlan {
                    stack: old.unwrap_or(Stack {
                        snapshot_txn,
                        lists: 0,
                        pages: 0,
                        newest_birth: 0,
                        oldest_freed: u64::MAX,
                        top: Ptr::NULL,
                        broken: false,
                    }),
                    lists: lists_of(self.map.page_size, ranges),
                }
            })
            .collect();
        assert!(started.is_empty(), "a stack is lost");
        debug_assert!(
            plan.stacks.iter().all(|stack| !stack.lists.is_empty()),
            "a stack is rewritten without lists"
        );
        plan.kept = kept;
        let entries = plan.kept.len() + plan.stacks.len();
        let pages = entries.div_ceil(entries_per_directory(self.map.page_size));
        plan.directory = directory.then_some(pages);
    }

    /// Plans the rewrite of the bitmaps that have changed. Everything except the addresses is determined here, before
    /// the pages of the rewrite are allocated.
    fn plan_bitmaps(&self) -> BitmapPlan {
        let base_pages = self.stored_pages(first_page(self.map.page_size));
        let regions_here = base_pages.div_ceil(self.map.region_pages) as usize;
        let per_directory = regions_per_directory(self.map.page_size);
        let regions: Vec<usize> = self.map.touched.range(..regions_here).copied().collect();
        let directories: BTreeSet<usize> = regions
            .iter()
            .map(|region| region / per_directory)
            .collect();
        let directory_count = regions_here.div_ceil(per_directory);
        let root_count = directory_count.div_ceil(directories_per_root(self.map.page_size));
        let old = &self.base;
        let mut replaced: Vec<Ptr> = Vec::new();
        replaced.extend(regions.iter().filter_map(|&region| old.bitmaps.get(region)));
        replaced.extend(directories.iter().filter_map(|&i| old.directories.get(i)));
        replaced.extend(old.bitmaps.iter().skip(regions_here));
        replaced.extend(old.directories.iter().skip(directory_count));
        replaced.extend(&old.roots);
        replaced.retain(|ptr| !ptr.is_null());
        let mut bitmaps = Vec::new();
        let mut entries = Vec::new();
        for &number in &regions {
            let region = &self.map.regions[number];
            let from = number as u64 * self.map.region_pages;
            let here = (base_pages - from).min(self.map.region_pages);
            let free = region.free_among(here);
            assert!(free <= here, "more pages are free than there are");
            entries.push((
                free as u32,
                (region.longest().min(free) as u32) << 8 | region.used_for as u32,
            ));
            if free == here {
                bitmaps.push(None);
                continue;
            }
            let mut page = vec![0u8; self.map.page_size];
            self.map.encode_bitmap(number, &mut page);
            bitmaps.push(Some(page));
        }
        assert!(
            base_pages <= self.pages(),
            "bitmaps describe pages behind the end of the file"
        );
        assert_eq!(bitmaps.len(), regions.len(), "a bitmap for each region");
        BitmapPlan {
            base_pages,
            regions,
            bitmaps,
            entries,
            directories: directories.into_iter().collect(),
            directory_count,
            root_count,
            replaced,
        }
    }
}
