//! Annotations of a series: reading and changing them.

use crate::catalog::annotations;
use crate::series::read::Series;
use crate::series::write::SeriesMut;
use crate::types::error::Result;

impl Series<'_> {
    /// Returns the text of the annotation with this key, if it exists.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn annotation(&self, key: &str) -> Result<Option<String>> {
        annotations::get(&self.annotations, self.pages(), self.id(), key)
    }

    /// Returns all annotations as keys with their texts, in key order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn annotations(&self) -> Result<Vec<(String, String)>> {
        annotations::of_series(&self.annotations, self.pages(), self.id())
    }
}

impl SeriesMut<'_> {
    /// Returns the text of the annotation with this key, if it exists, including changes of this transaction.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn annotation(&self, key: &str) -> Result<Option<String>> {
        self.txn.check_usable()?;
        annotations::get(&self.txn.roots.annotations, &self.txn.pages, self.id(), key)
    }

    /// Sets the annotation with this key, replacing an earlier text.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::Options;
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series("wind.speed")?;
    /// series.annotate("unit", "m/s")?;
    /// // Only if no other writer was faster:
    /// assert!(series.compare_annotation("owner", None, Some("Kim"))?);
    /// assert!(!series.compare_annotation("owner", None, Some("Lee"))?);
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let series = snap.series("wind.speed")?.ok_or("no such series")?;
    /// assert_eq!(series.annotation("unit")?.as_deref(), Some("m/s"));
    /// assert_eq!(series.annotations()?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Limit` if the key or the text is too long, `InvalidName` for an empty key; a full disk.
    pub fn annotate(&mut self, key: &str, text: &str) -> Result<()> {
        annotations::check(key, text)?;
        let id = self.id();
        self.txn.changing(|txn| {
            let tree = &mut txn.roots.annotations;
            tree.insert(
                &mut txn.pages,
                &annotations::tree_key(id, key),
                text.as_bytes(),
            )?;
            Ok(())
        })
    }

    /// Removes the annotation with this key; returns false if it does not exist.
    ///
    /// # Errors
    /// A damaged page in the way; a full disk.
    pub fn remove_annotation(&mut self, key: &str) -> Result<bool> {
        let id = self.id();
        self.txn.changing(|txn| {
            let tree = &mut txn.roots.annotations;
            Ok(tree.remove(&mut txn.pages, &annotations::tree_key(id, key))?)
        })
    }

    /// Sets the annotation to `new` (`None` removes it) if its text is `expected` (`None`: it does not exist); returns
    /// whether it was set. No other change can intervene, because there is only one writer at a time.
    ///
    /// # Errors
    /// As for `annotate`.
    pub fn compare_annotation(
        &mut self,
        key: &str,
        expected: Option<&str>,
        new: Option<&str>,
    ) -> Result<bool> {
        annotations::check(key, new.unwrap_or_default())?;
        if self.annotation(key)?.as_deref() != expected {
            return Ok(false);
        }
        match new {
            Some(new) => self.annotate(key, new)?,
            None => {
                self.remove_annotation(key)?;
            }
        }
        Ok(true)
    }
}
