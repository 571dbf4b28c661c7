//! Windows of several metrics side by side: one row per window, one cell per metric.

use crate::query::selection::{Group, Selection};
use crate::query::windows::{GroupFigures, GroupWindow};
use crate::series::aggregate::Aggregate;
use crate::series::figures::Figures;
use crate::types::error::Result;
use crate::types::grid::Grid;
use crate::types::interval::{Ends, Interval};
use crate::types::time::Timestamp;
use std::collections::BTreeMap;

/// One window of several metrics; see [`Group::window_rows`].
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRow<A = Aggregate> {
    /// The start of the window.
    pub start: Timestamp,
    /// Statistics of each metric, in the requested order; `None` if one has no rows in the window.
    pub metrics: Vec<Option<A>>,
}

impl<'t> Group<'_, 't> {
    /// The series of the group with this metric, as a group with the same tags. A series without a name has no metric.
    #[must_use]
    pub fn of_metric(&self, metric: &str) -> Group<'_, 't> {
        let has = |series: &&&crate::Series<'t>| {
            let name = series.info().name.as_ref();
            name.is_some_and(|name| name.metric() == metric)
        };
        Group {
            tags: self.tags.clone(),
            series: self.series.iter().filter(has).copied().collect(),
        }
    }

    /// The windows in which any of these metrics has rows within `times`, ascending, with the statistics of each metric
    /// side by side. `metrics` gives each metric with its column; a metric may occur several times, with different
    /// columns.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Grid, Options, Timestamp};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (name, time, value) in [
    ///     (r#"cpu{host="a"}"#, "2014-06-01T00:10:00Z", 0.5),
    ///     (r#"cpu{host="a"}"#, "2014-06-01T00:20:00Z", 1.0),
    ///     (r#"cpu{host="a"}"#, "2014-06-01T01:00:00Z", 0.25),
    ///     (r#"memory{host="a"}"#, "2014-06-01T00:30:00Z", 700.0),
    ///     (r#"cpu{host="b"}"#, "2014-06-01T00:10:00Z", 0.125),
    /// ] {
    ///     tx.series(name)?.insert(time, value)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let all = snap.select("")?;
    /// let hosts = all.groups(&["host"]);
    /// let both = [("cpu", "value"), ("memory", "value")];
    /// let hours = hosts[0].figures(Figure::Mean).window_rows(&both, .., &Grid::hours(1))?;
    /// assert_eq!(hours[0].metrics, [Some(Some(0.75)), Some(Some(700.0))]);
    /// assert_eq!(hours[1].metrics, [Some(Some(0.25)), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Group::windows`].
    ///
    /// # Cost
    /// As for `windows`, for each of the metrics.
    pub fn window_rows(
        &self,
        metrics: &[(&str, &str)],
        times: impl Interval,
        grid: &Grid,
    ) -> Result<Vec<WindowRow>> {
        self.rows_by(metrics, times, |group, column, times| {
            group.windows(column, times, grid)
        })
    }

    fn rows_by<A>(
        &self,
        metrics: &[(&str, &str)],
        times: impl Interval,
        windows: impl Fn(&Group<'_, 't>, &str, Ends) -> Result<Vec<GroupWindow<A>>>,
    ) -> Result<Vec<WindowRow<A>>> {
        let times = times.ends()?;
        let each = metrics.iter();
        let each = each.map(|(metric, column)| windows(&self.of_metric(metric), column, times));
        Ok(abreast(each.collect::<Result<_>>()?))
    }
}

impl<F: Figures + Copy> GroupFigures<'_, '_, '_, F> {
    /// Like [`Group::window_rows`].
    ///
    /// # Errors
    /// As for `Group::window_rows`.
    pub fn window_rows(
        &self,
        metrics: &[(&str, &str)],
        times: impl Interval,
        grid: &Grid,
    ) -> Result<Vec<WindowRow<F::Values>>> {
        self.group.rows_by(metrics, times, |group, column, times| {
            group.figures(self.figures).windows(column, times, grid)
        })
    }
}

impl Selection<'_> {
    /// The metrics of its series, ascending.
    #[must_use]
    pub fn metrics(&self) -> Vec<&str> {
        let names = self.series.iter().filter_map(|series| {
            let name = series.info().name.as_ref();
            name.map(crate::SeriesName::metric)
        });
        let mut metrics: Vec<&str> = names.collect();
        metrics.sort_unstable();
        metrics.dedup();
        metrics
    }
}

/// Combines windows of one grid by their starts.
fn abreast<A>(each: Vec<Vec<GroupWindow<A>>>) -> Vec<WindowRow<A>> {
    let metrics = each.len();
    let mut rows: BTreeMap<Timestamp, WindowRow<A>> = BTreeMap::new();
    for (metric, windows) in each.into_iter().enumerate() {
        for GroupWindow { start, aggregate } in windows {
            let row = rows.entry(start).or_insert_with(|| WindowRow {
                start,
                metrics: (0..metrics).map(|_| None).collect(),
            });
            row.metrics[metric] = Some(aggregate);
        }
    }
    rows.into_values().collect()
}
