//! Reading rows as records (plain structs), by every way in which rows can be read.
//!
//! ```text
//! RecordReader  checks series and record type once       words -> record
//!  ├ Query::for_each_record                              rows of a query
//!  ├ RecordCursor                                        a row at a time, in both directions
//!  ├ Records                                             an iterator from both ends of an interval
//!  └ Series::record, Selection::readers_of               rows from elsewhere: latest, at, nearest, merged, joined
//! ```

use crate::catalog::entries::{expect_first_columns, expect_unit};
use crate::query::selection::Selection;
use crate::series::cursor::{Cursor, SearchResult};
use crate::series::figures::{AllFigures, Figures};
use crate::series::nearest::Direction;
use crate::series::query::Query;
use crate::series::read::Series;
use crate::series::record::{Record, RowReader};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::instant::{Instant, Steps};
use crate::types::row::Row;
use crate::types::schema::{Schema, Unit};
use std::marker::PhantomData;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_series::ValueRange;

/// Converts rows of a series to records; created by [`Series::reader_of`]. If the series has more columns than the
/// record, the additional columns are ignored.
pub struct RecordReader<'s, R> {
    series: &'s Series<'s>,
    schema: Schema,
    /// The unit of the series' times.
    unit: Unit,
    record: PhantomData<fn() -> R>,
}

impl<'s, R: Record> RecordReader<'s, R> {
    fn new(series: &'s Series<'s>) -> Result<Self> {
        let schema = R::schema();
        expect_first_columns(series.info(), &schema)?;
        if !R::ANY_UNIT {
            expect_unit(series.info(), &schema)?;
        }
        Ok(Self {
            series,
            schema,
            unit: series.info().schema.unit,
            record: PhantomData,
        })
    }

    /// Converts a row to a record.
    ///
    /// # Errors
    /// `Schema` if the row does not fit the record; errors of the file when the row's texts are read.
    pub fn read(&self, row: &Row) -> Result<R> {
        self.read_words(Steps(row.time), &row.words)
    }

    /// Converts a row, given as its time and its words, to a record. [`MergedRow`](crate::query::MergedRow) and
    /// [`JoinedRow`](crate::query::JoinedRow) provide time and words.
    ///
    /// # Errors
    /// As for `read`; `InvalidInput` if `t` is a text that is not a time.
    #[inline]
    pub fn read_words(&self, t: impl Instant, words: &[u64]) -> Result<R> {
        let unit = self.unit;
        let columns = &self.schema.columns;
        let own = words
            .get(..columns.len())
            .ok_or_else(|| too_few(words, columns.len()))?;
        R::read(&mut RowReader {
            columns,
            unit,
            time: t.in_unit(unit)?,
            words: own,
            at: 0,
            series: self.series,
        })
    }
}

#[cold]
fn too_few(words: &[u64], columns: usize) -> Error {
    let found = words.len();
    let problem = format!("the row has {found} words, the record {columns} columns");
    Error::from(Cause::Schema { problem })
}

impl<'a> Series<'a> {
    /// Converts a row of this series to a record.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Record, Timestamp};
    /// use tidalite::storage::MemoryStorage;
    ///
    /// #[derive(Record)]
    /// struct Wind { time: Timestamp, speed: f64, gusts: u32 }
    ///
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series_of::<Wind>("wind")?;
    /// series.insert_record(&Wind { time: Timestamp::parse("2014-06-01")?, speed: 7.1, gusts: 3 })?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let series = snap.series("wind")?.ok_or("no such series")?;
    /// let row = series.latest()?.ok_or("no row")?;
    /// let wind: Wind = series.record(&row)?;
    /// assert_eq!((wind.time.to_string(), wind.gusts), ("2014-06-01T00:00:00Z".to_owned(), 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the series has other columns, if it has another unit and the record's time is a number, or if the
    /// row does not fit the record; errors of the file when the row's texts are read.
    ///
    /// # Cost
    /// Names and types of the columns are compared on every call; for many rows, [`reader_of`](Self::reader_of)
    /// compares them once.
    pub fn record<R: Record>(&self, row: &Row) -> Result<R> {
        self.reader_of()?.read(row)
    }

    /// Returns a converter of this series' rows to records, for rows from any source.
    ///
    /// # Errors
    /// `Schema` if the series has other columns, or another unit and the record's time is a number.
    pub fn reader_of<R: Record>(&self) -> Result<RecordReader<'_, R>> {
        RecordReader::new(self)
    }

    /// Returns a cursor over the records of this series, positioned before the first one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Sample, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut wind = tx.series("wind")?;
    /// for (time, value) in [(10_i64, 7.0), (20, 8.0), (30, 6.5)] {
    ///     wind.insert(Steps(time), value)?;
    /// }
    /// let wind = wind.view()?;
    /// let mut cursor = wind.cursor_of::<Sample>()?;
    /// assert_eq!(cursor.search(Steps(25))?.map(|sample| sample.value), Some(8.0));
    /// assert_eq!(cursor.previous()?.map(|sample| sample.value), Some(7.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `reader_of`.
    pub fn cursor_of<R: Record>(&self) -> Result<RecordCursor<'_, R>> {
        Ok(RecordCursor {
            reader: self.reader_of()?,
            cursor: self.cursor(),
        })
    }
}

/// A position in a series; each move returns the record at its new position. For details see [`Cursor`].
pub struct RecordCursor<'s, R> {
    reader: RecordReader<'s, R>,
    cursor: Cursor<'s>,
}

impl<R: Record> RecordCursor<'_, R> {
    /// Moves to the last record at or before `t`; returns `None` if there is no such record.
    ///
    /// # Errors
    /// As for [`Cursor::search`]; `Schema` if the row does not fit the record. All moves of this cursor can return
    /// these errors.
    pub fn search(&mut self, t: impl Instant) -> Result<Option<R>> {
        self.cursor.go_to(t)?;
        self.current()
    }

    /// Moves like [`Cursor::seek`], and returns where the cursor is now, without reading the record.
    ///
    /// # Errors
    /// As for `search`.
    pub fn seek(&mut self, t: impl Instant) -> Result<SearchResult> {
        self.cursor.seek(t)
    }

    /// Moves to the record with index `n`, counted from 0; returns `None` if there are not so many.
    ///
    /// # Errors
    /// As for `search`.
    pub fn nth(&mut self, n: u64) -> Result<Option<R>> {
        self.cursor.inner.nth(n)?;
        self.current()
    }

    /// Moves to the first record.
    ///
    /// # Errors
    /// As for `search`.
    pub fn first(&mut self) -> Result<Option<R>> {
        self.cursor.inner.first()?;
        self.current()
    }

    /// Moves to the last record.
    ///
    /// # Errors
    /// As for `search`.
    pub fn last(&mut self) -> Result<Option<R>> {
        self.cursor.inner.last()?;
        self.current()
    }

    /// Moves to the next record; `None` after the last.
    ///
    /// # Errors
    /// As for `search`.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<R>> {
        self.cursor.inner.next()?;
        self.current()
    }

    /// Moves to the previous record; `None` before the first.
    ///
    /// # Errors
    /// As for `search`.
    pub fn previous(&mut self) -> Result<Option<R>> {
        self.cursor.inner.previous()?;
        self.current()
    }

    /// Reads the record at the cursor; `None` if the cursor is at no row.
    ///
    /// # Errors
    /// `Schema` if the row does not fit the record; errors of the file when the row's texts are read.
    pub fn current(&self) -> Result<Option<R>> {
        let Some(time) = self.cursor.inner.time() else {
            return Ok(None);
        };
        let mut words = [0u64; COLUMNS_MAX];
        let words = &mut words[..self.reader.schema.columns.len()];
        for (c, word) in words.iter_mut().enumerate() {
            *word = self.cursor.inner.word(c).unwrap_or_default();
        }
        self.reader.read_words(Steps(time), words).map(Some)
    }

    /// The time of the record at the cursor, in the series' unit.
    #[must_use]
    pub fn time(&self) -> Option<i64> {
        self.cursor.time()
    }
}

/// An iterator over the records of a query, from either end, returned by [`Query::records`].
///
/// Invariants:
/// 1. `left` is the number of rows between the two cursors, each of which is at the last row that it returned.
/// 2. An error ends the iteration.
pub struct Records<'s, R> {
    query: Query<'s>,
    left: u64,
    /// Cursor of the front end; `None` until a record is first requested from this end.
    front: Option<RecordCursor<'s, R>>,
    back: Option<RecordCursor<'s, R>>,
}

impl<'s, F: Figures> Query<'s, F> {
    /// The records of the interval one by one, from either end. If the series has more columns than the record, the
    /// additional columns are ignored.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Sample, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut wind = tx.series("wind")?;
    /// for (time, value) in [(10_i64, 7.0), (20, 8.0), (30, 6.5)] {
    ///     wind.insert(Steps(time), value)?;
    /// }
    /// let wind = wind.view()?;
    /// // The newest one above 7.
    /// for sample in wind.query(..).records::<Sample>()?.rev() {
    ///     let sample = sample?;
    ///     if sample.value > 7.0 {
    ///         assert_eq!(sample.time, 20);
    ///         break;
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Series::reader_of`]; a damaged or unreadable block. The iterator yields the same errors, and `Schema`
    /// for a row that does not fit the record; it ends after an error.
    ///
    /// # Cost
    /// One call of [`count`](Self::count), and a search for each end that is used. To read all records,
    /// [`for_each_record`](Self::for_each_record) is faster.
    pub fn records<R: Record>(&self) -> Result<Records<'s, R>> {
        self.series.reader_of::<R>()?;
        Ok(Records {
            query: self.settled()?.figures(AllFigures),
            left: self.count()?,
            front: None,
            back: None,
        })
    }

    /// Calls `f` with every row as a record. Returns the number of rows. If the series has more columns than the
    /// record, the additional columns are ignored.
    ///
    /// # Errors
    /// `Schema` if the series has other columns, if it has another unit and the record's time is a number, or if a row
    /// does not fit the record; otherwise as for `for_each_vector`.
    pub fn for_each_record<R: Record>(&self, mut f: impl FnMut(R)) -> Result<u64> {
        let reader = self.series.reader_of()?;
        let mut failed = None;
        let rows = self.for_each(|time, words| {
            if failed.is_some() {
                return;
            }
            match reader.read_words(Steps(time), words) {
                Ok(record) => f(record),
                Err(error) => failed = Some(error),
            }
        })?;
        failed.map_or(Ok(rows), Err)
    }
}

impl<R: Record> Records<'_, R> {
    /// Moves the cursor of one end to the next row that matches the filters, and returns its record.
    fn step(&mut self, direction: Direction) -> Option<Result<R>> {
        if self.left == 0 {
            return None;
        }
        let record = self.record(direction);
        self.left = match record {
            Ok(Some(_)) => self.left - 1,
            _ => 0,
        };
        record.transpose()
    }

    fn record(&mut self, direction: Direction) -> Result<Option<R>> {
        let query = &self.query;
        let end = match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        let (cursor, mut moved) = match end {
            Some(cursor) => (cursor, false),
            none => {
                let cursor: &mut RecordCursor<'_, R> = none.insert(query.series.cursor_of()?);
                let moved = match (direction, query.from.checked_sub(1)) {
                    (Direction::Forward, Some(before)) => {
                        cursor.cursor.go_to(Steps(before))?;
                        false
                    }
                    (Direction::Forward, None) => false,
                    (Direction::Backward, _) => {
                        cursor.cursor.go_to(Steps(query.to))?;
                        true
                    }
                };
                (cursor, moved)
            }
        };
        loop {
            if !std::mem::take(&mut moved) {
                match direction {
                    Direction::Forward => cursor.cursor.inner.next()?,
                    Direction::Backward => cursor.cursor.inner.previous()?,
                };
            }
            let inner = &cursor.cursor.inner;
            let contains = |range: &ValueRange| {
                let word = inner.word(range.column());
                word.is_some_and(|word| range.contains(word))
            };
            if inner.time().is_none() || query.filters.iter().all(contains) {
                return cursor.current();
            }
        }
    }
}

impl<R: Record> Iterator for Records<'_, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(self.query.direction)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // An error ends the iteration early, so the lower bound is zero.
        (0, usize::try_from(self.left).ok())
    }
}

impl<R: Record> DoubleEndedIterator for Records<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(match self.query.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        })
    }
}

impl Selection<'_> {
    /// Converters of the rows of each series to records, in the order of the series, to be used with merged or joined
    /// rows.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Sample, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.series("load{host=\"a\"}")?.insert(Steps(1), 0.5)?;
    /// tx.series("load{host=\"b\"}")?.insert(Steps(2), 1.5)?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let all = snap.select("load")?;
    /// let readers = all.readers_of::<Sample>()?;
    /// let mut rows = all.query(..).rows()?;
    /// let mut values = Vec::new();
    /// while let Some(row) = rows.next()? {
    ///     values.push(readers[row.series].read_words(row.time, row.words)?.value);
    /// }
    /// assert_eq!(values, [0.5, 1.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Series::reader_of`].
    pub fn readers_of<R: Record>(&self) -> Result<Vec<RecordReader<'_, R>>> {
        self.series()?
            .iter()
            .map(|series| series.reader_of())
            .collect()
    }
}
