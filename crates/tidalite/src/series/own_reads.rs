//! Reads of a write transaction from a series that it writes: the whole series, or a single row.
//!
//! Rows of a series that are not in leaves are in two places, from newest to oldest: the write buffer, which is sorted
//! when it is read, and the delta, in its tail page and its runs. A lookup of a single row searches both places and the
//! leaves; at equal times the newer place wins. A view first collects the rows of both places.

use crate::series::read::Series;
use crate::series::write::SeriesMut;
use crate::txn::pages::Pages;
use crate::txn::series_cache::OpenedSeries;
use crate::types::error::Result;
use crate::types::instant::Instant;
use crate::types::interval::EVER;
use crate::types::row::Row;
use std::sync::Arc;
use tidalite_codec::{ColumnType, Rows, RowsRef};
use tidalite_series::{SeriesTree, View};

impl SeriesMut<'_> {
    /// A view of the series in its current state, including the writes of this transaction.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Cost
    /// Every call collects all rows of the series that are not yet in leaves: rows of the delta are decoded, buffered
    /// rows are copied. Make all queries on one view if possible. To look up single rows between inserts, use
    /// [`latest`](Self::latest), [`at`](Self::at) or [`search`](Self::search), which collect nothing.
    pub fn view(&mut self) -> Result<Series<'_>> {
        self.txn.check_usable()?;
        self.txn.finish_background(self.slot)?;
        let info = Arc::clone(self.info_arc());
        let types = info.schema.word_types();
        let id = info.id;
        let tree = self.txn.changing(|txn| {
            txn.texts.flush(&mut txn.pages, &mut txn.roots.texts)?;
            Ok(txn.leaves.tree(&mut txn.pages, id, &types)?.clone())
        })?;
        let late = self.late(EVER)?;
        let state = Arc::new(OpenedSeries { info, tree, late });
        let pages = Pages::Writer(&self.txn.pages);
        Ok(Series::new(pages, state, &self.txn.roots, 0))
    }

    /// The newest row of the series, including the writes of this transaction.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, Steps};
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut counter = tx.series("counter")?;
    /// for time in 0..1000_i64 {
    ///     let last = counter.latest()?.map_or(0.0, |row| row.f64(1));
    ///     counter.insert(Steps(time), last + 1.0)?;
    /// }
    /// assert_eq!(counter.search(Steps(500))?.map(|row| row.f64(1)), Some(501.0));
    /// assert_eq!(counter.at(Steps(1000))?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Cost
    /// Sorts the write buffer, which costs nothing while rows ascend; otherwise the rows since the last sort are merged
    /// into the others. Reads the tail page of the delta and a block of each run that reaches beyond the newest
    /// buffered row; reads no leaves.
    pub fn latest(&mut self) -> Result<Option<Row>> {
        let (from, to) = EVER;
        self.newest_within(from, to)
    }

    /// The row at exactly this time, including the writes of this transaction; if there are several, the last to
    /// arrive.
    ///
    /// # Errors
    /// A damaged or unreadable block; `InvalidInput` if `t` does not fit the unit.
    ///
    /// # Cost
    /// As for `latest`, and a search in the leaves.
    pub fn at(&mut self, t: impl Instant) -> Result<Option<Row>> {
        let (t, next) = t.steps_around(self.info().schema.unit)?;
        if t < next {
            // The time lies between two steps of the series' unit, where no row can be.
            return Ok(None);
        }
        self.newest_within(t, t)
    }

    /// The last row at or before `t`, including the writes of this transaction.
    ///
    /// # Errors
    /// As for `at`.
    ///
    /// # Cost
    /// As for `at`.
    pub fn search(&mut self, t: impl Instant) -> Result<Option<Row>> {
        let t = t.in_unit(self.info().schema.unit)?;
        self.newest_within(i64::MIN, t)
    }

    /// The last row whose time is from `from` to `to`, both included.
    fn newest_within(&mut self, from: i64, to: i64) -> Result<Option<Row>> {
        self.txn.check_usable()?;
        self.txn.finish_background(self.slot)?;
        let (id, slot) = (self.id(), self.slot);
        let types = self.info().schema.word_types();
        let mut newest = last_of(self.txn.write_buffer.rows(slot).between(from, to));
        // Once a row is found, older places are searched only for rows with later times.
        let behind = |row: &Option<Row>| match row {
            Some(row) => row.time.checked_add(1),
            None => Some(from),
        };
        if let Some(low) = behind(&newest)
            && low <= to
        {
            let (delta, pages) = (&self.txn.delta, &self.txn.pages);
            let waiting = delta.latest(pages, id, &types, (low, to))?;
            let waiting = waiting.map(|(time, words)| Row { time, words });
            newest = waiting.or(newest);
        }
        let Some(low) = behind(&newest) else {
            return Ok(newest);
        };
        self.close_leaf(&types)?;
        let tree = self.txn.leaves.known(id);
        let span = tree.and_then(SeriesTree::span);
        let span = span.filter(|&(first, last)| low <= last && first <= to);
        let (Some(tree), Some((_, last))) = (tree, span) else {
            return Ok(newest);
        };
        if last <= to {
            return Ok(tree.last_row().map(Row::from).or(newest));
        }
        let none = Rows::new(types.len());
        let mut cursor = View::new(&self.txn.pages, tree, none.view()).cursor();
        cursor.search(to)?;
        let stored = cursor.row().filter(|row| row.time >= low);
        Ok(stored.map(Row::from).or(newest))
    }

    /// Number of rows whose times are from `from` to `to`, both included.
    pub(crate) fn rows_within(&mut self, from: i64, to: i64) -> Result<u64> {
        self.txn.check_usable()?;
        self.txn.finish_background(self.slot)?;
        let types = self.info().schema.word_types();
        let late = self.late((from, to))?;
        self.close_leaf(&types)?;
        let tree = self.txn.leaves.known(self.id());
        tree.map_or(Ok(late.len() as u64), |tree| {
            Ok(View::new(&self.txn.pages, tree, late.view()).count(from, to)?)
        })
    }

    /// Closes the open leaf of the series, so that it can be read. Only an error of this step breaks the transaction:
    /// errors of the reads that follow change nothing.
    fn close_leaf(&mut self, types: &[ColumnType]) -> Result<()> {
        let id = self.id();
        self.txn
            .changing(|txn| txn.leaves.tree(&mut txn.pages, id, types).map(drop))
    }

    /// The rows of an interval that are not in leaves: the rows of the delta and of the write buffer.
    fn late(&mut self, (from, to): (i64, i64)) -> Result<Rows> {
        let id = self.id();
        let types = self.info().schema.word_types();
        let mut waiting = Rows::new(types.len());
        let txn = &mut *self.txn;
        txn.delta
            .rows(&txn.pages, id, &types, (from, to), &mut waiting)?;
        let buffered = txn.write_buffer.rows(self.slot).between(from, to);
        Ok(Rows::merge_newest(waiting.view(), buffered))
    }
}

fn last_of(rows: RowsRef<'_>) -> Option<Row> {
    let last = rows.len().checked_sub(1)?;
    let words = (0..rows.column_count()).map(|c| rows.column(c)[last]);
    Some(Row {
        time: rows.times()[last],
        words: words.collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::Options;
    use crate::Steps;
    use crate::storage::MemoryStorage;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use tidalite_pager::PageRead;

    /// Number of pages and blocks that the transaction has read so far.
    fn read(tx: &crate::WriteTxn) -> u64 {
        let counters = tx.pages.counters();
        counters.pages_read.load(Ordering::Relaxed) + counters.blocks_read.load(Ordering::Relaxed)
    }

    #[test]
    fn rows_looked_for_between_inserts_read_no_more_however_many_wait() {
        tidalite_testkit::watch();
        let storage = Arc::new(MemoryStorage::new());
        let options = Options::new().page_size(1024);
        let db = options.open_storage(storage).unwrap();
        // Each round adds rows to many series. No series has enough rows for a vector, so all rows stay in the delta.
        let mut most = Vec::new();
        let mut whole = 0;
        for round in 0..12_i64 {
            let mut tx = db.begin_write().unwrap();
            for other in 0..20 {
                let mut series = tx.series(&format!("other{other}")).unwrap();
                for time in 0..40 {
                    series.insert(Steps(40 * round + time), 0.5).unwrap();
                }
            }
            let mut least = u64::MAX;
            for time in 0..40 {
                let before = read(&tx);
                let mut series = tx.series("a").unwrap();
                let last = series.latest().unwrap().map_or(-1, |row| row.time);
                assert_eq!(last, 40 * round + time - 1);
                assert_eq!(
                    series
                        .search(Steps(i64::MAX))
                        .unwrap()
                        .map(|row| row.time)
                        .unwrap_or(-1),
                    last
                );
                assert_eq!(series.at(Steps(last + 1)).unwrap(), None);
                assert_eq!(series.delete(Steps(last + 1)..).unwrap(), 0);
                series.insert(Steps(last + 1), 0.5).unwrap();
                least = least.min(read(&tx) - before);
            }
            most.push(least);
            let before = read(&tx);
            assert!(tx.series("a").unwrap().view().unwrap().waiting_rows() >= 40);
            whole = read(&tx) - before;
            tx.commit().unwrap();
        }
        assert!(most.iter().all(|&read| read <= 8), "{most:?}");
        assert!(whole > 8, "a view reads all that waits: {whole}");
    }
}
