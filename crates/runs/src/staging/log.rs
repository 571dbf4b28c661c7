//! The columnar log of one layout: rows of all its series in the order in which they were pushed.
//!
//! ```text
//! times      t t t t t t t t t t t ...      one buffer a column: ten thousand series fed in turn
//! column 0   (constant so far: elided)      are two sequential writes a row
//! column 1   w w w w w w w w w w w ...
//! stretches  |slot 4     |slot 9 |slot 4 .. the last one is still open
//! ```
//!
//! Invariants:
//! 1. `stretches` are ascending in `start`; a closed stretch ends where the next begins, the last closed one
//!    at `open_start`.
//! 2. Rows from `open_start` on belong to slot `open`; when `open` is `NO_SLOT` there are none.
//! 3. A column that is `constant` has no words; every row has `value`.
//! 4. `slots[s].time_max` is at least every time staged for `s` in closed stretches; the slot that is
//!    open has no overlay.

use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows, RowsRef};

/// Nobody: no open stretch, or a stretch whose rows went elsewhere.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// A slot without overlay.
pub(super) const NO_OVERLAY: u32 = u32::MAX;

/// Bytes that a stretch costs: its entry, and its place in the order when grouped.
pub(super) const STRETCH_BYTES: usize = 12;

/// Rows of one slot, contiguous in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) slot: u32,
    pub(super) start: u32,
}

/// What is known of a series of this layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotState {
    pub(super) series: SeriesId,
    /// Greatest time in closed stretches; `None` when there are none.
    pub(super) time_max: i64,
    pub(super) staged: bool,
    /// Index of its overlay, or `NO_OVERLAY`.
    pub(super) overlay: u32,
}

/// One column of the log.
#[derive(Debug)]
pub(super) struct LogColumn {
    pub(super) constant: bool,
    pub(super) value: u64,
    pub(super) words: Vec<u64>,
}

impl LogColumn {
    fn new() -> Self {
        Self {
            constant: true,
            value: 0,
            words: Vec::new(),
        }
    }

    /// Appends a word when `rows` rows are there already.
    #[inline(always)]
    fn push(&mut self, rows: usize, word: u64) {
        if self.constant {
            if word != self.value {
                self.vary(rows, word);
            }
        } else {
            self.words.push(word);
        }
    }

    #[cold]
    #[inline(never)]
    fn vary(&mut self, rows: usize, word: u64) {
        if rows > 0 {
            self.constant = false;
            self.words.resize(rows, self.value);
            self.words.push(word);
        } else {
            self.value = word;
        }
    }

    fn extend(&mut self, rows: usize, words: &[u64]) {
        if self.constant && words.iter().any(|&word| word != self.value) {
            if rows == 0 && words.iter().all(|&word| word == words[0]) {
                self.value = words[0];
            } else {
                self.constant = false;
                self.words.resize(rows, self.value);
            }
        }
        if !self.constant {
            self.words.extend_from_slice(words);
        }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) types: Box<[ColumnType]>,
    pub(super) times: Vec<i64>,
    pub(super) columns: Vec<LogColumn>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) slots: Vec<SlotState>,
    pub(super) open: u32,
    pub(super) open_start: usize,
    /// Last and greatest time of the open stretch, and whether it is strictly ascending.
    last: i64,
    greatest: i64,
    ascending: bool,
    /// Rows at which `Staging` looks whether something is to be handed over.
    pub(super) look_at: usize,
    /// Rows up to which the budget was found good enough.
    pub(super) budget_at: usize,
}

impl Log {
    pub(super) fn new(types: &[ColumnType]) -> Self {
        Self {
            types: types.into(),
            times: Vec::new(),
            columns: types.iter().map(|_| LogColumn::new()).collect(),
            stretches: Vec::new(),
            slots: Vec::new(),
            open: NO_SLOT,
            open_start: 0,
            last: i64::MIN,
            greatest: i64::MIN,
            ascending: true,
            look_at: 0,
            budget_at: 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.times.len()
    }

    /// Bytes that the staged rows cost, what grouping them will need included.
    pub(super) fn bytes(&self) -> usize {
        let varying = self
            .columns
            .iter()
            .filter(|column| !column.constant)
            .count();
        self.rows() * 8 * (1 + varying) + self.stretches.len() * STRETCH_BYTES
    }

    /// Closes the open stretch and opens one for `slot`, which must have no overlay.
    #[inline]
    pub(super) fn switch(&mut self, slot: u32, leaf_rows: usize) {
        self.close();
        self.open = slot;
        self.look_at = self.budget_at.min(self.open_start + leaf_rows);
    }

    /// Closes the open stretch.
    #[inline]
    pub(super) fn close(&mut self) {
        if self.times.len() > self.open_start {
            self.stretches.push(Stretch {
                slot: self.open,
                start: self.open_start as u32,
            });
            let slot = &mut self.slots[self.open as usize];
            slot.time_max = slot.time_max.max(self.greatest);
            slot.staged = true;
        }
        self.open = NO_SLOT;
        self.open_start = self.times.len();
        self.reopen();
    }

    fn reopen(&mut self) {
        self.last = i64::MIN;
        self.greatest = i64::MIN;
        self.ascending = true;
    }

    /// Appends a row to the open stretch.
    #[inline(always)]
    pub(super) fn push(&mut self, time: i64, words: &[u64]) {
        let rows = self.note(time);
        for (column, &word) in self.columns.iter_mut().zip(words) {
            column.push(rows, word);
        }
    }

    #[inline(always)]
    fn note(&mut self, time: i64) -> usize {
        let rows = self.times.len();
        // The first row of a stretch may be i64::MIN, which is not above `last`.
        self.ascending &= time > self.last || rows == self.open_start;
        self.last = time;
        self.greatest = self.greatest.max(time);
        self.times.push(time);
        rows
    }

    /// Appends rows to the open stretch.
    pub(super) fn extend(&mut self, rows: RowsRef<'_>) {
        let before = self.rows();
        for &time in rows.times() {
            self.note(time);
        }
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.extend(before, rows.column(i));
        }
    }

    /// Whether the open stretch is a leaf's worth of rows that lie after everything else staged for
    /// their series.
    pub(super) fn open_is_leaf(&self, leaf_rows: usize) -> bool {
        if self.open == NO_SLOT || self.rows() - self.open_start < leaf_rows || !self.ascending {
            return false;
        }
        let slot = &self.slots[self.open as usize];
        !slot.staged || slot.time_max < self.times[self.open_start]
    }

    /// Calls `f` with rows `from..to`; `fill` is memory for the elided columns.
    pub(super) fn with_rows<T>(
        &self,
        from: usize,
        to: usize,
        fill: &mut Fill,
        f: impl FnOnce(RowsRef<'_>) -> T,
    ) -> T {
        fill.prepare(&self.columns, to - from);
        let mut next = 0;
        let slices: Vec<&[u64]> = self
            .columns
            .iter()
            .map(|column| {
                if column.constant {
                    next += 1;
                    &fill.columns[next - 1].1[..to - from]
                } else {
                    &column.words[from..to]
                }
            })
            .collect();
        f(RowsRef::new(&self.times[from..to], &slices))
    }

    /// Forgets the rows from `from` on, which belong to the open stretch.
    pub(super) fn rewind(&mut self, from: usize) {
        debug_assert!(
            from == self.open_start,
            "only the open stretch is taken back"
        );
        self.times.truncate(from);
        for column in &mut self.columns {
            column.words.truncate(from);
        }
        self.reopen();
    }

    /// Forgets all rows; slots and memory stay.
    pub(super) fn clear(&mut self) {
        self.times.clear();
        for column in &mut self.columns {
            column.words.clear();
            column.constant = true;
        }
        self.stretches.clear();
        for slot in &mut self.slots {
            slot.time_max = i64::MIN;
            slot.staged = false;
        }
        self.open = NO_SLOT;
        self.open_start = 0;
        self.look_at = 0;
        self.budget_at = 0;
        self.reopen();
    }

    /// Moves the rows of `slot` out of the log, in the order in which they were pushed.
    ///
    /// Cost: one pass over the stretches when the series has rows in the log, else nothing.
    pub(super) fn take(&mut self, slot: u32) -> Rows {
        self.close();
        let mut rows = Rows::new(self.types.len());
        if !self.slots[slot as usize].staged {
            return rows;
        }
        for at in 0..self.stretches.len() {
            if self.stretches[at].slot != slot {
                continue;
            }
            let from = self.stretches[at].start as usize;
            let to = self.stretch_end(at);
            rows.times.extend_from_slice(&self.times[from..to]);
            for (to_column, column) in rows.columns.iter_mut().zip(&self.columns) {
                if column.constant {
                    to_column.resize(rows.times.len(), column.value);
                } else {
                    to_column.extend_from_slice(&column.words[from..to]);
                }
            }
            self.stretches[at].slot = NO_SLOT;
        }
        let state = &mut self.slots[slot as usize];
        state.staged = false;
        state.time_max = i64::MIN;
        rows
    }

    /// Where closed stretch `at` ends.
    #[inline]
    pub(super) fn stretch_end(&self, at: usize) -> usize {
        match self.stretches.get(at + 1) {
            Some(next) => next.start as usize,
            None => self.open_start,
        }
    }
}

/// Memory for the columns that are elided: their value, repeated.
#[derive(Debug, Default)]
pub(super) struct Fill {
    columns: Vec<(u64, Vec<u64>)>,
}

impl Fill {
    /// Makes the constant columns of `columns` readable for `rows` rows.
    pub(super) fn prepare(&mut self, columns: &[LogColumn], rows: usize) {
        let constants = columns.iter().filter(|column| column.constant);
        for (i, column) in constants.enumerate() {
            if self.columns.len() <= i {
                self.columns.push((column.value, Vec::new()));
            }
            let (value, words) = &mut self.columns[i];
            if *value != column.value {
                *value = column.value;
                words.clear();
            }
            if words.len() < rows {
                words.resize(rows, column.value);
            }
        }
    }

    /// The words of the `i`-th elided column, as prepared.
    pub(super) fn words(&self, i: usize, rows: usize) -> &[u64] {
        &self.columns[i].1[..rows]
    }
}
