//! Changing the schema of a relation. Only `create_index` and `drop_index` touch rows or entries.
//!
//! Invariants:
//! 1. `layout` changes only after everything has been stored, so it does not change if an error occurs.
//! 2. A new field is absent in all stored rows; its absent value is the default at the time when it was added. Rows
//!    that are written later store the field.

use crate::cell::Cell;
use crate::conflict::check_key_len;
use crate::error::{Conflict, Error, Result, unusable};
use crate::layout::{FIELDS_MAX, Field, Layout, Place, StoredIndex};
use crate::parts::{ROWS, index_key, write_layout};
use crate::row_ref::RowRef;
use crate::schema::{COLUMNS_MAX, Column, INDEXES_MAX, Index, check_name};
use crate::write::RelationWriter;
use std::sync::Arc;
use tidalite_kv::part;
use tidalite_pager::PageWrite;

/// Maximum bytes of index entries that are sorted at a time when an index is built.
#[cfg(not(test))]
const SORTED_BYTES_MAX: usize = 64 << 20;
#[cfg(test)]
const SORTED_BYTES_MAX: usize = 1 << 10;

/// The key of an index entry, and the length of its columns if no other entry may have equal columns, otherwise 0.
type NewEntry = (Vec<u8>, usize);

impl<W: PageWrite> RelationWriter<'_, W> {
    fn store(&mut self, layout: Layout) -> Result<()> {
        write_layout(self.root, self.w, &layout)?;
        self.layout = Arc::new(layout);
        Ok(())
    }

    /// Adds a column after the others. In existing rows it has its default, or null.
    ///
    /// # Errors
    /// `Schema` for a column that cannot be added: its name is taken, it is not null and has no default although rows
    /// exist, or there are too many columns.
    ///
    /// # Cost
    /// Writes the schema, but no row.
    pub fn add_column(&mut self, column: Column) -> Result<()> {
        column.check()?;
        let name = &column.name;
        if self.layout.schema.position(name).is_some() {
            return unusable(format!("there is a column {name} already"));
        }
        if self.layout.places.len() >= COLUMNS_MAX {
            return unusable(format!("at most {COLUMNS_MAX} columns can be"));
        }
        if self.layout.fields.len() >= FIELDS_MAX {
            return unusable(format!(
                "the relation has had {FIELDS_MAX} columns outside its key, the most that can be"
            ));
        }
        let absent = column.default.clone().unwrap_or_default();
        if column.not_null && absent.is_null() && self.reader().count()? > 0 {
            return unusable(format!(
                "column {name} must not be null, and has no default for the existing rows"
            ));
        }
        let mut layout = Layout::clone(&self.layout);
        layout.places.push(Place::Field(layout.fields.len()));
        layout.fields.push(Field {
            kind: column.kind,
            absent,
        });
        layout.schema.columns.push(column);
        self.store(layout)
    }

    /// Drops a column.
    ///
    /// # Errors
    /// `Schema` for an unknown column, one of the primary key or of an index, or the last one.
    ///
    /// # Cost
    /// Writes the schema, but no row. Rows keep the value until they are next written.
    pub fn drop_column(&mut self, name: &str) -> Result<()> {
        let at = self.layout.schema.expect(name)?;
        let Place::Field(field) = self.layout.places[at] else {
            return unusable(format!("column {name} is in the primary key"));
        };
        let indexes = self.layout.indexes.iter();
        if let Some(number) = indexes
            .clone()
            .position(|index| index.columns.contains(&at))
        {
            let index = &self.layout.schema.indexes[number].name;
            return unusable(format!("column {name} is in index {index}"));
        }
        if self.layout.places.len() == 1 {
            return unusable(format!("column {name} is the only one"));
        }
        let mut layout = Layout::clone(&self.layout);
        layout.schema.columns.remove(at);
        layout.places.remove(at);
        layout.fields[field].absent = Cell::Null;
        let indexes = layout.indexes.iter_mut();
        let columns = indexes.flat_map(|index| &mut index.columns);
        for place in columns.chain(&mut layout.key) {
            *place -= usize::from(*place > at);
        }
        self.store(layout)
    }

    /// Renames a column, also in the primary key and in indexes.
    ///
    /// # Errors
    /// `Schema` for an unknown column, or a name that is taken or cannot be used.
    ///
    /// # Cost
    /// Writes the schema, but no row.
    pub fn rename_column(&mut self, from: &str, to: &str) -> Result<()> {
        check_name("column", to)?;
        let at = self.layout.schema.expect(from)?;
        if from == to {
            return Ok(());
        }
        if self.layout.schema.position(to).is_some() {
            return unusable(format!("there is a column {to} already"));
        }
        let mut layout = Layout::clone(&self.layout);
        let schema = &mut layout.schema;
        to.clone_into(&mut schema.columns[at].name);
        let indexes = schema.indexes.iter_mut();
        let names = indexes.flat_map(|index| &mut index.columns);
        for name in names.chain(&mut schema.primary_key) {
            if name == from {
                to.clone_into(name);
            }
        }
        self.store(layout)
    }

    /// Sets or removes the default of a column, for later rows.
    ///
    /// # Errors
    /// `Schema` for an unknown column or a value that does not fit the column.
    pub fn set_default(&mut self, name: &str, default: Option<Cell>) -> Result<()> {
        let at = self.layout.schema.expect(name)?;
        let mut layout = Layout::clone(&self.layout);
        layout.schema.columns[at].default = default;
        layout.schema.columns[at].check()?;
        self.store(layout)
    }

    /// Creates an index and fills it from the rows.
    ///
    /// # Errors
    /// `Schema` for an index that cannot be used; `Unique` if rows conflict. After these errors the relation is
    /// unchanged.
    ///
    /// # Cost
    /// Reads all rows, and sorts the entries in pieces of 64 MiB.
    pub fn create_index(&mut self, index: Index) -> Result<()> {
        let columns = self.layout.schema.index_positions(&index)?;
        let name = &index.name;
        if self.layout.index(name).is_ok() {
            return unusable(format!("there is an index {name} already"));
        }
        if self.layout.indexes.len() >= INDEXES_MAX {
            return unusable(format!("at most {INDEXES_MAX} indexes can be"));
        }
        let number = self.layout.next_index;
        let Some(next_index) = number.checked_add(1).filter(|next| *next < u32::MAX) else {
            return unusable("the numbers of indexes are used up");
        };
        let stored = StoredIndex { number, columns };
        let mut layout = Layout::clone(&self.layout);
        layout.next_index = next_index;
        layout.schema.indexes.push(index);
        layout.indexes.push(stored);
        self.fill_index(&layout)?;
        self.store(layout)
    }

    /// Drops an index; returns false if no index has this name.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// Frees the pages of the index.
    pub fn drop_index(&mut self, name: &str) -> Result<bool> {
        let Ok(at) = self.layout.index(name) else {
            return Ok(false);
        };
        let mut layout = Layout::clone(&self.layout);
        layout.schema.indexes.remove(at);
        let dropped = layout.indexes.remove(at);
        self.root.remove(self.w, &index_key(dropped.number))?;
        self.store(layout)?;
        Ok(true)
    }

    /// Writes the entries of the last index of `layout`. If rows conflict, removes the entries again and returns the
    /// error.
    pub(crate) fn fill_index(&mut self, layout: &Layout) -> Result<()> {
        let Some((described, index)) = layout.each_index().last() else {
            return Ok(());
        };
        let key = index_key(index.number);
        let mut from = Some(Vec::new());
        while let Some(start) = from.take() {
            let filled = match self.entries_from(layout, (described, index), &start) {
                Ok((entries, next)) => {
                    from = next;
                    self.add_entries(layout, (described, index), entries)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = filled {
                self.root.remove(self.w, &key)?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The sorted index entries of some rows, beginning at a key, and the key of the row at which to continue.
    fn entries_from(
        &self,
        layout: &Layout,
        (described, index): (&Index, &StoredIndex),
        from: &[u8],
    ) -> Result<(Vec<NewEntry>, Option<Vec<u8>>)> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut next = None;
        let mut cursor = part(self.root, &*self.w, &ROWS)?.cursor(&*self.w)?;
        let mut there = cursor.seek_ge(from)?;
        while there {
            if bytes >= SORTED_BYTES_MAX {
                next = Some(cursor.key().to_vec());
                break;
            }
            let value = cursor.value()?;
            let value = value.bytes()?;
            let row = RowRef::open(layout, cursor.key(), &value)?.to_cells()?;
            let mut entry = layout.index_prefix(index, &row);
            let is_exempt = !described.unique || index.columns.iter().any(|&at| row[at].is_null());
            let columns = if is_exempt { 0 } else { entry.len() };
            entry.extend_from_slice(cursor.key());
            check_key_len(entry.len())?;
            bytes += entry.len() + size_of::<NewEntry>();
            entries.push((entry, columns));
            there = cursor.next()?;
        }
        entries.sort_unstable();
        Ok((entries, next))
    }

    /// Adds sorted entries to an index; returns an error if another entry already has the columns of one of them.
    fn add_entries(
        &mut self,
        layout: &Layout,
        (described, index): (&Index, &StoredIndex),
        entries: Vec<NewEntry>,
    ) -> Result<()> {
        let key = index_key(index.number);
        let is_same =
            |one: &NewEntry, other: &[u8]| one.1 > 0 && other.starts_with(&one.0[..one.1]);
        let pairs = entries.windows(2);
        let mut taken = pairs
            .filter(|pair| is_same(&pair[0], &pair[1].0))
            .map(|pair| &pair[0]);
        let mut conflict = taken.next().cloned();
        let before = part(self.root, &*self.w, &key)?;
        if conflict.is_none() && described.unique && !before.is_empty() {
            let mut cursor = before.cursor(&*self.w)?;
            for entry in entries.iter().filter(|entry| entry.1 > 0) {
                if cursor.seek_ge(&entry.0[..entry.1])? && is_same(entry, cursor.key()) {
                    conflict = Some(entry.clone());
                    break;
                }
            }
        }
        if let Some((entry, columns)) = conflict {
            return Err(self.conflict_in(layout, &entry[columns..])?);
        }
        self.change(&key, &mut |w, table| match table.is_empty() {
            true => table
                .extend(w, entries.iter().map(|(entry, _)| (entry, [])))
                .map(drop),
            false => entries
                .iter()
                .try_for_each(|(entry, _)| table.insert(w, entry, &[]).map(drop)),
        })?;
        Ok(())
    }

    /// The error for the row with this key, which has the same values as another row in the columns of the last index
    /// of `layout`.
    #[cold]
    fn conflict_in(&self, layout: &Layout, key: &[u8]) -> Result<Error> {
        let name = layout.schema.indexes.last().map(|index| index.name.clone());
        let conflict = Conflict::Index(name.unwrap_or_default());
        let value = part(self.root, &*self.w, &ROWS)?.get(&*self.w, key)?;
        let key = match &value {
            Some(value) => {
                let row = RowRef::open(layout, key, &value.bytes()?)?.to_cells()?;
                layout.conflict_text(&conflict, &row)
            }
            None => String::new(),
        };
        Ok(Error::Unique { conflict, key })
    }
}
