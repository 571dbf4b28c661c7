//! Iterating over the rows of a relation.

use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_relations::{Cell, CellRef, RowKey};

/// Rows of a relation, in the order of its primary key or of an index.
/// [`Relation::rows`](crate::relation::Relation::rows) and [`Relation::rows_by`](crate::relation::Relation::rows_by)
/// return them.
///
/// Each row is borrowed until the next one is requested: texts and bytes are not copied.
pub struct Rows<'a>(pub(super) tidalite_relations::Rows<'a, Pages<'a>>);

impl Rows<'_> {
    /// Reverses the order: the last row comes first. Call it before the first [`next`](Self::next).
    #[must_use]
    pub fn rev(self) -> Self {
        Self(self.0.rev())
    }

    /// The next row; `None` after the last one.
    ///
    /// # Errors
    /// A damaged or unreadable page. There are no rows after an error.
    #[expect(
        clippy::should_implement_trait,
        reason = "the row borrows the iterator"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<RowRef<'_>>> {
        Ok(self.0.next()?.map(RowRef))
    }
}

/// A row of a relation. Only the requested cells are decoded.
pub struct RowRef<'a>(pub(super) tidalite_relations::RowRef<'a>);

impl RowRef<'_> {
    /// The row's key, with which it can be found again.
    #[must_use]
    pub fn key(&self) -> RowKey {
        self.0.key()
    }

    /// The bytes of the row's key, borrowed: see [`RowKey::as_bytes`].
    #[must_use]
    pub fn key_bytes(&self) -> &[u8] {
        self.0.key_bytes()
    }

    /// The value of the column at this position of the schema.
    ///
    /// # Errors
    /// Damaged bytes, if they are no value of the column's type.
    ///
    /// # Panics
    /// If there is no such column.
    ///
    /// # Cost
    /// Skips the columns before this one. It is faster to read cells in the order of the columns.
    #[inline]
    pub fn cell(&self, column: usize) -> Result<CellRef<'_>> {
        Ok(self.0.cell(column)?)
    }

    /// All values, in the order of the columns.
    ///
    /// # Errors
    /// As for [`cell`](Self::cell).
    pub fn to_cells(&self) -> Result<Vec<Cell>> {
        Ok(self.0.to_cells()?)
    }
}
