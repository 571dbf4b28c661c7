//! An open leaf: rows in, encoded vectors out. `assemble.rs` makes the leaf's bytes of them, `packer.rs` writes these.
//!
//! A leaf is filled a vector at a time and may stay open between two of them: a transaction that feeds thousands of series
//! in turn brings a vector of each at a time, and a leaf of one vector costs its readers more than its rows do.
//!
//! Invariants of an open leaf:
//! 1. Its vectors are encoded; every one but the last has 1024 rows, or fewer where the rows of one time would not fit in with
//!    the others: rows of one time are never in two vectors. A last one that is shorter is decoded again and goes on as part of
//!    a longer one when more rows come; until then `last` says what the leaf was before it.
//! 2. While `step` is known, all its rows are that far apart, every vector but the last has 1024 rows, and `times` is empty;
//!    else `times` has an entry a vector.
//! 3. While the `word` of a column is known, all its rows have it and `vectors` is empty; else there is an entry a vector.
//! 4. Each byte of `payloads` is one of a vector that has an entry, or of a model.

use crate::leaf::capacity::{DATA_BYTES_SOFT, vectors_max};
use crate::leaf::open_vector::{Model, OpenVector};
use crate::leaf::sealed::Sealed;
use tidalite_base::Corrupt;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{
    Chunk, ColumnType, Hint, Line, Rows, RowsRef, Stats, decode_column, decode_times,
    encode_column, encode_times, fill_steps,
};

/// Vectors for which an open leaf takes memory at a time.
const VECTORS_STEP: usize = 3;

/// A leaf that is being filled.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenLeaf {
    pub(super) vectors: usize,
    pub(crate) rows: usize,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(super) step: Option<u64>,
    /// With begin and end of each vector.
    pub(super) times: Vec<OpenVector<(i64, i64)>>,
    /// The model of the times, in cold form.
    pub(super) times_model: Option<Model>,
    pub(crate) columns: Vec<OpenColumn>,
    pub(super) payloads: Vec<u8>,
    /// It takes vectors up to its number of vectors, and what was tried to make it smaller is done: see cold.rs.
    pub(crate) cold: bool,
    last: Before,
    /// How many vectors it takes, where the columns allow as many.
    vectors_most: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct OpenColumn {
    pub(super) word: Option<u64>,
    pub(super) vectors: Vec<OpenVector<Stats>>,
    pub(super) model: Option<Model>,
    /// Of all rows.
    pub(crate) stats: Stats,
    /// Of the rows before the last vector.
    stats_before: Stats,
}

/// Where the leaf ended before its last vector.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    end: i64,
    rows: usize,
    payload_bytes: usize,
}

impl OpenLeaf {
    /// Forgets everything but its memory.
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
        // Thousands of leaves are open at once, so they take the memory that they need and no more.
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
    }

    /// Rows in it.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// First and last timestamp in it.
    pub(crate) fn span(&self) -> (i64, i64) {
        (self.begin, self.end)
    }

    /// Memory that it takes.
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

    /// Whether its last vector is a whole one.
    pub(crate) fn is_even(&self) -> bool {
        self.vectors == 0 || self.rows - self.last.rows == VECTOR_ROWS
    }

    /// Whether it has as many vectors as it takes.
    fn has_all_vectors(&self) -> bool {
        self.vectors >= vectors_max(self.columns.len()).min(self.vectors_most)
    }

    /// Whole vectors that it takes at most; at least one.
    pub(crate) fn take_at_most(&mut self, vectors: usize) {
        self.vectors_most = vectors.max(1);
    }

    /// Whether it takes no row any more.
    pub(crate) fn is_full(&self) -> bool {
        self.is_even() && self.has_all_vectors()
    }

    /// Whether it takes in another vector, where `rows` rows are left. A last part of a vector is taken in even when it has
    /// bytes enough: it would make a leaf of few rows.
    fn takes(&self, rows: usize) -> bool {
        !self.has_all_vectors()
            && (self.cold || self.payloads.len() < DATA_BYTES_SOFT || rows < VECTOR_ROWS)
    }

    /// Takes in rows, which lie behind those that it has; answers how many: all of one time, or none. `hints`: one a column, and that of the times.
    pub(crate) fn fill(
        &mut self,
        types: &[ColumnType],
        hints: &mut [Hint],
        rows: RowsRef<'_>,
    ) -> usize {
        if self.vectors == 0 {
            self.clear(types);
        }
        self.take_in(types, hints, rows)
    }

    /// Forgets everything; takes in as many rows as a leaf in cold form holds, which `cool` then makes of it.
    pub(super) fn fill_cold(
        &mut self,
        types: &[ColumnType],
        hints: &mut [Hint],
        rows: RowsRef<'_>,
    ) -> usize {
        self.clear(types);
        self.cold = true;
        self.take_in(types, hints, rows)
    }

    fn take_in(&mut self, types: &[ColumnType], hints: &mut [Hint], rows: RowsRef<'_>) -> usize {
        let mut at = 0;
        if !self.is_even() && !rows.is_empty() {
            at = rows.cut(VECTOR_ROWS - (self.rows - self.last.rows));
            if at > 0 {
                let mut vector = self.take_last(types);
                vector.extend(rows.slice(0..at));
                self.push(types, hints, vector.view());
            }
        }
        while at < rows.len() && self.takes(rows.len() - at) {
            let rest = rows.slice(at..rows.len());
            let vector = rest.slice(0..vector_rows(rest));
            self.push(types, hints, vector);
            at += vector.len();
        }
        at
    }

    fn push(&mut self, types: &[ColumnType], hints: &mut [Hint], vector: RowsRef<'_>) {
        let times = vector.times();
        let (begin, end) = (times[0], times[times.len() - 1]);
        self.last = Before {
            end: self.end,
            rows: self.rows,
            payload_bytes: self.payloads.len(),
        };
        if self.vectors == 0 {
            self.begin = begin;
        }
        let offset = self.payloads.len();
        let chunk = encode_times(times, &mut hints[types.len()], &mut self.payloads);
        let vector_times = OpenVector::last(chunk, &self.payloads, offset, (begin, end));
        self.enter_times(vector_times, &mut hints[types.len()]);
        for (c, &ty) in types.iter().enumerate() {
            let words = vector.column(c);
            let stats = Stats::of(ty, times, words);
            let offset = self.payloads.len();
            let chunk = encode_column(ty, words, &mut hints[c], &mut self.payloads);
            let words = OpenVector::last(chunk, &self.payloads, offset, stats);
            self.enter_column(c, words);
        }
        self.end = end;
        self.rows += times.len();
        self.vectors += 1;
    }

    /// Decodes the last vector and takes it away.
    fn take_last(&mut self, types: &[ColumnType]) -> Rows {
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
        rows
    }

    fn payload<T>(&self, vector: &OpenVector<T>) -> &[u8] {
        let from = vector.offset as usize;
        &self.payloads[from..from + vector.chunk.len()]
    }

    /// Takes in vectors that were encoded elsewhere, from the `from`-th on, as `fill` does those that it encodes; answers how many.
    /// Those that it has are whole.
    pub(crate) fn fill_sealed(
        &mut self,
        types: &[ColumnType],
        hints: &mut [Hint],
        sealed: &Sealed,
        from: usize,
    ) -> usize {
        if self.vectors == 0 {
            self.clear(types);
        }
        let mut left = sealed.rows_from(from);
        let mut at = from;
        while left > 0 && self.takes(left) {
            left -= self.push_sealed(types, hints, sealed, at);
            at += 1;
        }
        at - from
    }

    /// Takes in one of them; answers its rows.
    fn push_sealed(
        &mut self,
        types: &[ColumnType],
        hints: &mut [Hint],
        sealed: &Sealed,
        vector: usize,
    ) -> usize {
        let (begin, end, rows) = sealed.span(vector);
        self.last = Before {
            end: self.end,
            rows: self.rows,
            payload_bytes: self.payloads.len(),
        };
        if self.vectors == 0 {
            self.begin = begin;
        }
        for (i, part) in sealed.parts(vector, types.len()).iter().enumerate() {
            let (chunk, checksum) = (part.chunk, part.checksum);
            let offset = self.payloads.len() as u32;
            self.payloads.extend_from_slice(sealed.bytes(part));
            match i.checked_sub(1) {
                None => {
                    let times = OpenVector {
                        chunk,
                        offset,
                        checksum,
                        what: (begin, end),
                    };
                    self.enter_times(times, &mut hints[types.len()]);
                }
                Some(c) => {
                    let words = OpenVector {
                        chunk,
                        offset,
                        checksum,
                        what: part.stats,
                    };
                    self.enter_column(c, words);
                }
            }
        }
        self.end = end;
        self.rows += rows;
        self.vectors += 1;
        rows
    }

    /// Enters the next vector of a column, whose payload is there.
    fn enter_column(&mut self, c: usize, vector: OpenVector<Stats>) {
        let word = constant(&vector.chunk);
        let column = &mut self.columns[c];
        column.stats_before = column.stats;
        column.stats.merge_after(&vector.what);
        if self.vectors == 0 {
            column.word = word;
        }
        if column.word.is_some() && column.word == word {
            return;
        }
        if let Some(word) = column.word.take() {
            self.spell_out(c, vector.what.column_type(), word);
        }
        push(&mut self.columns[c].vectors, vector);
    }

    /// Enters the next vector's times, whose payload is there.
    fn enter_times(&mut self, vector: OpenVector<(i64, i64)>, hint: &mut Hint) {
        let (begin, _) = vector.what;
        let own = constant_step(&vector.chunk);
        if self.vectors == 0 {
            self.step = own;
            if own.is_some() {
                return;
            }
        }
        if let Some(step) = self.step {
            // The step of a single row is that to the row before it.
            let goes_on = self.rows == self.vectors * VECTOR_ROWS
                && self.end.wrapping_add(step as i64) == begin;
            if goes_on && (own == Some(step) || vector.chunk.rows() == 1) {
                return;
            }
            self.step = None;
            let mut before = [0; VECTOR_ROWS];
            for v in 0..self.vectors {
                let before = &mut before[..VECTOR_ROWS.min(self.rows - v * VECTOR_ROWS)];
                fill_steps(time_of(self.begin, step, v), step, before);
                let chunk = encode_times(before, hint, &mut self.payloads);
                let span = (before[0], before[before.len() - 1]);
                push(&mut self.times, OpenVector::none(chunk, span));
            }
        }
        push(&mut self.times, vector);
    }

    /// Gives each vector so far an entry for a column that had one word.
    fn spell_out(&mut self, c: usize, ty: ColumnType, word: u64) {
        let words = [word; VECTOR_ROWS];
        for v in 0..self.vectors {
            // The extremes of equal words are at the first row, whatever the other times are.
            let (begin, rows) = match self.step {
                Some(step) => {
                    let rows = VECTOR_ROWS.min(self.rows - v * VECTOR_ROWS);
                    (time_of(self.begin, step, v), rows)
                }
                None => {
                    let OpenVector { chunk, what, .. } = &self.times[v];
                    (what.0, chunk.rows())
                }
            };
            let words = &words[..rows];
            let stats = Stats::of(ty, &[begin; VECTOR_ROWS][..rows], words);
            let chunk = encode_column(ty, words, &mut Hint::default(), &mut self.payloads);
            push(&mut self.columns[c].vectors, OpenVector::none(chunk, stats));
        }
    }

    /// Forgets its rows.
    pub(crate) fn empty(&mut self) {
        (self.vectors, self.rows) = (0, 0);
    }
}

/// Rows of the next vector of these rows.
pub(super) fn vector_rows(rows: RowsRef<'_>) -> usize {
    match rows.cut(VECTOR_ROWS) {
        // More rows of one time than a vector holds are nobody's doing but damage; such a leaf is found out when it is read.
        0 => rows.len().min(VECTOR_ROWS),
        cut => cut,
    }
}

/// The first time of vector `v` where all vectors before it are whole.
pub(super) fn time_of(begin: i64, step: u64, v: usize) -> i64 {
    begin.wrapping_add(step.wrapping_mul((v * VECTOR_ROWS) as u64) as i64)
}

/// Enters one more vector, and takes room for a few behind it. The vectors of a leaf are few: doubling would leave half the
/// memory of thousands of open leaves unused.
fn push<T>(vectors: &mut Vec<T>, vector: T) {
    if vectors.len() == vectors.capacity() {
        vectors.reserve_exact(VECTORS_STEP);
    }
    vectors.push(vector);
}

/// What was encoded in memory can be decoded.
fn just_encoded<T>(decoded: std::result::Result<T, Corrupt>) -> T {
    decoded.unwrap_or_else(|_| unreachable!("it was just encoded"))
}

/// The rule of a vector that was just encoded, if it has one.
fn line(chunk: &Chunk) -> Option<Line> {
    if !chunk.is_empty() {
        return None;
    }
    just_encoded(Line::of(chunk, &[], chunk.rows()))
}

/// The one step between all neighbours of a vector of times; a single row has step 1.
fn constant_step(chunk: &Chunk) -> Option<u64> {
    if chunk.rows() == 1 {
        return Some(1);
    }
    let line = line(chunk)?;
    Some(line.word(1).wrapping_sub(line.word(0)))
}

/// The word that all rows of a vector have.
fn constant(chunk: &Chunk) -> Option<u64> {
    let line = line(chunk)?;
    line.is_constant().then(|| line.word(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(times: &[i64]) -> Option<u64> {
        constant_step(&encode_times(times, &mut Hint::default(), &mut Vec::new()))
    }

    #[test]
    fn steps_are_found_over_the_whole_range_of_times() {
        assert_eq!(step(&[7]), Some(1));
        assert_eq!(step(&[i64::MIN, i64::MAX]), Some(u64::MAX));
        let even: Vec<i64> = (0..1000).map(|i| i * 5).collect();
        assert_eq!(step(&even), Some(5));
        for odd in [1, 255, 256, 257, 511, 512, 999] {
            let mut times = even.clone();
            times[odd] += 1;
            assert_eq!(step(&times), None, "row {odd} is off");
        }
    }

    #[test]
    fn one_word_is_found() {
        let word = |words: &[u64]| {
            let (mut hint, mut out) = (Hint::default(), Vec::new());
            constant(&encode_column(ColumnType::F64, words, &mut hint, &mut out))
        };
        let mut words = vec![3u64; 700];
        assert_eq!(word(&words), Some(3));
        words[699] = 4;
        assert_eq!(word(&words), None);
        assert_eq!(word(&[1 << 63]), Some(1 << 63));
    }
}
