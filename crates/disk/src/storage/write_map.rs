//! Writes through a map: pages of lazy commits that are overwritten repeatedly are copied into the system's cache by
//! the process itself, at a third of the cost of a system call (docs/performance/lazy-commits.md).
//!
//! A write to a map cannot return an error; a failure is a signal. So a place is written this way only if this handle
//! has recently written it by `pwrite`: its blocks are then allocated, and it is in the system's cache. The file system
//! must overwrite blocks in place. If a write moves blocks (btrfs, clones on XFS), a full disk would be a signal.
//!
//! After the system has written a mapped page to the disk, it protects the page again, and the next change costs a page
//! fault, more than a `pwrite`. So a place is written through the map only if it was written often since the last sync.
//!
//! Such a place need not be written at all: the transaction that got it may change the page in place, `Lent` (decision
//! 0024).
//!
//! Invariants
//! 1. A place in the table was written by this handle, and its blocks were not returned since: `forget` comes before
//!    every sync, truncation and punch of this handle, and before changes by another handle count.
//! 2. Bytes beyond the file's end are never touched.
//! 3. The map is lent once at a time, and its borrower checks each place in the table (`may`). While a transaction uses
//!    the place it holds the writer lock: no other handle truncates the file or returns blocks, and the transaction
//!    itself does so only afterwards.

use super::Places;
use super::map::{MAP_BYTES, Mapped};
use rustix::mm::ProtFlags;
use std::fs::File;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Length in bytes of a place: a page of the system's usual size. If the system's pages are larger, nothing is
/// written through a map.
const PLACE_BYTES: u64 = 4096;
/// Number of entries in the table of places, which together cover 256 MiB of the file.
const PLACES: usize = 1 << 16;
/// A place that was written this many times since the last sync is likely to be written again before the next sync.
const OFTEN: u32 = 3;
const COUNT_BITS: u32 = 2;
const _: () = assert!(OFTEN < 1 << COUNT_BITS);
const _: () =
    assert!((MAP_BYTES / PLACE_BYTES) as usize / PLACES < 1 << (32 - COUNT_BITS) as usize);

/// Numbers of file systems (`statfs`) that overwrite blocks in place: ext2 to ext4, tmpfs.
const IN_PLACE: [i64; 2] = [0xef53, 0x0102_1994];

/// Table of recently written places: entry `place % PLACES` is `(place / PLACES + 1) << COUNT_BITS | number of
/// writes`.
type Table = Vec<u32>;

#[derive(Debug, Default)]
pub(super) struct WriteMap {
    map: OnceLock<Option<Map>>,
    table: Mutex<Table>,
    is_lent: AtomicBool,
}

impl WriteMap {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Empties the table of recently written places, so that every place must be written by `pwrite` before it is
    /// written through the map again.
    pub(super) fn forget(&self) {
        // The memory of the table is allocated again by the next write; handles that never write through a map have
        // no table.
        self.table().clear();
    }

    /// Lends the map for changes in place; returns `None` while it is lent already.
    pub(super) fn lend(own: &Arc<Self>) -> Option<Lent> {
        let taken = own.is_lent.swap(true, Ordering::Acquire);
        (!taken).then(|| Lent(Arc::clone(own)))
    }

    /// Returns the map if every place of the range was written often enough since the last sync to be written through
    /// the map.
    fn often(&self, at: u64, len: usize) -> Option<&Map> {
        let map = self.map.get()?.as_ref()?;
        let end = at.checked_add(len as u64)?;
        let whole = at.is_multiple_of(PLACE_BYTES) && end.is_multiple_of(PLACE_BYTES);
        if !whole || end > MAP_BYTES {
            return None;
        }
        let table = self.table();
        let mut places = at / PLACE_BYTES..end / PLACE_BYTES;
        places
            .all(|place| table.get(place as usize % PLACES) == Some(&(tag(place) | OFTEN)))
            .then_some(map)
    }

    /// Writes pieces one after the other from byte offset `at` on, inside the file. A piece whose places were written
    /// often is copied through the map; other pieces, and all pieces beyond the map, are written by `pwrite`,
    /// together with their neighbours.
    pub(super) fn write(
        &self,
        file: &File,
        at: u64,
        pieces: &[&[u8]],
        mut pwrite: impl FnMut(u64, &[&[u8]]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let whole = |piece: &&[u8]| (piece.len() as u64).is_multiple_of(PLACE_BYTES);
        let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        let inside = at.checked_add(bytes).is_some_and(|end| end <= MAP_BYTES);
        if !inside || !at.is_multiple_of(PLACE_BYTES) || !pieces.iter().all(whole) {
            return pwrite(at, pieces);
        }
        let Some(map) = self.map.get_or_init(|| Map::new(file)) else {
            return pwrite(at, pieces);
        };
        let mut table = self.table();
        if table.is_empty() {
            table.resize(PLACES, 0);
        }
        // Start offset and first index of the consecutive pieces that wait for `pwrite`.
        let (mut from, mut first, mut next) = (at, 0, at);
        for (number, piece) in pieces.iter().enumerate() {
            let (start, end) = (next, next + piece.len() as u64);
            next = end;
            let mut often = true;
            for place in start / PLACE_BYTES..end / PLACE_BYTES {
                often &= note(&mut table, place);
            }
            if often {
                if first < number {
                    pwrite(from, &pieces[first..number])?;
                }
                map.write(start as usize, piece);
                (from, first) = (end, number + 1);
            }
        }
        assert_eq!(next, at + bytes, "every piece has its place");
        if first < pieces.len() {
            pwrite(from, &pieces[first..])?;
        }
        Ok(())
    }
}

/// Returns the table entry of a place with a write count of zero.
fn tag(place: u64) -> u32 {
    ((place / PLACES as u64) as u32 + 1) << COUNT_BITS
}

/// Counts a write of a place in the table; returns whether the place was written often before.
fn note(table: &mut Table, place: u64) -> bool {
    let entry = &mut table[place as usize % PLACES];
    let tag = tag(place);
    let count = *entry ^ tag;
    if count > OFTEN {
        // The table entry belongs to another place, or is empty. The new place replaces it.
        *entry = tag | 1;
        return false;
    }
    debug_assert!(*entry >> COUNT_BITS == tag >> COUNT_BITS, "another place");
    *entry = tag | (count + 1).min(OFTEN);
    count == OFTEN
}

/// A writable map of the beginning of a file, used while the table is locked.
#[derive(Debug)]
struct Map(Mapped);

impl Map {
    /// Creates the map; returns `None` if writing to a map might fail on this file system, or if the system does not
    /// permit the map.
    fn new(file: &File) -> Option<Self> {
        let system = rustix::fs::fstatfs(file).ok()?;
        #[expect(clippy::useless_conversion, reason = "its width differs by platform")]
        let kind = i64::from(system.f_type);
        if rustix::param::page_size() as u64 != PLACE_BYTES || !IN_PLACE.contains(&kind) {
            return None;
        }
        let mapped = Mapped::new(file, 0, ProtFlags::READ | ProtFlags::WRITE)?;
        Some(Self(mapped))
    }

    /// Copies bytes into the map at offset `at`.
    fn write(&self, at: usize, bytes: &[u8]) {
        let to = self.0.at(at, bytes.len());
        // SAFETY: the range lies inside the map (checked by `at`) and inside the file, whose blocks are allocated
        // (invariants 1 and 2). `bytes` is memory of the process, not of this map, which is not lent. Concurrent
        // readers see the same as with `pwrite`: only free pages are written, and any reader of a free page checks
        // afterwards whether its read is still valid.
        #[expect(unsafe_code, reason = "the one place that writes to the map")]
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

/// The map while it is lent to a transaction that changes pages in place.
#[derive(Debug)]
pub(super) struct Lent(Arc<WriteMap>);

impl Drop for Lent {
    fn drop(&mut self) {
        let was_lent = self.0.is_lent.swap(false, Ordering::Release);
        debug_assert!(was_lent, "the map comes back once");
    }
}

impl Lent {
    fn at(&self, at: u64, len: usize) -> *mut u8 {
        match self.0.map.get() {
            Some(Some(Map(map))) => map.at(at as usize, len),
            _ => unreachable!("only places of the map are asked for"),
        }
    }
}

impl Places for Lent {
    fn may(&mut self, at: u64, len: usize) -> bool {
        self.0.often(at, len).is_some()
    }

    fn bytes(&self, at: u64, len: usize) -> &[u8] {
        let from = self.at(at, len);
        // SAFETY: the range lies inside the map (checked by `at`) and inside the file, whose blocks are allocated
        // (invariants 1 to 3). Only the single `Lent` (invariant 3) changes the range in this process, through
        // `&mut`; `WriteMap::write` is not called for places that the pager changes in place. If other programs
        // change a page of a transaction that holds the writer lock, this is damage, which checksums detect.
        #[expect(unsafe_code, reason = "the one place that lends the writable map")]
        unsafe {
            std::slice::from_raw_parts(from, len)
        }
    }

    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8] {
        let from = self.at(at, len);
        // SAFETY: as in `bytes`, and `&mut self` lends nothing else in the meantime. Other threads may see these
        // bytes through the read-only map, as during the copy in `write`: the bytes belong to a free page, and any
        // reader of a free page checks afterwards whether its read is still valid.
        #[expect(unsafe_code, reason = "the one place that lends the writable map")]
        unsafe {
            std::slice::from_raw_parts_mut(from, len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OFTEN, PLACES, note};
    #[cfg(not(miri))]
    use crate::storage::{FileStorage, Growth, Storage};

    #[cfg(not(miri))]
    const PAGE: usize = 4096;

    #[cfg(not(miri))]
    fn storage(name: &str) -> (FileStorage, std::path::PathBuf) {
        let name = format!("write-map-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = std::fs::OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&path).unwrap();
        (FileStorage::new(file, true).unwrap().write_map(), path)
    }

    #[test]
    fn a_place_is_often_written_after_the_third_time() {
        let mut table = vec![0; PLACES];
        for round in 0..5 {
            assert_eq!(note(&mut table, 7), round >= OFTEN);
        }
        assert!(!note(&mut table, 7 + PLACES as u64), "another place");
        assert!(!note(&mut table, 7), "which has driven it out");
    }

    /// Pages written through the map and pages written by `pwrite` must all be in the file. The test writes runs of
    /// pages, some often and some not, with syncs, truncations and growth in between, and compares the file with a
    /// copy in memory.
    #[test]
    #[cfg(not(miri))]
    fn what_is_written_either_way_is_there() {
        let (storage, path) = storage("ways");
        let mut seed = 7u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let mut model = vec![0u8; 64 * PAGE];
        storage.grow(model.len() as u64, Growth::Reserve).unwrap();
        for round in 0..4000 {
            let (from, pages) = (random(model.len() / PAGE - 4), 1 + random(4));
            let bytes: Vec<u8> = (0..pages * PAGE).map(|at| (at / 7 + round) as u8).collect();
            let pieces: Vec<&[u8]> = bytes.chunks(PAGE).collect();
            let at = from * PAGE;
            storage.write_passing(at as u64, &pieces).unwrap();
            model[at..at + bytes.len()].copy_from_slice(&bytes);
            match random(200) {
                0 => storage.sync().unwrap(),
                1 => {
                    let len = (16 + random(48)) * PAGE;
                    storage.cut(len as u64).unwrap();
                    model.truncate(len);
                    model.resize(64 * PAGE, 0);
                    storage.grow(model.len() as u64, Growth::Zeros).unwrap();
                }
                2 => {
                    let punched = storage.punch((8 * PAGE) as u64, (4 * PAGE) as u64).unwrap();
                    if punched {
                        model[8 * PAGE..12 * PAGE].fill(0);
                    }
                }
                _ => {}
            }
            let mut found = vec![0; 4 * PAGE];
            storage.read_at(at as u64, &mut found).unwrap();
            assert_eq!(found, model[at..at + 4 * PAGE], "round {round}");
        }
        // A write beyond the end of the file must fail or make the file longer; it must never cause a signal.
        drop(storage.write_passing(model.len() as u64, &[&[1; PAGE]]));
        std::fs::remove_file(path).unwrap();
    }

    /// A place may be changed in the map only if it was written often since the last sync, and only by one borrower
    /// at a time. The changes must be in the file.
    #[test]
    #[cfg(not(miri))]
    fn places_are_lent_once_and_where_they_were_written_often() {
        let (storage, path) = storage("places");
        storage.grow(8 * PAGE as u64, Growth::Reserve).unwrap();
        let Some(mut places) = storage.places() else {
            panic!("the map was not lent");
        };
        assert!(storage.places().is_none(), "it is lent");
        let (at, beside) = (2 * PAGE as u64, 3 * PAGE as u64);
        for round in 0..OFTEN {
            assert!(!places.may(at, PAGE), "written {round} times");
            storage.write_passing(at, &[&[1; PAGE]]).unwrap();
        }
        let in_map = places.may(at, PAGE);
        // On file systems that do not overwrite blocks in place, no place may be changed in the map.
        if in_map {
            assert!(!places.may(at, 2 * PAGE) && !places.may(beside, PAGE));
            assert!(!places.may(at + 1, PAGE) && !places.may(at, PAGE / 2));
            assert!(!places.may(u64::MAX - 8, PAGE));
            places.bytes_mut(at, PAGE)[7] = 9;
            assert_eq!(places.bytes(at, PAGE)[..9], [1, 1, 1, 1, 1, 1, 1, 9, 1]);
            let mut found = [0; 9];
            storage.read_at(at, &mut found).unwrap();
            assert_eq!(found, [1, 1, 1, 1, 1, 1, 1, 9, 1]);
            assert_eq!(storage.mapped_page(at, 9), Some(&found[..]));
        }
        // After a sync, or after blocks were returned to the file system, a place must be written by a system call
        // first.
        type Call<'a> = &'a dyn Fn();
        let calls: [(&str, Call<'_>); 3] = [
            ("synced", &|| storage.sync().unwrap()),
            ("punched", &|| drop(storage.punch(at, PAGE as u64))),
            ("cut", &|| storage.cut(4 * PAGE as u64).unwrap()),
        ];
        for (name, call) in calls {
            for _ in 0..=OFTEN {
                storage.write_passing(at, &[&[1; PAGE]]).unwrap();
            }
            assert_eq!(places.may(at, PAGE), in_map);
            call();
            assert!(!places.may(at, PAGE), "{name}");
        }
        drop(places);
        assert!(storage.places().is_some(), "given back");
        std::fs::remove_file(path).unwrap();
    }
}
