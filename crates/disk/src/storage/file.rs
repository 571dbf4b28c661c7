//! A file of the operating system, or a block device: `pread`, `pwrite`, `fdatasync`, and a read-only map.
//!
//! Invariants
//! 1. Bytes before `len` may be lent from the map: `len` is raised after the file has grown, and lowered before it is
//!    truncated. Other processes truncate only space that no snapshot of this process may read (`length.rs`).
//! 2. A device has a fixed length: it is never grown, truncated or punched.

use super::length::Length;
use super::map::{MAP_BYTES, MAPS_MAX, Map, place};
use super::named::Named;
use super::range_maps::RangeMaps;
use super::write_map::WriteMap;
use super::{Growth, Places, Storage, device, machine, unnamed, write_back};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::ReadWriteFlags;
use std::fs::File;
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Readahead mode: how much the system reads around a mapped page that is not in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAhead {
    /// The system's readahead is on while the file is no larger than a quarter of the memory that the process may use
    /// (of the machine, or the bound of its control groups). In a larger file single pages are read alone, and table
    /// scans prefetch the leaves ahead.
    #[default]
    Auto,
    /// The system's readahead is always on.
    On,
    /// The system's readahead is off for pages and for blocks of series and values.
    Off,
}

/// Size in bytes of the pieces in which zeros are written. The system caches a piece as one unit, and a later write
/// of a single page walks through all blocks of the unit: after pieces of 1 MiB it takes three times as long
/// (docs/performance/durable-commits.md).
const ZEROS_BYTES: usize = 64 << 10;

/// A file counts as large if its length exceeds 1/`LARGE_PART` of the memory that the process may use.
const LARGE_PART: u64 = 4;

/// A data file in a file of the operating system, or on a block device.
#[derive(Debug)]
pub struct FileStorage {
    file: Arc<File>,
    is_device: bool,
    len: Length,
    use_map: bool,
    read_ahead: ReadAhead,
    /// Whether single pages are read without readahead. Decided when the file is opened and after each growth.
    pages_alone: AtomicBool,
    write_map: Option<Arc<WriteMap>>,
    /// Read-only maps through which blocks of extents are read, which are contiguous.
    maps: [OnceLock<Option<Map>>; MAPS_MAX],
    /// Read-only maps through which single scattered pages are read.
    page_maps: [OnceLock<Option<Map>>; MAPS_MAX],
    /// Read-only maps through which pages are read in file order, used when single pages are read without readahead.
    range_maps: OnceLock<Option<Box<RangeMaps>>>,
}

impl FileStorage {
    /// Creates a storage on an open file or block device. With `use_map`, reads are served from a read-only memory
    /// map, and an error of the medium causes a signal. Without `use_map`, every read is a `pread`, and every error
    /// of the medium is a typed error.
    ///
    /// # Errors
    /// If the system does not report the length of the file.
    pub fn new(file: File, use_map: bool) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let is_device = device::is_device(&metadata);
        let len = if is_device {
            device::len(&file)?
        } else {
            metadata.len()
        };
        Ok(Self {
            file: Arc::new(file),
            is_device,
            len: Length::new(len),
            use_map,
            read_ahead: ReadAhead::Auto,
            pages_alone: AtomicBool::new(false),
            write_map: None,
            maps: [const { OnceLock::new() }; MAPS_MAX],
            page_maps: [const { OnceLock::new() }; MAPS_MAX],
            range_maps: OnceLock::new(),
        })
    }

    /// Creates an unnamed file in this folder, private to this process (mode 0600). The file disappears when the
    /// storage is dropped or the process is killed.
    ///
    /// # Errors
    /// Errors of the system: the folder is missing or not writable.
    pub fn unnamed(folder: &Path, use_map: bool) -> io::Result<Self> {
        Self::new(unnamed::create(folder)?, use_map)
    }

    /// Returns the open file together with the path at which it is expected, whose symbolic links must be resolved.
    pub fn named(&self, path: PathBuf) -> io::Result<Named> {
        let metadata = self.file.metadata()?;
        Ok(Named::new(Arc::clone(&self.file), path, &metadata))
    }

    /// Returns the file with the given readahead mode.
    #[must_use]
    pub fn read_ahead(self, read_ahead: ReadAhead) -> Self {
        let file = Self { read_ahead, ..self };
        file.judge();
        file
    }

    /// Allows [`Storage::write_passing`] to write repeatedly overwritten pages through a map.
    #[must_use]
    pub fn write_map(self) -> Self {
        let write_map = (!self.is_device).then(Arc::default);
        Self { write_map, ..self }
    }

    /// Decides whether single pages are read without readahead: readahead helps only while the additional pages can
    /// stay in memory.
    fn judge(&self) {
        let is_large = || match self.read_ahead {
            ReadAhead::Auto => self.len.known() > machine::memory_bytes() / LARGE_PART,
            ReadAhead::On => false,
            ReadAhead::Off => true,
        };
        if self.use_map && !self.reads_single_pages() && is_large() {
            // The flag is set before the existing maps are changed, so that a map that another thread creates now is
            // either created without readahead or changed here.
            self.pages_alone.store(true, Ordering::SeqCst);
            let maps = self.page_maps.iter().filter_map(OnceLock::get);
            maps.flatten().for_each(Map::read_single_pages);
        }
    }

    /// Empties the table of the `WriteMap`, so that every page must be written by `pwrite` first before it is written
    /// through the map.
    fn forget_written(&self) {
        if let Some(map) = &self.write_map {
            map.forget();
        }
    }

    #[cold]
    fn make_map(&self, index: usize, from: u64, scattered: bool) -> &Option<Map> {
        self.judge();
        let maps = if scattered {
            &self.page_maps
        } else {
            &self.maps
        };
        let map = maps[index].get_or_init(|| Map::new(&self.file, from));
        if self.read_ahead == ReadAhead::Off || scattered && self.reads_single_pages() {
            map.iter().for_each(Map::read_single_pages);
        }
        map
    }

    #[inline]
    fn lent(&self, at: u64, len: usize, scattered: bool) -> Option<&[u8]> {
        let end = at.checked_add(len as u64)?;
        if !self.use_map || end > self.len.known() {
            return None;
        }
        let (index, from, inside) = place(at, len)?;
        let maps = if scattered {
            &self.page_maps
        } else {
            &self.maps
        };
        let map = match maps[index].get() {
            Some(map) => map,
            None => self.make_map(index, from, scattered),
        };
        Some(map.as_ref()?.slice(inside, len))
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = vec![0u8; ZEROS_BYTES];
        let mut at = from;
        while at < to {
            let len = (to - at).min(ZEROS_BYTES as u64);
            self.file.write_all_at(&zeros[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }

    fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::empty(), from, to - from) {
            Ok(()) => Ok(()),
            // The file system cannot reserve space, so the file is only extended. A full disk is then detected when
            // the pages are written.
            Err(rustix::io::Errno::OPNOTSUPP) => self.file.set_len(to),
            Err(error) => Err(error.into()),
        }
    }
}

impl Storage for FileStorage {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn write_pieces(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut written = match rustix::io::pwritev(&self.file, &slices, at) {
            Ok(written) => written,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        if written == bytes {
            return Ok(());
        }
        // After a short write, the rest is written piece by piece.
        let mut start = at;
        for piece in pieces {
            debug_assert!(start >= at, "pieces are written in order");
            let done = written.min(piece.len());
            self.file
                .write_all_at(&piece[done..], start + done as u64)?;
            written -= done;
            start += piece.len() as u64;
        }
        Ok(())
    }

    fn write_passing(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let end = at.saturating_add(bytes as u64);
        let pwrite = |at: u64, pieces: &[&[u8]]| match pieces {
            [piece] => self.write_at(at, piece),
            _ => self.write_pieces(at, pieces),
        };
        match &self.write_map {
            Some(map) if end <= self.len.known() => map.write(&self.file, at, pieces, pwrite),
            _ => pwrite(at, pieces),
        }
    }

    fn places(&self) -> Option<Box<dyn Places>> {
        Some(Box::new(WriteMap::lend(self.write_map.as_ref()?)?))
    }

    fn write_durably(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let (rest, at) = (&bytes[written..], at + written as u64);
            let slices = [IoSlice::new(rest)];
            // `RWF_DSYNC` makes only this write durable, not other cached data of the file.
            match rustix::io::pwritev2(&self.file, &slices, at, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                    self.write_at(at, rest)?;
                    return self.sync();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn write_back(&self, at: u64, len: u64) {
        write_back::begin(&self.file, at, len);
    }

    fn writes_back(&self) -> bool {
        true
    }

    fn sync(&self) -> io::Result<()> {
        self.forget_written();
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.forget_written();
        self.file.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len.known())
    }

    fn resizes(&self) -> bool {
        !self.is_device
    }

    fn refresh(&self) -> io::Result<()> {
        if self.is_device {
            return Ok(());
        }
        // Another process may have punched holes into the file, so the table of pages that the `WriteMap` may write
        // is out of date.
        self.forget_written();
        self.len.refresh(|| Ok(self.file.metadata()?.len()))?;
        self.judge();
        Ok(())
    }

    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        if len <= self.len.known() {
            return Ok(());
        }
        if self.is_device {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // After a failed truncation, the file may be longer than the known length, and data written there since must
        // be kept.
        let old = self.file.metadata()?.len();
        self.len.change(len, || {
            let grown = match how {
                _ if len <= old => Ok(()),
                Growth::Zeros => self.write_zeros(old, len),
                Growth::Reserve => self.reserve(old, len),
            };
            // If the growth fails, it is undone. No bytes beyond the old length have been lent to readers.
            grown.inspect_err(|_| drop(self.file.set_len(old)))
        })?;
        debug_assert!(self.len.known() >= len, "growth that shows no length");
        self.judge();
        Ok(())
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        if self.is_device {
            return Ok(());
        }
        self.forget_written();
        let cut = self.len.change(len, || self.file.set_len(len));
        // If the truncation fails, the length is read from the system again.
        cut.inspect_err(|_| drop(self.refresh()))
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        if self.is_device {
            return Ok(false);
        }
        self.forget_written();
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, how, at, len) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn lock_in_memory(&self, bytes: u64) -> io::Result<u64> {
        let mut held = 0;
        for (index, map) in self.maps.iter().enumerate() {
            let from = index as u64 * MAP_BYTES;
            let here = bytes.saturating_sub(from).min(MAP_BYTES);
            let map = if here > 0 && self.use_map {
                self.make_map(index, from, false).as_ref()
            } else {
                map.get().and_then(Option::as_ref)
            };
            let Some(map) = map else { continue };
            if let Err(error) = map.lock(here as usize) {
                if bytes > 0 {
                    self.lock_in_memory(0)?;
                }
                return Err(error);
            }
            held += here;
        }
        Ok(held)
    }

    fn read_ahead(&self, at: u64, len: u64) -> io::Result<()> {
        let Some(len) = NonZeroU64::new(len) else {
            return Ok(());
        };
        Ok(fadvise(&self.file, at, Some(len), Advice::WillNeed)?)
    }

    #[inline]
    fn reads_single_pages(&self) -> bool {
        self.pages_alone.load(Ordering::SeqCst)
    }

    fn reads_ahead_in_order(&self) -> bool {
        if !self.reads_single_pages() || self.read_ahead == ReadAhead::Off {
            return false;
        }
        let opened = || RangeMaps::of(&self.file).map(Box::new);
        self.range_maps.get_or_init(opened).is_some()
    }

    fn mapped_in_order(&self, at: u64, len: usize) -> Option<&[u8]> {
        let inside = at.checked_add(len as u64)? <= self.len.known();
        match self.range_maps.get() {
            Some(Some(range_maps)) if inside => range_maps.slice(at, len),
            _ => self.mapped_page(at, len),
        }
    }

    #[inline]
    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.lent(at, len, false)
    }

    #[inline]
    fn mapped_page(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.lent(at, len, true)
    }
}

#[cfg(test)]
mod tests {
    use super::{FileStorage, Growth, Ordering, ReadAhead, Storage};
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use std::fs::File;

    const KIB: u64 = 1 << 10;

    /// In a large file, reads in file order with readahead must return the same bytes as reads of single pages,
    /// including pages appended later. With `ReadAhead::Off`, or for a small file, the maps for reads in file order
    /// are not used.
    #[test]
    #[cfg_attr(miri, ignore = "a file of the system's")]
    fn a_range_is_read_as_pages_are() {
        let flags = MemfdFlags::CLOEXEC;
        let file = File::from(memfd_create("tidalite-stretch", flags).expect("a file"));
        file.set_len(64 * KIB).expect("its length");
        let storage = FileStorage::new(file, true).expect("its length");
        assert!(!storage.reads_ahead_in_order(), "a small file");
        storage.pages_alone.store(true, Ordering::SeqCst);
        assert_eq!(storage.reads_ahead_in_order(), cfg!(target_os = "linux"));
        storage.grow(256 * KIB, Growth::Reserve).expect("longer");
        for at in [4 * KIB, 200 * KIB] {
            storage.write_at(at, &[at as u8 | 1; 64]).expect("written");
            let bytes = storage.mapped_in_order(at, 64);
            assert_eq!(bytes, Some(&[at as u8 | 1; 64][..]));
            assert_eq!(bytes, storage.mapped_page(at, 64));
        }
        assert_eq!(storage.mapped_in_order(256 * KIB - 8, 64), None);
        assert_eq!(storage.mapped_in_order(u64::MAX - 8, 64), None);
        let off = storage.read_ahead(ReadAhead::Off);
        assert!(!off.reads_ahead_in_order(), "switched off");
    }

    /// After a failed truncation, the file must keep its length, and data written beyond the intended length must
    /// survive a later growth of the file.
    #[test]
    #[cfg_attr(miri, ignore = "a file of the system's")]
    fn a_cut_that_fails_costs_nothing_when_the_file_grows() {
        for how in [Growth::Zeros, Growth::Reserve] {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = File::from(memfd_create("tidalite-cut", flags).expect("a file"));
            file.set_len(1024 * KIB).expect("its length");
            fcntl_add_seals(&file, SealFlags::SHRINK).expect("it can only grow");
            let storage = FileStorage::new(file, true).expect("its length");
            assert!(storage.cut(256 * KIB).is_err());
            assert_eq!(storage.len().expect("known"), 1024 * KIB);
            storage.write_at(512 * KIB, &[7; 64]).expect("written");
            storage.grow(2048 * KIB, how).expect("longer");
            let mut bytes = [0; 64];
            storage.read_at(512 * KIB, &mut bytes).expect("read");
            assert_eq!(bytes, [7; 64], "{how:?}");
            assert_eq!(storage.mapped(512 * KIB, 64), Some(&bytes[..]));
        }
    }
}
