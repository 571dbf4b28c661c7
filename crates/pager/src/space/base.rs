//! The free-space structure on disk: a root, directories, a bitmap a zone. Rewritten only where zones were
//! touched, and only when the changes no longer fit the meta record.
//!
//! ```text
//! FreeRoot       0..32 header | 32 pages u64 | 40 pending ranges u64 | 48 pending list Ptr | 80 next root Ptr | 112 directories u32 | 0 | 128 Ptr of each directory
//! FreeDirectory  0..32 header | 0            | 64 entries of 40 bytes: bitmap Ptr, free pages u32, use u8 | longest free stretch << 8, u32
//! FreeBitmap     0..32 header (owner = zone) | 0 | 64 one bit a page, set = free, bit i of byte j = page 8j + i of the zone
//! FreePending    0..32 header | 32 next Ptr  | 64 entries u32 | 0 | 72 entries of 32 bytes: page, pages, birth, freed
//! ```
//!
//! The structure describes the file *without the pages of this very rewrite*: those are one extent, and
//! the meta record that points to the new root lists it as its first change. So the structure takes its own
//! pages in one pass, and rewriting it changes nothing that it describes. A null bitmap pointer is a zone
//! whose pages are all free. The pending list counts only under the meta record of the transaction that
//! wrote it; afterwards those ranges are free, and the meta records say so.

use super::zone::{Use, Zone};
use super::{Changes, Space};
use crate::error::{Error, Result};
use crate::header::{Header, Kind, seal_block};
use crate::layout::{BITMAP_AT, first_page, zone_pages};
use crate::meta::{Change, Dead, Meta, PENDING_BYTES, fits};
use crate::pages::PageRef;
use crate::ptr::{PTR_BYTES, Ptr};
use std::collections::BTreeSet;
use tidalite_base::{Corrupt, TxnId, get_u32, get_u64, put_u32, put_u64};

const ROOT_PAGES_AT: usize = 32;
const ROOT_PENDINGS_AT: usize = ROOT_PAGES_AT + 8;
const ROOT_PENDING_LIST_AT: usize = ROOT_PENDINGS_AT + 8;
const ROOT_NEXT_AT: usize = ROOT_PENDING_LIST_AT + PTR_BYTES;
const ROOT_COUNT_AT: usize = ROOT_NEXT_AT + PTR_BYTES;
const ROOT_ENTRIES_AT: usize = 128;
const DIRECTORY_ENTRIES_AT: usize = 64;
const DIRECTORY_ENTRY_BYTES: usize = PTR_BYTES + 8;
const PENDING_NEXT_AT: usize = 32;
const PENDING_COUNT_AT: usize = PENDING_NEXT_AT + PTR_BYTES;
const PENDING_ENTRIES_AT: usize = 72;
const _: () = assert!(ROOT_COUNT_AT + 4 <= ROOT_ENTRIES_AT);

fn directories_per_root(page_size: usize) -> usize {
    (page_size - ROOT_ENTRIES_AT) / PTR_BYTES
}

fn zones_per_directory(page_size: usize) -> usize {
    (page_size - DIRECTORY_ENTRIES_AT) / DIRECTORY_ENTRY_BYTES
}

fn pendings_per_page(page_size: usize) -> usize {
    (page_size - PENDING_ENTRIES_AT) / PENDING_BYTES
}

/// Where the structure is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Base {
    /// Pages of the file that it describes.
    pages: u64,
    roots: Vec<Ptr>,
    directories: Vec<Ptr>,
    bitmaps: Vec<Ptr>,
    /// What each zone is used for, as read.
    uses: Vec<Use>,
    pendings: Vec<Ptr>,
}

impl Base {
    pub(crate) fn root(&self) -> Ptr {
        self.roots.first().copied().unwrap_or(Ptr::NULL)
    }

    /// Every page of the structure.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &Ptr> {
        let lists = [
            &self.roots,
            &self.directories,
            &self.bitmaps,
            &self.pendings,
        ];
        let all = lists.into_iter().flatten();
        all.filter(|ptr| !ptr.is_null())
    }
}

/// A rewrite that is ready but for the address of its pages.
pub(crate) struct Plan {
    txn: u64,
    base_pages: u64,
    zones: Vec<usize>,
    /// Bitmap pages, in the order of `zones`; `None` where all is free.
    bitmaps: Vec<Option<Vec<u8>>>,
    /// (free, word) of each zone for its directory entry.
    entries: Vec<(u32, u32)>,
    directories: Vec<usize>,
    directory_count: usize,
    root_count: usize,
    pendings: Vec<Dead>,
    pending_pages: usize,
    /// The pages of the old structure that the rewrite replaces.
    pub(crate) dead: Vec<Dead>,
}

/// A rewrite that waits for the commit.
pub(crate) struct NewBase {
    base: Base,
    changes: Changes,
    touched: BTreeSet<usize>,
    /// Pages to write at the extent's address.
    pub(crate) bytes: Vec<u8>,
    /// What the meta record holds.
    pub(crate) meta_changes: Vec<Change>,
    pub(crate) meta_pendings: Vec<Dead>,
    /// The file's length as the meta record says it.
    pub(crate) meta_pages: u64,
}

impl NewBase {
    pub(crate) fn root(&self) -> Ptr {
        self.base.root()
    }
}

impl Plan {
    /// Pages that it takes.
    pub(crate) fn pages(&self) -> u64 {
        let bitmaps = self.bitmaps.iter().flatten().count();
        (bitmaps + self.directories.len() + self.root_count + self.pending_pages) as u64
    }
}

/// Seals pages one after the other into one buffer.
struct Builder {
    page_size: usize,
    addr: u64,
    txn: u64,
    bytes: Vec<u8>,
}

impl Builder {
    fn add(&mut self, mut page: Vec<u8>, kind: Kind, owner: u64) -> Ptr {
        debug_assert_eq!(page.len(), self.page_size);
        let header = Header {
            kind,
            flags: 0,
            owner,
            address: self.addr + self.bytes.len() as u64,
            birth: TxnId(self.txn),
        };
        let ptr = seal_block(&mut page, &header);
        self.bytes.extend_from_slice(&page);
        ptr
    }
}

impl Space {
    /// True when what the next meta record has to say does not fit into it.
    pub(crate) fn needs_base(&self) -> bool {
        self.overflow || !fits(self.changes.len(), self.fresh.len())
    }

    /// What the meta record says while the structure stays: the file's length and the lists.
    pub(crate) fn meta_lists(&self) -> (u64, Vec<Change>, Vec<Dead>) {
        let pages = self.stored_pages(self.base.pages.max(first_page(self.page_size)));
        let mut changes = self.changes.to_vec();
        // What is free beyond the stored length needs no saying.
        changes.retain(|change| change.page < pages);
        if let Some(last) = changes.last_mut() {
            last.pages = last.pages.min(pages - last.page);
        }
        (pages, changes, self.fresh.clone())
    }

    /// Prepares the rewrite of what was touched. Everything but the addresses is fixed here, before its own
    /// pages are taken.
    pub(crate) fn plan_base(&self, txn: u64) -> Plan {
        let base_pages = self.stored_pages(first_page(self.page_size));
        let zones_here = base_pages.div_ceil(self.zone_pages) as usize;
        let per_directory = zones_per_directory(self.page_size);
        let zones: Vec<usize> = self.touched.range(..zones_here).copied().collect();
        let directories: BTreeSet<usize> = zones.iter().map(|zone| zone / per_directory).collect();
        let directory_count = zones_here.div_ceil(per_directory);
        let root_count = directory_count.div_ceil(directories_per_root(self.page_size));
        let mut replaced: Vec<Ptr> = Vec::new();
        replaced.extend(zones.iter().filter_map(|&zone| self.base.bitmaps.get(zone)));
        replaced.extend(
            directories
                .iter()
                .filter_map(|&i| self.base.directories.get(i)),
        );
        replaced.extend(self.base.bitmaps.iter().skip(zones_here));
        replaced.extend(self.base.directories.iter().skip(directory_count));
        replaced.extend(&self.base.roots);
        replaced.extend(&self.base.pendings);
        replaced.retain(|ptr| !ptr.is_null());
        let dead = join(&mut replaced, self.page_size, txn);
        let mut pendings = self.fresh.clone();
        pendings.extend(&dead);
        let inline = fits(8, pendings.len());
        let pending_pages = if inline {
            0
        } else {
            pendings.len().div_ceil(pendings_per_page(self.page_size))
        };
        let mut bitmaps = Vec::new();
        let mut entries = Vec::new();
        for &number in &zones {
            let zone = &self.zones[number];
            let from = number as u64 * self.zone_pages;
            let here = (base_pages - from).min(self.zone_pages);
            let words = zone.disk_words();
            let free = zone.disk_free_count(here);
            entries.push((
                free as u32,
                (zone.longest().min(free) as u32) << 8 | zone.used_for as u32,
            ));
            if free == here {
                bitmaps.push(None);
                continue;
            }
            let mut page = vec![0u8; self.page_size];
            for (i, word) in words.iter().enumerate() {
                put_u64(&mut page, BITMAP_AT + i * 8, *word);
            }
            bitmaps.push(Some(page));
        }
        Plan {
            txn,
            base_pages,
            zones,
            bitmaps,
            entries,
            directories: directories.into_iter().collect(),
            directory_count,
            root_count,
            pendings,
            pending_pages,
            dead,
        }
    }

    /// Gives the rewrite its pages, an extent at `page`. `old_directory` returns the bytes of a directory
    /// page of the old structure.
    pub(crate) fn build_base(
        &self,
        plan: Plan,
        page: u64,
        old_directory: &dyn Fn(&Ptr) -> Result<Vec<u8>>,
    ) -> Result<NewBase> {
        let page_size = self.page_size;
        let pages = plan.pages();
        let mut builder = Builder {
            page_size,
            addr: page * page_size as u64,
            txn: plan.txn,
            bytes: Vec::with_capacity(pages as usize * page_size),
        };
        let mut base = self.base.clone();
        base.pages = plan.base_pages;
        base.bitmaps.resize(
            plan.base_pages.div_ceil(self.zone_pages) as usize,
            Ptr::NULL,
        );
        base.directories.resize(plan.directory_count, Ptr::NULL);
        for (&zone, bitmap) in plan.zones.iter().zip(plan.bitmaps) {
            base.bitmaps[zone] = match bitmap {
                Some(bytes) => builder.add(bytes, Kind::FreeBitmap, zone as u64),
                None => Ptr::NULL,
            };
        }
        let per_directory = zones_per_directory(page_size);
        for &number in &plan.directories {
            let mut bytes = match self.base.directories.get(number) {
                Some(old) if !old.is_null() => old_directory(old)?,
                _ => vec![0u8; page_size],
            };
            for (&zone, (free, word)) in plan.zones.iter().zip(&plan.entries) {
                if zone / per_directory == number {
                    let at = DIRECTORY_ENTRIES_AT + zone % per_directory * DIRECTORY_ENTRY_BYTES;
                    base.bitmaps[zone].encode(&mut bytes, at);
                    put_u32(&mut bytes, at + PTR_BYTES, *free);
                    put_u32(&mut bytes, at + PTR_BYTES + 4, *word);
                }
            }
            base.directories[number] = builder.add(bytes, Kind::FreeDirectory, number as u64);
        }
        base.pendings.clear();
        let mut next = Ptr::NULL;
        if plan.pending_pages > 0 {
            let chunks = plan.pendings.chunks(pendings_per_page(page_size));
            for chunk in chunks.rev() {
                let mut bytes = vec![0u8; page_size];
                next.encode(&mut bytes, PENDING_NEXT_AT);
                put_u32(&mut bytes, PENDING_COUNT_AT, chunk.len() as u32);
                for (i, dead) in chunk.iter().enumerate() {
                    dead.encode(&mut bytes, PENDING_ENTRIES_AT + i * PENDING_BYTES);
                }
                next = builder.add(bytes, Kind::FreePending, 0);
                base.pendings.push(next);
            }
        }
        let pending_list = next;
        base.roots.clear();
        let mut next = Ptr::NULL;
        let chunks = base.directories.chunks(directories_per_root(page_size));
        for chunk in chunks.rev() {
            let mut bytes = vec![0u8; page_size];
            put_u64(&mut bytes, ROOT_PAGES_AT, base.pages);
            let pendings = plan.pending_pages.min(1) * plan.pendings.len();
            put_u64(&mut bytes, ROOT_PENDINGS_AT, pendings as u64);
            pending_list.encode(&mut bytes, ROOT_PENDING_LIST_AT);
            next.encode(&mut bytes, ROOT_NEXT_AT);
            put_u32(&mut bytes, ROOT_COUNT_AT, chunk.len() as u32);
            for (i, directory) in chunk.iter().enumerate() {
                directory.encode(&mut bytes, ROOT_ENTRIES_AT + i * PTR_BYTES);
            }
            next = builder.add(bytes, Kind::FreeRoot, 0);
            base.roots.push(next);
        }
        base.roots.reverse();
        assert_eq!(
            builder.bytes.len() as u64,
            pages * page_size as u64,
            "a rewrite of the free-space structure takes exactly what was planned"
        );
        let mut changes = Changes::default();
        changes.set(page, pages, true);
        let first = page / self.zone_pages;
        let last = (page + pages - 1) / self.zone_pages;
        let mut touched: BTreeSet<usize> = (first as usize..=last as usize).collect();
        if self.pages > plan.base_pages {
            // What lies beyond counts as free and touched.
            touched.extend((plan.base_pages / self.zone_pages) as usize..self.zones.len());
        }
        Ok(NewBase {
            base,
            meta_changes: changes.to_vec(),
            meta_pages: plan.base_pages.max(page + pages),
            changes,
            touched,
            bytes: builder.bytes,
            meta_pendings: if plan.pending_pages > 0 {
                Vec::new()
            } else {
                plan.pendings
            },
        })
    }

    /// The rewrite is what the next meta record builds on. `dead` are the pages that it replaced.
    pub(crate) fn install_base(&mut self, new: NewBase, dead: &[Dead]) {
        self.base = new.base;
        self.touched = new.touched;
        self.overflow = false;
        for change in &new.meta_changes {
            self.for_zones(change.page, change.pages, |_, zone, from, len| {
                zone.set_disk(from, len, false);
            });
        }
        self.changes = new.changes;
        self.fresh.extend_from_slice(dead);
    }
}

/// Pages as joined ranges of one birth each.
fn join(ptrs: &mut [Ptr], page_size: usize, txn: u64) -> Vec<Dead> {
    ptrs.sort_unstable_by_key(|ptr| ptr.addr);
    let mut dead: Vec<Dead> = Vec::new();
    for ptr in ptrs {
        let page = ptr.addr / page_size as u64;
        match dead.last_mut() {
            Some(last) if last.page + last.pages == page && last.birth == ptr.birth.0 => {
                last.pages += 1;
            }
            _ => dead.push(Dead {
                page,
                pages: 1,
                birth: ptr.birth.0,
                freed: txn,
            }),
        }
    }
    dead
}

/// Reads a page by its pointer, verified.
pub(crate) type ReadPage<'a> = &'a dyn Fn(&Ptr) -> Result<PageRef<'a>>;

fn damaged(what: &str, ptr: &Ptr, found: impl std::fmt::Display, expected: &str) -> Error {
    Corrupt::new(format!("free space: {what}"), ptr.addr, found, expected).into()
}

fn read_kind<'a>(read: ReadPage<'a>, ptr: &Ptr, kind: Kind) -> Result<PageRef<'a>> {
    if ptr.kind != kind {
        return Err(damaged(
            "page",
            ptr,
            format!("{:?}", ptr.kind),
            &format!("{kind:?}"),
        ));
    }
    read(ptr)
}

/// Reads the free space as a meta record describes it. `before` is the durable transaction before it.
pub(crate) fn load(
    page_size: usize,
    meta: &Meta,
    before: u64,
    read: ReadPage<'_>,
) -> Result<Space> {
    let (base, listed) = load_base(page_size, meta, read)?;
    let zone_pages = zone_pages(page_size);
    let mut space = Space::new(page_size, meta.pages, base.clone(), [meta.txn, before]);
    for (number, ptr) in base.bitmaps.iter().enumerate() {
        let from = number as u64 * zone_pages;
        let here = (base.pages - from).min(zone_pages);
        let zone = &mut space.zones[number];
        zone.used_for = base.uses[number];
        if ptr.is_null() {
            zone.set_disk(0, here, true);
            continue;
        }
        let page = read_kind(read, ptr, Kind::FreeBitmap)?;
        load_bitmap(zone, &page, here);
    }
    let grown = base.pages.max(first_page(page_size));
    if meta.pages > grown {
        space.for_zones(grown, meta.pages - grown, |_, zone, from, len| {
            zone.set_disk(from, len, true);
        });
    }
    // Whatever a bitmap says, the head is used.
    let head = first_page(page_size);
    space.for_zones(0, head, |_, zone, from, len| {
        zone.set_disk(from, len, false)
    });
    let at = Ptr::NULL;
    for change in &meta.changes {
        if !space.in_file(change.page, change.pages) {
            let found = format!("pages {}+{}", change.page, change.pages);
            return Err(damaged("change", &at, found, "a range inside the file"));
        }
        space.note(change.page, change.pages, change.used);
    }
    let mut seen = super::RangeSet::default();
    let pendings: Vec<Dead> = listed
        .into_iter()
        .chain(meta.pendings.iter().copied())
        .collect();
    for dead in &pendings {
        let sound = space.in_file(dead.page, dead.pages)
            && !space.any_disk_free(dead.page, dead.pages)
            && dead.birth < dead.freed
            && dead.freed <= meta.txn
            && seen.insert(dead.page, dead.pages);
        if !sound {
            let expected = "used pages of the file, once";
            return Err(damaged("pending range", &at, format!("{dead:?}"), expected));
        }
    }
    for zone in &mut space.zones {
        zone.free_what_disk_says();
    }
    for dead in pendings {
        space.held_pages += dead.pages;
        space.held.entry(before).or_default().push(dead);
        space.note(dead.page, dead.pages, false);
    }
    Ok(space)
}

fn load_bitmap(zone: &mut Zone, page: &[u8], here: u64) {
    let words = zone.disk_words().len();
    for i in 0..words {
        let at = BITMAP_AT + i * 8;
        if at + 8 > page.len() {
            break;
        }
        zone.set_disk_word(i, get_u64(page, at));
    }
    // Bits beyond the described part mean nothing.
    let bits = words as u64 * 64;
    zone.set_disk(here, bits - here, false);
}

fn load_base(page_size: usize, meta: &Meta, read: ReadPage<'_>) -> Result<(Base, Vec<Dead>)> {
    let mut base = Base::default();
    let mut listed = Vec::new();
    if meta.free_root.is_null() {
        return Ok((base, listed));
    }
    let (zone_pages, per_root) = (zone_pages(page_size), directories_per_root(page_size));
    let mut at = meta.free_root;
    let mut pending = (Ptr::NULL, 0);
    loop {
        let page = read_kind(read, &at, Kind::FreeRoot)?;
        let pages = get_u64(&page, ROOT_PAGES_AT);
        if base.roots.is_empty() {
            base.pages = pages;
            pending = (
                Ptr::decode(&page, ROOT_PENDING_LIST_AT),
                get_u64(&page, ROOT_PENDINGS_AT),
            );
        }
        if pages > meta.pages || pages < first_page(page_size) || pages != base.pages {
            let expected = format!("at most {} pages, alike in all roots", meta.pages);
            return Err(damaged("root", &at, pages, &expected));
        }
        let zones = pages.div_ceil(zone_pages) as usize;
        let directories = zones.div_ceil(zones_per_directory(page_size));
        let wanted = (directories - base.directories.len()).min(per_root);
        let found = get_u32(&page, ROOT_COUNT_AT) as usize;
        if found != wanted {
            let expected = format!("{wanted} directories");
            return Err(damaged("root", &at, found, &expected));
        }
        for i in 0..found {
            let directory = Ptr::decode(&page, ROOT_ENTRIES_AT + i * PTR_BYTES);
            base.directories.push(directory);
        }
        base.roots.push(at);
        at = Ptr::decode(&page, ROOT_NEXT_AT);
        if base.directories.len() == directories {
            break;
        }
    }
    let zones = base.pages.div_ceil(zone_pages) as usize;
    for directory in &base.directories {
        let page = read_kind(read, directory, Kind::FreeDirectory)?;
        for i in 0..zones_per_directory(page_size).min(zones - base.bitmaps.len()) {
            let at = DIRECTORY_ENTRIES_AT + i * DIRECTORY_ENTRY_BYTES;
            base.bitmaps.push(Ptr::decode(&page, at));
            let word = get_u32(&page, at + PTR_BYTES + 4);
            base.uses.push(Use::from_u8((word & 0xff) as u8));
        }
    }
    load_pendings(page_size, meta, read, pending, &mut base, &mut listed)?;
    Ok((base, listed))
}

fn load_pendings(
    page_size: usize,
    meta: &Meta,
    read: ReadPage<'_>,
    (mut at, count): (Ptr, u64),
    base: &mut Base,
    listed: &mut Vec<Dead>,
) -> Result<()> {
    let mut left = count;
    while !at.is_null() {
        let page = read_kind(read, &at, Kind::FreePending)?;
        let here = u64::from(get_u32(&page, PENDING_COUNT_AT));
        if here == 0 || here > left || here > pendings_per_page(page_size) as u64 {
            return Err(damaged(
                "pending list",
                &at,
                here,
                &format!("1 to {left} ranges"),
            ));
        }
        left -= here;
        if meta.free_root.birth.0 == meta.txn {
            for i in 0..here as usize {
                listed.push(Dead::decode(&page, PENDING_ENTRIES_AT + i * PENDING_BYTES));
            }
        }
        base.pendings.push(at);
        at = Ptr::decode(&page, PENDING_NEXT_AT);
    }
    Ok(())
}
