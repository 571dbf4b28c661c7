//! A memory map of the lock file, whose bytes are shared with other processes as atomic words.

use super::layout::{AREA_BYTES, WAKE_COUNTER_AT};
use super::sync::AtomicU64;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;

/// A shared memory map of the whole lock area.
#[derive(Debug)]
pub struct SharedMap {
    start: *mut c_void,
}

// SAFETY: the map is accessed only as atomics and never moves.
#[expect(unsafe_code, reason = "a shared map is shared between threads")]
unsafe impl Send for SharedMap {}
// SAFETY: the map is accessed only as atomics and never moves.
#[expect(unsafe_code, reason = "a shared map is shared between threads")]
unsafe impl Sync for SharedMap {}

impl SharedMap {
    /// Maps a lock file, which must be at least `AREA_BYTES` long and have no holes.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < AREA_BYTES as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: this is a new map at an address chosen by the system, so it overlaps no memory of the process.
        #[expect(unsafe_code, reason = "the one place that maps the lock file")]
        let start = unsafe { mmap(ptr::null_mut(), AREA_BYTES, prot, MapFlags::SHARED, file, 0) };
        Ok(Self { start: start? })
    }

    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the map is AREA_BYTES long, aligned to a page and lives as long as `self`; every process accesses
        // these bytes as atomic words, for which any value is valid. The one word that is accessed with another size,
        // the wake-up counter, is not accessed through this slice.
        #[expect(unsafe_code, reason = "the one place that lends the lock file's bytes")]
        unsafe {
            std::slice::from_raw_parts(self.start.cast::<AtomicU64>(), AREA_BYTES / 8)
        }
    }

    pub(super) fn wake_counter(&self) -> &AtomicU32 {
        // SAFETY: the word lies inside the map, is aligned, and is only ever accessed as 32 bits.
        #[expect(unsafe_code, reason = "a futex is 32 bits")]
        unsafe {
            &*self
                .start
                .cast::<u8>()
                .add(WAKE_COUNTER_AT)
                .cast::<AtomicU32>()
        }
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the range with this length, and no reference into the map outlives `self`.
        #[expect(unsafe_code, reason = "the one place that unmaps the lock file")]
        let unmapped = unsafe { munmap(self.start, AREA_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap of our own map");
    }
}
