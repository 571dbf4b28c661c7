//! Additions to sets and removals from them, collected in memory until `apply` stores them. Many changes of one
//! container then rewrite it only once.

/// Changes of sets, in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub(crate) changes: Vec<Change>,
}

/// One number added to a set or removed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) key: Box<[u8]>,
    pub(crate) number: u64,
    pub(crate) add: bool,
}

impl Changes {
    /// Adds `number` to the set of `key`.
    pub fn add(&mut self, key: &[u8], number: u64) {
        self.push(key, number, true);
    }

    /// Removes `number` from the set of `key`.
    pub fn remove(&mut self, key: &[u8], number: u64) {
        self.push(key, number, false);
    }

    fn push(&mut self, key: &[u8], number: u64, add: bool) {
        let key = key.into();
        self.changes.push(Change { key, number, add });
    }

    /// Number of changes that are not stored yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if there are no changes to store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Discards all changes.
    pub fn clear(&mut self) {
        self.changes.clear();
    }
}
