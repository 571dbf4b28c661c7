//! Windows of several metrics side by side: one row per window, one cell per metric.

use crate::query::many::SelectionQuery;
use crate::query::windows::GroupWindow;
use crate::series::aggregate::Aggregate;
use crate::series::figures::Figures;
use crate::types::error::Result;
use crate::types::grid::Grid;
use crate::types::time::Timestamp;
use std::collections::BTreeMap;

/// The statistics of several metrics in one window, returned by [`SelectionQuery::window_rows`].
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRow<A = Aggregate> {
    /// Start of the window.
    pub start: Timestamp,
    /// Statistics of each metric, in the requested order; `None` for a metric without rows in the window.
    pub metrics: Vec<Option<A>>,
}

impl<F: Figures> SelectionQuery<'_, '_, F> {
    /// The windows in which any of these metrics has rows, ascending in time, with the statistics of each metric side
    /// by side. `metrics` gives each metric with its column; a metric may occur several times, with different columns.
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
    /// let hosts = all.query(..).figures(Figure::Mean).group_by(["host"]);
    /// let both = [("cpu", "value"), ("memory", "value")];
    /// let hours = hosts[0].window_rows(&Grid::hours(1), &both)?;
    /// assert_eq!(hours[0].metrics, [Some(Some(0.75)), Some(Some(700.0))]);
    /// assert_eq!(hours[1].metrics, [Some(Some(0.25)), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`windows`](Self::windows).
    ///
    /// # Cost
    /// As for `windows`, for each of the metrics.
    pub fn window_rows(
        &self,
        grid: &Grid,
        metrics: &[(&str, &str)],
    ) -> Result<Vec<WindowRow<F::Values>>> {
        let each = metrics.iter();
        let each = each.map(|(metric, column)| self.clone().metric(metric).windows(grid, column));
        Ok(abreast(each.collect::<Result<_>>()?))
    }
}

/// Combines the windows of several metrics, which have one grid, into rows: one for each start of a window.
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
