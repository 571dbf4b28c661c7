//! The columnar log of all series with the same column types (a *layout*): their rows in push order.
//!
//! ```text
//! times      t t t t t t t t t t t ...      one buffer per column: ten thousand series written in
//! column 0   (constant so far: elided)      turn cost two sequential writes per row
//! column 1   w w w w w w w w w w w ...
//! batches  |slot 4     |slot 9 |slot 4 .. the last one is still open
//! ```
//!
//! A batch is a range of contiguous rows of one series, which has a *slot* in the log. Invariants:
//! 1. `batches` ascend by `start`; a closed batch ends where the next begins, the last closed one at `open_start`.
//! 2. Rows from `open_start` on belong to slot `open`; if `open` is `NO_SLOT`, there are none.
//! 3. The words of a `constant` column are unused; every row has `value`. The words of other columns, like `times`,
//!    fill the allocated room; only the first `rows` of them are valid.
//! 4. While the fast path takes a row (`fast_path.rs`), there is room for it, no check for a flush is due after it,
//!    and there are two columns: flags with a constant value, and a varying value.
//! 5. `slots[s].time_max` is an upper bound of the times buffered for `s` in closed batches; the open slot has no
//!    overlay.
//! 6. While rows arrive in rounds (`round_robin.rs`), no batch is open, and the rows from `open_start` on belong to
//!    the rounds.

use crate::buffer::fast_path::FastPath;
use crate::buffer::round_state::RoundRobin;
use crate::buffer::slot::{BATCH_BYTES, Batch, NO_OVERLAY, NO_SLOT, SlotState};
use crate::limits::LEAF_ROWS;
use tidalite_codec::{ColumnType, Rows, RowsRef, is_ascending};

/// Initial room of a log in rows, and the maximum by which it grows at once: freshly zeroed memory is then still in
/// the cache when rows are written to it.
const ROOM_ROWS_MIN: usize = 1024;
const ROOM_ROWS_STEP: usize = 1 << 13;

/// A log that reaches this many rows reserves address space for its maximum size, so that growing never copies the
/// rows. The unused part is never touched. Recycled memory would have to be zeroed by writing all of it (256 MiB for
/// points: 25 ms).
const LARGE_ROWS: usize = 1 << 16;

/// Number of rows for which a column has memory now, and the number of rows it may grow to.
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

/// One column of the log. While all rows have the same value, only `value` is stored.
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

    /// Sets the value of row `row`, which is the last row; the caller has made room for it.
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

    /// Turns a constant column of `rows` rows into one that stores a value for each row.
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

/// The buffered rows of all series of one layout, in push order, as columns. The head of this file lists the
/// invariants.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) types: Box<[ColumnType]>,
    pub(super) rows: usize,
    pub(super) times: Vec<i64>,
    pub(super) columns: Vec<LogColumn>,
    pub(super) batches: Vec<Batch>,
    pub(crate) slots: Vec<SlotState>,
    pub(super) open: u32,
    pub(super) open_start: usize,
    pub(super) round_robin: RoundRobin,
    /// Number of slots that may have rows in a lent log (`lent.rs`).
    pub(super) lent_slots: usize,
    /// Whether rows arrived that were older than other rows of their series, or overlapped stored rows in the delta.
    pub(super) late: bool,
    pub(super) fast: FastPath,
    /// Approximate number of rows that fit into the memory budget of the write buffer.
    rows_max: usize,
}

impl Log {
    pub(crate) fn new(types: &[ColumnType], budget_bytes: usize) -> Self {
        let row_bytes = 8 * (1 + types.len().saturating_sub(1).max(1));
        Self {
            types: types.into(),
            rows: 0,
            times: Vec::new(),
            columns: types.iter().map(|_| LogColumn::new()).collect(),
            batches: Vec::new(),
            slots: Vec::new(),
            open: NO_SLOT,
            open_start: 0,
            round_robin: RoundRobin::default(),
            lent_slots: 0,
            late: false,
            fast: FastPath::default(),
            rows_max: budget_bytes / row_bytes + 2 * ROOM_ROWS_STEP,
        }
    }

    /// Computes the row counts that bound the fast path; the head of `fast_path.rs` describes them.
    #[inline]
    pub(super) fn refresh(&mut self) {
        let flush_at = match self.round_robin.is_active() {
            true => self.round_robin.flush_at,
            false => self.open_start + LEAF_ROWS,
        };
        let flags = match self.columns.as_slice() {
            [flags, value] if flags.constant && !value.constant => Some(flags.value),
            _ => None,
        };
        self.fast.refresh(flush_at, flags, self.times.len());
    }

    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    pub(super) fn times(&self) -> &[i64] {
        &self.times[..self.rows]
    }

    /// Size in bytes that the memory budget counts for the buffered rows. One constant column is not counted, since
    /// flags usually stay constant. Apart from this column, the budget must hold even if all columns begin to vary
    /// and each row that arrived in a round needs a batch.
    pub(super) fn bytes(&self) -> usize {
        let varying = self
            .columns
            .iter()
            .filter(|column| !column.constant)
            .count();
        let counted = varying.max(self.columns.len().saturating_sub(1));
        let batches = self.batches.len() + self.round_robin_rows().len();
        self.rows() * 8 * (1 + counted) + batches * BATCH_BYTES
    }

    /// Size in bytes of the buffered rows if no more rows are pushed: unlike `bytes`, without a batch for each row
    /// that arrived in a round.
    pub(super) fn bytes_taken(&self) -> usize {
        self.bytes() - self.round_robin_rows().len() * BATCH_BYTES
    }

    /// The types of the columns of the log, without the time.
    pub(crate) fn types(&self) -> &[ColumnType] {
        &self.types
    }

    /// Closes the open batch and opens one for `slot`, which must have no overlay.
    #[inline]
    pub(super) fn switch(&mut self, slot: u32) {
        debug_assert!(
            self.slots[slot as usize].overlay == NO_OVERLAY,
            "log and overlay never both hold a series"
        );
        self.close();
        self.open = slot;
        self.refresh();
    }

    /// Closes the open batch. In round-robin mode, ends the mode and records the rows of the rounds as batches.
    #[inline]
    pub(super) fn close(&mut self) {
        if self.round_robin.is_active() {
            self.end_round_robin();
        }
        self.close_batch();
    }

    /// Closes the open batch; does nothing in round-robin mode.
    #[inline]
    pub(super) fn close_batch(&mut self) {
        if self.round_robin.is_active() {
            return;
        }
        let times = &self.times[self.open_start..self.rows];
        if let Some(&first) = times.first() {
            debug_assert!(
                self.open != NO_SLOT,
                "rows after the last closed batch have a slot"
            );
            self.batches.push(Batch {
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
            slot.buffered = true;
        }
        self.open = NO_SLOT;
        self.open_start = self.rows;
    }

    /// Appends a point on the fast path: to the open batch, or to the current round if its series is the expected
    /// one. Returns false, without any effect, if the row needs further checks.
    #[inline(always)]
    pub(super) fn append_point(&mut self, slot: u32, time: i64, flags: u64, value: u64) -> bool {
        if self.open == slot {
            return self.write_point(time, flags, value);
        }
        if self.round_robin.expected != slot || !self.write_point(time, flags, value) {
            return false;
        }
        self.round_robin.advance();
        true
    }

    /// Fast path for series written in turn: closes the open batch if it has exactly one row, opens a batch for
    /// `slot` and appends a point to it. The bounds of the fast path remain valid, since the new batch begins later.
    /// Returns false, without any effect, if the point cannot take this path.
    #[inline]
    pub(super) fn append_to_next(&mut self, slot: u32, time: i64, flags: u64, value: u64) -> bool {
        let row = self.rows;
        if row != self.open_start + 1 || slot == self.open {
            return false;
        }
        match self.slots.get(slot as usize) {
            Some(next) if next.overlay == NO_OVERLAY => {}
            _ => return false,
        }
        let (Some(&closed), Some(_)) =
            (self.times.get(row - 1), self.slots.get(self.open as usize))
        else {
            return false;
        };
        if !self.write_point(time, flags, value) {
            return false;
        }
        let before = &mut self.slots[self.open as usize];
        before.time_max = before.time_max.max(closed);
        before.buffered = true;
        self.batches.push(Batch {
            slot: self.open,
            start: self.open_start as u32,
        });
        self.open = slot;
        self.open_start = row;
        true
    }

    /// Appends a point if the fast path allows it; returns false, without any effect, otherwise.
    #[inline(always)]
    fn write_point(&mut self, time: i64, flags: u64, value: u64) -> bool {
        let row = self.rows;
        if !self.fast.takes(row, flags) {
            return false;
        }
        let Some(second) = self.columns.get_mut(1) else {
            return false;
        };
        let (Some(at_time), Some(at_value)) = (self.times.get_mut(row), second.words.get_mut(row))
        else {
            return false;
        };
        debug_assert!(!second.constant, "the values of points vary");
        *at_time = time;
        *at_value = value;
        self.rows = row + 1;
        true
    }

    /// Appends a row to the open batch, or to the current round in round-robin mode.
    #[inline]
    pub(super) fn append_row(&mut self, time: i64, words: &[u64]) {
        let row = self.rows;
        if row == self.times.len() {
            self.make_room(1);
        }
        self.times[row] = time;
        let room = self.room();
        self.fast.invalidate();
        for (column, &word) in self.columns.iter_mut().zip(words) {
            column.set(row, room, word);
        }
        self.rows = row + 1;
    }

    /// Appends rows to the open batch.
    pub(super) fn extend(&mut self, rows: RowsRef<'_>) {
        let row = self.rows;
        if self.times.len() - row < rows.len() {
            self.make_room(rows.len());
        }
        self.times[row..row + rows.len()].copy_from_slice(rows.times());
        let room = self.room();
        self.fast.invalidate();
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
        debug_assert!(
            self.times.len() >= self.rows + rows,
            "there is room for the rows"
        );
        // `times` may have received more memory than requested. The columns get as much.
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

    /// Whether the open batch has enough rows for a leaf, and these rows are later than all other buffered rows of
    /// the series.
    pub(super) fn open_is_leaf(&self) -> bool {
        if self.open == NO_SLOT || self.rows - self.open_start < LEAF_ROWS {
            return false;
        }
        let slot = &self.slots[self.open as usize];
        let times = &self.times[self.open_start..self.rows];
        (!slot.buffered || slot.time_max < times[0]) && is_ascending(times)
    }

    /// Whether rows at these times may be pushed to the log or to the overlay of a slot. Used in assertions: rows in
    /// rounds are not examined.
    pub(super) fn takes(&self, slot: u32, times: &[i64]) -> bool {
        let state = &self.slots[slot as usize];
        if !state.keeps_all || state.overlay != NO_OVERLAY {
            return true;
        }
        let closed = state.buffered.then_some(state.time_max);
        let open = (self.open == slot).then(|| self.times[self.open_start..self.rows].last());
        let last = open.flatten().copied().max(closed);
        let follows = |last: i64| times.first().is_none_or(|&first| last < first);
        last.is_none_or(follows) && times.is_sorted_by(|a, b| a < b)
    }

    /// Calls `f` with the rows `from..to` of the log. `fill` provides memory for the repeated values of constant
    /// columns, which the log does not store for each row.
    pub(super) fn with_rows<T>(
        &self,
        from: usize,
        to: usize,
        fill: &mut Fill,
        f: impl FnOnce(RowsRef<'_>) -> T,
    ) -> T {
        debug_assert!(from <= to && to <= self.rows, "rows of the log");
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

    /// Removes the rows from index `from` on, which must be all rows of the open batch.
    pub(super) fn rewind(&mut self, from: usize) {
        debug_assert!(from == self.open_start, "only the open batch is taken back");
        self.rows = from;
    }

    /// Removes all rows from the log. The slots and the memory of the log are kept.
    pub(super) fn clear(&mut self) {
        self.rows = 0;
        for column in &mut self.columns {
            column.constant = true;
        }
        self.batches.clear();
        for slot in &mut self.slots {
            slot.time_max = i64::MIN;
            slot.buffered = false;
        }
        self.open = NO_SLOT;
        self.open_start = 0;
        self.round_robin.reset();
        self.fast = FastPath::default();
    }

    /// Moves the rows of `slot` out of the log, in push order.
    ///
    /// Cost: one pass over the batches if the series has rows in the log, otherwise nothing.
    pub(super) fn take(&mut self, slot: u32) -> Rows {
        self.close();
        let mut rows = Rows::new(self.types.len());
        if !self.slots[slot as usize].buffered {
            return rows;
        }
        for at in 0..self.batches.len() {
            if self.batches[at].slot != slot {
                continue;
            }
            let from = self.batches[at].start as usize;
            let to = self.batch_end(at);
            rows.times.extend_from_slice(&self.times[from..to]);
            for (to_column, column) in rows.columns.iter_mut().zip(&self.columns) {
                if column.constant {
                    to_column.resize(rows.times.len(), column.value);
                } else {
                    to_column.extend_from_slice(&column.words[from..to]);
                }
            }
            self.batches[at].slot = NO_SLOT;
        }
        let state = &mut self.slots[slot as usize];
        state.buffered = false;
        state.time_max = i64::MIN;
        debug_assert!(
            self.batches.iter().all(|batch| batch.slot != slot),
            "no rows of the slot are left in the log"
        );
        rows
    }

    /// Whether the closed batches are in order, and each ends where the next one begins (invariant 1).
    pub(super) fn batches_ascend(&self) -> bool {
        let starts_ascend = self.batches.is_sorted_by(|a, b| a.start < b.start);
        let last = self.batches.last();
        starts_ascend
            && self.open_start <= self.rows
            && last.is_none_or(|last| (last.start as usize) < self.open_start)
    }

    /// Returns the index of the first row after closed batch `at`.
    #[inline]
    pub(super) fn batch_end(&self, at: usize) -> usize {
        match self.batches.get(at + 1) {
            Some(next) => next.start as usize,
            None => self.open_start,
        }
    }
}

/// Reusable memory for constant columns, in which their value is repeated for each row.
#[derive(Debug, Default)]
pub(super) struct Fill {
    columns: Vec<(u64, Vec<u64>)>,
}

impl Fill {
    /// Repeats the value of each constant column among `columns` at least `rows` times.
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

    /// Returns the first `rows` values of the `i`-th constant column, which `prepare` must have filled.
    pub(super) fn words(&self, i: usize, rows: usize) -> &[u64] {
        &self.columns[i].1[..rows]
    }
}
