//! Metrics, tag keys and tag values of the series in a snapshot.

use crate::catalog::tags::keys::METRIC;
use crate::catalog::tags::listing::{self, Cardinality, TagCount};
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::types::error::Result;

impl<S: ReadSource> Reading<S> {
    /// The metrics that begin with `prefix`, ascending, at most `limit` of them: for suggestions while a user types, or
    /// all with `""` and `usize::MAX`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::Options;
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for turbine in ["R80711", "R80721", "R80790"] {
    ///     tx.series(&format!(r#"wind.speed{{farm="hb",turbine="{turbine}"}}"#))?;
    ///     tx.series(&format!(r#"power{{farm="hb",turbine="{turbine}"}}"#))?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let metrics = snap.metrics("wi", 10)?;
    /// assert_eq!((metrics[0].text.as_str(), metrics[0].series), ("wind.speed", 3));
    /// assert_eq!(snap.tag_keys("", 10)?.len(), 2);
    /// assert_eq!(snap.tag_values("turbine", "R807", 2)?.len(), 2);
    /// assert_eq!(snap.cardinality()?.tags[1].values, 3);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn metrics(&self, prefix: &str, limit: usize) -> Result<Vec<TagCount>> {
        listing::values(&self.cache.roots.tags, &self.pages, METRIC, prefix, limit)
    }

    /// The tag keys that begin with `prefix`, ascending, at most `limit` of them.
    ///
    /// # Errors
    /// As for [`metrics`](Self::metrics).
    pub fn tag_keys(&self, prefix: &str, limit: usize) -> Result<Vec<TagCount>> {
        listing::tag_keys(&self.cache.roots.tags, &self.pages, prefix, limit)
    }

    /// The values of a tag that begin with `prefix`, ascending, at most `limit` of them. Empty for a tag that no series
    /// has.
    ///
    /// # Errors
    /// As for [`metrics`](Self::metrics).
    pub fn tag_values(&self, key: &str, prefix: &str, limit: usize) -> Result<Vec<TagCount>> {
        if key == METRIC {
            return Ok(Vec::new());
        }
        listing::values(&self.cache.roots.tags, &self.pages, key, prefix, limit)
    }

    /// Counts metrics, tag keys, and the values of each key.
    ///
    /// # Errors
    /// As for [`metrics`](Self::metrics).
    ///
    /// # Cost
    /// Reads every row of the index.
    pub fn cardinality(&self) -> Result<Cardinality> {
        listing::cardinality(&self.cache.roots.tags, &self.pages)
    }
}
