//! Series that keep all rows with the same time, or all different ones (`distinct.rs`).
//!
//! ```text
//! row ──> newer than every row? ──yes──────────────────────────────────────────────> buffered
//!             └─no──> (from now on, the series has an overlay in the write buffer)
//!                     rows of its time buffered? ─yes──────────────────────────────> buffered after them
//!                           └─no──> stored ones (delta, leaves) are buffered first ─> buffered after them
//! ```
//!
//! Rows are stored in several places (write buffer, delta, leaves). The newest place that has a time has all rows at
//! that time, in order of arrival, and lower layers treat them as one: merging, installing and reading take the rows of
//! a time from one place, and doing so twice changes nothing. The writer pays for this: a row at a time whose rows were
//! flushed costs a search, and these rows are written once more.
//!
//! Invariants: 1. If the write buffer has one row at a time, it has all rows at that time (`WriteBuffer::keep_all`);
//! they are therefore added without a flush in between. 2. `Guard::last` describes rows in the write buffer, as long as
//! `WriteBuffer::flush_count` is unchanged.

use crate::series::write::SeriesMut;
use crate::txn::known_times::LastTime;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::interval::EVER;
use crate::types::merge_policy::MergePolicy;
use tidalite_codec::{Rows, RowsRef};
use tidalite_delta::{LEAF_ROWS, time_rows_max};
use tidalite_series::{Found, View};

impl SeriesMut<'_> {
    /// Whether the merge policy keeps several rows with the same time.
    pub(crate) fn keeps_several(&self) -> bool {
        self.info().merge.keeps_several()
    }

    /// Buffers a row after the other rows of its time; stored rows of that time are copied into the write buffer first.
    pub(crate) fn keep(&mut self, time: i64, words: &[u64]) -> Result<()> {
        self.expect_own_rows()?;
        self.learn_newest()?;
        let is_newer = self.guard().is_newer(time) == Some(true);
        if !is_newer {
            self.use_overlay()?;
        }
        let flush_count = self.txn.write_buffer.flush_count();
        let mut stored = None;
        let rows = if is_newer {
            0
        } else {
            match self.guard().last {
                Some(last) if (last.time, last.flush_count) == (time, flush_count) => last.rows,
                _ => match self.txn.write_buffer.rows_at(self.slot, time) {
                    0 => stored.insert(self.stored(&[time])?).len(),
                    buffered => buffered,
                },
            }
        };
        self.expect_room(rows + 1)?;
        let write_buffer = &mut self.txn.write_buffer;
        if let Some(stored) = stored.filter(|stored| !stored.is_empty()) {
            let taken = write_buffer.append(self.slot, stored.view());
            debug_assert_eq!(taken, rows, "an overlay takes all");
        }
        let look = write_buffer.push(self.slot, time, words);
        self.note(time);
        self.guard().last = Some(LastTime {
            time,
            rows: rows + 1,
            flush_count,
        });
        if look {
            self.txn.flush_write_buffer()?;
        }
        Ok(())
    }

    /// Buffers rows in any order, each after the other rows of its time; with the policy `KeepDistinct`, leaves out
    /// rows that are equal to an existing row. If there is an error, no row is buffered.
    pub(crate) fn keep_rows(&mut self, rows: RowsRef<'_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.expect_own_rows()?;
        self.learn_newest()?;
        let mut sorted = None;
        let rows = if rows.is_sorted() {
            rows
        } else {
            let sorted = sorted.insert(rows.to_rows());
            sorted.sort_all();
            sorted.view()
        };
        let distinct = self.info().merge == MergePolicy::KeepDistinct;
        let newest = self.guard().newest().flatten();
        let are_newer = newest.is_none_or(|newest| newest < rows.times()[0]);
        if !are_newer || !rows.is_sorted_unique() {
            self.use_overlay()?;
        }
        let mut missing = Vec::new();
        for same in rows.times().chunk_by(|a, b| a == b) {
            let mut there = 0;
            if newest.is_some_and(|newest| same[0] <= newest) {
                there = self.txn.write_buffer.rows_at(self.slot, same[0]);
                if there == 0 {
                    missing.push(same[0]);
                }
            }
            if !distinct {
                self.expect_room(there + same.len())?;
            }
        }
        let mut stored = self.stored(&missing)?;
        let mut different = None;
        if distinct {
            different = self.without_equal(rows, newest, &mut stored)?;
        }
        let rows = different.as_ref().map_or(rows, Rows::view);
        let both = (!stored.is_empty()).then(|| Rows::merge_all(stored.view(), rows));
        let all = both.as_ref().map_or(rows, Rows::view);
        if both.is_some() {
            for same in all.times().chunk_by(|a, b| a == b) {
                self.expect_room(same.len())?;
            }
        }
        // New rows at a time that is already buffered must be added before that time is flushed.
        let late = newest.map_or(0, |newest| all.times().partition_point(|&t| t <= newest));
        self.stage_whole_times(all, late)?;
        self.note_all(rows.times().last().copied().into_iter());
        let guard = self.guard();
        (guard.last, guard.seen) = (None, None);
        Ok(())
    }

    /// Buffers sorted rows that replace all rows at their times.
    pub(crate) fn replace_times(&mut self, rows: RowsRef<'_>) -> Result<()> {
        self.expect_own_rows()?;
        for same in rows.times().chunk_by(|a, b| a == b) {
            self.expect_room(same.len())?;
        }
        self.use_overlay()?;
        self.txn.write_buffer.replace_times(self.slot, rows);
        *self.guard() = Default::default();
        self.txn.flush_write_buffer()
    }

    /// Adds rows to the write buffer and flushes it as often as required, but neither among the first `together` rows,
    /// nor between two rows with the same time.
    fn stage_whole_times(&mut self, rows: RowsRef<'_>, together: usize) -> Result<()> {
        let mut at = 0;
        while at < rows.len() {
            let rest = rows.slice(at..rows.len());
            let part = rest.slice(0..rest.cut(LEAF_ROWS.max(together.saturating_sub(at))));
            debug_assert!(!part.is_empty(), "a leaf has room for the rows of a time");
            at += self.txn.write_buffer.append(self.slot, part);
            self.txn.flush_write_buffer()?;
        }
        Ok(())
    }

    /// Checks that this number of rows with the same time fits in a vector of a leaf and in a block of a run.
    pub(crate) fn expect_room(&self, rows: usize) -> Result<()> {
        expect_rows_of_a_time(rows, self.info().schema.columns.len())
    }

    /// Checks, before columns are added, that the rows of each time will still fit in a vector and a block.
    pub(crate) fn expect_room_with(&mut self, columns: usize) -> Result<()> {
        let limit = time_rows_max(columns);
        if !self.info().several || limit >= time_rows_max(self.info().schema.columns.len()) {
            return Ok(());
        }
        let (mut most, mut run) = (0, (0, 0));
        let view = self.view()?;
        view.query(..)
            .columns::<usize>([])
            .for_each_vector(|vector| {
                for same in vector.times().chunk_by(|a, b| a == b) {
                    let before = if run.0 == same[0] { run.1 } else { 0 };
                    run = (same[0], before + same.len());
                    most = most.max(run.1);
                }
            })?;
        expect_rows_of_a_time(most, columns)
    }

    /// Prepares the write buffer for rows that are not newer than all others.
    pub(crate) fn use_overlay(&mut self) -> Result<()> {
        self.txn.finish_background(self.slot)?;
        self.txn.write_buffer.use_overlay(self.slot);
        Ok(())
    }

    /// Records that the series has no row after `newest`, so that this need not be looked up.
    pub(crate) fn limit_newest(&mut self, newest: i64) {
        let guard = self.guard();
        if guard.newest().is_none() {
            guard.learn(Some(newest));
        }
    }

    pub(crate) fn learn_newest(&mut self) -> Result<()> {
        if self.guard().newest().is_some() {
            return Ok(());
        }
        let (id, types) = (self.id(), self.info().schema.word_types());
        self.txn.finish_background(self.slot)?;
        let tree = self.txn.changing(|txn| {
            let tree = txn.leaves.tree(&mut txn.pages, id, &types)?;
            Ok(tree.span().map(|(_, last)| last))
        })?;
        let delta = &self.txn.delta;
        let delta = delta.latest(&self.txn.pages, id, &types, EVER)?;
        let write_buffer = &mut self.txn.write_buffer;
        let buffered = match write_buffer.has_rows(self.slot) {
            true => write_buffer.rows(self.slot).times().last().copied(),
            false => None,
        };
        let newest = tree.max(delta.map(|(time, _)| time)).max(buffered);
        self.guard().learn(newest);
        Ok(())
    }

    /// Reads the stored rows at these times. The times must ascend, and the write buffer must not contain a row with
    /// any of them.
    pub(crate) fn stored(&mut self, times: &[i64]) -> Result<Rows> {
        let (id, types) = (self.id(), self.info().schema.word_types());
        let mut found = Rows::new(types.len());
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
            return Ok(found);
        };
        let tree = self.txn.changing(|txn| {
            let tree = txn.leaves.tree(&mut txn.pages, id, &types)?;
            Ok(tree.clone())
        })?;
        let mut waiting = Rows::new(types.len());
        let delta = &self.txn.delta;
        delta.rows(&self.txn.pages, id, &types, (first, last), &mut waiting)?;
        let view = View::new(&self.txn.pages, &tree, waiting.view());
        let mut cursor = view.cursor();
        for &time in times {
            if cursor.search(time)? != Found::Exact {
                continue;
            }
            let mut rows = 1;
            while cursor.previous()? && cursor.time() == Some(time) {
                rows += 1;
            }
            for _ in 0..rows {
                cursor.next()?;
                if let Some(row) = cursor.row() {
                    found.push_row(row.time, &row.words);
                }
            }
        }
        Ok(found)
    }
}

/// Returns an error if a vector cannot hold this number of rows with the same time and this number of columns.
fn expect_rows_of_a_time(rows: usize, columns: usize) -> Result<()> {
    let limit = time_rows_max(columns);
    if rows > limit {
        return Err(Error::from(Cause::Limit {
            what: "rows of one time in a series of so many columns",
            found: rows as u64,
            limit: limit as u64,
        }));
    }
    Ok(())
}
