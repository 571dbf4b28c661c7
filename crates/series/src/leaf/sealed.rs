//! Vectors that are encoded before their leaf is known, by another thread than the one that writes.
//!
//! ```text
//! Sealed::begin(tree)      by the writer: what the series' encoder has learned
//! Sealed::seal(rows)       by any thread: all the work that needs no page
//! SeriesTree::link_sealed  by the writer: bytes and entries are copied into the open leaf
//! ```
//!
//! A leaf that is made so has the bytes that it would have got from `SeriesTree::link`.

use crate::leaf::writer::payload_checksum;
use crate::packer::Packer;
use crate::tree::edit::STANDALONE_ROWS;
use crate::tree::series_tree::SeriesTree;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{Chunk, ColumnType, Hint, RowsRef, Stats, encode_column, encode_times};
use tidalite_pager::{PageWrite, Result};

/// Encoded vectors of one series, and what the encoder has learned. Its memory is used again.
#[derive(Clone, Debug, Default)]
pub struct Sealed {
    /// One a column, and that of the times.
    hints: Vec<Hint>,
    /// First and last time, rows.
    spans: Vec<(i64, i64, usize)>,
    /// Of each vector the times, then its columns.
    parts: Vec<Part>,
    payloads: Vec<u8>,
}

/// A vector's times, or one column of it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) chunk: Chunk,
    /// Among the payloads.
    from: usize,
    to: usize,
    pub(crate) checksum: u64,
    /// Of a column; of times nothing.
    pub(crate) stats: Stats,
}

impl Sealed {
    /// Begins with what the encoder of a tree has learned.
    pub fn begin(&mut self, tree: &SeriesTree) {
        self.hints.clone_from(&tree.hints);
    }

    /// Encodes rows, which are sorted, no timestamp twice (what is to be sealed elsewhere comes from series that replace), of columns of these types: those that `begin` was given.
    ///
    /// # Panics
    /// When the columns are others.
    pub fn seal(&mut self, types: &[ColumnType], rows: RowsRef<'_>) {
        assert_eq!(self.hints.len(), types.len() + 1, "the columns of the tree");
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
            let chunk = encode_times(times, &mut self.hints[types.len()], &mut self.payloads);
            self.enter(chunk, from, Stats::empty(ColumnType::I64));
            for (c, &ty) in types.iter().enumerate() {
                let words = vector.column(c);
                let from = self.payloads.len();
                let chunk = encode_column(ty, words, &mut self.hints[c], &mut self.payloads);
                self.enter(chunk, from, Stats::of(ty, times, words));
            }
        }
    }

    fn enter(&mut self, chunk: Chunk, from: usize, stats: Stats) {
        self.parts.push(Part {
            chunk,
            from,
            to: self.payloads.len(),
            checksum: payload_checksum(&self.payloads[from..]),
            stats,
        });
    }

    /// Rows of the vectors from `vector` on.
    pub(crate) fn rows_from(&self, vector: usize) -> usize {
        self.spans[vector..].iter().map(|(_, _, rows)| rows).sum()
    }

    pub(crate) fn span(&self, vector: usize) -> (i64, i64, usize) {
        self.spans[vector]
    }

    pub(crate) fn parts(&self, vector: usize, columns: usize) -> &[Part] {
        &self.parts[vector * (1 + columns)..][..1 + columns]
    }

    pub(crate) fn bytes(&self, part: &Part) -> &[u8] {
        &self.payloads[part.from..part.to]
    }
}

impl SeriesTree {
    /// As [`link`](Self::link) of rows that `sealed` has encoded. False, and nothing is done, where they do not simply follow
    /// those that are there: `link` it must be.
    ///
    /// # Errors
    /// As `link`.
    pub fn link_sealed<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        sealed: &Sealed,
    ) -> Result<bool> {
        let Some(&(first, ..)) = sealed.spans.first() else {
            return Ok(true);
        };
        if !self.is_followed_by(first) {
            return Ok(false);
        }
        self.hints.clone_from(&sealed.hints);
        let mut at = 0;
        while at < sealed.spans.len() {
            let before = self.open_bytes();
            let mut leaf = self.open.take().unwrap_or_else(|| packer.take_leaf());
            at += leaf.fill_sealed(&self.types, &mut self.hints, sealed, at);
            packer.note_open(before, leaf.bytes());
            let full = leaf.is_full();
            self.open = Some(leaf);
            if full || at < sealed.spans.len() {
                self.close_leaf(w, packer)?;
            }
        }
        Ok(true)
    }

    /// Whether rows from this time on go to the open leaf, or to a new one behind all others.
    fn is_followed_by(&self, first: i64) -> bool {
        if !self.ends_before(first) {
            return false;
        }
        match (&self.open, self.pending.last()) {
            (Some(open), _) => open.is_even(),
            (None, Some(last)) => last.link.count >= STANDALONE_ROWS as u64,
            (None, None) => true,
        }
    }
}
