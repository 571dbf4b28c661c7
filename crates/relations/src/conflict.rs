//! Checking a new row against the columns, the primary key and the unique indexes.

use crate::cell::Cell;
use crate::error::{Conflict, Error, Result};
use crate::layout::{Layout, ROW_BYTES_MAX, StoredIndex};
use crate::read::RelationReader;
use crate::row_ref::RowKey;
use tidalite_kv::KEY_BYTES_MAX;
use tidalite_pager::PageRead;

/// The keys with which a row is stored: its own key, and the keys of its index entries.
pub(crate) struct RowKeys {
    /// The primary key or the hidden key.
    pub(crate) row: Vec<u8>,
    /// The columns of each index, without the primary key.
    pub(crate) prefixes: Vec<Vec<u8>>,
}

impl RowKeys {
    /// The keys of a row that has been checked.
    pub(crate) fn of(layout: &Layout, key: Vec<u8>, row: &[Cell]) -> Self {
        let indexes = layout.indexes.iter();
        Self {
            row: key,
            prefixes: indexes.map(|one| layout.index_prefix(one, row)).collect(),
        }
    }

    /// The key of the row's entry in the index at this position.
    pub(crate) fn entry(&self, index: usize) -> Vec<u8> {
        [&self.prefixes[index][..], &self.row[..]].concat()
    }
}

/// A checked row that is ready to be stored.
pub(crate) struct NewRow {
    pub(crate) keys: RowKeys,
    pub(crate) value: Vec<u8>,
}

impl<R: PageRead> RelationReader<R> {
    /// The first rule of uniqueness that inserting a row would violate, and the row that it conflicts with.
    ///
    /// # Errors
    /// As for `insert`, except `Unique`.
    pub fn find_conflict(&self, row: &[Cell]) -> Result<Option<(Conflict, RowKey)>> {
        let new = self.new_row(row)?;
        Ok(self.conflict_of(&new.keys, row, None)?)
    }

    /// Checks a row and encodes it. If the key is hidden, it is not known yet: a placeholder with the same length is
    /// used, which sorts after all other keys.
    pub(crate) fn new_row(&self, row: &[Cell]) -> Result<NewRow> {
        let layout = &self.layout;
        layout.check_row(row)?;
        let key = match layout.has_hidden_key() {
            true => vec![0xff; size_of::<u64>()],
            false => layout.key_of(row),
        };
        let value = layout.value_of(row);
        let keys = RowKeys::of(layout, key, row);
        let prefixes = keys.prefixes.iter();
        let longest = prefixes.map(Vec::len).max().unwrap_or(0) + keys.row.len();
        check_key_len(longest)?;
        check_limit("bytes of a row of a relation", value.len(), ROW_BYTES_MAX)?;
        Ok(NewRow { keys, value })
    }

    /// The first rule of uniqueness that a new row violates, and the row that it conflicts with. `old` contains the
    /// keys of the row that it replaces.
    pub(crate) fn conflict_of(
        &self,
        new: &RowKeys,
        row: &[Cell],
        old: Option<&RowKeys>,
    ) -> tidalite_pager::Result<Option<(Conflict, RowKey)>> {
        let is_moved = old.is_none_or(|old| old.row != new.row);
        if is_moved && !self.layout.has_hidden_key() {
            let rows = self.rows_part()?;
            if rows.contains(&self.r, &new.row)? {
                return Ok(Some((Conflict::PrimaryKey, RowKey(new.row.clone()))));
            }
        }
        self.index_conflict(new, row, old)
    }

    /// Like `conflict_of`, without the primary key. An index whose columns do not change is not searched, because its
    /// entry belongs to the row that is replaced.
    pub(crate) fn index_conflict(
        &self,
        new: &RowKeys,
        row: &[Cell],
        old: Option<&RowKeys>,
    ) -> tidalite_pager::Result<Option<(Conflict, RowKey)>> {
        for (at, (described, index)) in self.layout.each_index().enumerate() {
            let is_exempt = || index.columns.iter().any(|&column| row[column].is_null());
            let is_kept = || old.is_some_and(|old| old.prefixes[at] == new.prefixes[at]);
            if !described.unique || is_exempt() || is_kept() {
                continue;
            }
            if let Some(found) = self.holder(index, &new.prefixes[at])? {
                return Ok(Some((Conflict::Index(described.name.clone()), found)));
            }
        }
        Ok(None)
    }

    /// The row that has these columns in a unique index.
    fn holder(&self, index: &StoredIndex, prefix: &[u8]) -> tidalite_pager::Result<Option<RowKey>> {
        let entries = self.index_part(index.number)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let mut cursor = entries.cursor(&self.r)?;
        if !cursor.seek_ge(prefix)? {
            return Ok(None);
        }
        let key = cursor.key().strip_prefix(prefix);
        Ok(key.map(|key| RowKey(key.to_vec())))
    }
}

/// Checks the length of a row key or of an index key.
pub(crate) fn check_key_len(found: usize) -> Result<()> {
    check_limit("bytes of a key of a relation", found, KEY_BYTES_MAX)
}

fn check_limit(what: &'static str, found: usize, limit: usize) -> Result<()> {
    match found > limit {
        true => Err(Error::Store(tidalite_pager::Error::Limit {
            what,
            found: found as u64,
            limit: limit as u64,
        })),
        false => Ok(()),
    }
}
