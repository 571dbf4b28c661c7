//! Reads the rows of a series from the tail page, every live run and the open compactions.

use crate::delta::Delta;
use crate::key::Key;
use crate::run::block::Block;
use crate::run::cursor::RunCursor;
use crate::run::descriptor::Run;
use crate::run::directory::entry_at_or_before;
use crate::run::tail;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows};
use tidalite_pager::{PageRead, Result};

thread_local! {
    /// Memory for decoding a block, which lookups of the newest row reuse: allocating it for each lookup took a tenth
    /// of the lookup time.
    static BLOCK: RefCell<Block> = RefCell::default();
}

/// A row of the delta: its time and one 64-bit word per column.
pub type DeltaRow = (i64, Vec<u64>);

impl Delta {
    /// Collects all rows of a series with `from <= time <= to` that are not in its leaves, sorted. If rows have the
    /// same time, only the rows of the last write are returned. The returned rows are newer than leaf rows with the
    /// same time and replace them.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// Reads the tail page and, for each live run that may have such rows, the path in the directory of the run and
    /// usually one block.
    pub fn rows<R: PageRead>(
        &self,
        r: &R,
        series: SeriesId,
        types: &[ColumnType],
        (from, to): (i64, i64),
        out: &mut Rows,
    ) -> Result<()> {
        out.clear();
        out.columns.resize_with(types.len(), Vec::new);
        let Some(class) = self.class_of(types) else {
            return Ok(());
        };
        if from > to {
            return Ok(());
        }
        let place = (class, series);
        let mut runs: Vec<_> = self.live_runs(0).collect();
        runs.reverse();
        let mut begins = Vec::new();
        for (run, after) in runs {
            let begin = out.len();
            self.run_rows_of(r, run, after, place, (from, to), out)?;
            if out.len() > begin {
                begins.push(begin);
            }
        }
        let newest = (&mut *out, &mut begins);
        tail::series_rows(r, &self.tail, &self.layouts, place, (from, to), newest)?;
        debug_assert!(begins.is_sorted(), "rows of older runs come first");
        out.sort_newest_of(&begins);
        Ok(())
    }

    fn run_rows_of<R: PageRead>(
        &self,
        r: &R,
        run: &Run,
        after: Option<Key>,
        place: (u32, SeriesId),
        (from, to): (i64, i64),
        out: &mut Rows,
    ) -> Result<()> {
        if !run.may_hold(place, from, to) {
            return Ok(());
        }
        let Some(low) = unseen(Key::new(place.0, place.1, from), after) else {
            return Ok(());
        };
        if low.place() != place || low.time > to {
            return Ok(());
        }
        let mut cursor = RunCursor::seek(r, run, &self.layouts, &low)?;
        while cursor.place() == Some(place) {
            let end = cursor.block.series_end(cursor.row, place.1);
            let times = &cursor.block.rows.times[cursor.row..end];
            let taken = times.partition_point(|&time| time <= to);
            out.extend(cursor.block.rows.slice(cursor.row..cursor.row + taken));
            if taken < times.len() || end < cursor.block.len() {
                break;
            }
            cursor.advance(r, &self.layouts, taken)?;
        }
        Ok(())
    }

    /// Returns the newest row of a series in the delta with `from <= time <= to`; if several rows have that time, the
    /// last of them.
    ///
    /// # Errors
    /// As for `rows`.
    ///
    /// # Cost
    /// Reads the tail page. Then, newest first, visits each run whose time range extends beyond the row found so far:
    /// a descent of its directory, and a block if the directory shows that it may have a later row. Only one run is
    /// visited if rows arrive in time order.
    pub fn latest<R: PageRead>(
        &self,
        r: &R,
        series: SeriesId,
        types: &[ColumnType],
        (from, to): (i64, i64),
    ) -> Result<Option<DeltaRow>> {
        let Some(class) = self.class_of(types) else {
            return Ok(None);
        };
        let place = (class, series);
        let mut found = self.tail_row(r, place, (from, to), |rows| rows.len().checked_sub(1))?;
        let mut block = BLOCK.take();
        for (run, after) in self.live_runs(0) {
            // If rows have equal times, the row of the newer run takes precedence, so an older run must have a later
            // row.
            let at_least = match &found {
                Some((time, _)) => time.checked_add(1),
                None => Some(from),
            };
            let Some(at_least) = at_least else { break };
            if !run.may_hold(place, at_least, to) {
                continue;
            }
            let low = Key::new(class, series, at_least);
            let high = Key::new(class, series, to);
            let entry = entry_at_or_before(&run.directory, r, &high)?;
            let Some(entry) = entry.filter(|entry| low <= entry.last) else {
                continue;
            };
            let last = if to == i64::MAX {
                block.read_last(r, &entry.ptr, &self.layouts, place)?
            } else {
                block.read(r, &entry.ptr, &self.layouts, true)?;
                let end = high
                    .next()
                    .map_or(block.len(), |next| block.lower_bound(&next));
                let row = end.checked_sub(1);
                let row = row.filter(|&row| low.place() == block.key(row).place());
                row.map(|row| row_of(&block.rows, row))
            };
            let seen = |(time, _): &DeltaRow| {
                let key = Key::new(class, series, *time);
                low <= key && after.is_none_or(|after| after < key)
            };
            found = last.filter(seen).or(found);
        }
        BLOCK.set(block);
        Ok(found)
    }

    /// Returns the first row of a series in the delta with `time >= from`. If several rows have this time, returns
    /// the first of the rows that were written together last.
    ///
    /// # Errors
    /// As for `rows`.
    pub fn first<R: PageRead>(
        &self,
        r: &R,
        series: SeriesId,
        types: &[ColumnType],
        from: i64,
    ) -> Result<Option<DeltaRow>> {
        let Some(class) = self.class_of(types) else {
            return Ok(None);
        };
        let place = (class, series);
        let mut found = self.tail_row(r, place, (from, i64::MAX), |rows| {
            if rows.is_empty() { None } else { Some(0) }
        })?;
        for (run, after) in self.live_runs(0) {
            let at_most = found.as_ref().map_or(i64::MAX, |(time, _)| *time);
            if !run.may_hold(place, from, at_most) {
                continue;
            }
            let Some(low) = unseen(Key::new(class, series, from), after) else {
                continue;
            };
            let cursor = RunCursor::seek(r, run, &self.layouts, &low)?;
            if cursor.place() == Some(place) {
                let time = cursor.block.rows.times[cursor.row];
                if found.as_ref().is_none_or(|(best, _)| time < *best) {
                    found = Some(row_of(&cursor.block.rows, cursor.row));
                }
            }
        }
        Ok(found)
    }

    fn tail_row<R: PageRead>(
        &self,
        r: &R,
        place: (u32, SeriesId),
        span: (i64, i64),
        pick: impl FnOnce(&Rows) -> Option<usize>,
    ) -> Result<Option<DeltaRow>> {
        let mut rows = Rows::new(self.layouts[place.0 as usize].len());
        let mut begins = Vec::new();
        let newest = (&mut rows, &mut begins);
        tail::series_rows(r, &self.tail, &self.layouts, place, span, newest)?;
        rows.sort_newest_of(&begins);
        Ok(pick(&rows).map(|row| row_of(&rows, row)))
    }

    /// Returns the number of rows per series in the delta. A time that occurs in several runs is counted once per
    /// run.
    ///
    /// # Errors
    /// As for `rows`.
    ///
    /// # Cost
    /// Reads the whole delta.
    pub fn series_row_counts<R: PageRead>(&self, r: &R) -> Result<BTreeMap<SeriesId, u64>> {
        let mut counts = BTreeMap::new();
        for (run, after) in self.live_runs(0) {
            let Some(from) = unseen(Key::MIN, after) else {
                continue;
            };
            let mut cursor = RunCursor::seek(r, run, &self.layouts, &from)?;
            while let Some((_, series)) = cursor.place() {
                let rows = cursor.block.series_end(cursor.row, series) - cursor.row;
                *counts.entry(series).or_default() += rows.max(1) as u64;
                cursor.advance(r, &self.layouts, rows.max(1))?;
            }
        }
        for piece in tail::pieces(r, &self.tail, &self.layouts)? {
            *counts.entry(piece.series).or_default() += piece.rows.len() as u64;
        }
        Ok(counts)
    }
}

/// Returns `key`, or the first key after the watermark `after` if the watermark hides `key`; `None` if all keys are
/// hidden.
fn unseen(key: Key, after: Option<Key>) -> Option<Key> {
    match after {
        Some(after) if key <= after => after.next(),
        _ => Some(key),
    }
}

fn row_of(rows: &Rows, row: usize) -> DeltaRow {
    let words = rows.columns.iter().map(|column| column[row]);
    (rows.times[row], words.collect())
}
