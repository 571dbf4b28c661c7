//! Series that are written round-robin, one row each per round: the next series is predictable, so the log need not
//! store which series a row belongs to.
//!
//! ```text
//! log     ... 4 9 9 | a b c d | a b c d | a b c d | a b ...     a round has one row per series, ordered by series id
//!  batches ^      ^-- first                         ^-- expected: c
//! ```
//!
//! Invariants:
//! 1. Round-robin mode is active while `expected` is a slot. The rows from `first` to the end of the log then belong
//!    to `slots`, one row for each in turn; the next row belongs to `expected`. No slot of a round has an overlay.
//! 2. Within a round the series ascend, without repetition.
//! 3. A row of any other slot ends the mode: the rows of the rounds are then recorded as batches of one row each, as
//!    if the mode had never been active. A row of a slot with an overlay does not go to the log and does not end the
//!    mode.
//! 4. The budget counts a row of the rounds like a batch of one row.

use crate::buffer::log::Log;
use crate::buffer::round_state::DETECT_ROWS_MIN;
use crate::buffer::slot::{Batch, NO_OVERLAY, NO_SLOT};
use std::ops::Range;
use tidalite_base::SeriesId;
use tidalite_base::limits::VECTOR_ROWS;

/// Minimum number of series in a round; rows of fewer series are recorded as batches.
const SLOTS_MIN: usize = 16;

/// Number of complete rounds that must be seen before round-robin order is assumed.
const ROUNDS_MIN: usize = 3;

/// Rows that arrived in rounds are flushed early, before the memory budget is used up, once they have at least this
/// many bytes. They are few enough to be still in a processor cache when the flush reads them.
const DUE_BYTES_MIN: usize = 4 << 20;

impl Log {
    /// The range of rows in the log that arrived in rounds (one row for each of the same series in turn).
    #[inline]
    pub(super) fn round_robin_rows(&self) -> Range<usize> {
        match self.round_robin.is_active() {
            true => self.round_robin.first..self.rows,
            false => self.rows..self.rows,
        }
    }

    /// Whether the rounds at the end of the log contain rows of `slot`.
    pub(super) fn round_robin_has(&self, slot: u32) -> bool {
        let rows = self.round_robin_rows().len();
        let slots = &self.round_robin.slots;
        rows > 0 && slots[..rows.min(slots.len())].contains(&slot)
    }

    /// Calls `f` with each slot that has rows in the rounds at the end of the log, and its number of rows in them.
    pub(super) fn each_round_robin_slot(&self, mut f: impl FnMut(u32, usize)) {
        let rows = self.round_robin_rows().len();
        if rows > 0 {
            let slots = &self.round_robin.slots;
            let (whole, rest) = (rows / slots.len(), rows % slots.len());
            for (place, &slot) in slots.iter().enumerate() {
                f(slot, whole + usize::from(place < rest));
            }
        }
    }

    /// Returns the slots of the log's rows in order, if all rows of the log belong to one round, complete or not.
    pub(super) fn only_round(&self) -> Option<&[u32]> {
        let rows = self.round_robin_rows();
        let lone =
            rows.start == 0 && rows.len() <= self.round_robin.slots.len() && !rows.is_empty();
        lone.then(|| &self.round_robin.slots[..rows.len()])
    }

    /// Begins round-robin mode if the last rows of the log repeat the same series in the same order.
    pub(super) fn detect_round_robin(&mut self) {
        if self.round_robin.is_active() || self.rows < self.round_robin.detect_at {
            return;
        }
        self.detect_later();
        if let Some((first, count)) = self.find_rounds() {
            let slots = (first..first + count).map(|at| self.slot_at(at));
            let slots: Vec<u32> = slots.collect();
            let at = (self.batches.len() + 1 - first) % count;
            let start = self.batches[first].start as usize;
            self.batches.truncate(first);
            self.begin_round_robin(slots, start);
            self.round_robin.at = at;
            self.round_robin.expected = self.round_robin.slots[at];
        }
    }

    fn detect_later(&mut self) {
        self.round_robin.detect_at = (2 * self.rows).max(DETECT_ROWS_MIN);
    }

    /// Resumes round-robin mode after a flush; the next row is expected to belong to the first of `slots`.
    pub(super) fn resume_round_robin(&mut self, slots: Vec<u32>) {
        self.close_batch();
        let rows = self.rows;
        self.begin_round_robin(slots, rows);
    }

    /// Returns the slots in order if the rows of the log form one round: every slot has exactly one row, and no batch
    /// is open.
    pub(super) fn batches_as_round(&self) -> Option<Vec<u32>> {
        let of = |batch: &Batch| self.slots.get(batch.slot as usize).map(|slot| slot.series);
        let one_each = self.batches.len() == self.rows
            && self.rows >= SLOTS_MIN
            && self.batches.is_sorted_by(|a, b| of(a) < of(b))
            && self.batches.iter().all(|batch| batch.slot != NO_SLOT);
        one_each.then(|| self.batches.iter().map(|batch| batch.slot).collect())
    }

    fn series_of(&self, slot: u32) -> Option<SeriesId> {
        self.slots.get(slot as usize).map(|slot| slot.series)
    }

    fn begin_round_robin(&mut self, slots: Vec<u32>, first: usize) {
        self.open = NO_SLOT;
        self.open_start = first;
        debug_assert!(
            slots.is_sorted_by(|&a, &b| self.series_of(a) < self.series_of(b)),
            "the series of a round ascend"
        );
        debug_assert!(
            slots
                .iter()
                .all(|&slot| self.slots[slot as usize].overlay == NO_OVERLAY),
            "no series of a round has an overlay"
        );
        self.round_robin.first = first;
        self.round_robin.at = 0;
        self.round_robin.expected = slots[0];
        self.round_robin.slots = slots;
        self.round_robin.flush_at = self.round_robin_flush_at();
    }

    /// Row count of the log at which the rounds are flushed. Each series then has whole vectors, provided that it had
    /// an average number of rows before the rounds. If most series are not in the rounds, or rows are late, the
    /// memory budget decides instead: rows of the other series that cannot be flushed yet would be copied repeatedly,
    /// and late rows are merged more cheaply in the write buffer than in leaves.
    pub(super) fn round_robin_flush_at(&self) -> usize {
        let count = self.round_robin.slots.len();
        if self.late || self.slots.len() > 2 * count {
            return usize::MAX;
        }
        debug_assert!(
            self.round_robin.first <= self.rows,
            "rounds end with the log"
        );
        let before = self.round_robin.first / count;
        let rows_min = DUE_BYTES_MIN / (8 * self.types.len().max(2));
        let whole = (rows_min / count).next_multiple_of(VECTOR_ROWS);
        self.round_robin.first + (whole.max(VECTOR_ROWS) - before % VECTOR_ROWS) * count
    }

    /// Whether the rows that arrived in rounds must be flushed now.
    pub(super) fn round_robin_is_due(&self) -> bool {
        self.round_robin.is_active() && self.rows >= self.round_robin.flush_at
    }

    /// Records that rows arrived out of time order: from now on only the memory budget decides when to flush.
    pub(super) fn note_late(&mut self) {
        self.late = true;
        self.round_robin.flush_at = usize::MAX;
    }

    /// Ends round-robin mode and records a batch of one row for each row that arrived in rounds.
    #[cold]
    #[inline(never)]
    pub(super) fn end_round_robin(&mut self) {
        let rows = self.round_robin_rows();
        let slots = std::mem::take(&mut self.round_robin.slots);
        self.batches.reserve(rows.len());
        let mut row = rows.start;
        for round in self.times[rows].chunks(slots.len()) {
            for (&slot, &time) in slots.iter().zip(round) {
                let start = row as u32;
                self.batches.push(Batch { slot, start });
                let state = &mut self.slots[slot as usize];
                state.time_max = state.time_max.max(time);
                state.buffered = true;
                row += 1;
            }
        }
        debug_assert_eq!(row, self.rows, "every row of the rounds has a batch");
        self.round_robin.expected = NO_SLOT;
        self.open_start = self.rows;
        self.detect_later();
    }

    /// Returns the slot of batch `at`; the index after the last closed batch means the open batch.
    fn slot_at(&self, at: usize) -> u32 {
        self.batches.get(at).map_or(self.open, |own| own.slot)
    }

    /// Finds rounds (the same series in the same order, one row each) that extend to the end of the log. Returns the
    /// index of their first batch, and the number of series per round.
    ///
    /// Cost: a few comparisons per batch of the rounds; without rounds, at most two thirds of the batches are
    /// examined.
    fn find_rounds(&self) -> Option<(usize, usize)> {
        let open = self.batches.len();
        if self.open == NO_SLOT || self.rows != self.open_start + 1 {
            return None;
        }
        let series = |at: usize| -> Option<SeriesId> {
            let slot = self.slots.get(self.slot_at(at) as usize)?;
            Some(slot.series)
        };
        // Binary search for `single`, the first batch from which all batches have exactly one row. Each batch has at
        // least one row. So a batch and all batches after it have one row each exactly if it begins as many rows before
        // the open batch as there are batches in between.
        let (mut single, mut after) = (0, open);
        while single < after {
            let middle = usize::midpoint(single, after);
            if self.batches[middle].start as usize + open - middle == self.open_start {
                after = middle;
            } else {
                single = middle + 1;
            }
        }
        let most = (open + 1 - single) / ROUNDS_MIN;
        let round_of = |end: usize| {
            let mut at = end;
            while at > single && series(at - 1)? < series(at)? {
                at -= 1;
                if end - at > most {
                    return None;
                }
            }
            Some(at)
        };
        let last = round_of(open)?;
        let before = round_of(last.checked_sub(1).filter(|&at| at >= single)?)?;
        let count = last - before;
        let mut first = open.checked_sub(count)? + 1;
        while first > single && self.slot_at(first - 1) == self.slot_at(first - 1 + count) {
            first -= 1;
        }
        let whole = before.checked_sub(first)? / count;
        first = before - whole * count;
        debug_assert!(
            first >= single && first + count <= open + 1,
            "rounds are at the end"
        );
        let rounds = (open + 1 - first) / count;
        (count >= SLOTS_MIN && rounds >= ROUNDS_MIN).then_some((first, count))
    }
}
