//! Several threads append to one write transaction.
//!
//! ```text
//! WriteTxn::appenders(n) ─┬─> Appender: own staging ── group, encode ──┐
//!                         ├─> Appender: own staging ── group, encode ──┼─ one at a time: link, pages; at last the blocks
//!                         └─> ...                                      ┘
//! ```
//!
//! Invariants:
//! 1. An appender borrows the transaction: it cannot be committed, nor used otherwise, before all are gone.
//! 2. `WriteTxn::appending` counts the appenders that have not handed their last rows over. One that was forgotten (`mem::forget`)
//!    stays counted, and the commit is refused.
//! 3. While the lock is held, `broken` of the transaction says that a thread panicked; who unlocks it puts what is true.
//! 4. A series of which the transaction itself has staged rows gets all further rows through the transaction's staging.
//! 5. Rows that are not worth leaves an appender encodes itself, as blocks of a run, where no other has opened a series between its
//!    first and its last when it ends; else they go to the transaction's staging.
//! 6. Blocks wait for those of others only while no other appender has opened a series between the first and the last of theirs: who
//!    opens one hands all over before, and the last appender that ends those that still wait. So the blocks of a series are
//!    in the front before a row can be pushed that came later.

mod writer;

use crate::catalog::entries::{SeriesInfo, wrong_columns};
use crate::series::record::{Record, RowWriter};
use crate::series::write::SeriesMut;
use crate::txn::open_series::{OneSeries, OpenSeries};
use crate::txn::write::WriteTxn;
use crate::types::error::{Error, Result};
use crate::types::point::{Point, Sample};
use crate::types::schema::Schema;
use crate::types::time::Instant;
use crate::types::value::Value;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_runs::{Slot, Staging};
use writer::{Writer, broken};

/// The least that an appender may stage.
const STAGING_BYTES_MIN: usize = 64 << 10;

impl WriteTxn {
    /// Lends the transaction to `n` threads that append to it, each through an [`Appender`] of its own. It is given back when they
    /// are dropped; the rows of all are then in it, and are committed with everything else or not at all.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{MemoryStorage, Options};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// std::thread::scope(|scope| {
    ///     for (n, mut appender) in tx.appenders(4)?.into_iter().enumerate() {
    ///         scope.spawn(move || {
    ///             for time in 0..1000_i64 {
    ///                 appender.series(&format!("rotor{n}"))?.insert(time, 0.5)?;
    ///             }
    ///             appender.finish()
    ///         });
    ///     }
    ///     Ok::<(), tidalite::Error>(())
    /// })?;
    /// tx.commit()?;
    /// let rotor = db.begin_read()?;
    /// let rotor = rotor.series("rotor3")?.ok_or("no such series")?;
    /// assert_eq!(rotor.count()?, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Rows of a series that come through one appender count in their order: of two at the same time the later one stays. So it is
    /// with those of several, where each opens the series when those before it have ended. Else rows of a
    /// series from several appenders are merged by time; which of two at the same time stays is not said. What was inserted before is
    /// older than all of them.
    ///
    /// What fails in the database (a full disk, damage) and a thread that panics fail the transaction: the commit tells. What is refused
    /// because it does not fit (`Schema`, `Timestamp`) is left out alone, as without threads; who gives up because of it drops the
    /// transaction, or has all rows but those.
    ///
    /// # Errors
    /// Rows that are staged are handed over first: a full disk; a damaged page.
    ///
    /// # Cost
    /// Each appender stages the `n`-th part of [`Options::staging_bytes`](crate::Options::staging_bytes), at least 64 KiB, besides
    /// what the transaction stages itself. Threads encode beside each other and write one at a time. Give each thread series of its
    /// own: rows of one series that come from several may have to be merged. Best give it series with numbers side by side, those
    /// between its first and its last to nobody else: of series with few rows each the threads then encode all, else the commit does. Rows of a series with columns of texts, or with another
    /// merge policy than [`Replace`](crate::MergePolicy::Replace), go through the transaction one at a time.
    pub fn appenders(&mut self, n: usize) -> Result<Vec<Appender<'_>>> {
        self.check_usable()?;
        self.store_rows()?;
        self.appending += n;
        let bytes = (self.staging.budget_bytes() / n.max(1)).max(STAGING_BYTES_MIN);
        let keeper = Arc::clone(&self.shared);
        let stagings: Vec<_> = (0..n)
            .map(|_| {
                let mut staging = keeper.take_appending(bytes);
                staging.learn_from(&self.staging);
                staging
            })
            .collect();
        let writer = Arc::new(Writer::new(self, n));
        let appender = |(number, staging)| Appender {
            number,
            spilled: false,
            writer: Arc::clone(&writer),
            keeper: Arc::clone(&keeper),
            staging,
            open: OpenSeries::default(),
            ended: false,
        };
        Ok(stagings.into_iter().enumerate().map(appender).collect())
    }
}

/// One thread's way into a write transaction ([`WriteTxn::appenders`]).
///
/// Dropping it hands its rows over as [`finish`](Self::finish) does; what goes wrong then, the commit tells. Dropped by a panic, it
/// fails the transaction.
pub struct Appender<'t> {
    /// Its place among those of the transaction.
    number: usize,
    /// Whether rows of it went to the transaction's staging before the end.
    spilled: bool,
    writer: Arc<Writer<'t>>,
    keeper: Arc<crate::txn::shared::Shared>,
    staging: Staging,
    open: OpenSeries,
    ended: bool,
}

impl<'t> Appender<'t> {
    /// Opens the series with this name; creates it with the default point (`flags`, `value`, ns) when there is none.
    ///
    /// # Errors
    /// As for [`WriteTxn::series`].
    pub fn series(&mut self, name: &str) -> Result<SeriesAppender<'_, 't>> {
        if let Some(index) = self.open.named(name) {
            return Ok(self.at(index));
        }
        let index = self.open_with(|txn| Ok(Arc::clone(txn.series(name)?.info_arc())))?;
        self.open.name(name, index);
        Ok(self.at(index))
    }

    /// Opens the series with this name and schema; creates it when there is none.
    ///
    /// # Errors
    /// As for [`WriteTxn::series_with`].
    pub fn series_with(&mut self, name: &str, schema: &Schema) -> Result<SeriesAppender<'_, 't>> {
        let index =
            self.open_with(|txn| Ok(Arc::clone(txn.series_with(name, schema)?.info_arc())))?;
        Ok(self.at(index))
    }

    /// Opens or creates the series of a record type.
    ///
    /// # Errors
    /// As for [`WriteTxn::series_with`].
    pub fn series_of<R: Record>(&mut self, name: &str) -> Result<SeriesAppender<'_, 't>> {
        self.series_with(name, &R::schema())
    }

    /// Opens a series by its number: an array index once it was opened by this appender.
    ///
    /// # Errors
    /// `NoSuchSeries`; what the file reports.
    // Always: what a call puts together field by field, and its caller then copies in larger pieces, waits for the stores of the
    // fields: that was a third of what a row of series in turn cost.
    #[inline(always)]
    pub fn series_by_id(&mut self, id: SeriesId) -> Result<SeriesAppender<'_, 't>> {
        let index = match self.open.index(id) {
            Some(index) => index,
            None => self.open_by_id(id)?,
        };
        Ok(self.at(index))
    }

    /// Hands all rows over, and tells what went wrong: the transaction is broken then.
    ///
    /// # Errors
    /// A full disk; a damaged block in the way; `TransactionBroken` when another thread has failed.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    #[cold]
    #[inline(never)]
    fn open_by_id(&mut self, id: SeriesId) -> Result<usize> {
        self.open_with(|txn| Ok(Arc::clone(txn.series_by_id(id)?.info_arc())))
    }

    fn open_with(
        &mut self,
        find: impl FnOnce(&mut WriteTxn) -> Result<Arc<SeriesInfo>>,
    ) -> Result<usize> {
        let info = self.writer.open(self.number, find)?;
        if let Some(index) = self.open.index(info.id) {
            return Ok(index);
        }
        Ok(self.open.enter(info, &mut self.staging))
    }

    #[inline]
    fn at(&mut self, index: usize) -> SeriesAppender<'_, 't> {
        let open = &self.open[index];
        let (slot, point) = (open.slot, open.point);
        SeriesAppender {
            appender: self,
            index,
            slot,
            point,
        }
    }

    /// Hands over what is ready.
    #[cold]
    #[inline(never)]
    fn flush(&mut self) -> Result<()> {
        if self.staging.flush(&*self.writer)? {
            self.spill()?;
        }
        Ok(())
    }

    /// Moves all rows to the transaction's staging.
    fn spill(&mut self) -> Result<()> {
        if self.staging.is_empty() {
            return Ok(());
        }
        self.spilled = true;
        let writer = &self.writer;
        self.staging
            .drain(|series, types, rows| stage(writer, series, types, rows))
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let result = match std::thread::panicking() {
            true => Err(broken("a thread that appended has panicked")),
            // Whole vectors are encoded here, not by the thread that commits.
            false => self.flush_all(),
        };
        let failed = result.as_ref().err().map(|error| match error {
            Error::TransactionBroken { first } => first.clone(),
            error => error.to_string(),
        });
        let handed_over = self.writer.end(failed);
        self.keeper
            .give_appending(std::mem::take(&mut self.staging));
        result.and(handed_over)
    }

    fn flush_all(&mut self) -> Result<()> {
        let writer = &self.writer;
        let as_blocks =
            !self.spilled && self.staging.is_worth_blocks() && writer.is_apart(self.number)?;
        let mut blocks = Vec::new();
        let to = as_blocks.then_some(&mut blocks);
        self.staging.end(&**writer, to, |series, types, rows| {
            stage(writer, series, types, rows)
        })?;
        if blocks.is_empty() {
            return Ok(());
        }
        writer.give(self.number, blocks)
    }
}

/// Stages rows in the transaction itself.
fn stage(
    writer: &Writer<'_>,
    series: SeriesId,
    types: &[ColumnType],
    rows: RowsRef<'_>,
) -> Result<()> {
    writer.change(|txn| {
        let slot = txn.staging.slot(series, types);
        let mut at = 0;
        while at < rows.len() {
            at += txn.staging.append(slot, rows.slice(at..rows.len()));
            txn.flush_staging()?;
        }
        Ok(())
    })
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // The transaction keeps what went wrong.
            let _ = self.end();
        }
    }
}

/// A series of an [`Appender`].
pub struct SeriesAppender<'a, 't> {
    appender: &'a mut Appender<'t>,
    index: usize,
    slot: Slot,
    /// As in [`SeriesMut`].
    point: bool,
}

impl SeriesAppender<'_, '_> {
    /// Name, schema, id.
    #[must_use]
    pub fn info(&self) -> &SeriesInfo {
        &self.open().info
    }

    #[inline]
    fn open(&self) -> &OneSeries {
        &self.appender.open[self.index]
    }

    #[inline]
    fn columns(&self) -> usize {
        self.open().columns as usize
    }

    /// Whether there is a column of texts, or a merge policy that looks at what is there: rows go through the transaction itself,
    /// one at a time.
    #[inline]
    fn is_alone(&self) -> bool {
        self.open().texts || self.open().guard.is_some()
    }

    /// The number of the series in this file.
    #[must_use]
    pub fn id(&self) -> SeriesId {
        self.info().id
    }

    /// As [`SeriesMut::insert`].
    ///
    /// # Errors
    /// As there.
    pub fn insert(&mut self, t: impl Instant, value: f64) -> Result<()> {
        self.appender.open[self.index].expect_record(<Sample as Point>::schema, true)?;
        let time = t.in_unit(self.info().schema.unit)?;
        self.insert_point(time, 0, value)
    }

    /// As [`SeriesMut::insert_point`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn insert_point(&mut self, time: i64, flags: i64, value: f64) -> Result<()> {
        let (slot, flags, bits) = (self.slot, flags as u64, value.to_bits());
        if self.point && self.appender.staging.push_easy(slot, time, flags, bits) {
            return Ok(());
        }
        self.insert_point_seldom(time, [flags, bits])
    }

    #[inline(never)]
    fn insert_point_seldom(&mut self, time: i64, [flags, value]: [u64; 2]) -> Result<()> {
        if !self.point {
            return self.insert_row(time, &[flags, value]);
        }
        let staging = &mut self.appender.staging;
        if staging.push_point(self.slot, time, flags, value) {
            self.appender.flush()?;
        }
        Ok(())
    }

    /// As [`SeriesMut::insert_row`].
    ///
    /// # Errors
    /// As there.
    pub fn insert_row(&mut self, time: i64, words: &[u64]) -> Result<()> {
        if self.columns() != words.len() {
            return self.wrong_columns(words.len());
        }
        if self.is_alone() {
            return self.through(|series| series.insert_row(time, words));
        }
        if self.appender.staging.push(self.slot, time, words) {
            self.appender.flush()?;
        }
        Ok(())
    }

    /// As [`SeriesMut::insert_values`].
    ///
    /// # Errors
    /// As there.
    pub fn insert_values(&mut self, t: impl Instant, values: &[Value]) -> Result<()> {
        if values.len() != self.columns() {
            return self.wrong_columns(values.len());
        }
        if self.is_alone() {
            return self.through(|series| series.insert_values(t, values));
        }
        let schema = &self.info().schema;
        let time = t.in_unit(schema.unit)?;
        let mut words = [0u64; COLUMNS_MAX];
        for (word, (column, value)) in words.iter_mut().zip(schema.columns.iter().zip(values)) {
            *word = column.word(value)?;
        }
        self.insert_row(time, &words[..self.columns()])
    }

    /// As [`SeriesMut::insert_record`].
    ///
    /// # Errors
    /// As there.
    pub fn insert_record<R: Record>(&mut self, record: &R) -> Result<()> {
        if self.is_alone() {
            return self.through(|series| series.insert_record(record));
        }
        self.appender.open[self.index].expect_record(R::schema, R::ANY_UNIT)?;
        let mut words = [0u64; COLUMNS_MAX];
        let words = &mut words[..self.columns()];
        record.write(&mut RowWriter {
            columns: &self.info().schema.columns,
            words,
            at: 0,
            texts: None,
        })?;
        self.insert_row(record.time_in(self.info().schema.unit)?, words)
    }

    /// As [`SeriesMut::append_rows`].
    ///
    /// # Errors
    /// As there.
    pub fn append_rows(&mut self, times: &[i64], columns: &[&[u64]]) -> Result<()> {
        if columns.len() != self.columns() || columns.iter().any(|c| c.len() != times.len()) {
            return self.wrong_columns(columns.len());
        }
        if self.is_alone() {
            return self.through(|series| series.append_rows(times, columns));
        }
        let rows = RowsRef::new(times, columns);
        let mut at = 0;
        while at < rows.len() {
            let staging = &mut self.appender.staging;
            at += staging.append(self.slot, rows.slice(at..rows.len()));
            self.appender.flush()?;
        }
        Ok(())
    }

    /// Does something through the transaction itself.
    fn through<T>(&mut self, f: impl FnOnce(&mut SeriesMut<'_>) -> Result<T>) -> Result<T> {
        let id = self.id();
        self.appender
            .writer
            .change(|txn| f(&mut txn.series_by_id(id)?))
    }

    #[cold]
    fn wrong_columns<T>(&self, found: usize) -> Result<T> {
        Err(wrong_columns(self.info(), self.columns(), found))
    }
}
