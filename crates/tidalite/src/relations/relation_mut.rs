//! A relation, for changes to its rows.

use crate::relations::refusal::refused;
use crate::relations::relation::Relation;
use crate::tables::open_write::Found;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::sync::Arc;
use tidalite_pager::WriteTxn as PagesMut;
use tidalite_relations::{
    Cell, Conflict, Error as Refusal, Layout, RelationReader, RelationWriter, RowKey, Schema,
};

/// A relation in a write transaction, for changes. [`WriteTxn::create_relation`](crate::WriteTxn::create_relation) and
/// [`WriteTxn::relation_mut`](crate::WriteTxn::relation_mut) open it.
///
/// A refused row or change of the schema changes nothing, and the transaction continues.
pub struct RelationMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
    layout: Arc<Layout>,
}

impl<'t> RelationMut<'t> {
    pub(super) fn new(txn: &'t mut WriteTxn, index: usize, layout: Arc<Layout>) -> Self {
        Self { txn, index, layout }
    }

    pub(super) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut RelationWriter<'_, PagesMut>) -> Result<T, Refusal>,
    ) -> Result<T> {
        let layout = Arc::clone(&self.layout);
        let (done, layout) = self.txn.change_table(self.index, |tree, pages| {
            let mut writer = RelationWriter::with_layout(tree, pages, layout);
            match change(&mut writer) {
                Err(Refusal::Store(error)) => Err(error),
                done => Ok((done, writer.into_layout())),
            }
        })?;
        if !Arc::ptr_eq(&layout, &self.layout) {
            self.txn.note_layout(self.index, &layout);
            self.layout = layout;
        }
        done.map_err(|error| refused(self.txn.table_name(self.index), error))
    }

    pub(super) fn free_space(&mut self) {
        self.txn.free_space();
    }

    fn reader(&self) -> Result<RelationReader<&PagesMut>> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        let layout = Arc::clone(&self.layout);
        Ok(RelationReader::with_layout(tree, pages, layout))
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.layout.schema()
    }

    /// A view of the relation in its current state, for reading.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn view(&self) -> Result<Relation<'_>> {
        self.txn.check_usable()?;
        let found = Found::open(&self.txn.tables[self.index]);
        Relation::of(self.txn.pages_view(), found)
    }

    /// Inserts a row with a value for each column, in the order of the schema; returns its key.
    ///
    /// # Errors
    /// [`UniqueViolation`](crate::ErrorKind::UniqueViolation),
    /// [`NotNullViolation`](crate::ErrorKind::NotNullViolation); [`Schema`](crate::ErrorKind::Schema) for a value that
    /// does not fit its column; `Limit` for a key or a row that is too long. Nothing has changed then. A damaged page,
    /// a full disk.
    ///
    /// # Cost
    /// A descent for the row, and one or two for each index.
    pub fn insert(&mut self, row: &[Cell]) -> Result<RowKey> {
        self.change(|relation| relation.insert(row))
    }

    /// Inserts many rows, all or none; returns their keys, in the order of the rows.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert), also if rows of the batch conflict with each other. Nothing has changed then.
    ///
    /// # Cost
    /// Less for each row than [`insert`](Self::insert), especially for primary keys that ascend and follow the stored
    /// ones, and for hidden keys. The encoded rows are in memory.
    pub fn insert_many<R: AsRef<[Cell]>>(&mut self, rows: &[R]) -> Result<Vec<RowKey>> {
        self.change(|relation| relation.insert_many(rows))
    }

    /// Inserts a row with values for these columns only; the others get their defaults, or null.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert); [`Schema`](crate::ErrorKind::Schema) for an unknown column.
    pub fn insert_columns(&mut self, values: &[(&str, Cell)]) -> Result<RowKey> {
        self.change(|relation| relation.insert_columns(values))
    }

    /// Inserts a row, or replaces the row with the same primary key; returns whether it has replaced one. A relation
    /// with a hidden key always gets a new row.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert); only unique indexes are violated.
    pub fn upsert(&mut self, row: &[Cell]) -> Result<bool> {
        self.change(|relation| relation.upsert(row))
    }

    /// The first rule of uniqueness that inserting this row would violate, and the existing row that it conflicts with;
    /// `None` if it can be inserted.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert), without `UniqueViolation`.
    pub fn find_conflict(&self, row: &[Cell]) -> Result<Option<(Conflict, RowKey)>> {
        let found = self.reader()?.find_conflict(row);
        found.map_err(|error| refused(self.txn.table_name(self.index), error))
    }

    /// Replaces the row with this key. The new row may have another primary key; a hidden key does not change.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such row; otherwise as for [`insert`](Self::insert).
    ///
    /// # Cost
    /// As for an insert; indexes whose columns keep their values are not touched.
    pub fn update(&mut self, key: &RowKey, row: &[Cell]) -> Result<()> {
        self.change(|relation| relation.update(key, row))
    }

    /// Removes the row with this key; returns whether there was one.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn remove(&mut self, key: &RowKey) -> Result<bool> {
        self.txn.free_space();
        self.change(|relation| relation.remove(key))
    }

    /// Removes all rows. Hidden keys are not used again.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn clear(&mut self) -> Result<()> {
        self.txn.free_space();
        self.change(|relation| relation.clear())
    }
}
