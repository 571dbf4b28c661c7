//! A series that owns its snapshot, for structs that outlive the function that took the snapshot.

use crate::series::read::{Movable, Series};
use crate::txn::read::ReadTxn;
use crate::types::error::Result;

/// A series together with its snapshot, returned by [`ReadTxn::owned_series`]. The value borrows nothing, so it can be
/// a field of a struct; [`view`](Self::view) gives the series.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// use tidalite::{Database, OwnedSeries, Result};
///
/// fn wind(db: &Database) -> Result<Option<OwnedSeries>> {
///     db.begin_read()?.owned_series("wind")
/// }
///
/// let mut tx = db.begin_write()?;
/// tx.series("wind")?.insert("2014-06-01", 7.5)?;
/// tx.commit()?;
/// let wind = wind(&db)?.ok_or("no wind")?;
/// assert_eq!(wind.view().query(..).aggregate("value")?.mean(), Some(7.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnedSeries {
    snapshot: ReadTxn,
    series: Movable,
}

impl ReadTxn {
    /// Opens the series with this name, together with a clone of the snapshot; returns `None` if it does not exist.
    ///
    /// # Errors
    /// As for [`series`](Self::series).
    pub fn owned_series(&self, name: &str) -> Result<Option<OwnedSeries>> {
        Ok(self.series(name)?.map(|series| OwnedSeries {
            snapshot: self.clone(),
            series: series.movable(),
        }))
    }
}

impl OwnedSeries {
    /// The series, borrowed from this value. Reads nothing; texts that the view caches are dropped with the view.
    #[must_use]
    pub fn view(&self) -> Series<'_> {
        let threads = self.snapshot.cache.scan_threads;
        self.series.on(&self.snapshot.pages).with_helpers(threads)
    }

    /// The snapshot that the series is read from.
    #[must_use]
    pub fn snapshot(&self) -> &ReadTxn {
        &self.snapshot
    }
}
