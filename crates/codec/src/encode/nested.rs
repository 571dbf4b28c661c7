//! Encodings with an inner vector: run-length encoding (the words of the runs, and the run lengths), and lists (the
//! sorted distinct words, and an index for each row).

use super::block::{Block, EncodeInner};
use super::dictionary::Dictionary;
use super::encoder_state::EncoderState;
use crate::chunk::{self, Chunk};
use crate::column::ColumnType;
use crate::loops::pack::packed_bytes;
use crate::loops::scan::bits;
use tidalite_base::limits::VECTOR_ROWS;

/// A vector whose words are encoded through an inner vector.
pub(super) struct Nested {
    /// The code of the encoding: [`chunk::LIST`] or [`chunk::RUNS`].
    pub(super) encoding: u8,
    pub(super) inner: Chunk,
    pub(super) payload: Vec<u8>,
    /// For a list, the index of each row's word; for runs, the length of each run.
    pub(super) numbers: Block,
    pub(super) count: usize,
    pub(super) base: u64,
    pub(super) width: u32,
    /// The encoder state after encoding the inner vector.
    pub(super) state: EncoderState,
    /// Length of the payload in bits.
    pub(super) bits: u64,
}

impl Nested {
    /// Run-length encoding; returns `None` if the number of runs exceeds half of the number of rows.
    pub(super) fn runs(
        ty: ColumnType,
        words: &[u64],
        state: EncoderState,
        encode: EncodeInner,
    ) -> Option<Box<Self>> {
        let runs = 1 + words.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if runs > words.len() / 2 {
            return None;
        }
        let (mut values, mut numbers) = ([0; VECTOR_ROWS], [0; VECTOR_ROWS]);
        let mut at = 0;
        for (i, &word) in words.iter().enumerate() {
            if i > 0 && word != words[i - 1] {
                at += 1;
            }
            values[at] = word;
            numbers[at] += 1;
        }
        let lengths = &numbers[..runs];
        let (low, high) = lengths.iter().fold((u64::MAX, 0), |(low, high), &length| {
            (low.min(length), high.max(length))
        });
        let width = bits(high - low);
        let beside = packed_bytes(runs, width);
        Self::of(
            chunk::RUNS,
            (ty, &values[..runs]),
            state,
            encode,
            beside,
            |nested| {
                (nested.numbers, nested.base, nested.width) = (numbers, low, width);
            },
        )
    }

    /// Encodes each word as an index into the sorted distinct words; returns `None` if more than half of the words are
    /// distinct, or if the list costs `bits_max` or more.
    pub(super) fn list(
        ty: ColumnType,
        words: &[u64],
        bits_max: u64,
        state: EncoderState,
        encode: EncodeInner,
    ) -> Option<Box<Self>> {
        let found = Dictionary::of(words)?;
        let mut order: Vec<u16> = (0..found.entries.len() as u16).collect();
        order.sort_unstable_by_key(|&i| ty.order_key(found.entries[usize::from(i)]));
        let mut rank = [0; Dictionary::ENTRIES_MAX];
        let mut values = [0; Dictionary::ENTRIES_MAX];
        for (place, &i) in order.iter().enumerate() {
            rank[usize::from(i)] = place as u64;
            values[place] = found.entries[usize::from(i)];
        }
        let mut numbers = found.codes;
        for number in &mut numbers[..words.len()] {
            *number = rank[*number as usize];
        }
        let width = bits(order.len() as u64 - 1);
        let beside = packed_bytes(words.len(), width);
        if 8 * beside as u64 >= bits_max {
            return None;
        }
        Self::of(
            chunk::LIST,
            (ty, &values[..order.len()]),
            state,
            encode,
            beside,
            |nested| {
                (nested.numbers, nested.width) = (numbers, width);
            },
        )
        .filter(|found| found.bits < bits_max)
    }

    fn of(
        encoding: u8,
        (ty, values): (ColumnType, &[u64]),
        mut state: EncoderState,
        encode: EncodeInner,
        beside: usize,
        fill: impl FnOnce(&mut Self),
    ) -> Option<Box<Self>> {
        let mut payload = Vec::new();
        let inner = encode(ty, values, &mut state, encoding, &mut payload);
        let mut nested = Box::new(Self {
            encoding,
            inner,
            numbers: [0; VECTOR_ROWS],
            count: values.len(),
            base: 0,
            width: 0,
            state,
            bits: 8 * (inner.description_bytes() + payload.len() + beside) as u64,
            payload,
        });
        fill(&mut nested);
        Some(nested)
    }
}
