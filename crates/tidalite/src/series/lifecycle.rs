//! Renaming and removing a series.

use crate::catalog::entries::{self, SeriesKey};
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::name::SeriesName;
use tidalite_base::SeriesId;

impl WriteTxn {
    /// Removes the series with this name and all its rows; returns false if it does not exist. The id of the series is
    /// not assigned again. Snapshots and pins that contain the series keep it.
    ///
    /// # Errors
    /// `InvalidName` for an invalid name; a damaged block in the way; a full disk.
    ///
    /// # Cost
    /// The write buffer is flushed first, as by [`savepoint`](Self::savepoint). Freeing the space reads the pages that
    /// refer to the series' leaves, not the leaves.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::Options;
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.series("load")?.insert("2014-06-01", 1.0)?;
    /// assert!(tx.remove_series("load")?);
    /// tx.commit()?;
    /// assert!(db.begin_read()?.series("load")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_series(&mut self, name: &str) -> Result<bool> {
        self.check_usable()?;
        let name = SeriesName::parse(name)?;
        let found = entries::find(&self.roots, &self.pages, SeriesKey::Name(&name))?;
        found.map_or(Ok(false), |id| self.remove_series_by_id(id))
    }

    /// Removes a series by its id, like [`remove_series`](Self::remove_series).
    ///
    /// # Errors
    /// A damaged block in the way; a full disk.
    pub fn remove_series_by_id(&mut self, id: SeriesId) -> Result<bool> {
        self.check_usable()?;
        let Some(info) = entries::info(&self.roots, &self.pages, id)? else {
            return Ok(false);
        };
        self.expect_no_container(info.name.as_ref())?;
        self.free_space();
        self.series_by_id(id)?.delete(..)?;
        self.changing(|txn| {
            txn.store_buffered()?;
            crate::catalog::texts::remove_series(&mut txn.pages, &mut txn.roots.texts, id)?;
            crate::catalog::annotations::remove_series(
                &mut txn.pages,
                &mut txn.roots.annotations,
                id,
            )?;
            entries::remove(&mut txn.roots, &mut txn.pages, &mut txn.tags, id)?;
            txn.store_tags()?;
            for tree in txn.roots.catalog_trees() {
                tree.seal(&mut txn.pages)?;
            }
            txn.begin_again()
        })?;
        Ok(true)
    }

    /// Renames a series. A series that has only a GUID gets the name in addition.
    ///
    /// # Errors
    /// `NotFound` if there is no series with this id; `InvalidName` for an invalid name, or one that another series
    /// has; errors of the file.
    pub fn rename_series(&mut self, id: SeriesId, name: &str) -> Result<()> {
        self.check_usable()?;
        let name = SeriesName::parse(name)?;
        self.check_name_fits(&name)?;
        let problem = |problem: String| {
            Error::from(Cause::Name {
                name: name.to_string(),
                problem,
            })
        };
        match entries::find(&self.roots, &self.pages, SeriesKey::Name(&name))? {
            Some(other) if other == id => return Ok(()),
            Some(other) => return Err(problem(format!("it is the name of {other}"))),
            None => {}
        }
        let Some(info) = entries::info(&self.roots, &self.pages, id)? else {
            return Err(Error::from(Cause::NoSuchSeries {
                wanted: format!("number {}", id.0),
            }));
        };
        self.expect_no_container(info.name.as_ref())?;
        self.expect_no_container(Some(&name))?;
        let info = self.changing(|txn| {
            entries::rename(&mut txn.roots, &mut txn.pages, &mut txn.tags, id, &name)
        })?;
        self.open.renamed(info);
        Ok(())
    }
}
