//! Computes how much of a page to prefetch into the processor's cache before a search reads it.
//!
//! The page header contains the place of the slots, and a slot contains the place of its cell. A page that is not in
//! the processor's cache thus costs three waits in sequence, unless header and slots are prefetched together as soon as
//! the next page is known.

use crate::page::layout::{NARROW_PAGE_MAX, PREFIX_AT, slot_bytes};
use tidalite_base::prefetch;

/// Number of bytes to prefetch of any page: the header, and in most pages the heads that a search compares first.
pub(crate) const HEADS_AHEAD_BYTES: usize = 256;
/// Maximum number of bytes to prefetch of a leaf.
pub(crate) const SLOTS_AHEAD_BYTES_MAX: usize = 1024;
/// The number of prefetched bytes is a multiple of this, so that most leaves of a table need the same number of loop
/// steps, which the processor then predicts.
const STEP_BYTES: usize = 128;
/// Number of bytes that a scan prefetches of each cell: the key, and the beginning of the value.
pub(super) const CELL_AHEAD_BYTES: usize = 65;

/// Number of bytes to prefetch of a child of a branch of this level. For a leaf they cover all its slots, because the
/// branch stores the leaf's row count beside the pointer. In a table of sets this is more than necessary, because the
/// row count there is the number of key-value pairs.
#[inline(always)]
pub(crate) fn slots_ahead(level: u8, rows: u64) -> usize {
    if level != 1 {
        return HEADS_AHEAD_BYTES;
    }
    let rows = rows.min(SLOTS_AHEAD_BYTES_MAX as u64) as usize;
    let slots = PREFIX_AT + rows * slot_bytes(true, NARROW_PAGE_MAX);
    slots
        .next_multiple_of(STEP_BYTES)
        .clamp(HEADS_AHEAD_BYTES, SLOTS_AHEAD_BYTES_MAX)
}

/// Prefetches the first `bytes` bytes of a page, and at least `HEADS_AHEAD_BYTES`. The addresses depend only on the
/// address of the page, not on its contents, so that nothing waits for the page.
#[inline(always)]
pub(crate) fn prefetch_slots(page: &[u8], bytes: usize) {
    prefetch(&page[..HEADS_AHEAD_BYTES.min(page.len())]);
    if bytes > HEADS_AHEAD_BYTES {
        prefetch(page.get(HEADS_AHEAD_BYTES..bytes).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_slots_of_a_leaf_are_prefetched_up_to_a_quarter_page() {
        let ends = |rows: u64| PREFIX_AT + 6 * rows as usize;
        for rows in 0..=162 {
            let asked = slots_ahead(1, rows);
            assert!(ends(rows) <= asked);
            assert!(asked < ends(rows) + STEP_BYTES || asked == HEADS_AHEAD_BYTES);
            assert_eq!(slots_ahead(2, rows), HEADS_AHEAD_BYTES);
        }
        for rows in [163, 10_000, u64::MAX >> 16] {
            assert_eq!(slots_ahead(1, rows), SLOTS_AHEAD_BYTES_MAX);
        }
    }
}
