//! Appenders: several threads append rows to one write transaction.
//!
//! ```text
//! WriteTxn::appenders(n) ─┬─> Appender: own buffer ─── group, encode ──┐
//!                         ├─> Appender: own buffer ─── group, encode ──┼─ one at a time: link, pages; at last the blocks
//!                         └─> ...                                      ┘
//! ```
//!
//! Invariants:
//! 1. An appender borrows the transaction: the transaction can be neither committed nor used otherwise until all
//!    appenders are dropped.
//! 2. `WriteTxn::appending` counts the appenders that have not delivered their last rows. A forgotten appender
//!    (`mem::forget`) stays counted, and the commit is refused.
//! 3. While an appender changes the transaction under the lock, the transaction's field `broken` reports a panic, in
//!    case the thread panics; the thread restores the true state before it unlocks.
//! 4. If the transaction itself has buffered rows of a series, all further rows of that series go through the
//!    transaction's write buffer.
//! 5. When an appender ends with rows too few for leaves, it encodes them as blocks of a run, if no other appender has
//!    opened a series between its own first and last series; otherwise the rows go to the transaction's write buffer.
//! 6. Blocks may wait for the blocks of other appenders only while no other appender has opened a series between their
//!    first and last one: an appender that opens such a series first flushes all waiting blocks, and the last appender
//!    to end flushes the remaining blocks. The blocks of a series are thus in the delta before any later row can be
//!    added.

mod writer;

use crate::catalog::entries::{SeriesInfo, wrong_columns};
use crate::series::record::{Record, RowWriter};
use crate::series::write::SeriesMut;
use crate::txn::open_series::{OneSeries, OpenSeries};
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::error::cause::Cause;
use crate::types::instant::{Instant, Moment, Steps};
use crate::types::point::{Point, Sample};
use crate::types::schema::Schema;
use crate::types::value::Value;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_delta::{Slot, WriteBuffer};
use writer::{Writer, broken};

/// Minimum size in bytes of an appender's write buffer.
const WRITE_BUFFER_BYTES_MIN: usize = 64 << 10;

impl WriteTxn {
    /// Lends the transaction to `n` threads that append to it, each through its own [`Appender`]. The borrow ends when
    /// the appenders are dropped; the rows of all threads are then part of the transaction, and are committed with
    /// everything else or not at all.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// std::thread::scope(|scope| {
    ///     for (n, mut appender) in tx.appenders(4)?.into_iter().enumerate() {
    ///         scope.spawn(move || {
    ///             for time in 0..1000_i64 {
    ///                 appender.series(&format!("rotor{n}"))?.insert(Steps(time), 0.5)?;
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
    /// Rows of a series that come through one appender keep their order: of two rows at one time the later one stays.
    /// The same order holds across appenders if each opens the series after the previous ones have ended. Otherwise
    /// rows of a series from several appenders are merged by time, and which of two rows at one time stays is
    /// unspecified. Rows inserted before the appenders were created are older than all of theirs.
    ///
    /// Errors of the database (a full disk, damage) and a panic of a thread fail the transaction: the commit reports
    /// them. A row that is refused because it does not fit (`Schema`, `InvalidInput`) is left out alone, as without
    /// threads; the caller then drops the transaction or commits all other rows.
    ///
    /// # Errors
    /// A full disk; a damaged page. Both may occur because the transaction's own write buffer is flushed first.
    ///
    /// # Cost
    /// Each appender buffers the `n`-th part of [`Tuning::write_buffer_bytes`](crate::Tuning::write_buffer_bytes), at
    /// least 64 KiB, in addition to the transaction's own write buffer. Threads encode in parallel and write one at a
    /// time. Give each thread its own series, because rows of one series from several threads may have to be merged.
    /// Preferably give it series with consecutive ids, with no other thread's series in between: the threads then
    /// encode even series with few rows each, otherwise the commit does. Rows of a series with columns of texts, or
    /// with another merge policy than [`Replace`](crate::MergePolicy::Replace), go through the transaction one at a
    /// time.
    pub fn appenders(&mut self, n: usize) -> Result<Vec<Appender<'_>>> {
        self.check_usable()?;
        self.store_rows()?;
        self.appending += n;
        let bytes = (self.write_buffer.budget_bytes() / n.max(1)).max(WRITE_BUFFER_BYTES_MIN);
        let keeper = Arc::clone(&self.shared);
        let write_buffers: Vec<_> = (0..n)
            .map(|_| {
                let mut write_buffer = keeper.take_appending(bytes);
                write_buffer.copy_encoder_states_from(&self.write_buffer);
                write_buffer
            })
            .collect();
        let writer = Arc::new(Writer::new(self, n));
        let appender = |(number, write_buffer)| Appender {
            number,
            spilled: false,
            writer: Arc::clone(&writer),
            keeper: Arc::clone(&keeper),
            write_buffer,
            open: OpenSeries::default(),
            ended: false,
        };
        Ok(write_buffers
            .into_iter()
            .enumerate()
            .map(appender)
            .collect())
    }
}

/// One thread's access to a write transaction ([`WriteTxn::appenders`]).
///
/// Dropping the appender delivers its rows as [`finish`](Self::finish) does; the commit reports errors. If the appender
/// is dropped by a panic, the transaction fails.
pub struct Appender<'t> {
    /// Index of this appender among the transaction's appenders.
    number: usize,
    /// Whether some of this appender's rows went to the transaction's write buffer before it ended.
    spilled: bool,
    writer: Arc<Writer<'t>>,
    keeper: Arc<crate::txn::shared::Shared>,
    write_buffer: WriteBuffer,
    open: OpenSeries,
    ended: bool,
}

impl<'t> Appender<'t> {
    /// Opens the series with this name; creates it with the default point (`flags`, `value`, ns) if it does not exist.
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

    /// Opens the series with this name and schema; creates it if it does not exist.
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

    /// Opens a series by its id: an array access once this appender has opened it.
    ///
    /// # Errors
    /// `NotFound` if there is no series with this id; errors of the file.
    // Always inlined: the call writes the result field by field and the caller copies it in larger pieces. Without
    // inlining, that copy had to wait for the stores of the fields, which took a third of the time per row of
    // alternating series.
    #[inline(always)]
    pub fn series_by_id(&mut self, id: SeriesId) -> Result<SeriesAppender<'_, 't>> {
        let index = match self.open.index(id) {
            Some(index) => index,
            None => self.open_by_id(id)?,
        };
        Ok(self.at(index))
    }

    /// Delivers all rows, and returns the error if that fails; the transaction is then broken.
    ///
    /// # Errors
    /// A full disk; a damaged block in the way; `Broken` if another thread has failed.
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
        Ok(self.open.enter(info, &mut self.write_buffer))
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

    /// Encodes and links the leaves for which enough rows are buffered. If the buffer is then full of rows that must
    /// not be linked here, moves them to the transaction's write buffer.
    #[cold]
    #[inline(never)]
    fn flush(&mut self) -> Result<()> {
        if self.write_buffer.flush(&*self.writer)? {
            self.spill()?;
        }
        Ok(())
    }

    /// Moves all rows from this appender to the transaction's write buffer.
    fn spill(&mut self) -> Result<()> {
        if self.write_buffer.is_empty() {
            return Ok(());
        }
        self.spilled = true;
        let writer = &self.writer;
        self.write_buffer
            .drain(|series, types, rows| buffer_rows(writer, series, types, rows))
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let result = match std::thread::panicking() {
            true => Err(broken("a thread that appended has panicked")),
            // Whole vectors are encoded in this thread, so that the committing thread does not have to.
            false => self.flush_all(),
        };
        let failed = result.as_ref().err().map(|error| match error.cause() {
            Cause::TransactionBroken { first } => first.clone(),
            error => error.to_string(),
        });
        let handed_over = self.writer.end(failed);
        self.keeper
            .give_appending(std::mem::take(&mut self.write_buffer));
        result.and(handed_over)
    }

    fn flush_all(&mut self) -> Result<()> {
        let writer = &self.writer;
        let as_blocks =
            !self.spilled && self.write_buffer.is_worth_blocks() && writer.is_apart(self.number)?;
        let mut blocks = Vec::new();
        let to = as_blocks.then_some(&mut blocks);
        self.write_buffer
            .end(&**writer, to, |series, types, rows| {
                buffer_rows(writer, series, types, rows)
            })?;
        if blocks.is_empty() {
            return Ok(());
        }
        writer.give(self.number, blocks)
    }
}

/// Adds rows to the write buffer of the transaction itself.
fn buffer_rows(
    writer: &Writer<'_>,
    series: SeriesId,
    types: &[ColumnType],
    rows: RowsRef<'_>,
) -> Result<()> {
    writer.change(|txn| {
        let slot = txn.write_buffer.slot(series, types);
        let mut at = 0;
        while at < rows.len() {
            at += txn.write_buffer.append(slot, rows.slice(at..rows.len()));
            txn.flush_write_buffer()?;
        }
        Ok(())
    })
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // The error is not lost: the transaction keeps it, and the commit reports it.
            let _ = self.end();
        }
    }
}

/// A series to which an [`Appender`] adds rows.
pub struct SeriesAppender<'a, 't> {
    appender: &'a mut Appender<'t>,
    index: usize,
    slot: Slot,
    /// Whether rows may take the fast path for points, as in [`SeriesMut`].
    point: bool,
}

impl SeriesAppender<'_, '_> {
    /// Name, schema and id of the series.
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

    /// Whether the series has a text column, or a merge policy that checks existing rows: the rows of such a series go
    /// through the transaction itself, one at a time.
    #[inline]
    fn is_alone(&self) -> bool {
        self.open().texts || self.open().guard.is_some()
    }

    /// Id of the series in this file.
    #[must_use]
    pub fn id(&self) -> SeriesId {
        self.info().id
    }

    /// Inserts a value, like [`SeriesMut::insert`].
    ///
    /// # Errors
    /// As for `SeriesMut::insert`.
    pub fn insert(&mut self, t: impl Instant, value: f64) -> Result<()> {
        self.appender.open[self.index].expect_record(<Sample as Point>::schema, true)?;
        self.insert_point(t, 0, value)
    }

    /// Converts a time to a number of steps of the series' unit.
    #[inline]
    fn step(&self, t: impl Instant) -> Result<i64> {
        Ok(match t.moment()? {
            Moment::Step(Steps(step)) => step,
            clock => clock.floor(self.info().schema.unit),
        })
    }

    /// Inserts a point, like [`SeriesMut::insert_point`].
    ///
    /// # Errors
    /// As for `SeriesMut::insert_point`.
    #[inline]
    pub fn insert_point(&mut self, t: impl Instant, flags: i64, value: f64) -> Result<()> {
        let time = self.step(t)?;
        let (slot, flags, value) = (self.slot, flags as u64, value.to_bits());
        if !self.point {
            return self.insert_row(Steps(time), &[flags, value]);
        }
        if (self.appender.write_buffer).push_point(slot, time, flags, value) {
            self.appender.flush()?;
        }
        Ok(())
    }

    /// Inserts a row of words, like [`SeriesMut::insert_row`].
    ///
    /// # Errors
    /// As for `SeriesMut::insert_row`.
    pub fn insert_row(&mut self, t: impl Instant, words: &[u64]) -> Result<()> {
        let time = self.step(t)?;
        if self.columns() != words.len() {
            return self.wrong_columns(words.len());
        }
        if self.is_alone() {
            return self.through(|series| series.insert_row(Steps(time), words));
        }
        if self.appender.write_buffer.push(self.slot, time, words) {
            self.appender.flush()?;
        }
        Ok(())
    }

    /// Inserts a row of values, like [`SeriesMut::insert_values`].
    ///
    /// # Errors
    /// As for `SeriesMut::insert_values`.
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
        self.insert_row(Steps(time), &words[..self.columns()])
    }

    /// Inserts a record, like [`SeriesMut::insert_record`].
    ///
    /// # Errors
    /// As for `SeriesMut::insert_record`.
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
        let time = record.time_in(self.info().schema.unit)?;
        self.insert_row(Steps(time), words)
    }

    /// Appends rows given as columns of words, like [`SeriesMut::append_rows`].
    ///
    /// # Errors
    /// As for `SeriesMut::append_rows`.
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
            let write_buffer = &mut self.appender.write_buffer;
            at += write_buffer.append(self.slot, rows.slice(at..rows.len()));
            self.appender.flush()?;
        }
        Ok(())
    }

    /// Performs an operation on the series through the transaction itself, under its lock.
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
