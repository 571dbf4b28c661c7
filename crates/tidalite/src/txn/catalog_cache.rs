//! Cache of decoded catalog entries, shared by snapshots of one catalog version: opening thousands of series again
//! needs neither the two tree lookups nor the decoding of names and columns. A snapshot first takes over entries that
//! the writer of that version had decoded.
//!
//! Invariants
//! 1. All entries belong to one version of the catalog; a snapshot of another version gets another `CatalogCache`.
//! 2. The absence of a series is not cached: it is looked up each time.
//! 3. There are at most `ENTRIES_MAX` entries per
//!    kind of key.

use crate::catalog::entries::SeriesInfo;
use crate::catalog::roots::{Catalog, Roots};
use crate::txn::open_series::WriterSeries;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, PoisonError, RwLock};
use tidalite_base::{SeriesId, checksum};

/// Maximum number of entries per kind of key; an entry takes a few hundred bytes. A full cache of names or GUIDs is
/// emptied.
const ENTRIES_MAX: usize = 1 << 16;

/// The decoded entries of one version of the catalog.
pub(crate) struct CatalogCache {
    catalog: Catalog,
    entries: RwLock<Entries>,
    /// The series that the writer of this version had open, with their decoded entries.
    writer_series: Arc<WriterSeries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// The entries by name, as the caller wrote it: a series name can be written in several ways.
    by_name: HashMap<Box<str>, Arc<SeriesInfo>>,
    by_guid: HashMap<[u8; 16], Arc<SeriesInfo>, BuildHasherDefault<GuidHasher>>,
    by_id: HashMap<SeriesId, Arc<SeriesInfo>>,
}

/// A hasher for the bytes of a GUID; the standard hasher takes three times as long.
#[derive(Debug, Default)]
struct GuidHasher(u64);

impl Hasher for GuidHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= checksum(bytes);
    }

    /// The length is ignored, because it is the same for all GUIDs.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A version of the list of series, with their names, tags and columns, and of the schemas of relations. A program that
/// has derived something from these need not derive it again while
/// [`ReadTxn::catalog_version`](crate::ReadTxn::catalog_version) is the same. Two versions may differ although their
/// lists are equal.
///
/// ```
/// # use std::sync::Arc;
/// # use tidalite::{Options, storage::MemoryStorage};
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// tx.series("wind")?.insert("2014-06-01", 7.5)?;
/// tx.commit()?;
/// let version = db.begin_read()?.catalog_version();
/// let mut tx = db.begin_write()?;
/// tx.series("wind")?.insert("2014-06-02", 6.0)?;
/// tx.commit()?;
/// assert!(db.begin_read()?.catalog_version() == version);
/// let mut tx = db.begin_write()?;
/// tx.series("power")?;
/// tx.commit()?;
/// assert!(db.begin_read()?.catalog_version() != version);
/// # Ok::<(), tidalite::Error>(())
/// ```
#[derive(Clone)]
pub struct CatalogVersion(pub(super) Arc<CatalogCache>);

impl PartialEq for CatalogVersion {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CatalogVersion {}

impl CatalogCache {
    /// Creates an empty cache for the version of the catalog in `roots`.
    pub(crate) fn new(roots: &Roots, writer_series: Arc<WriterSeries>) -> Self {
        Self {
            catalog: roots.catalog(),
            entries: RwLock::default(),
            writer_series,
        }
    }

    /// Whether the version of the catalog in `roots` is the one that this cache is for.
    pub(crate) fn is_of(&self, roots: &Roots) -> bool {
        self.catalog == roots.catalog()
    }

    /// The entry of a series, if the writer of this version had the series open.
    pub(crate) fn written(&self, id: SeriesId) -> Option<Arc<SeriesInfo>> {
        self.writer_series.info(&self.catalog, id)
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<SeriesInfo>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.by_name.get(name).cloned()
    }

    pub(crate) fn by_guid(&self, guid: &[u8; 16]) -> Option<Arc<SeriesInfo>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.by_guid.get(guid).cloned()
    }

    pub(crate) fn by_id(&self, id: SeriesId) -> Option<Arc<SeriesInfo>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.by_id.get(&id).cloned()
    }

    /// Keeps an entry, unless the cache is full: patterns that select many series would empty it again and again, which
    /// costs more than decoding the entries.
    pub(crate) fn note_id(&self, info: &Arc<SeriesInfo>) {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let is_full = entries.by_id.len() >= ENTRIES_MAX;
        drop(entries);
        if !is_full {
            let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
            entries.by_id.insert(info.id, Arc::clone(info));
        }
    }

    pub(crate) fn note_name(&self, name: &str, info: &Arc<SeriesInfo>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.by_name.len() >= ENTRIES_MAX {
            entries.by_name.clear();
        }
        entries.by_name.insert(name.into(), Arc::clone(info));
    }

    pub(crate) fn note_guid(&self, guid: &[u8; 16], info: &Arc<SeriesInfo>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.by_guid.len() >= ENTRIES_MAX {
            entries.by_guid.clear();
        }
        entries.by_guid.insert(*guid, Arc::clone(info));
    }
}

#[cfg(test)]
mod tests {
    use crate::Steps;
    use crate::storage::MemoryStorage;
    use crate::{Options, Schema};
    use std::sync::Arc;

    const NAME: &str = r#"a{x="1"}"#;

    #[test]
    fn a_snapshot_knows_the_series_of_its_own_version() {
        let options = Options::new();
        let db = options
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let guid = [7; 16];
        let mut txn = db.begin_write().unwrap();
        txn.series(NAME).unwrap().insert(Steps(1), 1.0).unwrap();
        txn.series_of_guid(guid, &Schema::point()).unwrap();
        txn.commit().unwrap();

        let first = db.begin_read().unwrap();
        let id = first.series(NAME).unwrap().unwrap().id();
        let known = first.cache.catalog.by_name(NAME).unwrap();
        let written = first.cache.catalog.written(id).unwrap();
        assert!(Arc::ptr_eq(&known, &written), "the writer had it");
        // The same name, spelled differently, gives the same series.
        assert_eq!(first.series(r#"a{ x = "1" }"#).unwrap().unwrap().id(), id);
        assert!(first.series("b").unwrap().is_none());
        let by_guid = first.series_of_guid(&guid).unwrap().unwrap().id();
        assert!(first.series_of_guid(&[8; 16]).unwrap().is_none());

        // A commit that only adds rows does not change the catalog, so the cache is still valid.
        let mut txn = db.begin_write().unwrap();
        txn.series(NAME).unwrap().insert(Steps(2), 2.0).unwrap();
        txn.commit().unwrap();
        let second = db.begin_read().unwrap();
        assert!(Arc::ptr_eq(&first.cache.catalog, &second.cache.catalog));
        assert_eq!(second.series(NAME).unwrap().unwrap().count().unwrap(), 2);
        assert_eq!(first.series(NAME).unwrap().unwrap().count().unwrap(), 1);

        // Only later snapshots see a rename or a removal.
        let mut txn = db.begin_write().unwrap();
        txn.rename_series(id, "b").unwrap();
        assert!(txn.remove_series_by_id(by_guid).unwrap());
        txn.commit().unwrap();
        let third = db.begin_read().unwrap();
        assert!(third.series(NAME).unwrap().is_none());
        assert_eq!(third.series("b").unwrap().unwrap().id(), id);
        assert!(third.series_of_guid(&guid).unwrap().is_none());
        assert!(third.series_by_id(by_guid).unwrap().is_none());
        assert!(
            first.cache.catalog.written(id).is_none(),
            "of another catalog"
        );
        assert_eq!(second.series(NAME).unwrap().unwrap().id(), id);
        assert!(second.series("b").unwrap().is_none());
        assert_eq!(second.series_of_guid(&guid).unwrap().unwrap().id(), by_guid);
    }
}
