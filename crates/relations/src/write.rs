//! Changing the rows of a relation.
//!
//! Invariants:
//! 1. Each index has exactly one entry for each row: the columns of the index, followed by the primary key.
//! 2. No two rows have equal columns in a unique index, unless one of these columns is null.
//! 3. Errors other than `Store` are returned before the first change. After a `Store` error the transaction must be
//!    rolled back.

use crate::cell::Cell;
use crate::conflict::{NewRow, RowKeys};
use crate::error::{Conflict, Error, Result, damaged};
use crate::layout::{Layout, StoredIndex};
use crate::parts::{ROWS, index_key, write_layout};
use crate::read::RelationReader;
use crate::row_ref::RowKey;
use crate::schema::Column;
use std::sync::Arc;
use tidalite_kv::{Tree, change_part};
use tidalite_pager::PageWrite;

/// Write access to a relation. The caller stores the tree that it has passed.
pub struct RelationWriter<'a, W> {
    pub(crate) root: &'a mut Tree,
    pub(crate) w: &'a mut W,
    pub(crate) layout: Arc<Layout>,
}

impl<'a, W: PageWrite> RelationWriter<'a, W> {
    /// Creates a relation in an empty table.
    ///
    /// # Errors
    /// A full disk.
    pub fn create(
        root: &'a mut Tree,
        w: &'a mut W,
        layout: Arc<Layout>,
    ) -> tidalite_pager::Result<Self> {
        debug_assert!(root.is_empty(), "a relation is created in an empty table");
        write_layout(root, w, &layout)?;
        Ok(Self { root, w, layout })
    }

    /// Opens a relation with a layout that was read before.
    pub fn with_layout(root: &'a mut Tree, w: &'a mut W, layout: Arc<Layout>) -> Self {
        Self { root, w, layout }
    }

    /// The layout after the changes: the schema, with the places of its columns and indexes.
    #[must_use]
    pub fn into_layout(self) -> Arc<Layout> {
        self.layout
    }

    pub(crate) fn reader(&self) -> RelationReader<&W> {
        RelationReader::with_layout(self.root, &*self.w, Arc::clone(&self.layout))
    }

    /// Inserts a row with a value for each column; returns its key.
    ///
    /// # Errors
    /// `Unique`, `NotNull`, `Cell`, `Count`; `Store` with `Limit` for a key or a row that is too long. After these
    /// errors nothing has changed. A damaged page, a full disk.
    pub fn insert(&mut self, row: &[Cell]) -> Result<RowKey> {
        let new = self.reader().new_row(row)?;
        if let Some((conflict, _)) = self.reader().conflict_of(&new.keys, row, None)? {
            return Err(self.unique(conflict, row));
        }
        self.put_new(new)
    }

    /// Inserts a row with values for these columns only; the others get their defaults, or null.
    ///
    /// # Errors
    /// As for `insert`; `Schema` for an unknown column.
    pub fn insert_columns(&mut self, values: &[(&str, Cell)]) -> Result<RowKey> {
        let schema = &self.layout.schema;
        let default = |column: &Column| column.default.clone().unwrap_or_default();
        let mut row: Vec<Cell> = schema.columns.iter().map(default).collect();
        for (column, value) in values {
            row[schema.expect(column)?] = value.clone();
        }
        self.insert(&row)
    }

    /// Inserts a row, or replaces the row with the same primary key; returns whether it has replaced one.
    ///
    /// # Errors
    /// As for `insert`, but `Unique` only for unique indexes.
    pub fn upsert(&mut self, row: &[Cell]) -> Result<bool> {
        if self.layout.has_hidden_key() {
            return self.insert(row).map(|_| false);
        }
        let new = self.reader().new_row(row)?;
        if let Some(old) = self.keys_of(&new.keys.row)? {
            return self.replace(&old, &new, row).map(|()| true);
        }
        if let Some((conflict, _)) = self.reader().index_conflict(&new.keys, row, None)? {
            return Err(self.unique(conflict, row));
        }
        self.put_new(new).map(|_| false)
    }

    /// Replaces the row with this key; the new row may have another primary key. A hidden key does not change.
    ///
    /// # Errors
    /// `NoSuchRow`; otherwise as for `insert`.
    pub fn update(&mut self, key: &RowKey, row: &[Cell]) -> Result<()> {
        let mut new = self.reader().new_row(row)?;
        if self.layout.has_hidden_key() {
            new.keys.row.clone_from(&key.0);
        }
        match self.keys_of(&key.0)? {
            Some(old) => self.replace(&old, &new, row),
            None => Err(Error::NoSuchRow),
        }
    }

    /// Removes the row with this key; returns whether there was one.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn remove(&mut self, key: &RowKey) -> Result<bool> {
        let layout = Arc::clone(&self.layout);
        if layout.indexes.is_empty() {
            return Ok(self.change(&ROWS, &mut |w, table| table.remove(w, &key.0))?);
        }
        let Some(old) = self.keys_of(&key.0)? else {
            return Ok(false);
        };
        for (at, index) in layout.indexes.iter().enumerate() {
            self.remove_entry(index, &old.entry(at))?;
        }
        Ok(self.change(&ROWS, &mut |w, table| table.remove(w, &key.0))?)
    }

    /// Removes all rows. Hidden keys are not used again.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn clear(&mut self) -> Result<()> {
        let layout = Arc::clone(&self.layout);
        for index in &layout.indexes {
            self.change(&index_key(index.number), &mut |w, table| table.clear(w))?;
        }
        Ok(self.change(&ROWS, &mut |w, table| table.clear(w))?)
    }

    pub(crate) fn change<T>(
        &mut self,
        key: &[u8],
        f: &mut dyn FnMut(&mut W, &mut tidalite_kv::TableWriter) -> tidalite_pager::Result<T>,
    ) -> tidalite_pager::Result<T> {
        change_part(self.root, self.w, key, f)
    }

    #[cold]
    fn unique(&self, conflict: Conflict, row: &[Cell]) -> Error {
        let key = self.layout.conflict_text(&conflict, row);
        Error::Unique { conflict, key }
    }

    /// The keys of the row with this key and of its index entries; `None` if the row does not exist.
    fn keys_of(&self, key: &[u8]) -> tidalite_pager::Result<Option<RowKeys>> {
        let key = RowKey(key.to_vec());
        let row = self.reader().get_row(&key)?;
        Ok(row.map(|row| RowKeys::of(&self.layout, key.0, &row)))
    }

    /// Replaces a row, and its entries in those indexes whose columns change.
    fn replace(&mut self, old: &RowKeys, new: &NewRow, row: &[Cell]) -> Result<()> {
        let keys = &new.keys;
        if let Some((conflict, _)) = self.reader().conflict_of(keys, row, Some(old))? {
            return Err(self.unique(conflict, row));
        }
        let layout = Arc::clone(&self.layout);
        let is_moved = old.row != keys.row;
        for (at, index) in layout.indexes.iter().enumerate() {
            if is_moved || old.prefixes[at] != keys.prefixes[at] {
                self.remove_entry(index, &old.entry(at))?;
            }
        }
        self.change(&ROWS, &mut |w, table| {
            if is_moved {
                table.remove(w, &old.row)?;
            }
            table.insert(w, &keys.row, &new.value)
        })?;
        for (at, index) in layout.indexes.iter().enumerate() {
            if is_moved || old.prefixes[at] != keys.prefixes[at] {
                self.put_entry(index, &keys.entry(at))?;
            }
        }
        Ok(())
    }

    /// Stores a new row and its index entries; returns its key. A hidden key is assigned here.
    fn put_new(&mut self, mut new: NewRow) -> Result<RowKey> {
        let layout = Arc::clone(&self.layout);
        self.change(&ROWS, &mut |w, table| {
            if layout.has_hidden_key() {
                let number = table.take_sequence(1).ok_or_else(used_up)?;
                new.keys.row = number.to_be_bytes().to_vec();
            }
            table.insert(w, &new.keys.row, &new.value)
        })?;
        self.put_entries(&new.keys)?;
        Ok(RowKey(new.keys.row))
    }

    fn put_entries(&mut self, keys: &RowKeys) -> tidalite_pager::Result<()> {
        let layout = Arc::clone(&self.layout);
        let mut indexes = layout.indexes.iter().enumerate();
        indexes.try_for_each(|(at, index)| self.put_entry(index, &keys.entry(at)))
    }

    fn put_entry(&mut self, index: &StoredIndex, entry: &[u8]) -> tidalite_pager::Result<()> {
        self.change(&index_key(index.number), &mut |w, table| {
            table.insert(w, entry, &[]).map(drop)
        })
    }

    /// Adds a stored row to all indexes. If it conflicts with another row, removes it instead and returns false. A
    /// recovery calls this after it has emptied the indexes.
    pub(crate) fn index_again(
        &mut self,
        key: &RowKey,
        row: &[Cell],
    ) -> tidalite_pager::Result<bool> {
        let keys = RowKeys::of(&self.layout, key.0.clone(), row);
        if self.reader().index_conflict(&keys, row, None)?.is_some() {
            self.change(&ROWS, &mut |w, table| table.remove(w, &key.0))?;
            return Ok(false);
        }
        self.put_entries(&keys)?;
        Ok(true)
    }

    fn remove_entry(&mut self, index: &StoredIndex, entry: &[u8]) -> Result<()> {
        let key = index_key(index.number);
        match self.change(&key, &mut |w, table| table.remove(w, entry))? {
            true => Ok(()),
            false => Err(damaged("index of a relation", "no entry", entry.escape_ascii()).into()),
        }
    }
}

#[cold]
pub(crate) fn used_up() -> tidalite_pager::Error {
    tidalite_pager::Error::Limit {
        what: "rows that a relation has ever had",
        found: u64::MAX,
        limit: u64::MAX,
    }
}
