//! Memory maps of the data file. A map reserves address space far beyond the file's end, so that the file grows
//! without remapping and slices stay valid as long as the map lives.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap, munlock, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::ptr;

/// Address space of one map in bytes. Pages beyond the file's end cost nothing until the file reaches them.
pub(super) const MAP_BYTES: u64 = 1 << 40;
/// Maximum number of maps of a file: 64 maps of 1 TiB. Bytes beyond the last map are read by `pread`.
pub(super) const MAPS_MAX: usize = 64;

/// Returns the index of the map that contains the bytes `[at, at + len)`, the file offset at which the map begins,
/// and the offset of the bytes in the map. `None` if no map contains all of the bytes.
#[inline]
pub(super) fn place(at: u64, len: usize) -> Option<(usize, u64, usize)> {
    let (index, inside) = ((at / MAP_BYTES) as usize, at % MAP_BYTES);
    let fits = index < MAPS_MAX && inside + len as u64 <= MAP_BYTES;
    fits.then_some((index, at - inside, inside as usize))
}

/// Address space in which `[from, from + MAP_BYTES)` of a file is mapped.
#[derive(Debug)]
pub(super) struct Mapped {
    start: *mut c_void,
}

// SAFETY: the address of the map never changes; code that reads or writes the mapped memory has its own safety
// argument.
#[expect(unsafe_code, reason = "a map of a file is shared between threads")]
unsafe impl Send for Mapped {}
// SAFETY: the address of the map never changes; code that reads or writes the mapped memory has its own safety
// argument.
#[expect(unsafe_code, reason = "a map of a file is shared between threads")]
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the bytes of a file from offset `from` on; returns `None` if the system does not permit it.
    pub(super) fn new(file: &File, from: u64, prot: ProtFlags) -> Option<Self> {
        let len = usize::try_from(MAP_BYTES).ok()?;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: this is a new map at an address chosen by the system, so it overlaps no memory of the process.
        #[expect(unsafe_code, reason = "the one place that maps")]
        let start = unsafe { mmap(ptr::null_mut(), len, prot, flags, file, from) };
        Some(Self { start: start.ok()? })
    }

    /// Returns the address of `len` mapped bytes at offset `at` of the map.
    #[inline]
    pub(super) fn at(&self, at: usize, len: usize) -> *mut u8 {
        assert!(at as u64 + len as u64 <= MAP_BYTES, "inside the map");
        self.start.cast::<u8>().wrapping_add(at)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the range with this length, and no reference to any part of it is left.
        #[expect(unsafe_code, reason = "the one place that unmaps")]
        let unmapped = unsafe { munmap(self.start, MAP_BYTES as usize) };
        debug_assert!(unmapped.is_ok(), "munmap of our own map");
    }
}

/// A read-only map of a part of a file.
#[derive(Debug)]
pub(super) struct Map(Mapped);

impl Map {
    /// Maps the bytes of a file from offset `from` on; returns `None` if the system does not permit it (reads then
    /// use `pread`).
    pub(super) fn new(file: &File, from: u64) -> Option<Self> {
        Mapped::new(file, from, ProtFlags::READ).map(Self)
    }

    /// Switches readahead off for the map. Otherwise the system may read megabytes around a single page, depending on
    /// the disk; if the file is larger than memory, these displace pages that are needed.
    pub(super) fn read_single_pages(&self) {
        let start = self.0.start;
        // SAFETY: the range was mapped with this length and lives as long as `self`; the advice changes no byte of
        // the range.
        #[expect(unsafe_code, reason = "the one place that advises")]
        let _ = unsafe { madvise(start, MAP_BYTES as usize, Advice::Random) }; // without it reading is right as well
    }

    /// Locks the first `bytes` bytes of the map in memory, reading them if necessary, and unlocks the rest.
    pub(super) fn lock(&self, bytes: usize) -> std::io::Result<()> {
        let rest = self.0.at(bytes, MAP_BYTES as usize - bytes).cast();
        // SAFETY: both ranges lie inside the map, which lives as long as `self`; no byte of the map changes.
        #[expect(unsafe_code, reason = "the one place that locks")]
        unsafe {
            munlock(rest, MAP_BYTES as usize - bytes)?;
            // A process without permission to lock memory gets an error even for zero bytes.
            if bytes == 0 {
                return Ok(());
            }
            Ok(mlock(self.0.start, bytes)?)
        }
    }

    /// Returns bytes of the map. The caller must have checked that they lie before the end of the file.
    #[inline]
    pub(super) fn slice(&self, at: usize, len: usize) -> &[u8] {
        let from = self.0.at(at, len);
        // SAFETY: the range lies inside the map (checked by `at`) and inside the file (the caller's duty; only parts
        // of the file that no live snapshot can read are truncated, and the lock file keeps other programs from
        // writing to the file). The bytes do not change while they are lent: only pages that no snapshot sees are
        // ever overwritten, and the borrower holds a snapshot.
        #[expect(unsafe_code, reason = "the one place that lends mapped bytes")]
        unsafe {
            std::slice::from_raw_parts(from, len)
        }
    }
}
