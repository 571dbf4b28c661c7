//! A selection: many series at once, chosen by a pattern, with all times on one clock.
//!
//! Series may have different units. In queries of a selection every time is in nanoseconds since 1970
//! ([`Timestamp`](crate::Timestamp)), because every unit's step is a whole number of nanoseconds.

use crate::catalog::entries::SeriesInfo;
use crate::series::helpers::Helpers;
use crate::series::read::Series;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::types::error::Result;
use crate::types::name::SeriesName;
use crate::types::row::Row;
use std::sync::{Arc, OnceLock};

/// Series that are queried together, all in one snapshot. Series selected by a pattern are ordered by id. They are
/// opened when a query first needs their rows.
pub struct Selection<'t> {
    infos: Vec<Arc<SeriesInfo>>,
    /// The state in which the series are opened.
    source: Option<&'t (dyn Source + Sync)>,
    opened: OnceLock<Vec<Series<'t>>>,
}

/// A state of the database in which the series of a selection are opened.
trait Source {
    fn open(&self, info: &Arc<SeriesInfo>) -> Result<Series<'_>>;
    fn newest(&self, infos: &[Arc<SeriesInfo>]) -> Result<Vec<Option<Row>>>;
}

impl<S: ReadSource> Source for Reading<S> {
    fn open(&self, info: &Arc<SeriesInfo>) -> Result<Series<'_>> {
        self.open_series(Arc::clone(info))
    }

    fn newest(&self, infos: &[Arc<SeriesInfo>]) -> Result<Vec<Option<Row>>> {
        self.latest_of(infos)
    }
}

impl<S: ReadSource> Reading<S> {
    /// Selects series by a pattern; [`Reading::list`] describes patterns and the cost. A query of the selection opens
    /// the series: it reads the record of each and its rows in the delta.
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
        Ok(Selection {
            infos: self.list(pattern)?,
            source: Some(self),
            opened: OnceLock::new(),
        })
    }
}

impl<'t> Selection<'t> {
    /// Creates a selection of these series, in this order.
    #[must_use]
    pub fn of(series: Vec<Series<'t>>) -> Self {
        Self {
            infos: series
                .iter()
                .map(|series| Arc::clone(&series.state.info))
                .collect(),
            source: None,
            opened: OnceLock::from(series),
        }
    }

    /// The series of the selection, in order. Opens them at the first call.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn series(&self) -> Result<&[Series<'t>]> {
        if self.opened.get().is_none()
            && let Some(source) = self.source
        {
            let mut series = Vec::with_capacity(self.infos.len());
            for info in &self.infos {
                series.push(source.open(info)?);
            }
            // If another thread was faster, its series are the same.
            drop(self.opened.set(series));
        }
        Ok(self.opened.get().map_or(&[], Vec::as_slice))
    }

    /// Names, schemas and ids of the series, in order. Opens no series.
    #[must_use]
    pub fn infos(&self) -> &[Arc<SeriesInfo>] {
        &self.infos
    }

    /// Number of series in the selection.
    #[must_use]
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// True if there are no series in the selection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }

    /// The newest row of each series, in the order of the selection; `None` for a series without rows.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Cost
    /// Opens no series; reads the newest rows on the available threads
    /// ([`Options::scan_threads`](crate::Options::scan_threads)).
    pub fn latest(&self) -> Result<Vec<Option<Row>>> {
        match (self.opened.get(), self.source) {
            (None, Some(source)) => source.newest(&self.infos),
            (opened, _) => opened.into_iter().flatten().map(Series::latest).collect(),
        }
    }

    /// The metrics of the selected series, ascending, each once.
    #[must_use]
    pub fn metrics(&self) -> Vec<&str> {
        let names = self.infos.iter().filter_map(|info| info.name.as_ref());
        let mut metrics: Vec<&str> = names.map(SeriesName::metric).collect();
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
        let series: Vec<_> = self.series()?.iter().collect();
        match Helpers::of_all(&series) {
            Some(helpers) => helpers.ask_each(&series, |_, series| ask(series)),
            None => series.into_iter().map(ask).collect(),
        }
    }
}
