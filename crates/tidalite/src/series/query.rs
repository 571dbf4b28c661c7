//! The rows of an interval of a series: counting, aggregates, iteration by vectors or by rows.

use crate::series::aggregate::{Aggregate, Window};
use crate::series::read::Series;
use crate::txn::pages::Pages;
use crate::types::column::ColumnType;
use crate::types::error::{Error, Result};
use crate::types::grid::Grid;
use crate::types::instant::Steps;
use crate::types::interval::NOTHING;
use crate::types::into_column::IntoColumn;
use crate::types::point::{Point, Sample};
use crate::types::schema::Schema;
use std::sync::Arc;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_codec::Parts;
use tidalite_series::{Lines, Stretch};

/// A query of the rows of a series in an interval; see [`Series::query`]. The calls that answer it report its errors.
#[derive(Clone)]
pub struct Query<'s> {
    pub(crate) series: &'s Series<'s>,
    /// First and last time, both included; empty if `from` is above `to`.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The time whose current row [`from_current`](Self::from_current) begins with, and the last time.
    pub(crate) current: (i64, i64),
    pub(crate) starts_current: bool,
    /// The error of an interval that could not be read.
    pub(crate) refused: Option<Arc<Error>>,
}

impl<'s> Query<'s> {
    /// Begins with the row that is current at the start of the interval: with the last row at or before it, or, if
    /// there is none, with the first row. The for-each functions of the LMDB time-series engine begin likewise.
    #[must_use]
    pub fn from_current(self) -> Self {
        Self {
            starts_current: true,
            ..self
        }
    }

    /// First and last time, both included; `NOTHING` for an empty interval.
    #[inline]
    pub(crate) fn ends(&self) -> Result<(i64, i64)> {
        if self.refused.is_some() || self.starts_current {
            return self.ends_of_current();
        }
        Ok(self.checked((self.from, self.to)))
    }

    #[inline]
    fn checked(&self, (from, to): (i64, i64)) -> (i64, i64) {
        if from <= to { (from, to) } else { NOTHING }
    }

    #[cold]
    fn ends_of_current(&self) -> Result<(i64, i64)> {
        if let Some(error) = &self.refused {
            return Err(error.again());
        }
        let (at, to) = self.current;
        let mut cursor = self.series.cursor();
        let current = cursor.go_to(Steps(at))?.then(|| cursor.time()).flatten();
        Ok(self.checked((current.unwrap_or(at), to)))
    }

    /// The same query with the ends that it has in the series.
    pub(crate) fn settled(&self) -> Result<Self> {
        let (from, to) = self.ends()?;
        Ok(self.series.between(from, to))
    }

    /// Number of rows, from the tree.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn count(&self) -> Result<u64> {
        let (from, to) = self.ends()?;
        if from > to {
            return Ok(0);
        }
        Ok(self.series.view().count(from, to)?)
    }

    /// Statistics of a column, from the tree: reads at most two nodes per level and two vectors, and the vectors that
    /// late rows overlap.
    ///
    /// # Errors
    /// `Schema` if the column does not exist; a damaged or unreadable block.
    pub fn aggregate(&self, column: impl IntoColumn) -> Result<Aggregate> {
        self.summary(self.column(column)?, Parts::ALL)
    }

    /// Like `aggregate`, restricted to these figures.
    pub(crate) fn summary(&self, column: usize, parts: Parts) -> Result<Aggregate> {
        let column = self.column(column)?;
        let (from, to) = self.ends()?;
        let whole = self.series.view().summary(from, to, column, parts)?;
        let column = &self.series.info().schema.columns[column];
        Ok(whole.map_or_else(
            || Aggregate::empty(column, parts),
            |whole| Aggregate::new(column, whole.stats, whole.first_time, whole.last_time),
        ))
    }

    /// The windows of `width` that contain rows, in ascending order. Window k contains the times from `origin + k
    /// width` up to, not including, `origin + (k + 1) width`, clipped to the interval. Both are in steps of the series'
    /// unit: [`windows_on`](Self::windows_on) accepts hours and days instead.
    ///
    /// # Errors
    /// As for `aggregate`; `Limit` for a width below 1.
    ///
    /// # Cost
    /// Reads the vectors that windows cut. If these are many, threads help
    /// ([`Options::scan_threads`](crate::Options::scan_threads)).
    pub fn windows(&self, width: i64, origin: i64, column: impl IntoColumn) -> Result<Vec<Window>> {
        let column = self.column(column)?;
        self.windows_with(width, origin, (column, Parts::ALL), |window| window)
    }

    /// Like `windows`, for a [`Grid`] aligned to the clock, whatever the series' unit.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{ColumnType, Grid, Options, Schema, Unit};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let wind = Schema::new(Unit::Millis, [("speed", ColumnType::F64)]);
    /// let mut series = tx.series_with("wind", &wind)?;
    /// series.insert_values("2014-06-01T00:10", &[6.0.into()])?;
    /// series.insert_values("2014-06-01T00:50", &[7.0.into()])?;
    /// let series = series.view()?;
    /// let hours = series.query(..).windows_on(&Grid::hours(1), "speed")?;
    /// assert_eq!(hours[0].aggregate.mean(), Some(6.5));
    /// assert_eq!(Unit::Millis.text(hours[0].start), "2014-06-01T00:00:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `windows`; `Schema` if the width or the origin is not a multiple of the series' unit.
    pub fn windows_on(&self, grid: &Grid, column: impl IntoColumn) -> Result<Vec<Window>> {
        let (width, origin) = grid.in_unit(self.series.info().schema.unit)?;
        self.windows(width, origin, column)
    }

    /// Like `windows`, restricted to these figures, each window converted by the caller.
    pub(crate) fn windows_with<A: Send>(
        &self,
        width: i64,
        origin: i64,
        (column, parts): (usize, Parts),
        chosen: impl Fn(Window) -> Window<A> + Sync,
    ) -> Result<Vec<Window<A>>> {
        let ask = |range: Query<'_>| {
            let mut windows = Vec::new();
            range.each_window(width, origin, (&[column], parts), |_, window| {
                windows.push(chosen(window));
            })?;
            Ok(windows)
        };
        self.windows_by(width, origin, ask)
    }

    /// Computes windows, on several threads by parts of the interval if that helps.
    pub(crate) fn windows_by<W: Send>(
        &self,
        width: i64,
        origin: i64,
        ask: impl Fn(Query<'_>) -> Result<Vec<W>> + Sync,
    ) -> Result<Vec<W>> {
        let settled = self.settled()?;
        match (
            self.series.helpers(),
            settled.parts_of_windows(width, origin)?,
        ) {
            (Some(helpers), Some(parts)) => {
                let windows = helpers.ask_parts(self.series, &parts, ask)?;
                Ok(windows.into_iter().flatten().collect())
            }
            _ => ask(settled),
        }
    }

    /// Calls `f` with each of the `windows` of several columns in one walk: with the column's index in `columns`, and
    /// the window. Each window is reported once per column, in their order, before the next window.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{ColumnType, Options, Schema, Steps, Unit};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let columns = [("user", ColumnType::I64), ("idle", ColumnType::I64)];
    /// let mut series = tx.series_with("cpu", &Schema::new(Unit::Seconds, columns))?;
    /// for second in 0..120 {
    ///     series.insert_row(Steps(second), &[second as u64, 100 - second as u64 / 2])?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let cpu = snap.series("cpu")?.expect("it is there");
    /// let mut largest = [Vec::new(), Vec::new()];
    /// cpu.query(..).for_each_window(60, 0, &[0, 1], |column, minute| {
    ///     largest[column].push(minute.aggregate.max().map(|(value, _)| value));
    /// })?;
    /// assert_eq!(largest, [[Some(59.0), Some(119.0)], [Some(100.0), Some(70.0)]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `windows`; the windows before the damage were reported.
    ///
    /// # Cost
    /// The vectors that windows cut are located, and their times decoded, once for all columns. Needs no memory for the
    /// windows.
    pub fn for_each_window(
        &self,
        width: i64,
        origin: i64,
        columns: &[usize],
        f: impl FnMut(usize, Window),
    ) -> Result<()> {
        self.each_window(width, origin, (columns, Parts::ALL), f)
    }

    /// Like `for_each_window`, restricted to these figures.
    pub(crate) fn each_window(
        &self,
        width: i64,
        origin: i64,
        (columns, parts): (&[usize], Parts),
        mut f: impl FnMut(usize, Window),
    ) -> Result<()> {
        self.check_columns(columns)?;
        let (from, to) = self.ends()?;
        if from > to {
            return Ok(());
        }
        let own = &self.series.info().schema.columns;
        let f = |i: usize, window: tidalite_series::Window| {
            let (first, last) = (window.first_time, window.last_time);
            let aggregate = Aggregate::new(&own[columns[i]], window.stats, first, last);
            let (start, last) = (window.start, window.last);
            f(
                i,
                Window {
                    start,
                    last,
                    aggregate,
                },
            );
        };
        let view = self.series.view();
        let asked = (columns, parts);
        Ok(view.windows_of((from, to), width, origin, asked, f)?)
    }

    /// Calls `f` with slices of up to 1024 rows, ascending: the fast path. Returns the number of rows.
    ///
    /// # Errors
    /// A damaged or unreadable block; the rows before it were delivered.
    pub fn for_each_vector(&self, f: impl FnMut(&Vector<'_>)) -> Result<u64> {
        let columns: Vec<usize> = (0..self.series.info().schema.columns.len()).collect();
        self.for_each_vector_of(&columns, f)
    }

    /// Like `for_each_vector`, but reads only the named columns; the others are empty slices.
    ///
    /// # Errors
    /// `Schema` if the column does not exist; else as for `for_each_vector`.
    pub fn for_each_vector_of(
        &self,
        columns: &[usize],
        mut f: impl FnMut(&Vector<'_>),
    ) -> Result<u64> {
        self.check_columns(columns)?;
        let (from, to) = self.ends()?;
        if from > to {
            return Ok(0);
        }
        let view = self.series.view();
        let schema = &self.series.info().schema;
        let f = |inner: &tidalite_series::Vector<'_>| f(&Vector { inner, schema });
        Ok(view.for_each_vector(from, to, columns, f)?)
    }

    /// Like `for_each_vector`, the last vector first; rows within a vector ascend.
    ///
    /// # Errors
    /// As for `for_each_vector`.
    pub fn for_each_vector_reverse(&self, mut f: impl FnMut(&Vector<'_>)) -> Result<u64> {
        let (from, to) = self.ends()?;
        if from > to {
            return Ok(0);
        }
        let columns: Vec<usize> = (0..self.series.info().schema.columns.len()).collect();
        let view = self.series.view();
        let schema = &self.series.info().schema;
        let f = |inner: &tidalite_series::Vector<'_>| f(&Vector { inner, schema });
        Ok(view.for_each_vector_reverse(from, to, &columns, f)?)
    }

    /// Calls `f` with every row: its time and one word per column. Returns the number of rows.
    ///
    /// # Errors
    /// As for `for_each_vector`.
    #[inline(always)]
    pub fn for_each(&self, mut f: impl FnMut(i64, &[u64])) -> Result<u64> {
        // Vectors are pulled, and this function is inlined, so that the loop over rows is in the caller, where a sum
        // kept by `f` can stay in a register: pushed through a call it went to memory with every row.
        let mut scan = self.scan()?;
        let mut lines = Lines::default();
        let mut rows = 0;
        let columns = self.series.info().schema.columns.len();
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
            // Zipped, not indexed: a bounds check that could fail would also force the sums of `f` into memory.
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
    pub(crate) fn scan(&self) -> Result<tidalite_series::Scan<'s, Pages<'s>>> {
        let (from, to) = self.ends()?;
        let columns: Vec<usize> = (0..self.series.info().schema.columns.len()).collect();
        Ok(self.series.view().scan(from, to, &columns))
    }

    /// Calls `f` with every default point (`flags`, `value`), its time in the series' unit. Returns the number of rows.
    ///
    /// # Errors
    /// `Schema` if the series has other columns; else as for `for_each_vector`.
    pub fn for_each_sample(&self, mut f: impl FnMut(Sample)) -> Result<u64> {
        crate::catalog::entries::expect_columns(self.series.info(), &<Sample as Point>::schema())?;
        self.for_each_vector(|vector| {
            let rows = vector.times().iter().zip(vector.i64(0)).zip(vector.f64(1));
            for ((&time, &flags), &value) in rows {
                f(Sample { time, flags, value });
            }
        })
    }

    /// The number of a column.
    pub(crate) fn column(&self, column: impl IntoColumn) -> Result<usize> {
        self.series.column(column)
    }

    pub(crate) fn check_columns(&self, columns: &[usize]) -> Result<()> {
        columns.iter().try_for_each(|&c| self.column(c).map(drop))
    }
}

/// Calls `f` with rows built on the fly. Parts that `f` does not use are not built.
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

/// Up to 1024 consecutive rows, borrowed.
pub struct Vector<'v> {
    pub(crate) inner: &'v tidalite_series::Vector<'v>,
    pub(crate) schema: &'v Schema,
}

impl<'v> Vector<'v> {
    fn is_float(&self, column: usize) -> Option<bool> {
        let own = self.schema.columns.get(column)?;
        Some(matches!(own.ty, ColumnType::F64 | ColumnType::F32))
    }

    /// The timestamps, ascending, in the series' unit.
    #[must_use]
    pub fn times(&self) -> &'v [i64] {
        self.inner.times()
    }

    /// The words of a column; empty if it was not requested.
    #[must_use]
    pub fn words(&self, column: usize) -> &'v [u64] {
        self.inner.words(column)
    }

    /// A column as floats: the bits unchanged, valid only for a column of floats. [`floats`](Self::floats) returns an
    /// error for other columns.
    ///
    /// # Panics
    /// In builds with debug assertions, if the column has integers or texts.
    #[must_use]
    pub fn f64(&self, column: usize) -> &'v [f64] {
        debug_assert!(
            self.is_float(column) != Some(false),
            "column {column} has no floats"
        );
        bytemuck::cast_slice(self.words(column))
    }

    /// A column as signed integers: the bits unchanged, invalid for a column of floats. [`integers`](Self::integers)
    /// returns an error for such a column.
    ///
    /// # Panics
    /// In builds with debug assertions, if the column has floats.
    #[must_use]
    pub fn i64(&self, column: usize) -> &'v [i64] {
        debug_assert!(
            self.is_float(column) != Some(true),
            "column {column} has floats"
        );
        bytemuck::cast_slice(self.words(column))
    }
}
