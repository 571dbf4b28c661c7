//! Statistics of a group of series, window by window.

use crate::query::selection::Group;
use crate::query::units;
use crate::series::aggregate::Aggregate;
use crate::series::figures::{Figures, parts_of};
use crate::types::error::Result;
use crate::types::grid::Grid;
use crate::types::interval::{Ends, Interval};
use crate::types::time::Timestamp;
use std::collections::BTreeMap;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::Parts;

/// One window of a group, with its full statistics or with the values of [some figures](crate::Figures).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupWindow<A = Aggregate> {
    /// The start of the window.
    pub start: Timestamp,
    /// Statistics over the rows of all series in the window, with times in nanoseconds since 1970.
    pub aggregate: A,
}

impl<'s, 't> Group<'s, 't> {
    /// Queries restricted to these figures.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Grid, Options, Timestamp};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (host, load) in [("a", 0.5), ("b", 1.5)] {
    ///     tx.series(&format!(r#"load{{host="{host}"}}"#))?.insert(Timestamp(7), load)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let all = snap.select("load")?;
    /// let means = all.as_group().figures(Figure::Mean).windows("value", .., &Grid::hours(1))?;
    /// assert_eq!((means[0].start, means[0].aggregate), (Timestamp(0), Some(1.0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn figures<F: Figures>(&self, figures: F) -> GroupFigures<'_, 's, 't, F> {
        GroupFigures {
            group: self,
            figures,
        }
    }

    /// The windows that contain rows of any of its series within `times`, ascending.
    ///
    /// # Errors
    /// `Schema` if a series lacks the column or has it with another type, or if a window is not a whole number of a
    /// series' steps; `Timestamp` if a row's time does not fit nanoseconds; a damaged or unreadable block.
    pub fn windows(
        &self,
        column: &str,
        times: impl Interval,
        grid: &Grid,
    ) -> Result<Vec<GroupWindow>> {
        self.windows_with(column, times, grid, Parts::ALL)
    }

    fn windows_with(
        &self,
        column: &str,
        times: impl Interval,
        grid: &Grid,
        parts: Parts,
    ) -> Result<Vec<GroupWindow>> {
        let columns = self.column(column)?;
        let times = times.ends()?;
        if let ([series], [column]) = (self.series(), &columns[..]) {
            let own = one(series, (*column, parts), &times, grid)?;
            return Ok(own.into_iter().map(|(_, window)| window).collect());
        }
        let mut all: BTreeMap<i128, GroupWindow> = BTreeMap::new();
        let each = self.ask_each(
            |series| vectors_of(series, &times, grid),
            |at, series| one(series, (columns[at], parts), &times, grid),
        )?;
        for windows in each {
            for (index, window) in windows {
                all.entry(index)
                    .and_modify(|all| all.aggregate.merge_beside(&window.aggregate))
                    .or_insert(window);
            }
        }
        Ok(all.into_values().collect())
    }
}

/// Selected figures of a group; see [`Group::figures`].
#[derive(Clone, Copy)]
pub struct GroupFigures<'g, 's, 't, F> {
    pub(super) group: &'g Group<'s, 't>,
    pub(super) figures: F,
}

impl<F: Figures> GroupFigures<'_, '_, '_, F> {
    /// Like [`Group::aggregate`].
    ///
    /// # Errors
    /// As for `Group::aggregate`.
    pub fn aggregate(&self, column: &str, times: impl Interval) -> Result<Option<F::Values>> {
        let parts = parts_of(&self.figures);
        let whole = self.group.summary(column, times, parts)?;
        Ok(whole.map(|whole| self.figures.of(&whole)))
    }

    /// Like [`Group::windows`].
    ///
    /// # Errors
    /// As for `Group::windows`.
    pub fn windows(
        &self,
        column: &str,
        times: impl Interval,
        grid: &Grid,
    ) -> Result<Vec<GroupWindow<F::Values>>> {
        let parts = parts_of(&self.figures);
        let windows = self.group.windows_with(column, times, grid, parts)?;
        let chosen = |window: GroupWindow| GroupWindow {
            start: window.start,
            aggregate: self.figures.of(&window.aggregate),
        };
        Ok(windows.into_iter().map(chosen).collect())
    }
}

/// Approximate number of vectors visited for the windows of a series.
fn vectors_of(series: &crate::Series<'_>, times: &Ends, grid: &Grid) -> Result<u64> {
    let unit = series.info().schema.unit;
    let (width, _) = grid.in_unit(unit)?;
    let (from, to) = times.in_unit(unit);
    let Some((first, last)) = series.span() else {
        return Ok(0);
    };
    let ticks = i128::from(to.min(last)) - i128::from(from.max(first));
    let windows = (ticks.max(0) / i128::from(width)) as u128 + 2;
    Ok(windows.min(u128::from(series.count()? / VECTOR_ROWS as u64 + 2)) as u64)
}

/// The windows of one series, with their indices.
fn one(
    series: &crate::Series<'_>,
    (column, parts): (usize, Parts),
    times: &Ends,
    grid: &Grid,
) -> Result<Vec<(i128, GroupWindow)>> {
    let unit = series.info().schema.unit;
    let (width, origin) = grid.in_unit(unit)?;
    let (from, to) = times.in_unit(unit);
    let range = series.between(from, to);
    let windows = range.windows_with(width, origin, (column, parts), |window| window)?;
    let window = |window: crate::Window| {
        let aggregate = units::on_clock(window.aggregate, unit)?;
        let (first, _) = aggregate.times().unwrap_or_default();
        let index = grid.index(first);
        let start = grid.start(index);
        Ok((index, GroupWindow { start, aggregate }))
    };
    windows.into_iter().map(window).collect()
}
