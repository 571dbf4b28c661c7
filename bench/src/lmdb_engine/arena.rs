//! Modification buffers, cut from anonymous maps that ask for huge pages: 10,000 buffers of
//! 194 KB are 1.9 GB, and small pages would cost the peer a TLB miss per insert.

#![expect(
    unsafe_code,
    reason = "anonymous maps, handed out as exclusive references"
)]

use std::marker::PhantomData;
use std::ptr::NonNull;

/// Address space of one map. Only what is touched takes memory.
const MAP_BYTES: usize = 1 << 30;

/// Values of `T` that are all-zero bytes when handed out first, and recycled as they are.
///
/// Invariants: (1) `maps` holds live anonymous maps of `MAP_BYTES`; (2) a place in a map is
/// handed out at most once between two calls of [`Arena::recycle`].
pub(crate) struct Arena<T> {
    maps: Vec<NonNull<u8>>,
    taken: usize,
    of: PhantomData<T>,
}

/// A type for which all-zero bytes are a value, and so is whatever was left by an earlier owner.
///
/// # Safety
/// Every bit pattern is a valid value, and the alignment is at most 4096.
pub(crate) unsafe trait AnyBits {}

impl<T: AnyBits> Arena<T> {
    const PER_MAP: usize = MAP_BYTES / size_of::<T>();

    /// An arena without memory.
    pub(crate) fn new() -> Self {
        Self {
            maps: Vec::new(),
            taken: 0,
            of: PhantomData,
        }
    }

    /// One more place. Its content is arbitrary.
    ///
    /// # Panics
    /// When address space cannot be had.
    pub(crate) fn take(&mut self) -> NonNull<T> {
        let (map, place) = (self.taken / Self::PER_MAP, self.taken % Self::PER_MAP);
        if map == self.maps.len() {
            self.maps.push(huge_map());
        }
        self.taken += 1;
        // SAFETY: `place < PER_MAP`, so the place lies inside the map.
        unsafe { self.maps[map].add(place * size_of::<T>()) }.cast()
    }

    /// Takes all places back.
    ///
    /// # Safety
    /// No pointer from [`Arena::take`] is used afterwards.
    pub(crate) unsafe fn recycle(&mut self) {
        self.taken = 0;
    }
}

fn huge_map() -> NonNull<u8> {
    // SAFETY: a fresh private anonymous map at an address of the kernel's choice.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            MAP_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert!(
        at != libc::MAP_FAILED,
        "no address space for the peer's buffers"
    );
    // SAFETY: the range was mapped just now; the advice may be refused, which is harmless.
    unsafe { libc::madvise(at, MAP_BYTES, libc::MADV_HUGEPAGE) };
    NonNull::new(at.cast()).unwrap_or_else(|| unreachable!("mmap never returns address zero"))
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        for map in &self.maps {
            // SAFETY: invariant 1; whoever used the places is gone, as `self` owns them.
            unsafe { libc::munmap(map.as_ptr().cast(), MAP_BYTES) };
        }
    }
}
