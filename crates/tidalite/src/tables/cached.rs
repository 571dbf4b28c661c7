//! A cached lookup, for repeated gets of one key.

use crate::tables::table::Table;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_base::TxnId;
use tidalite_kv::{CachedLookup, CachedPath};

/// The way in which the last call of [`CachedGet::get`] found its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cached {
    /// The table has not changed: nothing was read, and the cached result was returned.
    Hit,
    /// The table has changed, but not near the key: branches were read down to the first unchanged page, and the cached
    /// result was returned.
    Confirmed,
    /// The key was searched in the table, because there was no cached result or the table has changed near the key.
    #[default]
    Searched,
}

/// A get that caches its result together with the pages on the path to the result. In any version, older or newer, it
/// answers without a search if the table is unchanged, and by reading only the branches above the first unchanged page
/// if another part of the table has changed.
///
/// If the running write transaction has changed the table near the key, the key is searched each time; so are small
/// nested tables, which are part of a row. One `CachedGet` may be used with a nested table in pages of its own, and
/// with several tables in turn; the result always belongs to the given table.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// use tidalite::table::{Cached, CachedGet};
/// let mut tx = db.begin_write()?;
/// tx.table("limits")?.put(b"pressure", b"16")?;
/// tx.commit()?;
///
/// let mut limit = CachedGet::new(b"pressure");
/// for round in 0..3 {
///     let snap = db.begin_read()?;
///     let limits = snap.table("limits")?.ok_or("no table")?;
///     assert_eq!(limit.get(&limits)?, Some(&b"16"[..]));
///     assert_eq!(limit.cached() == Cached::Hit, round > 0);
///     // Other tables change.
///     let mut tx = db.begin_write()?;
///     tx.table("measured")?.put(&[round], b"8.5")?;
///     tx.commit()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// Memory for the key, the value, and 32 bytes per level.
#[derive(Clone, Debug, Default)]
pub struct CachedGet {
    key: Vec<u8>,
    /// The pages on the path to the cached result, and their versions.
    path: CachedPath,
    answer: Option<Vec<u8>>,
    cached: Cached,
}

impl CachedGet {
    /// Creates an empty cache for this key.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        Self {
            key: key.to_vec(),
            ..Self::default()
        }
    }

    /// The key that this cache looks up.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The way in which the last `get` found its result.
    #[must_use]
    pub fn cached(&self) -> Cached {
        self.cached
    }

    /// Returns the value of the key in this table, like [`Table::get`].
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the key holds a nested table. The cached result stays.
    pub fn get(&mut self, table: &Table<'_>) -> Result<Option<&[u8]>> {
        let (pages, tree) = table.parts();
        let Some(tree) = tree else {
            let answer = table.get(&self.key)?;
            self.keep(answer, CachedPath::default());
            return Ok(self.answer.as_deref());
        };
        // Pages newer than this commit belong to the transaction that is being read. It may still change them in place,
        // so they are not cached.
        let before = match pages {
            Pages::Snapshot(snap) => snap.txn(),
            Pages::Writer(txn) => txn.base_txn(),
            Pages::Uncommitted(read) => TxnId(read.txn().0.saturating_sub(1)),
        };
        if self.path.begins_at(tree, before) {
            self.cached = Cached::Hit;
            return Ok(self.answer.as_deref());
        }
        let found = tree.get_cached(&pages, &self.key, before, &self.path);
        match found.map_err(|error| table.error(error))? {
            (CachedLookup::Unchanged, path) => {
                self.path = path;
                self.cached = Cached::Confirmed;
            }
            (CachedLookup::Found(value), path) => {
                let answer = value.map(|value| value.to_vec()).transpose()?;
                self.keep(answer, path);
            }
        }
        Ok(self.answer.as_deref())
    }

    fn keep(&mut self, answer: Option<Vec<u8>>, path: CachedPath) {
        (self.answer, self.path) = (answer, path);
        self.cached = Cached::Searched;
    }
}
