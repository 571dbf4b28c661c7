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
//! 3. A column that is `constant` has no words that count; every row has `value`. The words of the others, like
//!    `times`, are as long as there is room; the first `rows` count.
//! 4. While `rows < easy_end` there is room, nothing need be looked at after the next row, and there are two
//!    columns: flags that are constant `easy_flags`, and a value that varies.
//! 5. `slots[s].time_max` is at least every time staged for `s` in closed stretches; the slot that is
//!    open has no overlay.
//! 6. While rows come in rounds (`round_robin.rs`), no stretch is open, and the rows from `open_start` on are those of the rounds.

use crate::buffer::rounds::Rounds;
use crate::buffer::slot::{NO_OVERLAY, NO_SLOT, STRETCH_BYTES, SlotState, Stretch};
use tidalite_codec::{ColumnType, Rows, RowsRef, is_ascending};

/// Rows for which a log makes room at first, and at most at once: what is zeroed is still in the cache when it is
/// written.
const ROOM_ROWS_MIN: usize = 1024;
const ROOM_ROWS_STEP: usize = 1 << 13;

/// A log of this many rows gets the address space for all that it may hold, so that it is never copied to grow. What of it is
/// never reached is never touched: an allocator may give memory that was used before, which zeroing all of it would go through
/// (256 MiB for points: 25 ms).
const LARGE_ROWS: usize = 1 << 16;

/// How many rows a buffer has room for, and how many more it will probably need.
#[derive(Clone, Copy, Debug)]
struct Room {
    rows: usize,
    rows_max: usize,
}

impl Room {
    fn make<T: Copy + Default>(self, buffer: &mut Vec<T>) {
        if self.rows > buffer.capacity() && self.rows >= LARGE_ROWS {
            buffer.reserve_exact(self.rows.max(self.rows_max) - buffer.len());
        }
        if self.rows > buffer.len() {
            buffer.resize(self.rows, T::default());
        }
    }
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

    /// Sets the word of row `row`, the last one; there is room for it.
    #[inline]
    fn set(&mut self, row: usize, room: Room, word: u64) {
        if self.constant {
            if word == self.value {
                return;
            }
            if row == 0 {
                self.value = word;
                return;
            }
            self.vary(row, room);
        }
        self.words[row] = word;
    }

    /// Makes a constant column of `rows` rows a varying one.
    #[cold]
    #[inline(never)]
    fn vary(&mut self, rows: usize, room: Room) {
        self.constant = false;
        room.make(&mut self.words);
        self.words[..rows].fill(self.value);
    }

    fn extend(&mut self, rows: usize, room: Room, words: &[u64]) {
        if self.constant && words.iter().any(|&word| word != self.value) {
            if rows == 0 && words.iter().all(|&word| word == words[0]) {
                self.value = words[0];
            } else {
                self.vary(rows, room);
            }
        }
        if !self.constant {
            self.words[rows..rows + words.len()].copy_from_slice(words);
        }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) types: Box<[ColumnType]>,
    pub(super) rows: usize,
    pub(super) times: Vec<i64>,
    pub(super) columns: Vec<LogColumn>,
    pub(super) stretches: Vec<Stretch>,
    pub(crate) slots: Vec<SlotState>,
    pub(super) open: u32,
    pub(super) open_start: usize,
    pub(super) rounds: Rounds,
    /// Of so many slots rows may be in a log that is away (`away.rs`).
    pub(super) away: usize,
    /// Whether rows came that were older than others of their series, or met others in the front.
    pub(super) late: bool,
    /// Rows at which `Staging` looks whether something is to be handed over.
    look_at: usize,
    easy_end: usize,
    easy_flags: u64,
    /// Rows that the budget allows, about.
    rows_max: usize,
    /// Rows up to which the budget was found good enough.
    pub(super) budget_at: usize,
}

impl Log {
    pub(crate) fn new(types: &[ColumnType], budget_bytes: usize) -> Self {
        let row_bytes = 8 * (1 + types.len().saturating_sub(1).max(1));
        Self {
            types: types.into(),
            rows: 0,
            times: Vec::new(),
            columns: types.iter().map(|_| LogColumn::new()).collect(),
            stretches: Vec::new(),
            slots: Vec::new(),
            open: NO_SLOT,
            open_start: 0,
            rounds: Rounds::default(),
            away: 0,
            late: false,
            look_at: 0,
            easy_end: 0,
            easy_flags: 0,
            rows_max: budget_bytes / row_bytes + 2 * ROOM_ROWS_STEP,
            budget_at: 0,
        }
    }

    #[inline]
    pub(super) fn look_at(&self) -> usize {
        self.look_at
    }

    /// Looks next when the budget was set to, or the open stretch is a leaf's worth, or the rounds are to be handed over.
    #[inline]
    pub(super) fn look_later(&mut self, leaf_rows: usize) {
        let due = match self.rounds.are_on() {
            true => self.rounds.due,
            false => self.open_start + leaf_rows,
        };
        self.look_at = self.budget_at.min(due);
        self.ease();
    }

    /// Sees whether the next rows may be pushed the easy way.
    #[inline]
    pub(super) fn ease(&mut self) {
        self.easy_end = 0;
        if let [first, second] = self.columns.as_slice()
            && first.constant
            && !second.constant
        {
            self.easy_flags = first.value;
            self.easy_end = self.look_at.saturating_sub(1).min(self.times.len());
        }
    }

    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    pub(super) fn times(&self) -> &[i64] {
        &self.times[..self.rows]
    }

    /// Bytes that the staged rows cost. Of the constant columns one is not counted: flags usually stay constant, but the budget
    /// must also hold when all columns begin to vary, and when a stretch is noted for each row of the rounds.
    pub(super) fn bytes(&self) -> usize {
        let varying = self
            .columns
            .iter()
            .filter(|column| !column.constant)
            .count();
        let counted = varying.max(self.columns.len().saturating_sub(1));
        let stretches = self.stretches.len() + self.round_rows().len();
        self.rows() * 8 * (1 + counted) + stretches * STRETCH_BYTES
    }

    /// Bytes that they cost when nothing is added any more.
    pub(super) fn bytes_taken(&self) -> usize {
        self.bytes() - self.round_rows().len() * STRETCH_BYTES
    }

    /// The columns of its rows.
    pub(crate) fn types(&self) -> &[ColumnType] {
        &self.types
    }

    /// Closes the open stretch and opens one for `slot`, which must have no overlay.
    #[inline]
    pub(super) fn switch(&mut self, slot: u32, leaf_rows: usize) {
        self.close();
        self.open = slot;
        self.look_later(leaf_rows);
    }

    /// Closes the open stretch; rounds end as well, and are noted as stretches.
    #[inline]
    pub(super) fn close(&mut self) {
        if self.rounds.are_on() {
            self.spell_out();
        }
        self.close_stretch();
    }

    /// Closes the open stretch, if rows do not come in rounds.
    #[inline]
    pub(super) fn close_stretch(&mut self) {
        if self.rounds.are_on() {
            return;
        }
        let times = &self.times[self.open_start..self.rows];
        if let Some(&first) = times.first() {
            self.stretches.push(Stretch {
                slot: self.open,
                start: self.open_start as u32,
            });
            let greatest = if times.len() == 1 {
                first
            } else if is_ascending(times) {
                times[times.len() - 1]
            } else {
                times.iter().fold(first, |a, &b| a.max(b))
            };
            let slot = &mut self.slots[self.open as usize];
            slot.time_max = slot.time_max.max(greatest);
            slot.staged = true;
        }
        self.open = NO_SLOT;
        self.open_start = self.rows;
    }

    /// Appends a point of two columns to the open stretch, if that is as easy as it usually is: there is room, the flags
    /// are as they always were, the value is not, and nothing need be looked at afterwards.
    #[inline(always)]
    pub(super) fn push_easy(&mut self, time: i64, flags: u64, value: u64) -> bool {
        let row = self.rows;
        if row >= self.easy_end || flags != self.easy_flags {
            return false;
        }
        let Some(second) = self.columns.get_mut(1) else {
            return false;
        };
        let (Some(at_time), Some(at_value)) = (self.times.get_mut(row), second.words.get_mut(row))
        else {
            return false;
        };
        *at_time = time;
        *at_value = value;
        self.rows = row + 1;
        true
    }

    /// Appends a point of two columns to the rounds, if it is that of the series whose turn it is, and as easy as usual.
    #[inline(always)]
    pub(super) fn push_round(&mut self, slot: u32, time: i64, flags: u64, value: u64) -> bool {
        if self.rounds.expected != slot || !self.push_easy(time, flags, value) {
            return false;
        }
        self.rounds.turn();
        true
    }

    /// Closes the open stretch of one row, opens one for `slot` and appends a point to it, if that is as easy as it usually
    /// is where series are fed in turn. What was found about the next rows still holds: a stretch begins later.
    #[inline]
    pub(super) fn push_turn(&mut self, slot: u32, time: i64, flags: u64, value: u64) -> bool {
        let row = self.rows;
        if row != self.open_start + 1 || row >= self.easy_end || flags != self.easy_flags {
            return false;
        }
        match self.slots.get(slot as usize) {
            Some(next) if next.overlay == NO_OVERLAY && slot != self.open => {}
            _ => return false,
        }
        let Some(second) = self.columns.get_mut(1) else {
            return false;
        };
        let (Some(&closed), Some(before)) = (
            self.times.get(row - 1),
            self.slots.get_mut(self.open as usize),
        ) else {
            return false;
        };
        let (Some(at_time), Some(at_value)) = (self.times.get_mut(row), second.words.get_mut(row))
        else {
            return false;
        };
        before.time_max = before.time_max.max(closed);
        before.staged = true;
        self.stretches.push(Stretch {
            slot: self.open,
            start: self.open_start as u32,
        });
        *at_time = time;
        *at_value = value;
        self.open = slot;
        self.open_start = row;
        self.rows = row + 1;
        true
    }

    /// Appends a row to the open stretch.
    #[inline]
    pub(super) fn push(&mut self, time: i64, words: &[u64]) {
        let row = self.rows;
        if row == self.times.len() {
            self.make_room(1);
        }
        self.times[row] = time;
        let room = self.room();
        self.easy_end = 0; // a column may begin to vary
        for (column, &word) in self.columns.iter_mut().zip(words) {
            column.set(row, room, word);
        }
        self.rows = row + 1;
    }

    /// Appends rows to the open stretch.
    pub(super) fn extend(&mut self, rows: RowsRef<'_>) {
        let row = self.rows;
        if self.times.len() - row < rows.len() {
            self.make_room(rows.len());
        }
        self.times[row..row + rows.len()].copy_from_slice(rows.times());
        let room = self.room();
        self.easy_end = 0;
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.extend(row, room, rows.column(i));
        }
        self.rows = row + rows.len();
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, rows: usize) {
        let step = self.times.len().clamp(ROOM_ROWS_MIN, ROOM_ROWS_STEP);
        let room = Room {
            rows: self.times.len() + step.max(rows),
            rows_max: self.rows_max,
        };
        room.make(&mut self.times);
        // It may have got more.
        let room = self.room();
        for column in &mut self.columns {
            if !column.constant {
                room.make(&mut column.words);
            }
        }
    }

    #[inline]
    fn room(&self) -> Room {
        Room {
            rows: self.times.len(),
            rows_max: self.rows_max,
        }
    }

    /// Whether the open stretch is a leaf's worth of rows that lie after everything else staged for
    /// their series.
    pub(super) fn open_is_leaf(&self, leaf_rows: usize) -> bool {
        if self.open == NO_SLOT || self.rows - self.open_start < leaf_rows {
            return false;
        }
        let slot = &self.slots[self.open as usize];
        let times = &self.times[self.open_start..self.rows];
        (!slot.staged || slot.time_max < times[0]) && is_ascending(times)
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
        f(RowsRef::new(&self.times()[from..to], &slices))
    }

    /// Forgets the rows from `from` on, which belong to the open stretch.
    pub(super) fn rewind(&mut self, from: usize) {
        debug_assert!(
            from == self.open_start,
            "only the open stretch is taken back"
        );
        self.rows = from;
    }

    /// Forgets all rows; slots and memory stay.
    pub(super) fn clear(&mut self) {
        self.rows = 0;
        for column in &mut self.columns {
            column.constant = true;
        }
        self.stretches.clear();
        for slot in &mut self.slots {
            slot.time_max = i64::MIN;
            slot.staged = false;
        }
        self.open = NO_SLOT;
        self.open_start = 0;
        self.rounds.forget();
        self.look_at = 0;
        self.easy_end = 0;
        self.budget_at = 0;
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
