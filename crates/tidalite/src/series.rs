//! A series as a reader sees it: intervals, aggregates, windows, vectors, cursor.
//!
//! What is sealed in the tree and what still waits in the front (or in the open transaction) answer every
//! query alike: the waiting rows of the series are collected once, when it is opened, and laid over the tree.

use crate::aggregate::{Aggregate, Window};
use crate::catalog::SeriesInfo;
use crate::error::Result;
use crate::pages::Pages;
use crate::point::{Point, Sample};
use crate::record::{Record, RowReader};
use crate::series_mut::SeriesMut;
use crate::texts::TextCache;
use crate::time::Instant;
use crate::value::Value;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_base::SeriesId;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_codec::Rows;
use tidalite_kv::Tree;
use tidalite_series::{Lines, SeriesTree, Stretch, View};

/// A row, copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its timestamp, in the series' unit.
    pub time: i64,
    /// One word a column.
    pub words: Vec<u64>,
}

impl Row {
    /// A column as a float (its bits are taken as they are).
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn f64(&self, column: usize) -> f64 {
        f64::from_bits(self.words[column])
    }

    /// A column as a signed integer.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn i64(&self, column: usize) -> i64 {
        self.words[column] as i64
    }
}

impl From<tidalite_series::Row> for Row {
    fn from(row: tidalite_series::Row) -> Self {
        Self {
            time: row.time,
            words: row.words,
        }
    }
}

/// A series under a snapshot, or in a write transaction as it stands.
pub struct Series<'a> {
    pages: Pages<'a>,
    info: Arc<SeriesInfo>,
    tree: SeriesTree,
    late: Rows,
    texts: Tree,
    text_cache: Mutex<TextCache>,
}

impl<'a> Series<'a> {
    pub(crate) fn new(
        pages: Pages<'a>,
        info: Arc<SeriesInfo>,
        tree: SeriesTree,
        late: Rows,
        texts: Tree,
    ) -> Self {
        Self {
            pages,
            info,
            tree,
            late,
            texts,
            text_cache: Mutex::default(),
        }
    }

    /// Name, schema, id.
    #[must_use]
    pub fn info(&self) -> &SeriesInfo {
        &self.info
    }

    /// The number of the series in this file.
    #[must_use]
    pub fn id(&self) -> SeriesId {
        self.info.id
    }

    /// Rows.
    ///
    /// # Errors
    /// Damage where late rows overlap sealed ones.
    pub fn count(&self) -> Result<u64> {
        self.all().count()
    }

    /// First and last timestamp. Reads nothing.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        self.view().span()
    }

    /// Bytes of its leaves, front not counted. Reads nothing.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.tree.stored_bytes()
    }

    /// Rows that wait in the front or in the transaction, not yet in a leaf.
    #[must_use]
    pub fn waiting_rows(&self) -> u64 {
        self.late.len() as u64
    }

    /// Levels of the tree above the leaves.
    #[must_use]
    pub fn height(&self) -> u8 {
        self.tree.height()
    }

    /// The newest row.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn latest(&self) -> Result<Option<Row>> {
        Ok(self.view().last()?.map(Row::from))
    }

    /// The values of a row.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Panics
    /// When the row is of a series with more columns.
    pub fn values(&self, row: &Row) -> Result<Vec<Value>> {
        let words = row.words.iter().enumerate();
        words.map(|(c, &word)| self.value(c, word)).collect()
    }

    /// The value of a word of a column.
    ///
    /// # Errors
    /// A damaged or unreadable block; a text that is not there.
    ///
    /// # Panics
    /// When there is no such column.
    ///
    /// # Cost
    /// Of a text a lookup, and up to 32 KiB to unpack for a long one; what was read last is remembered.
    pub fn value(&self, column: usize, word: u64) -> Result<Value> {
        let own = &self.info.schema.columns[column];
        if !own.ty.is_text() || own.is_null(word) {
            return Ok(own.value(word));
        }
        own.of_text(self.text(column, word)?)
    }

    /// The bytes of a text, by a word that is not null.
    pub(crate) fn text(&self, column: usize, word: u64) -> Result<Vec<u8>> {
        let mut cache = self
            .text_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cache.text(&self.pages, &self.texts, (self.info.id, column), word)
    }

    /// All rows.
    #[must_use]
    pub fn all(&self) -> Range<'_> {
        self.between(..)
    }

    /// The rows from `t` on.
    ///
    /// # Errors
    /// `Timestamp` when `t` is a text that is none or does not fit the unit.
    pub fn from(&self, t: impl Instant) -> Result<Range<'_>> {
        Ok(self.between(t.in_unit(self.info.schema.unit)?..))
    }

    /// The rows from the one that was current at `t` on: from the last row at or before `t`, or from the
    /// first row when none is that early. So do the for-each functions of the LMDB time-series engine begin.
    ///
    /// # Errors
    /// As for `from`; a damaged or unreadable block.
    pub fn from_current(&self, t: impl Instant) -> Result<Range<'_>> {
        let t = t.in_unit(self.info.schema.unit)?;
        let current = self.cursor().search(t)?.map_or(t, |row| row.time);
        Ok(self.between(current..))
    }

    /// The rows of an interval of raw times in the series' unit; `a..b` is a <= t < b.
    #[must_use]
    pub fn between(&self, times: impl RangeBounds<i64>) -> Range<'_> {
        let (from, to) = inclusive(&times);
        Range {
            series: self,
            from,
            to,
        }
    }

    /// The rows of an interval given as [`Instant`]s: timestamps, or texts such as `"2014-06-01"`.
    ///
    /// # Errors
    /// `Timestamp` when a bound is a text that is none or does not fit the unit.
    pub fn within<T: Instant>(&self, times: std::ops::Range<T>) -> Result<Range<'_>> {
        let unit = self.info.schema.unit;
        Ok(self.between(times.start.in_unit(unit)?..times.end.in_unit(unit)?))
    }

    /// A cursor in front of the first row.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            inner: self.view().cursor(),
            unit: self.info.schema.unit,
        }
    }

    /// Appends all rows to a series with the same columns.
    pub(crate) fn copy_rows(&self, to: &mut SeriesMut<'_>) -> Result<()> {
        let columns = self.info.schema.columns.len();
        let all = self.all();
        let mut scan = all.scan();
        while let Some(vector) = scan.next()? {
            let mut texts: Vec<Vec<u64>> = Vec::new();
            for (c, column) in self.info.schema.columns.iter().enumerate() {
                if !column.ty.is_text() {
                    texts.push(Vec::new());
                    continue;
                }
                let word = |&word: &u64| match column.is_null(word) {
                    true => Ok(word),
                    false => to.text_word(c, &self.text(c, word)?),
                };
                texts.push(vector.words(c).iter().map(word).collect::<Result<_>>()?);
            }
            let words = (0..columns).map(|c| match &texts[c][..] {
                [] => vector.words(c),
                texts => texts,
            });
            let words: Vec<&[u64]> = words.collect();
            to.append_rows(vector.times(), &words)?;
        }
        Ok(())
    }

    /// The times in which the leaves of this version and of an older one may differ.
    pub(crate) fn leaves_changed_since(
        &self,
        base: &Self,
        ranges: &mut Vec<(i64, i64)>,
    ) -> Result<()> {
        let add = |from, to| {
            ranges.push((from, to));
            Ok(())
        };
        Ok(self
            .tree
            .changed_since(&self.pages, &base.tree, &base.pages, add)?)
    }

    pub(crate) fn view(&self) -> View<'_, Pages<'a>> {
        View::new(&self.pages, &self.tree, self.late.view())
    }
}

/// Every time there is.
pub(crate) const EVER: (i64, i64) = (i64::MIN, i64::MAX);

/// First and last time of an interval, both included; `(0, -1)` for an empty one.
pub(crate) fn inclusive(times: &impl RangeBounds<i64>) -> (i64, i64) {
    let from = match times.start_bound() {
        Bound::Included(&t) => Some(t),
        Bound::Excluded(&t) => t.checked_add(1),
        Bound::Unbounded => Some(i64::MIN),
    };
    let to = match times.end_bound() {
        Bound::Included(&t) => Some(t),
        Bound::Excluded(&t) => t.checked_sub(1),
        Bound::Unbounded => Some(i64::MAX),
    };
    match (from, to) {
        (Some(from), Some(to)) if from <= to => (from, to),
        _ => (0, -1),
    }
}

/// The rows of an interval of a series.
#[derive(Clone, Copy)]
pub struct Range<'s> {
    pub(crate) series: &'s Series<'s>,
    /// First and last time, both included; nothing when `from` is above `to`.
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl<'s> Range<'s> {
    /// Rows, from the tree.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn count(&self) -> Result<u64> {
        if self.from > self.to {
            return Ok(0);
        }
        Ok(self.series.view().count(self.from, self.to)?)
    }

    /// Statistics of a column, from the tree: at most two nodes a level and two vectors are read, and the
    /// vectors that late rows fall into.
    ///
    /// # Errors
    /// `Schema` for a column that is not there; a damaged or unreadable block.
    pub fn aggregate(&self, column: usize) -> Result<Aggregate> {
        self.check_column(column)?;
        let (from, to) = if self.from > self.to {
            (1, 0)
        } else {
            (self.from, self.to)
        };
        let whole = self.series.view().summary(from, to, column)?;
        let column = &self.series.info.schema.columns[column];
        Ok(whole.map_or_else(
            || Aggregate::empty(column),
            |whole| Aggregate::new(column, whole.stats, whole.first_time, whole.last_time),
        ))
    }

    /// The windows of `width` that hold rows, in ascending order. Window k holds the times from
    /// `origin + k width` up to, not including, `origin + (k + 1) width`, cut to the interval.
    ///
    /// # Errors
    /// As for `aggregate`; `Limit` for a width below 1.
    pub fn windows(&self, width: i64, origin: i64, column: usize) -> Result<Vec<Window>> {
        self.check_column(column)?;
        let mut windows = Vec::new();
        if self.from <= self.to {
            let view = self.series.view();
            let own = &self.series.info.schema.columns[column];
            view.windows(self.from, self.to, width, origin, column, |window| {
                windows.push(Window {
                    start: window.start,
                    last: window.last,
                    aggregate: Aggregate::new(
                        own,
                        window.stats,
                        window.first_time,
                        window.last_time,
                    ),
                });
            })?;
        }
        Ok(windows)
    }

    /// Calls `f` with slices of up to 1024 rows, ascending: the fast path. Returns the rows.
    ///
    /// # Errors
    /// A damaged or unreadable block; what lies before it was delivered.
    pub fn for_each_vector(&self, f: impl FnMut(&Vector<'_>)) -> Result<u64> {
        let columns: Vec<usize> = (0..self.series.info.schema.columns.len()).collect();
        self.for_each_vector_of(&columns, f)
    }

    /// As `for_each_vector`, but only the named columns are read; the others are empty slices.
    ///
    /// # Errors
    /// `Schema` for a column that is not there; else as for `for_each_vector`.
    pub fn for_each_vector_of(
        &self,
        columns: &[usize],
        mut f: impl FnMut(&Vector<'_>),
    ) -> Result<u64> {
        for &column in columns {
            self.check_column(column)?;
        }
        if self.from > self.to {
            return Ok(0);
        }
        let view = self.series.view();
        let f = |vector: &tidalite_series::Vector<'_>| f(&Vector { inner: vector });
        Ok(view.for_each_vector(self.from, self.to, columns, f)?)
    }

    /// As `for_each_vector`, the last vector first; rows within a vector ascend.
    ///
    /// # Errors
    /// As for `for_each_vector`.
    pub fn for_each_vector_reverse(&self, mut f: impl FnMut(&Vector<'_>)) -> Result<u64> {
        if self.from > self.to {
            return Ok(0);
        }
        let columns: Vec<usize> = (0..self.series.info.schema.columns.len()).collect();
        let view = self.series.view();
        let f = |vector: &tidalite_series::Vector<'_>| f(&Vector { inner: vector });
        Ok(view.for_each_vector_reverse(self.from, self.to, &columns, f)?)
    }

    /// Calls `f` with every row: its time and one word a column. Returns the rows.
    ///
    /// # Errors
    /// As for `for_each_vector`.
    #[inline(always)]
    pub fn for_each(&self, mut f: impl FnMut(i64, &[u64])) -> Result<u64> {
        // Vectors are pulled, and this is inlined, so that the loop over the rows lies in the caller, where a sum
        // that `f` keeps can stay in a register: pushed through a call it went to memory with every row.
        let mut scan = self.scan();
        let mut lines = Lines::default();
        let mut rows = 0;
        let columns = self.series.info.schema.columns.len();
        let mut words = [0u64; COLUMNS_MAX];
        while let Some(stretch) = scan.next_stretch(&mut lines)? {
            let vector = match stretch {
                Stretch::Vector(vector) => vector,
                Stretch::Lines => {
                    rows += lines.rows() as u64;
                    for_each_of_lines(&lines, columns, &mut f);
                    continue;
                }
            };
            let times = vector.times();
            rows += times.len() as u64;
            let column = |c| vector.words(c).iter();
            // Zipped, not indexed: a check that could fail would keep what `f` sums in memory as well.
            match columns {
                1 => times
                    .iter()
                    .zip(column(0))
                    .for_each(|(&time, &a)| f(time, &[a])),
                2 => times
                    .iter()
                    .zip(column(0))
                    .zip(column(1))
                    .for_each(|((&time, &a), &b)| f(time, &[a, b])),
                3 => times
                    .iter()
                    .zip(column(0))
                    .zip(column(1).zip(column(2)))
                    .for_each(|((&time, &a), (&b, &c))| f(time, &[a, b, c])),
                4 => times
                    .iter()
                    .zip(column(0).zip(column(1)))
                    .zip(column(2).zip(column(3)))
                    .for_each(|((&time, (&a, &b)), (&c, &d))| f(time, &[a, b, c, d])),
                columns => {
                    let words = &mut words[..columns];
                    for (row, &time) in times.iter().enumerate() {
                        for (column, word) in words.iter_mut().enumerate() {
                            *word = vector.words(column)[row];
                        }
                        f(time, words);
                    }
                }
            }
        }
        Ok(rows)
    }

    /// All columns, vector by vector.
    pub(crate) fn scan(&self) -> tidalite_series::Scan<'_, Pages<'_>> {
        let columns: Vec<usize> = (0..self.series.info.schema.columns.len()).collect();
        self.series.view().scan(self.from, self.to, &columns)
    }

    /// Calls `f` with every default point (`flags`, `value`). Returns the rows.
    ///
    /// # Errors
    /// `Schema` when the series has other columns; else as for `for_each_vector`.
    pub fn for_each_sample(&self, mut f: impl FnMut(Sample)) -> Result<u64> {
        crate::catalog::expect_columns(&self.series.info, &<Sample as Point>::schema())?;
        self.for_each_vector(|vector| {
            let rows = vector.times().iter().zip(vector.i64(0)).zip(vector.f64(1));
            for ((&time, &flags), &value) in rows {
                f(Sample { time, flags, value });
            }
        })
    }

    /// Calls `f` with every row as a record. Returns the rows. Columns that the series has behind those of the record are
    /// left out.
    ///
    /// # Errors
    /// `Schema` when the series has other columns, or a row that is no such record; else as for `for_each_vector`.
    pub fn for_each_record<R: Record>(&self, mut f: impl FnMut(R)) -> Result<u64> {
        let schema = R::schema();
        crate::catalog::expect_first_columns(&self.series.info, &schema)?;
        let mut failed = None;
        let rows = self.for_each(|time, words| {
            if failed.is_some() {
                return;
            }
            let record = R::read(&mut RowReader {
                columns: &schema.columns,
                time,
                words: &words[..schema.columns.len()],
                at: 0,
                series: self.series,
            });
            match record {
                Ok(record) => f(record),
                Err(error) => failed = Some(error),
            }
        })?;
        failed.map_or(Ok(rows), Err)
    }

    pub(crate) fn check_column(&self, column: usize) -> Result<()> {
        let columns = &self.series.info.schema.columns;
        if column < columns.len() {
            return Ok(());
        }
        let problem = format!(
            "there are {} columns, asked for was number {column}",
            columns.len()
        );
        Err(crate::Error::Schema { problem })
    }
}

/// Calls `f` with rows that are made on the way. What `f` does not look at is not made.
#[inline(always)]
fn for_each_of_lines(lines: &Lines, columns: usize, f: &mut impl FnMut(i64, &[u64])) {
    let (rows, times) = (0..lines.rows(), lines.times());
    let time = |row| times.integer(row) as i64;
    let column = |c| lines.column(c);
    match columns {
        0 => rows.for_each(|row| f(time(row), &[])),
        1 => {
            let a = column(0);
            rows.for_each(|row| f(time(row), &[a.at(row)]));
        }
        2 => {
            let (a, b) = (column(0), column(1));
            // The default point: flags and a float.
            if a.is_integer() && !b.is_integer() {
                return rows.for_each(|row| f(time(row), &[a.integer(row), b.float(row)]));
            }
            rows.for_each(|row| f(time(row), &[a.at(row), b.at(row)]));
        }
        3 => {
            let (a, b, c) = (column(0), column(1), column(2));
            rows.for_each(|row| f(time(row), &[a.at(row), b.at(row), c.at(row)]));
        }
        _ => {
            let (a, b, c, d) = (column(0), column(1), column(2), column(3));
            rows.for_each(|row| f(time(row), &[a.at(row), b.at(row), c.at(row), d.at(row)]));
        }
    }
}

/// Up to 1024 neighbouring rows, borrowed.
pub struct Vector<'v> {
    pub(crate) inner: &'v tidalite_series::Vector<'v>,
}

impl<'v> Vector<'v> {
    /// The timestamps, ascending, in the series' unit.
    #[must_use]
    pub fn times(&self) -> &'v [i64] {
        self.inner.times()
    }

    /// The words of a column; empty for one that was not asked for.
    #[must_use]
    pub fn words(&self, column: usize) -> &'v [u64] {
        self.inner.words(column)
    }

    /// A column as floats (the bits are taken as they are).
    #[must_use]
    pub fn f64(&self, column: usize) -> &'v [f64] {
        bytemuck::cast_slice(self.words(column))
    }

    /// A column as signed integers.
    #[must_use]
    pub fn i64(&self, column: usize) -> &'v [i64] {
        bytemuck::cast_slice(self.words(column))
    }
}

/// A position in a series. Each move returns the row it comes to.
pub struct Cursor<'s> {
    inner: tidalite_series::Cursor<'s, Pages<'s>>,
    unit: crate::Unit,
}

impl Cursor<'_> {
    /// To the last row at or before `t`; `None` when there is none so early.
    ///
    /// # Errors
    /// A damaged or unreadable block; `Timestamp` when `t` does not fit the unit.
    pub fn search(&mut self, t: impl Instant) -> Result<Option<Row>> {
        self.inner.search(t.in_unit(self.unit)?)?;
        Ok(self.current())
    }

    /// To the first row.
    ///
    /// # Errors
    /// A damaged or unreadable block. So with all moves.
    pub fn first(&mut self) -> Result<Option<Row>> {
        self.inner.first()?;
        Ok(self.current())
    }

    /// To the last row.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn last(&mut self) -> Result<Option<Row>> {
        self.inner.last()?;
        Ok(self.current())
    }

    /// To the next row; `None` behind the last.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Row>> {
        self.inner.next()?;
        Ok(self.current())
    }

    /// To the previous row; `None` in front of the first.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn previous(&mut self) -> Result<Option<Row>> {
        self.inner.previous()?;
        Ok(self.current())
    }

    /// The row here.
    #[must_use]
    pub fn current(&self) -> Option<Row> {
        self.inner.row().map(Row::from)
    }

    /// The time here, without copying the row.
    #[must_use]
    pub fn time(&self) -> Option<i64> {
        self.inner.time()
    }
}
