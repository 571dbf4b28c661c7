//! Gets that are asked again and again.

use crate::tables::table::Table;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_base::TxnId;
use tidalite_kv::{Again, Way};

/// What the last call of [`CachedGet::get`] had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cached {
    /// The table has not changed: nothing was read.
    Hit,
    /// The table has changed, but not where the key is: branches were read down to the first page that has not changed.
    Confirmed,
    /// It was looked for.
    #[default]
    Searched,
}

/// A get that remembers its answer together with the pages on the way to it. In whatever version it is asked, older or newer, it is
/// answered without a search where the table has not changed in between, and by the branches above what has not changed where something else has.
///
/// What a write transaction has changed itself is looked for each time, and so is what lies in a small nested table, which is a part of a row.
/// A nested table in pages of its own, and one table after the other, may be asked by the same `CachedGet`; it answers for the one it is given.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
/// use tidalite::{Cached, CachedGet};
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
/// Memory for the key, the value, and 32 bytes a level.
#[derive(Clone, Debug, Default)]
pub struct CachedGet {
    key: Vec<u8>,
    /// How the answer was found.
    way: Way,
    answer: Option<Vec<u8>>,
    cached: Cached,
}

impl CachedGet {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        Self {
            key: key.to_vec(),
            ..Self::default()
        }
    }

    /// The key that it asks for.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What the last `get` had to do.
    #[must_use]
    pub fn cached(&self) -> Cached {
        self.cached
    }

    /// The value of the key in this table, as [`Table::get`] gives it.
    ///
    /// # Errors
    /// A damaged or unreadable page; `IsTable` where a nested table is. What was known stays known.
    pub fn get(&mut self, table: &Table<'_>) -> Result<Option<&[u8]>> {
        let (pages, tree) = table.parts();
        let Some(tree) = tree else {
            let answer = table.get(&self.key)?;
            self.keep(answer, Way::default());
            return Ok(self.answer.as_deref());
        };
        // Later pages are the transaction's own.
        let before = match pages {
            Pages::Snapshot(snap) => snap.txn(),
            Pages::Writer(txn) => txn.base_txn(),
            Pages::Uncommitted(read) => TxnId(read.txn().0.saturating_sub(1)),
        };
        if self.way.begins_at(tree, before) {
            self.cached = Cached::Hit;
            return Ok(self.answer.as_deref());
        }
        let found = tree.get_again(&pages, &self.key, before, &self.way);
        match found.map_err(|error| table.error(error))? {
            (Again::Same, way) => {
                self.way = way;
                self.cached = Cached::Confirmed;
            }
            (Again::Found(value), way) => {
                let answer = value.map(|value| value.to_vec()).transpose()?;
                self.keep(answer, way);
            }
        }
        Ok(self.answer.as_deref())
    }

    fn keep(&mut self, answer: Option<Vec<u8>>, way: Way) {
        (self.answer, self.way) = (answer, way);
        self.cached = Cached::Searched;
    }
}
