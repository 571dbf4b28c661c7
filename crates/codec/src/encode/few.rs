//! Vectors with few distinct words or few runs: chooses the cheapest of dictionary, list and runs.

use super::block::EncodeInner;
use super::dictionary::Dictionary;
use super::hint::Hint;
use super::nested::Nested;
use super::write;
use crate::chunk::{self, Chunk};
use crate::column::ColumnType;

/// A vector with few distinct words or few runs.
pub(super) enum Few {
    Dictionary(Box<Dictionary>),
    Nested(Box<Nested>),
}

impl Few {
    /// The cheapest of these encodings with a code below `below`, if it costs less than `bits_max`. Stores the
    /// choices for the inner vector in the hint. `inner` encodes an inner vector.
    pub(super) fn search(
        ty: ColumnType,
        words: &[u64],
        mut bits_max: u64,
        hint: &mut Hint,
        below: u8,
        inner: EncodeInner,
    ) -> Option<Self> {
        /// A shorter list does not pay for its inner chunk.
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
                chunk::LIST => Nested::list(ty, words, Hint::default(), inner),
                _ => Nested::runs(ty, words, Hint::default(), inner),
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

    /// Uses the encoding of the hint again: a list or runs.
    pub(super) fn again(
        ty: ColumnType,
        words: &[u64],
        hint: &mut Hint,
        inner: EncodeInner,
    ) -> Option<Self> {
        let found = match hint.encoding {
            chunk::LIST => Nested::list(ty, words, hint.inside(), inner),
            _ => Nested::runs(ty, words, hint.inside(), inner),
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
