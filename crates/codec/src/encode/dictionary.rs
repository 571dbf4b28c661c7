//! The distinct words of a vector, if they are few.

use super::block::Block;
use crate::loops::pack::packed_bytes;
use crate::loops::scan::bits;
use tidalite_base::limits::VECTOR_ROWS;

/// The distinct words of a vector in order of first appearance, and the index of each row's word among them.
pub(super) struct Dictionary {
    pub(super) entries: Vec<u64>,
    pub(super) codes: Block,
}

impl Dictionary {
    /// More entries never pay: 512 entries of 64 bits already cost 32 bits per row of 1024.
    pub(super) const ENTRIES_MAX: usize = 512;

    /// Returns `None` if the dictionary would cost `bits_max` or more.
    pub(super) fn of(words: &[u64], bits_max: u64) -> Option<Self> {
        const SLOTS: usize = 2048;
        let entries_max = (bits_max / 64).min(Self::ENTRIES_MAX as u64) as usize;
        let mut slots = [0u16; SLOTS]; // entry + 1, 0: free
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
        let found = Self { entries, codes };
        (found.bits(words.len()) < bits_max).then_some(found)
    }

    pub(super) fn width(&self) -> u32 {
        bits(self.entries.len() as u64 - 1)
    }

    pub(super) fn bits(&self, rows: usize) -> u64 {
        64 * self.entries.len() as u64 + 8 * packed_bytes(rows, self.width()) as u64
    }
}
