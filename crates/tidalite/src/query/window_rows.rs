//! Windows of several metrics side by side: one row per window, one cell per metric.

use crate::query::many::SelectionQuery;
use crate::query::windows::GroupWindow;
use crate::series::aggregate::Aggregate;
use crate::series::figures::Figures;
use crate::types::error::Result;
use crate::types::figure::Figure;
use crate::types::grid::Grid;
use std::collections::BTreeMap;
use tidalite_time::Timestamp;

/// The statistics of several metrics in one window, returned by [`SelectionQuery::window_rows`], or figures of them
/// ([`SelectionQuery::window_figures`]).
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRow<A = Aggregate> {
    /// Start of the window.
    pub start: Timestamp,
    /// One cell for each requested metric or figure, in their order; `None` for a metric without rows in the window,
    /// and for a figure without value.
    pub cells: Vec<Option<A>>,
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
    /// assert_eq!(hours[0].cells, [Some(Some(0.75)), Some(Some(700.0))]);
    /// assert_eq!(hours[1].cells, [Some(Some(0.25)), None]);
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

    /// The windows in which any of these metrics has rows, ascending in time, with one cell for each requested figure.
    /// `wanted` gives the metric, the column and the figure of each cell, so that each metric has its own figures, and
    /// several columns are asked for in one call.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Grid, Options, Timestamp};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (time, price, volume) in [("09:30", 10.0, 5.0), ("09:40", 12.0, 1.0), ("09:50", 11.0, 2.0)] {
    ///     let time = Timestamp::parse(&format!("2024-06-03T{time}"))?;
    ///     tx.series("price")?.insert(time, price)?;
    ///     tx.series("volume")?.insert(time, volume)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let all = snap.select("")?;
    /// let price = |figure| ("price", "value", figure);
    /// let candle = [
    ///     price(Figure::First), price(Figure::Max), price(Figure::Min), price(Figure::Last),
    ///     ("volume", "value", Figure::Sum),
    /// ];
    /// let hours = all.query(..).window_figures(&Grid::hours(1), &candle)?;
    /// assert_eq!(hours[0].cells, [10.0, 12.0, 10.0, 11.0, 8.0].map(Some));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`windows`](Self::windows).
    ///
    /// # Cost
    /// As for `windows`, once for each of the metrics and columns, however many figures it has.
    pub fn window_figures(
        &self,
        grid: &Grid,
        wanted: &[(&str, &str, Figure)],
    ) -> Result<Vec<WindowRow<f64>>> {
        // The cells of each metric and column, with their figures.
        let mut columns: BTreeMap<_, Vec<(usize, Figure)>> = BTreeMap::new();
        for (cell, &(metric, column, figure)) in wanted.iter().enumerate() {
            columns
                .entry((metric, column))
                .or_default()
                .push((cell, figure));
        }
        let mut rows: BTreeMap<Timestamp, WindowRow<f64>> = BTreeMap::new();
        for ((metric, column), cells) in &columns {
            let figures: Vec<Figure> = cells.iter().map(|&(_, figure)| figure).collect();
            let query = self.clone().metric(metric).figures(&figures[..]);
            for window in query.windows(grid, column)? {
                let start = window.start;
                let row = rows.entry(start).or_insert_with(|| WindowRow {
                    start,
                    cells: vec![None; wanted.len()],
                });
                for (&(cell, _), value) in cells.iter().zip(window.aggregate) {
                    row.cells[cell] = value;
                }
            }
        }
        Ok(rows.into_values().collect())
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
                cells: (0..metrics).map(|_| None).collect(),
            });
            row.cells[metric] = Some(aggregate);
        }
    }
    rows.into_values().collect()
}
