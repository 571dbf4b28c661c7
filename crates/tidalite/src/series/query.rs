//! A query of the rows of a series: its interval, its filters, and the statistics of its rows.

use crate::series::aggregate::{Aggregate, Window};
use crate::series::figures::{AllFigures, Figures, Needs};
use crate::series::filter::ValueFilter;
use crate::series::nearest::Direction;
use crate::series::read::Series;
use crate::types::error::{Error, Result};
use crate::types::grid::{StepGrid, Windows};
use crate::types::instant::Steps;
use crate::types::interval::NOTHING;
use crate::types::into_column::IntoColumn;
use std::ops::RangeBounds;
use std::sync::Arc;
use tidalite_codec::Parts;
use tidalite_series::ValueRange;

/// A query of the rows of a series in an interval; see [`Series::query`]. It is built step by step and reads nothing
/// until a call asks for rows or statistics. That call also reports the errors of the steps: a time that cannot be
/// read, a column that does not exist.
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{ColumnType, Figure, Options, Schema, Steps, Unit};
/// use tidalite::storage::MemoryStorage;
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let columns = [("speed", ColumnType::F64), ("power", ColumnType::F64)];
/// let mut turbine = tx.series_with("turbine", &Schema::new(Unit::Seconds, columns))?;
/// for second in 0..120 {
///     turbine.insert_values(Steps(second), &[(second as f64 / 10.0).into(), (2.0 * second as f64).into()])?;
/// }
/// let turbine = turbine.view()?;
/// // Power per minute, over the rows with wind and notable power.
/// let windy = turbine.query(..).filter("speed", 5.0..).filter("power", 110.0..);
/// assert_eq!(windy.count()?, 65);
/// let means = windy.clone().figures(Figure::Mean).windows(Steps(60), "power")?;
/// assert_eq!(means[0].aggregate, Some(114.0));
/// // The last row of these.
/// let mut rows = Vec::new();
/// windy.reverse().for_each(|time, _| rows.push(time))?;
/// assert_eq!(rows[0], 119);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Query<'s, F = AllFigures> {
    pub(crate) series: &'s Series<'s>,
    /// First and last time, both included; empty if `from` is above `to`.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The time whose current row [`from_current`](Self::from_current) begins with, and the last time.
    pub(crate) current: (i64, i64),
    pub(crate) starts_current: bool,
    pub(crate) direction: Direction,
    /// The columns to read; `None` for all.
    pub(crate) columns: Option<Vec<usize>>,
    /// Rows whose values lie in all of these ranges.
    pub(crate) filters: Vec<ValueRange>,
    pub(crate) figures: F,
    /// The error of a step of the query.
    pub(crate) refused: Option<Arc<Error>>,
}

impl<'s, F: Figures> Query<'s, F> {
    /// Begins with the row that is current at the start of the interval: with the last row at or before it, or, if
    /// there is none, with the first row. The for-each functions of the LMDB time-series engine begin likewise.
    #[must_use]
    pub fn from_current(mut self) -> Self {
        self.starts_current = true;
        self
    }

    /// Returns the rows in the opposite order: the last row first. Statistics stay the same, and windows ascending.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.direction = match self.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        self
    }

    /// Reads only these columns, for [`for_each_vector`](Self::for_each_vector) and
    /// [`for_each_window`](Self::for_each_window). Without this call all columns are read.
    #[must_use]
    pub fn columns<C: IntoColumn>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        let columns = columns.into_iter().map(|column| self.column(column));
        match columns.collect() {
            Ok(columns) => self.columns = Some(columns),
            Err(error) => self.refuse(error),
        }
        self
    }

    /// Selects the rows whose value in `column` lies in `values`; with several filters, the rows that match all of
    /// them. NaN and null lie in no range. The two zeros are one value here, as in comparisons of numbers: a range that
    /// ends at one of them contains both or none. Integers are compared exactly, decimals with the digits in which the
    /// bounds are written, bools as 0 and 1. Texts cannot be filtered: see [`text_matches`](Self::text_matches).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use std::ops::Bound::{Excluded, Unbounded};
    /// use tidalite::{Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut load = tx.series("load")?;
    /// for (time, value) in [(1, 20.0), (2, 95.0), (3, 91.5), (4, 90.0)] {
    ///     load.insert(Steps(time), value)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let load = snap.series("load")?.ok_or("no such series")?;
    /// let mut high = Vec::new();
    /// let above = load.query(..).filter("value", (Excluded(90.0), Unbounded));
    /// above.for_each(|time, _| high.push(time))?;
    /// assert_eq!(high, [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cost
    /// Subtrees, leaves and vectors whose extremes exclude a match are skipped unread. If all rows of a unit match
    /// (without null or NaN among them), its statistics are read, as without filters; otherwise the filtered and the
    /// requested columns.
    #[must_use]
    pub fn filter(mut self, column: impl IntoColumn, values: impl RangeBounds<f64>) -> Self {
        let range = self.column(column).and_then(|column| {
            let columns = &self.series.info().schema.columns;
            ValueFilter::new(column, values).range(columns)
        });
        match range {
            Ok(range) => self.filters.push(range),
            Err(error) => self.refuse(error),
        }
        self
    }

    /// Records the error of a step, unless an earlier step has failed already.
    #[cold]
    fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert_with(|| Arc::new(error));
    }

    /// Queries only these figures: their values equal the whole [`Aggregate`]'s, bit by bit. Figures that an aggregate
    /// does not have, such as percentiles, are computed from the rows.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series("wind")?;
    /// for time in 0..120_i64 {
    ///     series.insert(Steps(time), time as f64)?;
    /// }
    /// let series = series.view()?;
    /// let means = series.query(..).figures(Figure::Mean).windows(Steps(60), "value")?;
    /// assert_eq!(means[1].aggregate, Some(89.5));
    ///
    /// let bands = series.query(..).figures([Figure::Min, Figure::Max]).windows(Steps(60), "value")?;
    /// assert_eq!(bands[1].aggregate, [Some(60.0), Some(119.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cost
    /// If windows cut every vector of floats with two decimals, means take two thirds of the time of whole aggregates,
    /// minima and maxima half. Sums and means together cost as much as sums; with extremes or deviations as well,
    /// everything is computed.
    #[must_use]
    pub fn figures<G: Figures>(self, figures: G) -> Query<'s, G> {
        Query {
            series: self.series,
            from: self.from,
            to: self.to,
            current: self.current,
            starts_current: self.starts_current,
            direction: self.direction,
            columns: self.columns,
            filters: self.filters,
            figures,
            refused: self.refused,
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

    /// The same query of another interval, whose ends are known, in the series or in a copy of it.
    pub(crate) fn part<'n>(&self, series: &'n Series<'n>, (from, to): (i64, i64)) -> Query<'n, F> {
        Query {
            direction: self.direction,
            columns: self.columns.clone(),
            filters: self.filters.clone(),
            ..series.between(from, to).figures(self.figures)
        }
    }

    /// The same query, with its interval in steps of the series' unit.
    pub(crate) fn settled(&self) -> Result<Self> {
        Ok(self.part(self.series, self.ends()?))
    }

    /// The number of a column.
    pub(crate) fn column(&self, column: impl IntoColumn) -> Result<usize> {
        self.series.column(column)
    }

    /// The columns to read.
    pub(crate) fn wanted_columns(&self) -> Vec<usize> {
        let all = || (0..self.series.info().schema.columns.len()).collect();
        self.columns.clone().unwrap_or_else(all)
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
        let view = self.series.view();
        Ok(match self.filters.is_empty() {
            true => view.count(from, to)?,
            false => view.matching(self.filters.clone()).count(from, to)?,
        })
    }

    /// The statistics of a column, restricted to these needs.
    pub(crate) fn summary(&self, column: usize, needs: Needs) -> Result<Aggregate> {
        let whole = self.summary_of_tree(column, needs.parts)?;
        if needs.rows.is_empty() {
            return Ok(whole);
        }
        self.with_row_figures(whole, (column, needs.rows))
    }

    fn summary_of_tree(&self, column: usize, parts: Parts) -> Result<Aggregate> {
        let (from, to) = self.ends()?;
        let view = self.series.view();
        let whole = view.summary(from, to, column, parts, &self.filters)?;
        let column = &self.series.info().schema.columns[column];
        Ok(whole.map_or_else(
            || Aggregate::empty(column, parts),
            |whole| Aggregate::new(column, whole.stats, whole.first_time, whole.last_time),
        ))
    }
}

impl<F: Figures> Query<'_, F> {
    /// Statistics of a column, from the tree: reads at most two nodes per level and two vectors, and the vectors that
    /// late rows overlap. An [`Aggregate`], or the values of the requested [figures](Self::figures).
    ///
    /// # Errors
    /// `Schema` if the column does not exist; a damaged or unreadable block.
    pub fn aggregate(&self, column: impl IntoColumn) -> Result<F::Values> {
        let whole = self.summary(self.column(column)?, self.figures.needs()?)?;
        Ok(self.figures.of(whole))
    }

    /// The windows that contain rows, in ascending order, clipped to the interval, with the statistics of a column or
    /// the requested [figures](Self::figures). The windows are a [`Grid`](crate::Grid) aligned to the clock, whatever
    /// the series' unit, or `Steps(width)` of the series' unit, one of which begins at step 0, or
    /// `(Steps(width), Steps(origin))`.
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
    /// let hours = series.query(..).windows(Grid::hours(1), "speed")?;
    /// assert_eq!(hours[0].aggregate.mean(), Some(6.5));
    /// assert_eq!(Unit::Millis.text(hours[0].start), "2014-06-01T00:00:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `aggregate`; `Limit` for a width below 1; `Schema` if the width or the origin of a `Grid` is not a
    /// multiple of the series' unit.
    ///
    /// # Cost
    /// Reads the vectors that windows cut; all rows, if a figure is [computed from rows](crate::Figure). If these are
    /// many, threads help ([`Options::scan_threads`](crate::Options::scan_threads)).
    pub fn windows(
        &self,
        windows: impl Into<Windows>,
        column: impl IntoColumn,
    ) -> Result<Vec<Window<F::Values>>> {
        let asked = (self.column(column)?, self.figures.needs()?);
        let grid = windows.into().in_unit(self.series.info().schema.unit)?;
        self.windows_with(&grid, asked, |window| self.chosen(window))
    }

    /// Like `windows`, restricted to these needs, each window converted by the caller; on several threads by parts of
    /// the interval if that helps.
    pub(crate) fn windows_with<A: Send>(
        &self,
        grid: &StepGrid,
        (column, needs): (usize, Needs),
        chosen: impl Fn(Window) -> Window<A> + Sync,
    ) -> Result<Vec<Window<A>>> {
        let ask = |range: Query<'_, F>| {
            let mut windows = Vec::new();
            if needs.rows.is_empty() {
                range.each_window(grid, (&[column], needs.parts), |_, window| {
                    windows.push(chosen(window));
                })?;
            } else {
                range.each_with_row_figures(grid, (column, needs), |window| {
                    windows.push(chosen(window));
                })?;
            }
            Ok(windows)
        };
        let settled = self.settled()?;
        match (self.series.helpers(), settled.parts_of_windows(grid)?) {
            (Some(helpers), Some(parts)) => {
                let windows = helpers.ask_parts(&settled, &parts, ask)?;
                Ok(windows.into_iter().flatten().collect())
            }
            _ => ask(settled),
        }
    }

    /// Calls `f` with each of the `windows` of the requested [columns](Self::columns) in one walk: with the column's
    /// place among these, and the window. Each window is reported once per column, in their order, before the next
    /// window.
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
    /// cpu.query(..).columns(["user", "idle"]).for_each_window(Steps(60), |column, minute| {
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
    /// windows, unless a figure is computed from rows: then each column is read by itself, and all its windows are
    /// collected.
    pub fn for_each_window(
        &self,
        windows: impl Into<Windows>,
        mut f: impl FnMut(usize, Window<F::Values>),
    ) -> Result<()> {
        let grid = windows.into().in_unit(self.series.info().schema.unit)?;
        let columns = self.wanted_columns();
        let needs = self.figures.needs()?;
        if needs.rows.is_empty() {
            return self.each_window(&grid, (&columns, needs.parts), |column, window| {
                f(column, self.chosen(window));
            });
        }
        let mut each = Vec::with_capacity(columns.len());
        for &column in &columns {
            let mut windows = Vec::new();
            self.each_with_row_figures(&grid, (column, needs), |window| {
                windows.push(self.chosen(window));
            })?;
            each.push(windows.into_iter());
        }
        // All columns have the same windows.
        loop {
            for (column, windows) in each.iter_mut().enumerate() {
                match windows.next() {
                    Some(window) => f(column, window),
                    None => return Ok(()),
                }
            }
        }
    }

    #[inline]
    fn chosen(&self, window: Window) -> Window<F::Values> {
        Window {
            start: window.start,
            last: window.last,
            aggregate: self.figures.of(window.aggregate),
        }
    }
}

impl<F: Figures> Query<'_, F> {
    /// Calls `f` with each window of these columns, restricted to these parts of their statistics.
    pub(crate) fn each_window(
        &self,
        grid: &StepGrid,
        (columns, parts): (&[usize], Parts),
        mut f: impl FnMut(usize, Window),
    ) -> Result<()> {
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
        grid.with(|grid| view.windows_of((from, to), grid, asked, &self.filters, f))?;
        Ok(())
    }
}
