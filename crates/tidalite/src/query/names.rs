//! Parts of names: the metrics, tags, values and units in use, with the number of series that have each.

use crate::catalog::entries::SeriesInfo;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::types::error::Result;
use crate::types::schema::Unit;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The parts of series names, each with the number of series that contain it; returned by [`Reading::names`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Number of series by metric; a series without a name has no metric.
    pub metrics: BTreeMap<String, u64>,
    /// Number of series by key and value of a tag.
    pub tags: BTreeMap<String, BTreeMap<String, u64>>,
    /// Number of series by unit of their timestamps.
    pub units: BTreeMap<Unit, u64>,
}

impl<S: ReadSource> Reading<S> {
    /// Counts the parts of the names of the series that a [pattern](crate::SeriesPattern) selects. Reads the catalog
    /// entry of each; for all series, [`metrics`](Self::metrics), [`tag_keys`](Self::tag_keys) and
    /// [`tag_values`](Self::tag_values) read only the index of tags.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::Options;
    /// use tidalite::query::Names;
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for name in [r#"cpu.user{host="a"}"#, r#"cpu.user{host="b"}"#, r#"memory{host="a",bank="1"}"#] {
    ///     tx.series(name)?.insert("2014-06-01", 1.0)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let all = snap.names("")?;
    /// let begun = Names::beginning(&all.metrics, "cp").collect::<Vec<_>>();
    /// assert_eq!(begun, [("cpu.user", &2)]);
    /// assert_eq!(all.tags["host"]["a"], 2);
    /// assert!(!snap.names("cpu.*")?.tags.contains_key("bank"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Reading::list`].
    pub fn names(&self, pattern: &str) -> Result<Names> {
        let selected = self.list(pattern)?;
        Ok(Names::of(selected.iter().map(Arc::as_ref)))
    }
}

impl Names {
    /// Counts the parts of the names of these series.
    pub fn of<'i>(series: impl IntoIterator<Item = &'i SeriesInfo>) -> Self {
        let mut names = Self::default();
        for info in series {
            *names.units.entry(info.schema.unit).or_default() += 1;
            let Some(name) = &info.name else {
                continue;
            };
            *names.metrics.entry(name.metric().to_owned()).or_default() += 1;
            for (key, value) in name.tags() {
                let values = names.tags.entry(key.clone()).or_default();
                *values.entry(value.clone()).or_default() += 1;
            }
        }
        names
    }

    /// The map's keys that begin with `prefix`, ascending, to complete typed text.
    pub fn beginning<'w, T>(
        words: &'w BTreeMap<String, T>,
        prefix: &str,
    ) -> impl Iterator<Item = (&'w str, &'w T)> {
        let from = words.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(move |(word, _)| word.starts_with(prefix))
            .map(|(word, of)| (word.as_str(), of))
    }
}
