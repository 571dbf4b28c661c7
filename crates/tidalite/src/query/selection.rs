//! A selection: many series at once, chosen by a pattern, with all times on one clock.
//!
//! Series may have different units. In queries of a selection every time is in nanoseconds since 1970
//! ([`Timestamp`](crate::Timestamp)), because every unit's step is a whole number of nanoseconds.

use crate::series::helpers::Helpers;
use crate::series::read::Series;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::types::error::Result;
use crate::types::name::SeriesName;
use crate::types::row::Row;

/// Series that are queried together, all open in one snapshot. Series selected by a pattern are ordered by id.
pub struct Selection<'t> {
    pub(super) series: Vec<Series<'t>>,
}

impl<S: ReadSource> Reading<S> {
    /// Opens the series that a pattern selects; [`Reading::list`] describes patterns. Reads the record of each series
    /// and its rows in the delta.
    ///
    /// # Errors
    /// `InvalidName` for an invalid pattern; a damaged or unreadable page.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Database, Grid, Options, Timestamp};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (host, load) in [("a", 0.5), ("b", 1.5)] {
    ///     let mut series = tx.series(&format!(r#"load{{host="{host}",site="north"}}"#))?;
    ///     series.insert("2014-06-01T00:10:00Z", load)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let chosen = snap.select("load")?;
    /// for site in chosen.query("2014-06-01"..).group_by(["site"]) {
    ///     let hours = site.windows(&Grid::hours(1), "value")?;
    ///     assert_eq!(hours[0].aggregate.mean(), Some(1.0));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(&self, pattern: &str) -> Result<Selection<'_>> {
        let mut series = Vec::new();
        for info in self.list(pattern)? {
            series.extend(self.open_series(info)?);
        }
        Ok(Selection { series })
    }
}

impl<'t> Selection<'t> {
    /// Creates a selection of these series, in this order.
    #[must_use]
    pub fn of(series: Vec<Series<'t>>) -> Self {
        Self { series }
    }

    /// The series of the selection, in order.
    #[must_use]
    pub fn series(&self) -> &[Series<'t>] {
        &self.series
    }

    /// Number of series in the selection.
    #[must_use]
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// True if there are no series in the selection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The newest row of each series, in the order of the selection; `None` for a series without rows.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn latest(&self) -> Result<Vec<Option<Row>>> {
        self.series.iter().map(Series::latest).collect()
    }

    /// The metrics of the selected series, ascending, each once.
    #[must_use]
    pub fn metrics(&self) -> Vec<&str> {
        let names = self.series.iter().filter_map(|series| {
            let name = series.info().name.as_ref();
            name.map(SeriesName::metric)
        });
        let mut metrics: Vec<&str> = names.collect();
        metrics.sort_unstable();
        metrics.dedup();
        metrics
    }
}

impl Selection<'_> {
    /// Calls `ask` for each series, on the available threads ([`Options::scan_threads`](crate::Options::scan_threads)),
    /// and returns the results in the order of the series.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, Steps};
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # for host in ["a", "b"] { tx.series(&format!(r#"load{{host="{host}"}}"#))?.insert(Steps(7), 0.5)?; }
    /// # tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let greatest = snap.select("load")?.in_parallel(|host| Ok(host.query(..).aggregate("value")?.max()))?;
    /// assert_eq!(greatest, [Some((0.5, 7)), Some((0.5, 7))]);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of the first series for which `ask` fails.
    ///
    /// # Panics
    /// If `ask` panics.
    pub fn in_parallel<T: Send>(
        &self,
        ask: impl Fn(&Series<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let series: Vec<_> = self.series().iter().collect();
        match Helpers::of_all(&series) {
            Some(helpers) => helpers.ask_each(&series, |_, series| ask(series)),
            None => series.into_iter().map(ask).collect(),
        }
    }
}
