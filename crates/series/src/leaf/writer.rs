//! An open leaf: encodes rows into vectors. `assemble.rs` builds the bytes of the leaf from the vectors, and
//! `packer.rs` writes these bytes to the file.
//!
//! A leaf is filled one vector at a time and may stay open in between: a transaction that writes thousands of series in
//! turn adds one vector of each at a time, and reading a leaf of one vector costs more than reading its rows.
//!
//! Invariants of an open leaf:
//! 1. All vectors are encoded. Each except the last has 1024 rows, or fewer if further rows with equal times would not
//!    fit: rows with equal times are never split across vectors. A shorter last vector is decoded again and extended
//!    when more rows arrive; until then `last` holds the state of the leaf before that vector.
//! 2. While `step` is set, all rows are that far apart, every vector but the last has 1024 rows, and `times` is empty;
//!    otherwise `times` has one entry per vector.
//! 3. While the `word` of a column is set, all rows have this value and `vectors` is empty; otherwise there is one
//!    entry per vector.
//! 4. Each byte of `payloads` belongs to a vector that has an entry, or to a model.

use crate::leaf::capacity::{DATA_BYTES_SOFT, vectors_max};
use crate::leaf::encoded::EncodedVectors;
use crate::leaf::open_vector::{Model, OpenVector};
use tidalite_base::Corrupt;
use tidalite_base::limits::{LEAF_VECTORS_MAX, VECTOR_ROWS};
use tidalite_codec::{
    Chunk, ColumnType, EncoderState, Line, Rows, RowsRef, Stats, decode_column, decode_times,
    encode_column, encode_times, fill_steps,
};

/// Number of vectors by which the memory of an open leaf grows.
const VECTORS_STEP: usize = 3;

/// A leaf that is being filled.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenLeaf {
    pub(super) vectors: usize,
    pub(crate) rows: usize,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(super) step: Option<u64>,
    /// The encoded times of each vector, with first and last time; empty while all times have one constant step.
    pub(super) times: Vec<OpenVector<(i64, i64)>>,
    /// The model that the times of all vectors share; only in cold form.
    pub(super) times_model: Option<Model>,
    pub(crate) columns: Vec<OpenColumn>,
    pub(super) payloads: Vec<u8>,
    /// True if the leaf is written in cold form (cold.rs). It then takes the maximum number of vectors, without a size
    /// limit.
    pub(crate) cold: bool,
    last: Previous,
    /// Maximum number of vectors; the number of columns may restrict it further.
    vectors_limit: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct OpenColumn {
    pub(super) word: Option<u64>,
    pub(super) vectors: Vec<OpenVector<Stats>>,
    pub(super) model: Option<Model>,
    /// Statistics of the column over all rows of the leaf.
    pub(crate) stats: Stats,
    /// Statistics of the column over the rows before the last vector.
    stats_before: Stats,
}

/// State of the leaf before its last vector.
#[derive(Clone, Copy, Debug, Default)]
struct Previous {
    end: i64,
    rows: usize,
    payload_bytes: usize,
}

impl OpenLeaf {
    /// Clears the leaf but keeps its memory for reuse.
    fn clear(&mut self, types: &[ColumnType]) {
        (self.vectors, self.rows) = (0, 0);
        self.step = None;
        self.cold = false;
        self.times_model = None;
        self.times.clear();
        self.payloads.clear();
        self.columns.truncate(types.len());
        for (column, &ty) in self.columns.iter_mut().zip(types) {
            column.word = None;
            column.model = None;
            column.vectors.clear();
            column.stats = Stats::empty(ty);
        }
        // Thousands of leaves are open at once, so they reserve only the memory that they need.
        self.columns.reserve_exact(types.len() - self.columns.len());
        for &ty in &types[self.columns.len()..] {
            self.columns.push(OpenColumn {
                word: None,
                vectors: Vec::new(),
                model: None,
                stats: Stats::empty(ty),
                stats_before: Stats::empty(ty),
            });
        }
        assert_eq!(self.columns.len(), types.len(), "every column");
    }

    /// Asserts the invariants 1 to 3 of a leaf that has rows.
    pub(super) fn assert_invariants(&self) {
        let (vectors, rows) = (self.vectors, self.rows);
        assert!(
            (1..=LEAF_VECTORS_MAX).contains(&vectors),
            "{vectors} vectors"
        );
        assert!(
            (vectors..=vectors * VECTOR_ROWS).contains(&rows),
            "{rows} rows in {vectors} vectors"
        );
        assert!(self.last.rows < rows, "the last vector has rows");
        assert!(self.begin <= self.end, "the first row is the earliest");
        let times = if self.step.is_some() { 0 } else { vectors };
        assert_eq!(self.times.len(), times, "an entry of times per vector");
        for column in &self.columns {
            let entries = if column.word.is_some() { 0 } else { vectors };
            assert_eq!(column.vectors.len(), entries, "an entry per vector");
            assert_eq!(column.stats.count(), rows as u64, "statistics of all rows");
        }
    }

    /// Number of rows in the leaf.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// First and last timestamp in the leaf.
    pub(crate) fn span(&self) -> (i64, i64) {
        (self.begin, self.end)
    }

    /// Number of bytes of memory that the leaf uses.
    pub(crate) fn bytes(&self) -> usize {
        const COLUMN: usize = size_of::<OpenVector<Stats>>();
        let columns = self.columns.iter();
        let vectors = columns.map(|column| column.vectors.capacity() * COLUMN);
        size_of::<Self>()
            + self.columns.capacity() * size_of::<OpenColumn>()
            + self.times.capacity() * size_of::<OpenVector<(i64, i64)>>()
            + self.payloads.capacity()
            + vectors.sum::<usize>()
    }

    /// True if the last vector is complete, so that the next row begins a new vector.
    pub(crate) fn is_complete(&self) -> bool {
        debug_assert!(self.vectors == 0 || self.last.rows < self.rows, "rows");
        self.vectors == 0 || self.rows - self.last.rows == VECTOR_ROWS
    }

    /// True if the leaf has its maximum number of vectors.
    fn has_all_vectors(&self) -> bool {
        self.vectors >= vectors_max(self.columns.len()).min(self.vectors_limit)
    }

    /// Sets the maximum number of vectors; at least one.
    pub(crate) fn limit_vectors(&mut self, vectors: usize) {
        self.vectors_limit = vectors.max(1);
    }

    /// True if the leaf accepts no more rows.
    pub(crate) fn is_full(&self) -> bool {
        self.is_complete() && self.has_all_vectors()
    }

    /// True if the leaf accepts another vector while `rows` rows are still to be added. A last partial vector is
    /// accepted even if the leaf has enough bytes, since that vector would otherwise become a leaf of few rows.
    fn has_room_for(&self, rows: usize) -> bool {
        !self.has_all_vectors()
            && (self.cold || self.payloads.len() < DATA_BYTES_SOFT || rows < VECTOR_ROWS)
    }

    /// Appends rows that sort after the existing rows; returns the number of rows taken, and never splits rows with
    /// equal times. `states` holds one encoder state per column, then the encoder state of the times.
    pub(crate) fn fill(
        &mut self,
        types: &[ColumnType],
        states: &mut [EncoderState],
        rows: RowsRef<'_>,
    ) -> usize {
        if self.vectors == 0 {
            self.clear(types);
        } else {
            debug_assert!(
                rows.times().first().is_none_or(|&first| self.end <= first),
                "rows follow the existing ones"
            );
        }
        self.append_rows(types, states, rows)
    }

    /// Clears the leaf and takes as many rows as a leaf in cold form holds; `cool` then converts it.
    pub(super) fn fill_cold(
        &mut self,
        types: &[ColumnType],
        states: &mut [EncoderState],
        rows: RowsRef<'_>,
    ) -> usize {
        self.clear(types);
        self.cold = true;
        self.append_rows(types, states, rows)
    }

    fn append_rows(
        &mut self,
        types: &[ColumnType],
        states: &mut [EncoderState],
        rows: RowsRef<'_>,
    ) -> usize {
        let mut at = 0;
        if !self.is_complete() && !rows.is_empty() {
            at = rows.cut(VECTOR_ROWS - (self.rows - self.last.rows));
            if at > 0 {
                let mut vector = self.take_last(types);
                vector.extend(rows.slice(0..at));
                self.push(types, states, vector.view());
            }
        }
        while at < rows.len() && self.has_room_for(rows.len() - at) {
            let rest = rows.slice(at..rows.len());
            let vector = rest.slice(0..vector_rows(rest));
            self.push(types, states, vector);
            at += vector.len();
        }
        assert!(at <= rows.len(), "no row is taken twice");
        at
    }

    fn push(&mut self, types: &[ColumnType], states: &mut [EncoderState], vector: RowsRef<'_>) {
        let times = vector.times();
        assert!(
            (1..=VECTOR_ROWS).contains(&times.len()),
            "{} rows of one vector",
            times.len()
        );
        assert_eq!(states.len(), types.len() + 1, "columns, then times");
        let (begin, end) = (times[0], times[times.len() - 1]);
        self.last = Previous {
            end: self.end,
            rows: self.rows,
            payload_bytes: self.payloads.len(),
        };
        if self.vectors == 0 {
            self.begin = begin;
        }
        let offset = self.payloads.len();
        let chunk = encode_times(times, &mut states[types.len()], &mut self.payloads);
        let vector_times = OpenVector::with_payload(chunk, &self.payloads, offset, (begin, end));
        self.add_times(vector_times, &mut states[types.len()]);
        for (c, &ty) in types.iter().enumerate() {
            let words = vector.column(c);
            let stats = Stats::of(ty, times, words);
            let offset = self.payloads.len();
            let chunk = encode_column(ty, words, &mut states[c], &mut self.payloads);
            let words = OpenVector::with_payload(chunk, &self.payloads, offset, stats);
            self.add_column(c, words);
        }
        self.end = end;
        self.rows += times.len();
        self.vectors += 1;
        if cfg!(debug_assertions) {
            self.assert_invariants();
        }
    }

    /// Decodes the last vector, removes it from the leaf, and returns its rows.
    fn take_last(&mut self, types: &[ColumnType]) -> Rows {
        assert!(self.vectors > 0, "a leaf without vectors has no last one");
        let v = self.vectors - 1;
        let mut rows = Rows::with_capacity(types.len(), VECTOR_ROWS);
        rows.grow(self.rows - self.last.rows);
        match self.step {
            Some(step) => fill_steps(time_of(self.begin, step, v), step, &mut rows.times),
            None => {
                let own = &self.times[v];
                just_encoded(decode_times(&own.chunk, self.payload(own), &mut rows.times));
                self.times.truncate(v);
            }
        }
        for (c, words) in rows.columns.iter_mut().enumerate() {
            let column = &self.columns[c];
            match column.word {
                Some(word) => words.fill(word),
                None => {
                    let own = &column.vectors[v];
                    just_encoded(decode_column(&own.chunk, self.payload(own), words));
                }
            }
            let column = &mut self.columns[c];
            column.vectors.truncate(v);
            column.stats = column.stats_before;
        }
        self.payloads.truncate(self.last.payload_bytes);
        self.end = self.last.end;
        (self.vectors, self.rows) = (v, self.last.rows);
        debug_assert!(rows.view().is_sorted(), "rows as they were encoded");
        rows
    }

    fn payload<T>(&self, vector: &OpenVector<T>) -> &[u8] {
        let from = vector.offset as usize;
        &self.payloads[from..from + vector.chunk.len()]
    }

    /// Appends vectors that another thread has encoded, from index `from` on, as `fill` does for rows; returns the
    /// number of vectors taken. The existing vectors must be complete.
    pub(crate) fn fill_encoded(
        &mut self,
        types: &[ColumnType],
        states: &mut [EncoderState],
        encoded: &EncodedVectors,
        from: usize,
    ) -> usize {
        if self.vectors == 0 {
            self.clear(types);
        }
        assert!(self.is_complete(), "the existing vectors are complete");
        let mut left = encoded.rows_from(from);
        let mut at = from;
        while left > 0 && self.has_room_for(left) {
            left -= self.push_encoded(types, states, encoded, at);
            at += 1;
        }
        at - from
    }

    /// Appends one vector that another thread has encoded; returns its number of rows.
    fn push_encoded(
        &mut self,
        types: &[ColumnType],
        states: &mut [EncoderState],
        encoded: &EncodedVectors,
        vector: usize,
    ) -> usize {
        let (begin, end, rows) = encoded.span(vector);
        self.last = Previous {
            end: self.end,
            rows: self.rows,
            payload_bytes: self.payloads.len(),
        };
        if self.vectors == 0 {
            self.begin = begin;
        }
        for (i, part) in encoded.parts(vector, types.len()).iter().enumerate() {
            let (chunk, checksum) = (part.chunk, part.checksum);
            let offset = self.payloads.len() as u32;
            self.payloads.extend_from_slice(encoded.bytes(part));
            match i.checked_sub(1) {
                None => {
                    let times = OpenVector {
                        chunk,
                        offset,
                        checksum,
                        summary: (begin, end),
                    };
                    self.add_times(times, &mut states[types.len()]);
                }
                Some(c) => {
                    let words = OpenVector {
                        chunk,
                        offset,
                        checksum,
                        summary: part.stats,
                    };
                    self.add_column(c, words);
                }
            }
        }
        self.end = end;
        self.rows += rows;
        self.vectors += 1;
        if cfg!(debug_assertions) {
            self.assert_invariants();
        }
        rows
    }

    /// Adds a column of the next vector, whose payload is already stored.
    fn add_column(&mut self, c: usize, vector: OpenVector<Stats>) {
        let word = constant(&vector.chunk);
        let column = &mut self.columns[c];
        column.stats_before = column.stats;
        column.stats.merge_after(&vector.summary);
        debug_assert_eq!(
            vector.summary.count(),
            vector.chunk.rows() as u64,
            "the rows of the vector"
        );
        if self.vectors == 0 {
            column.word = word;
        }
        if column.word.is_some() && column.word == word {
            return;
        }
        if let Some(word) = column.word.take() {
            self.expand_constant(c, vector.summary.column_type(), word);
        }
        push(&mut self.columns[c].vectors, vector);
    }

    /// Adds the times of the next vector, whose payload is already stored.
    fn add_times(&mut self, vector: OpenVector<(i64, i64)>, state: &mut EncoderState) {
        let (begin, _) = vector.summary;
        let own = constant_step(&vector.chunk);
        if self.vectors == 0 {
            self.step = own;
            if own.is_some() {
                return;
            }
        }
        if let Some(step) = self.step {
            // A vector of a single row has no step of its own; the distance to the preceding row decides.
            let continues = self.rows == self.vectors * VECTOR_ROWS
                && self.end.wrapping_add(step as i64) == begin;
            if continues && (own == Some(step) || vector.chunk.rows() == 1) {
                return;
            }
            self.step = None;
            let mut before = [0; VECTOR_ROWS];
            for v in 0..self.vectors {
                let before = &mut before[..VECTOR_ROWS.min(self.rows - v * VECTOR_ROWS)];
                fill_steps(time_of(self.begin, step, v), step, before);
                let chunk = encode_times(before, state, &mut self.payloads);
                let span = (before[0], before[before.len() - 1]);
                push(&mut self.times, OpenVector::without_payload(chunk, span));
            }
        }
        debug_assert_eq!(self.times.len(), self.vectors, "the next vector");
        push(&mut self.times, vector);
    }

    /// Creates an entry for each existing vector of a column whose values have all been equal to `word` so far.
    fn expand_constant(&mut self, c: usize, ty: ColumnType, word: u64) {
        debug_assert!(self.columns[c].vectors.is_empty(), "no vector has an entry");
        let words = [word; VECTOR_ROWS];
        for v in 0..self.vectors {
            // The minimum and maximum of equal values are at the first row, whatever the times of the other rows are.
            let (begin, rows) = match self.step {
                Some(step) => {
                    let rows = VECTOR_ROWS.min(self.rows - v * VECTOR_ROWS);
                    (time_of(self.begin, step, v), rows)
                }
                None => {
                    let OpenVector { chunk, summary, .. } = &self.times[v];
                    (summary.0, chunk.rows())
                }
            };
            let words = &words[..rows];
            let stats = Stats::of(ty, &[begin; VECTOR_ROWS][..rows], words);
            let chunk = encode_column(ty, words, &mut EncoderState::default(), &mut self.payloads);
            push(
                &mut self.columns[c].vectors,
                OpenVector::without_payload(chunk, stats),
            );
        }
    }

    /// Removes all rows from the leaf.
    pub(crate) fn empty(&mut self) {
        (self.vectors, self.rows) = (0, 0);
    }
}

/// Number of the given rows that the next vector takes.
pub(super) fn vector_rows(rows: RowsRef<'_>) -> usize {
    match rows.cut(VECTOR_ROWS) {
        // Only damage can produce more rows with equal times than a vector holds; such damage is reported when the leaf
        // is read.
        0 => rows.len().min(VECTOR_ROWS),
        cut => cut,
    }
}

/// The first timestamp of vector `v` in a leaf with a constant step, if all vectors before it are complete.
pub(super) fn time_of(begin: i64, step: u64, v: usize) -> i64 {
    begin.wrapping_add(step.wrapping_mul((v * VECTOR_ROWS) as u64) as i64)
}

/// Adds a vector, and reserves memory for only a few more. A leaf has few vectors: doubling the capacity would leave
/// half the memory of thousands of open leaves unused.
fn push<T>(vectors: &mut Vec<T>, vector: T) {
    if vectors.len() == vectors.capacity() {
        vectors.reserve_exact(VECTORS_STEP);
    }
    vectors.push(vector);
}

/// Unwraps the result of decoding a vector that was just encoded in memory, which cannot fail.
fn just_encoded<T>(decoded: std::result::Result<T, Corrupt>) -> T {
    decoded.unwrap_or_else(|_| unreachable!("it was just encoded"))
}

/// The values of a vector that was just encoded as a line (start and constant step); `None` if they are not linear.
fn line(chunk: &Chunk) -> Option<Line> {
    if !chunk.is_empty() {
        return None;
    }
    just_encoded(Line::of(chunk, &[], chunk.rows()))
}

/// The constant step between neighbouring times in a vector; 1 for a single row, `None` if the step varies.
fn constant_step(chunk: &Chunk) -> Option<u64> {
    if chunk.rows() == 1 {
        return Some(1);
    }
    let line = line(chunk)?;
    Some(line.word(1).wrapping_sub(line.word(0)))
}

/// The value that all rows of a vector share; `None` if the values differ.
fn constant(chunk: &Chunk) -> Option<u64> {
    let line = line(chunk)?;
    line.is_constant().then(|| line.word(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(times: &[i64]) -> Option<u64> {
        constant_step(&encode_times(
            times,
            &mut EncoderState::default(),
            &mut Vec::new(),
        ))
    }

    #[test]
    fn constant_steps_are_detected_over_the_whole_range_of_times() {
        assert_eq!(step(&[7]), Some(1));
        assert_eq!(step(&[i64::MIN, i64::MAX]), Some(u64::MAX));
        let even: Vec<i64> = (0..1000).map(|i| i * 5).collect();
        assert_eq!(step(&even), Some(5));
        for altered in [1, 255, 256, 257, 511, 512, 999] {
            let mut times = even.clone();
            times[altered] += 1;
            assert_eq!(step(&times), None, "row {altered} is off");
        }
    }

    #[test]
    fn constant_values_are_detected() {
        let word = |words: &[u64]| {
            let (mut state, mut out) = (EncoderState::default(), Vec::new());
            constant(&encode_column(ColumnType::F64, words, &mut state, &mut out))
        };
        let mut words = vec![3u64; 700];
        assert_eq!(word(&words), Some(3));
        words[699] = 4;
        assert_eq!(word(&words), None);
        assert_eq!(word(&[1 << 63]), Some(1 << 63));
    }
}
