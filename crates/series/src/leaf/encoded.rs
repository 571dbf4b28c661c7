//! Vectors that a thread other than the writer encodes before their leaf is known.
//!
//! ```text
//! EncodedVectors::begin(tree)   by the writer: copies the encoder state of the series
//! EncodedVectors::encode(rows)  by any thread: all the work that needs no page
//! SeriesTree::link_encoded      by the writer: bytes and entries are copied into the open leaf
//! ```
//!
//! The resulting leaf has exactly the bytes that `SeriesTree::link` would have produced.

use crate::leaf::layout::payload_checksum;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{
    Chunk, ColumnType, EncoderState, RowsRef, Stats, encode_column, encode_times,
};

/// Encoded vectors of one series, and the encoder states of the series. Memory is reused for the next vectors.
#[derive(Clone, Debug, Default)]
pub struct EncodedVectors {
    /// One encoder state for each column, then the encoder state of the times.
    pub(crate) states: Vec<EncoderState>,
    /// First timestamp, last timestamp and number of rows of each vector.
    pub(crate) spans: Vec<(i64, i64, usize)>,
    /// The encoded parts: for each vector, the times and then the columns.
    parts: Vec<Part>,
    payloads: Vec<u8>,
}

/// The encoded times of a vector, or one of its encoded columns.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) chunk: Chunk,
    /// Start of the encoded bytes in `payloads`.
    from: usize,
    to: usize,
    pub(crate) checksum: u64,
    /// Statistics of the column; unused for times.
    pub(crate) stats: Stats,
}

impl EncodedVectors {
    /// Encodes rows, which must be sorted and without repeated timestamps (rows are encoded ahead only for series in
    /// which a new row replaces a row with the same time). `types` must equal the column types of the tree given to
    /// `begin`.
    ///
    /// # Panics
    /// If the columns differ from the columns of the tree.
    pub fn encode(&mut self, types: &[ColumnType], rows: RowsRef<'_>) {
        assert_eq!(
            self.states.len(),
            types.len() + 1,
            "the columns of the tree"
        );
        debug_assert!(rows.is_sorted_unique(), "each time once, in order");
        self.spans.clear();
        self.parts.clear();
        self.payloads.clear();
        let mut at = 0;
        while at < rows.len() {
            let vector = rows.slice(at..rows.len().min(at + VECTOR_ROWS));
            at += vector.len();
            let times = vector.times();
            self.spans
                .push((times[0], times[times.len() - 1], times.len()));
            let from = self.payloads.len();
            let chunk = encode_times(times, &mut self.states[types.len()], &mut self.payloads);
            self.enter(chunk, from, Stats::empty(ColumnType::I64));
            for (c, &ty) in types.iter().enumerate() {
                let words = vector.column(c);
                let from = self.payloads.len();
                let chunk = encode_column(ty, words, &mut self.states[c], &mut self.payloads);
                self.enter(chunk, from, Stats::of(ty, times, words));
            }
        }
        assert_eq!(
            self.parts.len(),
            self.spans.len() * (1 + types.len()),
            "the times and every column of each vector"
        );
        debug_assert_eq!(self.rows_from(0), rows.len(), "every row once");
    }

    fn enter(&mut self, chunk: Chunk, from: usize, stats: Stats) {
        assert_eq!(
            self.payloads.len() - from,
            chunk.len(),
            "the payload of the chunk"
        );
        self.parts.push(Part {
            chunk,
            from,
            to: self.payloads.len(),
            checksum: payload_checksum(&self.payloads[from..]),
            stats,
        });
    }

    /// Total number of rows in the vectors from index `vector` on.
    pub(crate) fn rows_from(&self, vector: usize) -> usize {
        self.spans[vector..].iter().map(|(_, _, rows)| rows).sum()
    }

    pub(crate) fn span(&self, vector: usize) -> (i64, i64, usize) {
        self.spans[vector]
    }

    pub(crate) fn parts(&self, vector: usize, columns: usize) -> &[Part] {
        debug_assert!(vector < self.spans.len(), "an encoded vector");
        &self.parts[vector * (1 + columns)..][..1 + columns]
    }

    pub(crate) fn bytes(&self, part: &Part) -> &[u8] {
        &self.payloads[part.from..part.to]
    }
}
