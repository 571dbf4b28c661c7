//! How much of a page the processor is asked for before it is looked at.
//!
//! The header says where the slots are, and they where the cell is. A page that is not in the processor's cache so costs three waits one
//! after the other, unless header and slots are asked for together as soon as it is known which page comes next.

use crate::page::layout::{NARROW_PAGE_MAX, PREFIX_AT, slot_bytes};
use tidalite_base::prefetch;

/// What is asked for of any page: the header, and the heads of most.
pub(crate) const HEADS_AHEAD_BYTES: usize = 256;
/// What is asked for of a leaf at most.
pub(crate) const SLOTS_AHEAD_BYTES_MAX: usize = 1024;
/// In which steps: a loop whose end the processor guesses right for most leaves of a table.
const STEP_BYTES: usize = 128;
/// What a walk asks for of each cell: its key, and the beginning of its value.
pub(super) const CELL_AHEAD_BYTES: usize = 65;

/// How much is asked for of a child of a branch of this level: of a leaf all slots, for its rows are counted beside the pointer to it. (In a
/// table of multi-values pairs are counted, and too much is asked for.)
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

/// Asks for so much of a page. What is asked for of each page hangs on nothing but where it is.
#[inline(always)]
pub(crate) fn ask_for_slots(page: &[u8], bytes: usize) {
    prefetch(&page[..HEADS_AHEAD_BYTES.min(page.len())]);
    if bytes > HEADS_AHEAD_BYTES {
        prefetch(page.get(HEADS_AHEAD_BYTES..bytes).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_slots_of_a_leaf_are_asked_for_but_not_more_than_a_quarter_of_a_page() {
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
