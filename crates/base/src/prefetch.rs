//! Prefetches memory into the processor's cache before it is used.

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Prefetches every cache line of `items`. This has no visible effect, and does nothing on processors without prefetch.
/// An address that is not in memory is not fetched from disk.
#[inline]
pub fn prefetch<T>(items: &[T]) {
    let line_items = LINE_BYTES / size_of::<T>().clamp(1, LINE_BYTES);
    for line in items.chunks(line_items) {
        one(line.as_ptr());
    }
}

/// Prefetches the cache line that contains the byte at offset `at`. An offset outside `bytes` is allowed, but useless.
#[inline(always)]
pub fn prefetch_at(bytes: &[u8], at: usize) {
    one(bytes.as_ptr().wrapping_add(at));
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn one<T>(line: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch neither reads nor faults, whatever the address.
    #[expect(unsafe_code, reason = "there is no safe way to ask")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn one<T>(_line: *const T) {}
