//! Changing the schema of a relation.

use crate::relations::relation_mut::RelationMut;
use crate::types::error::Result;
use tidalite_relations::{Cell, Column, Index};

impl RelationMut<'_> {
    /// Adds a column after the others. In existing rows it has its default, or null.
    ///
    /// # Errors
    /// [`Schema`](crate::ErrorKind::Schema) if the name is taken or cannot be used, the default does not fit, there are
    /// too many columns, or the column must not be null and has no default although there are rows. Nothing has changed
    /// then.
    ///
    /// # Cost
    /// Writes the schema, but no row.
    pub fn add_column(&mut self, column: Column) -> Result<()> {
        self.change(|relation| relation.add_column(column))
    }

    /// Drops a column.
    ///
    /// # Errors
    /// [`Schema`](crate::ErrorKind::Schema) for an unknown column, one of the primary key or of an index, or the last
    /// one.
    ///
    /// # Cost
    /// Writes the schema, but no row. Each row keeps the bytes of the value until the row is next written.
    pub fn drop_column(&mut self, name: &str) -> Result<()> {
        self.change(|relation| relation.drop_column(name))
    }

    /// Renames a column, also in the primary key and in indexes.
    ///
    /// # Errors
    /// [`Schema`](crate::ErrorKind::Schema) for an unknown column, or a new name that is taken or cannot be used.
    ///
    /// # Cost
    /// Writes the schema, but no row.
    pub fn rename_column(&mut self, from: &str, to: &str) -> Result<()> {
        self.change(|relation| relation.rename_column(from, to))
    }

    /// Sets the default of a column, or removes it. Existing rows do not change.
    ///
    /// # Errors
    /// [`Schema`](crate::ErrorKind::Schema) for an unknown column, or a value that does not fit.
    pub fn set_default(&mut self, column: &str, default: Option<Cell>) -> Result<()> {
        self.change(|relation| relation.set_default(column, default))
    }

    /// Creates an index and fills it from the rows.
    ///
    /// # Errors
    /// [`UniqueViolation`](crate::ErrorKind::UniqueViolation) if rows conflict; [`Schema`](crate::ErrorKind::Schema)
    /// for an index that cannot be used. The relation has not changed then.
    ///
    /// # Cost
    /// Reads all rows and sorts the entries, in pieces of 64 MiB.
    pub fn create_index(&mut self, index: Index) -> Result<()> {
        self.change(|relation| relation.create_index(index))
    }

    /// Drops an index; returns false if no index has this name.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// Frees the pages of the index.
    pub fn drop_index(&mut self, name: &str) -> Result<bool> {
        self.free_space();
        self.change(|relation| relation.drop_index(name))
    }
}
