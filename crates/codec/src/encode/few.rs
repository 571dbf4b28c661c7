//! Vectors of few words, or of few in a row: which of dictionary, list and runs is the cheapest.

use super::nested::Nested;
use super::{Block, write};
use crate::chunk::{self, Chunk};
use crate::{ColumnType, Hint};
use tidalite_base::limits::VECTOR_ROWS;

/// Words that are few, or few in a row.
pub(super) enum Few {
    Dictionary(Box<Dictionary>),
    Nested(Box<Nested>),
}

impl Few {
    /// The cheapest of them with a code less than `below`, where it costs less than `bits_max`. Teaches the hint what is
    /// inside.
    pub(super) fn search(
        ty: ColumnType,
        words: &[u64],
        mut bits_max: u64,
        hint: &mut Hint,
        below: u8,
    ) -> Option<Self> {
        /// A list of fewer entries does not pay for the chunk in it.
        const ENTRIES_MIN: usize = 8;
        let rows = words.len();
        let mut best = Dictionary::of(words, bits_max)
            .map(Box::new)
            .map(Self::Dictionary);
        let entries = match &best {
            Some(found) => {
                bits_max = found.bits(rows);
                found.entries()
            }
            None => usize::MAX,
        };
        for encoding in [chunk::LIST, chunk::RUNS] {
            if encoding >= below || (encoding == chunk::LIST && entries < ENTRIES_MIN) {
                continue;
            }
            let found = match encoding {
                chunk::LIST => Nested::list(ty, words, Hint::default()),
                _ => Nested::runs(ty, words, Hint::default()),
            };
            if let Some(found) = found
                && found.bits < bits_max
            {
                bits_max = found.bits;
                best = Some(Self::Nested(found));
            }
        }
        if let Some(Self::Nested(found)) = &best {
            hint.keep_inside(&found.hint);
        }
        best
    }

    /// That of the hint, a list or runs.
    pub(super) fn again(ty: ColumnType, words: &[u64], hint: &mut Hint) -> Option<Self> {
        let found = match hint.encoding {
            chunk::LIST => Nested::list(ty, words, hint.inside()),
            _ => Nested::runs(ty, words, hint.inside()),
        }?;
        hint.keep_inside(&found.hint);
        Some(Self::Nested(found))
    }

    pub(super) fn encoding(&self) -> u8 {
        match self {
            Self::Dictionary(_) => chunk::DICTIONARY,
            Self::Nested(found) => found.encoding,
        }
    }

    fn entries(&self) -> usize {
        match self {
            Self::Dictionary(found) => found.entries.len(),
            Self::Nested(found) => found.count,
        }
    }

    pub(super) fn bits(&self, rows: usize) -> u64 {
        match self {
            Self::Dictionary(found) => found.bits(rows),
            Self::Nested(found) => found.bits,
        }
    }

    pub(super) fn write(&self, chunk: Chunk, out: &mut Vec<u8>) -> Chunk {
        match self {
            Self::Dictionary(found) => write::dictionary(chunk, found, out),
            Self::Nested(found) => write::nested(chunk, found, out),
        }
    }
}

/// The distinct words of a vector in order of first appearance, and each row's place among them.
pub(super) struct Dictionary {
    pub(super) entries: Vec<u64>,
    pub(super) codes: Block,
}

impl Dictionary {
    /// More entries never pay: half of 1024 rows at 64 bits is 32 bits a row.
    pub(super) const ENTRIES_MAX: usize = 512;

    /// `None` when it would cost `bits_max` or more.
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
        crate::scan::bits(self.entries.len() as u64 - 1)
    }

    pub(super) fn bits(&self, rows: usize) -> u64 {
        64 * self.entries.len() as u64 + 8 * crate::pack::packed_bytes(rows, self.width()) as u64
    }
}
