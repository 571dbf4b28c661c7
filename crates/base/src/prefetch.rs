//! Asking the processor for memory before it is used.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Asks for every cache line of `items`. Changes nothing that can be seen; where the processor knows no
/// such request it does nothing. An address that is not in memory is not fetched from a disk.
#[inline]
pub fn prefetch<T>(items: &[T]) {
    let line_items = LINE_BYTES / size_of::<T>().clamp(1, LINE_BYTES);
    for line in items.chunks(line_items) {
        one(line.as_ptr());
    }
}

/// Asks for the cache line of the byte at `at`, which may lie outside `bytes`: then it was asked in vain.
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
