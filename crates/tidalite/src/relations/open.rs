//! Opening and creating relations, in a snapshot or in a write transaction.

use crate::relations::refusal::refused;
use crate::relations::relation::Relation;
use crate::relations::relation_mut::RelationMut;
use crate::tables::open_types::expect_untyped;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::table_types::TableLayout;
use std::sync::{Arc, OnceLock};
use tidalite_relations::{Layout, RelationReader, RelationWriter, Schema};

const LAYOUT: TableLayout = TableLayout::Relation;

impl<S: ReadSource> Reading<S> {
    /// Opens the relation with this name; returns `None` if it does not exist.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; a damaged or unreadable page.
    pub fn relation(&self, name: &str) -> Result<Option<Relation<'_>>> {
        let found = self.find_untyped(name, LAYOUT)?;
        found
            .map(|found| Relation::of(self.pages.view(), found))
            .transpose()
    }
}

impl WriteTxn {
    /// Creates a relation: a table with typed columns, a primary key and secondary indexes.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::relation::{Cell, CellRef, Column, ColumnType, Index, KeyBounds, Schema};
    ///
    /// let schema = Schema::new()
    ///     .column(Column::new("id", ColumnType::I64))
    ///     .column(Column::new("name", ColumnType::Text).not_null())
    ///     .column(Column::new("power", ColumnType::F64).default(0.0))
    ///     .primary_key(["id"])
    ///     .index(Index::new("by_name", ["name"]).unique());
    /// let mut tx = db.begin_write()?;
    /// let mut turbines = tx.create_relation("turbines", &schema)?;
    /// turbines.insert(&[Cell::I64(7), Cell::from("R7"), Cell::F64(1800.0)])?;
    /// turbines.insert_columns(&[("id", Cell::I64(8)), ("name", Cell::from("R8"))])?;
    /// // Another row has this name: nothing is changed, and the transaction continues.
    /// let refused = turbines.insert(&[Cell::I64(9), Cell::from("R8"), Cell::Null]);
    /// assert!(refused.is_err_and(|error| error.kind() == tidalite::ErrorKind::UniqueViolation));
    /// tx.commit()?;
    ///
    /// let snap = db.begin_read()?;
    /// let turbines = snap.relation("turbines")?.ok_or("no relation")?;
    /// assert_eq!(turbines.get(&[Cell::I64(8)])?.ok_or("no row")?[2], Cell::F64(0.0));
    /// let mut rows = turbines.rows_by("by_name", KeyBounds::all())?.rev();
    /// let first = rows.next()?.ok_or("no row")?;
    /// assert_eq!(first.cell(1)?, CellRef::Text("R8"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) if a table has this name; `InvalidName` for an empty or too
    /// long name; [`Schema`](crate::ErrorKind::Schema) for a schema that cannot be used. Nothing has changed then.
    /// `Broken`; errors of the file.
    pub fn create_relation(&mut self, name: &str, schema: &Schema) -> Result<RelationMut<'_>> {
        if self.find(name)?.is_some() {
            let table = name.to_owned();
            return Err(Error::from(Cause::TableExists { table }));
        }
        let layout = Layout::of(schema.clone()).map_err(|error| refused(name, error))?;
        let layout = Arc::new(layout);
        let index = self.create_untyped(name, LAYOUT, |tree, pages| {
            RelationWriter::create(tree, pages, Arc::clone(&layout)).map(drop)
        })?;
        self.note_layout(index, &layout);
        Ok(RelationMut::new(self, index, layout))
    }

    /// Opens an existing relation for changes; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; `Broken`; errors of the file.
    pub fn relation_mut(&mut self, name: &str) -> Result<Option<RelationMut<'_>>> {
        let Some(index) = self.open_untyped(name, LAYOUT)? else {
            return Ok(None);
        };
        let place = &self.tables[index].layout;
        let layout = match place.get() {
            Some(layout) => Arc::clone(layout),
            None => {
                let (tree, pages) = self.table_tree(index)?;
                let layout = RelationReader::open(tree, pages)?.into_layout();
                Arc::clone(place.get_or_init(|| layout))
            }
        };
        Ok(Some(RelationMut::new(self, index, layout)))
    }

    /// Keeps the new schema of an open relation, and counts the change.
    pub(super) fn note_layout(&mut self, index: usize, layout: &Arc<Layout>) {
        self.tables[index].layout = OnceLock::from(Arc::clone(layout));
        self.note_relations();
    }

    /// A view of a relation in its current state, including the writes of this transaction; returns `None`, and creates
    /// nothing, if it does not exist. Any number of tables can be read at the same time until the transaction makes a
    /// change.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; `Broken`; a damaged or unreadable page.
    pub fn view_relation(&self, name: &str) -> Result<Option<Relation<'_>>> {
        let Some(found) = self.find(name)? else {
            return Ok(None);
        };
        expect_untyped(name, found.types.as_deref(), LAYOUT)?;
        Relation::of(self.pages_view(), found).map(Some)
    }
}
