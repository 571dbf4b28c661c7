//! Filtered rows: the queries of an interval, as if the series had no other rows.

use crate::query::filter::ValueFilter;
use crate::series::aggregate::{Aggregate, Window};
use crate::series::nearest::Direction;
use crate::series::query::{Query, Vector};
use crate::series::read::Series;
use crate::types::error::Result;
use crate::types::grid::Grid;
use crate::types::into_column::IntoColumn;
use tidalite_codec::Parts;
use tidalite_series::ValueRange;

/// The rows of an interval that match filters; see [`Query::matching`].
#[derive(Clone)]
pub struct Matching<'s> {
    range: Query<'s>,
    ranges: Vec<ValueRange>,
}

impl<'s> Query<'s> {
    /// Queries restricted to the rows that match all filters.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{ColumnType, Options, Schema, Steps, Unit, ValueFilter};
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
    /// let windy = turbine.query(..).matching([ValueFilter::new(0, 5.0..), ValueFilter::new(1, 110.0..)])?;
    /// assert_eq!(windy.count()?, 65);
    /// let minutes = windy.windows(60, 0, 1)?;
    /// assert_eq!(minutes[0].aggregate.mean(), Some(114.0));
    /// // The windows are a plain `Vec`, filtered as usual: the ones whose greatest power is above 200.
    /// let strong = minutes.iter().filter(|minute| minute.aggregate.max().is_some_and(|(power, _)| power > 200.0));
    /// assert_eq!(strong.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the column does not exist, or it has texts.
    ///
    /// # Cost
    /// Subtrees, leaves and vectors whose extremes exclude a match are skipped unread. If all rows of a unit match
    /// (without null or NaN among them), its statistics are read, as without filters; otherwise the filtered and the
    /// requested columns.
    pub fn matching(&self, filters: impl IntoIterator<Item = ValueFilter>) -> Result<Matching<'s>> {
        let columns = &self.series.info().schema.columns;
        let ranges = filters.into_iter().map(|filter| filter.range(columns));
        Ok(Matching {
            range: self.settled()?,
            ranges: ranges.collect::<Result<_>>()?,
        })
    }
}

impl<'s> Matching<'s> {
    pub(crate) fn series(&self) -> &'s Series<'s> {
        self.range.series
    }

    /// Number of matching rows.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn count(&self) -> Result<u64> {
        let Query {
            series, from, to, ..
        } = self.range;
        Ok(series
            .view()
            .matching(self.ranges.clone())
            .count(from, to)?)
    }

    /// Like [`Query::aggregate`].
    ///
    /// # Errors
    /// As for `Query::aggregate`.
    pub fn aggregate(&self, column: impl IntoColumn) -> Result<Aggregate> {
        let column = self.range.column(column)?;
        let Query {
            series, from, to, ..
        } = self.range;
        let matching = series.view().matching(self.ranges.clone());
        let whole = matching.summary(from, to, column, Parts::ALL)?;
        let column = &series.info().schema.columns[column];
        Ok(whole.map_or_else(
            || Aggregate::empty(column, Parts::ALL),
            |whole| Aggregate::new(column, whole.stats, whole.first_time, whole.last_time),
        ))
    }

    /// Like [`Query::windows`]: the windows with matching rows, with the statistics of these.
    ///
    /// # Errors
    /// As for `Query::windows`.
    pub fn windows(&self, width: i64, origin: i64, column: impl IntoColumn) -> Result<Vec<Window>> {
        let column = self.range.column(column)?;
        self.range.windows_by(width, origin, |range| {
            let Query {
                series, from, to, ..
            } = range;
            let own = &series.info().schema.columns[column];
            let mut windows = Vec::new();
            let matching = series.view().matching(self.ranges.clone());
            let asked = (&[column][..], Parts::ALL);
            matching.windows_of((from, to), width, origin, asked, |_, window| {
                let (first, last) = (window.first_time, window.last_time);
                windows.push(Window {
                    start: window.start,
                    last: window.last,
                    aggregate: Aggregate::new(own, window.stats, first, last),
                });
            })?;
            Ok(windows)
        })
    }

    /// Like [`Query::windows_on`]: the windows with matching rows, with the statistics of these.
    ///
    /// # Errors
    /// As for `Query::windows_on`.
    pub fn windows_on(&self, grid: &Grid, column: impl IntoColumn) -> Result<Vec<Window>> {
        let (width, origin) = grid.in_unit(self.series().info().schema.unit)?;
        self.windows(width, origin, column)
    }

    /// Calls `f` with the rows, up to 1024 per call (ascending within a call), in the given direction; returns their
    /// number. Only `columns` are delivered.
    ///
    /// # Errors
    /// `Schema` if the column does not exist; a damaged or unreadable block; the rows before it were delivered.
    pub fn for_each_vector_of(
        &self,
        columns: &[usize],
        direction: Direction,
        mut f: impl FnMut(&Vector<'_>),
    ) -> Result<u64> {
        self.range.check_columns(columns)?;
        let Query {
            series, from, to, ..
        } = self.range;
        let matching = series.view().matching(self.ranges.clone());
        let schema = &series.info().schema;
        let f = |inner: &tidalite_series::Vector<'_>| f(&Vector { inner, schema });
        Ok(matching.for_each_vector(from, to, columns, direction, f)?)
    }
}
