//! Statistics of a group of series, window by window.

use crate::query::many::SelectionQuery;
use crate::query::units;
use crate::series::aggregate::Aggregate;
use crate::series::figures::{Figures, Needs};
use crate::series::query::Query;
use crate::series::read::Series;
use crate::types::error::Result;
use crate::types::grid::Grid;
use crate::types::interval::Ends;
use std::collections::BTreeMap;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_time::Timestamp;

/// One window of a group, with its full statistics or with the values of [some figures](crate::Figure).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupWindow<A = Aggregate> {
    /// The start of the window.
    pub start: Timestamp,
    /// Statistics over the rows of all series in the window, with times in nanoseconds since 1970.
    pub aggregate: A,
}

impl<F: Figures> SelectionQuery<'_, '_, F> {
    /// The windows that contain rows of any series, ascending, with the statistics of the column called `column` over
    /// the rows of all series.
    ///
    /// # Errors
    /// `Schema` if a series lacks the column or has it with another type, or if a window is not a whole number of a
    /// series' steps; `InvalidInput` if a row's time does not fit nanoseconds; a damaged or unreadable block.
    pub fn windows(&self, grid: &Grid, column: &str) -> Result<Vec<GroupWindow<F::Values>>> {
        let windows = self.whole_windows(grid, column)?;
        let chosen = |window: GroupWindow| GroupWindow {
            start: window.start,
            aggregate: self.figures.of(window.aggregate),
        };
        Ok(windows.into_iter().map(chosen).collect())
    }

    fn whole_windows(&self, grid: &Grid, column: &str) -> Result<Vec<GroupWindow>> {
        let times = self.times()?;
        let needs = self.figures.needs()?;
        let columns = self.column(column)?;
        let ask = |at: usize, series: &Series<'_>| {
            windows_of(self.one(at, series), (columns[at], needs), grid)
        };
        if let [member] = &self.members[..] {
            let own = ask(0, member.series)?;
            return Ok(own.into_iter().map(|(_, window)| window).collect());
        }
        let mut all: BTreeMap<i128, GroupWindow> = BTreeMap::new();
        for windows in self.ask_each(|series| vectors_of(series, &times, grid), ask)? {
            for (index, window) in windows {
                all.entry(index)
                    .and_modify(|all| all.aggregate.merge_beside(&window.aggregate))
                    .or_insert(window);
            }
        }
        Ok(all.into_values().collect())
    }
}

/// Approximate number of vectors visited for the windows of a series.
fn vectors_of(series: &Series<'_>, times: &Ends, grid: &Grid) -> Result<u64> {
    let unit = series.info().schema.unit;
    let grid = grid.in_unit(unit)?;
    let (from, to) = times.in_unit(unit);
    let Some((first, last)) = series.span() else {
        return Ok(0);
    };
    let (first, last) = (from.max(first), to.min(last));
    let windows = (grid.index(last) - grid.index(first)).max(0) as u128 + 2;
    Ok(windows.min(u128::from(series.count()? / VECTOR_ROWS as u64 + 2)) as u64)
}

/// The windows of one series, with their indices.
fn windows_of(
    query: Query<'_>,
    asked: (usize, Needs),
    grid: &Grid,
) -> Result<Vec<(i128, GroupWindow)>> {
    let unit = query.series.info().schema.unit;
    let windows = query.windows_with(&grid.in_unit(unit)?, asked, |window| crate::Window {
        aggregate: window.aggregate.keep(),
        ..window
    })?;
    let clock = grid.on_clock()?;
    let window = |window: crate::Window| {
        let aggregate = units::on_clock(window.aggregate, unit)?;
        let (first, _) = aggregate.times().unwrap_or_default();
        let index = clock.index(first);
        let start = Timestamp(clock.start(index));
        Ok((index, GroupWindow { start, aggregate }))
    };
    windows.into_iter().map(window).collect()
}
