//! Layout of the file.
//!
//! ```text
//! 0            4 KiB         8 KiB         12 KiB        16 KiB        20 KiB        24 KiB
//! | superblock | meta pair 0 | meta pair 1 | superblock  | meta pair 0 | meta pair 1 | 0.. | pages ...
//! |   copy A   |   copy a    |   copy a    |   copy B    |   copy b    |   copy b    |     |
//! ```
//!
//! The copies are interleaved, so that one damaged range of up to 8 KiB cannot hit both copies of a block. Pages begin
//! at the first multiple of the page size at or after 24 KiB; the bytes between are unused. Pages are numbered from the
//! beginning of the file: page n is at byte n x page size.

use tidalite_base::limits::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};

/// Length in bytes of a superblock or meta block.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Length in bytes of the head of the file, which precedes the first page.
pub(crate) const HEAD_BYTES: u64 = 6 * BLOCK_BYTES as u64;
/// Distance in bytes from the first copy of a superblock or meta block to the second copy.
const SECOND_COPIES_AT: u64 = 3 * BLOCK_BYTES as u64;
/// Number of bytes of a bitmap page before its bitmap: the header and spare room.
pub(crate) const BITMAP_AT: usize = 64;

/// Address that pointers use for byte 0 of the second file. All addresses from here on lie in that file.
pub(crate) const LARGE_AT: u64 = tidalite_base::limits::SECOND_FILE_AT;

/// Whether an address lies in the second file, which stores large values.
#[must_use]
pub const fn in_second_file(addr: u64) -> bool {
    addr >= LARGE_AT
}

/// Whether a page number belongs to the second file. The test works for any page size, since the first file is never
/// so long.
pub(crate) const fn is_large_page(page: u64) -> bool {
    page >= LARGE_AT / PAGE_SIZE_MAX as u64
}

pub(crate) const fn superblock_at(copy: usize) -> u64 {
    debug_assert!(copy < 2, "two copies");
    copy as u64 * SECOND_COPIES_AT
}

pub(crate) const fn meta_at(pair: usize, copy: usize) -> u64 {
    debug_assert!(pair < 2 && copy < 2, "two copies of two pairs");
    (1 + pair as u64) * BLOCK_BYTES as u64 + copy as u64 * SECOND_COPIES_AT
}

/// Number of the first page after the head of the file.
pub(crate) const fn first_page(page_size: usize) -> u64 {
    HEAD_BYTES.div_ceil(page_size as u64)
}

/// Number of pages in one region of the free space: the number of bits in the bitmap of a page.
pub(crate) const fn region_pages(page_size: usize) -> u64 {
    assert!(page_size > BITMAP_AT, "a bitmap page has a bitmap");
    (page_size - BITMAP_AT) as u64 * 8
}

pub(crate) fn page_size_ok(page_size: usize) -> bool {
    page_size.is_power_of_two() && (PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&page_size)
}

const _: () = assert!(meta_at(1, 1) + BLOCK_BYTES as u64 == HEAD_BYTES);
const _: () = assert!(superblock_at(1) == SECOND_COPIES_AT && meta_at(0, 0) == BLOCK_BYTES as u64);
const _: () = assert!(LARGE_AT.is_multiple_of(PAGE_SIZE_MAX as u64));
const _: () = assert!(PAGE_SIZE_MIN.is_power_of_two() && PAGE_SIZE_MAX.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_file_begins_at_its_limit_and_not_one_before() {
        assert!(!in_second_file(LARGE_AT - 1) && in_second_file(LARGE_AT));
        // For any page size, no page number of the first file is one of the second file.
        let first = LARGE_AT / PAGE_SIZE_MAX as u64;
        assert!(!is_large_page(first - 1) && is_large_page(first));
        assert!(is_large_page(LARGE_AT / PAGE_SIZE_MIN as u64));
    }
}
