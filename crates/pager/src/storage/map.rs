//! The read-only map of the data file: address space reserved far beyond the file's end, so that
//! nothing is remapped while the file grows and slices stay valid as long as the map lives.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap, munlock, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::ptr;

/// Address space of one map. Pages beyond the file's end cost nothing until the file reaches them.
pub(super) const MAP_BYTES: u64 = 1 << 40;
/// Maps in use at most: 64 of 1 TiB. Beyond, bytes are read by `pread`.
pub(super) const MAPS_MAX: usize = 64;

/// Which map shows these bytes, what of the file it begins with, and where in it they are. `None`: none shows them whole.
#[inline]
pub(super) fn place(at: u64, len: usize) -> Option<(usize, u64, usize)> {
    let (index, inside) = ((at / MAP_BYTES) as usize, at % MAP_BYTES);
    let fits = index < MAPS_MAX && inside + len as u64 <= MAP_BYTES;
    fits.then_some((index, at - inside, inside as usize))
}

/// Address space that shows `[from, from + MAP_BYTES)` of a file.
#[derive(Debug)]
pub(super) struct Mapped {
    start: *mut c_void,
}

// SAFETY: it is an address that never moves; whoever reads or writes there answers for that.
#[expect(unsafe_code, reason = "a map of a file is shared between threads")]
unsafe impl Send for Mapped {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a map of a file is shared between threads")]
unsafe impl Sync for Mapped {}

impl Mapped {
    /// `None` when the system refuses.
    pub(super) fn new(file: &File, from: u64, prot: ProtFlags) -> Option<Self> {
        let len = usize::try_from(MAP_BYTES).ok()?;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a fresh map at an address of the system's choice overlays nothing of ours.
        #[expect(unsafe_code, reason = "the one place that maps")]
        let start = unsafe { mmap(ptr::null_mut(), len, prot, flags, file, from) };
        Some(Self { start: start.ok()? })
    }

    /// Where so many bytes of it are.
    #[inline]
    pub(super) fn at(&self, at: usize, len: usize) -> *mut u8 {
        assert!(at as u64 + len as u64 <= MAP_BYTES, "inside the map");
        self.start.cast::<u8>().wrapping_add(at)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` with this length, and nothing of it is lent any more.
        #[expect(unsafe_code, reason = "the one place that unmaps")]
        let unmapped = unsafe { munmap(self.start, MAP_BYTES as usize) };
        debug_assert!(unmapped.is_ok(), "munmap of our own map");
    }
}

/// A read-only map of part of a file.
#[derive(Debug)]
pub(super) struct Map(Mapped);

impl Map {
    /// Maps part of a file; `None` when the system refuses (then everything is read by `pread`).
    pub(super) fn new(file: &File, from: u64) -> Option<Self> {
        Mapped::new(file, from, ProtFlags::READ).map(Self)
    }

    /// From now on a page that is not in memory is read alone: what the system reads around single pages, megabytes on some disks, drives
    /// out what is needed when the file is larger than memory.
    pub(super) fn read_alone(&self) {
        let start = self.0.start;
        // SAFETY: the range was mapped with this length and is as long as `self` lives; the advice changes no byte of it.
        #[expect(unsafe_code, reason = "the one place that advises")]
        let _ = unsafe { madvise(start, MAP_BYTES as usize, Advice::Random) }; // without it reading is right as well
    }

    /// The first so many bytes stay in memory, and are read if they are not there; the others may leave it.
    pub(super) fn lock(&self, bytes: usize) -> std::io::Result<()> {
        let rest = self.0.at(bytes, MAP_BYTES as usize - bytes).cast();
        // SAFETY: both ranges lie inside the map, which is as long as `self` lives; no byte of it changes.
        #[expect(unsafe_code, reason = "the one place that locks")]
        unsafe {
            munlock(rest, MAP_BYTES as usize - bytes)?;
            // Who may lock nothing is refused even no bytes.
            if bytes == 0 {
                return Ok(());
            }
            Ok(mlock(self.0.start, bytes)?)
        }
    }

    /// Bytes of the map. The caller has checked that they lie before the end of the file.
    #[inline]
    pub(super) fn slice(&self, at: usize, len: usize) -> &[u8] {
        let from = self.0.at(at, len);
        // SAFETY: the range lies inside the map (checked by `at`) and inside the file (the caller's duty; the
        // file is cut only behind what every live snapshot reaches, and the lock file keeps others away). The bytes do not
        // change while they are lent: only pages that no snapshot sees are ever overwritten, and whoever
        // borrows holds a snapshot.
        #[expect(unsafe_code, reason = "the one place that lends mapped bytes")]
        unsafe {
            std::slice::from_raw_parts(from, len)
        }
    }
}
