//! Checking a new row against the columns, the primary key and the unique indexes.

use crate::cell::Cell;
use crate::error::{Conflict, Error, Result};
use crate::layout::{ROW_BYTES_MAX, StoredIndex};
use crate::read::RelationReader;
use crate::row_ref::RowKey;
use tidalite_kv::KEY_BYTES_MAX;
use tidalite_pager::PageRead;

/// A checked row that is ready to be stored.
pub(crate) struct NewRow {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The columns of each index, without the primary key.
    pub(crate) prefixes: Vec<Vec<u8>>,
}

impl NewRow {
    pub(crate) fn entry(&self, index: usize) -> Vec<u8> {
        [&self.prefixes[index][..], &self.key[..]].concat()
    }
}

impl<R: PageRead> RelationReader<R> {
    /// The first rule that a row would break if it were inserted, and the row that it conflicts with.
    ///
    /// # Errors
    /// As for `insert`, without `Unique`.
    pub fn find_conflict(&self, row: &[Cell]) -> Result<Option<(Conflict, RowKey)>> {
        let new = self.new_row(row)?;
        self.conflict_of(&new, row, None)
    }

    /// Checks a row and encodes it. A hidden key is not known yet: the key has its length, and sorts after all others.
    pub(crate) fn new_row(&self, row: &[Cell]) -> Result<NewRow> {
        let layout = &self.layout;
        layout.check_row(row)?;
        let key = match layout.has_hidden_key() {
            true => vec![0xff; size_of::<u64>()],
            false => layout.key_of(row),
        };
        let value = layout.value_of(row);
        let indexes = layout.indexes.iter();
        let prefixes: Vec<Vec<u8>> = indexes.map(|one| layout.index_prefix(one, row)).collect();
        let longest = prefixes.iter().map(Vec::len).max().unwrap_or(0) + key.len();
        check_limit("bytes of a key of a relation", longest, KEY_BYTES_MAX)?;
        check_limit("bytes of a row of a relation", value.len(), ROW_BYTES_MAX)?;
        Ok(NewRow {
            key,
            value,
            prefixes,
        })
    }

    /// The first row, other than the one with the key `old`, with which a new row conflicts.
    pub(crate) fn conflict_of(
        &self,
        new: &NewRow,
        row: &[Cell],
        old: Option<&RowKey>,
    ) -> Result<Option<(Conflict, RowKey)>> {
        let is_moved = old.is_none_or(|old| old.0 != new.key);
        if is_moved && !self.layout.has_hidden_key() {
            let rows = self.rows_part()?;
            if rows.contains(&self.r, &new.key)? {
                return Ok(Some((Conflict::PrimaryKey, RowKey(new.key.clone()))));
            }
        }
        for (at, index) in self.layout.indexes.iter().enumerate() {
            if !index.unique || index.columns.iter().any(|&column| row[column].is_null()) {
                continue;
            }
            let found = self.holder(index, &new.prefixes[at])?;
            if let Some(found) = found.filter(|found| Some(found) != old) {
                let name = self.layout.schema.indexes[at].name.clone();
                return Ok(Some((Conflict::Index(name), found)));
            }
        }
        Ok(None)
    }

    /// The row with these columns in a unique index.
    fn holder(&self, index: &StoredIndex, prefix: &[u8]) -> Result<Option<RowKey>> {
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
