//! Finds the distinct words of a vector, if they are few.

use super::block::Block;
use tidalite_base::limits::VECTOR_ROWS;

/// The distinct words of a vector in order of first appearance, and the index of each row's word among them.
pub(super) struct Dictionary {
    pub(super) entries: Vec<u64>,
    pub(super) codes: Block,
}

impl Dictionary {
    /// Maximum number of distinct words; a longer list is not worth its space.
    pub(super) const ENTRIES_MAX: usize = VECTOR_ROWS / 2;

    /// Finds the distinct words of a vector; returns `None` if more than half of the words are distinct.
    pub(super) fn of(words: &[u64]) -> Option<Self> {
        const SLOTS: usize = 2048;
        let entries_max = words.len() / 2;
        let mut slots = [0u16; SLOTS]; // index of an entry plus 1, or 0 if the slot is free
        let mut entries: Vec<u64> = Vec::new();
        let mut codes = [0; VECTOR_ROWS];
        for (code, &word) in codes.iter_mut().zip(words) {
            let mut slot = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 11)) as usize;
            loop {
                let entry = usize::from(slots[slot]);
                if entry == 0 {
                    if entries.len() >= entries_max {
                        return None;
                    }
                    entries.push(word);
                    slots[slot] = entries.len() as u16;
                    *code = entries.len() as u64 - 1;
                    break;
                }
                if entries[entry - 1] == word {
                    *code = entry as u64 - 1;
                    break;
                }
                slot = (slot + 1) % SLOTS;
            }
        }
        Some(Self { entries, codes })
    }
}
