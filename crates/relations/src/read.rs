//! Reading a relation.

use crate::bounds::{self, KeyBounds, Span};
use crate::cell::Cell;
use crate::error::Result;
use crate::layout::{Layout, Piece};
use crate::parts::{ROWS, index_key, read_layout};
use crate::row_ref::{RowKey, RowRef};
use crate::rows::Rows;
use crate::schema::Schema;
use std::sync::Arc;
use tidalite_kv::{TableReader, Tree, part};
use tidalite_pager::PageRead;

/// Read access to a relation.
pub struct RelationReader<R> {
    pub(crate) root: Tree,
    pub(crate) r: R,
    pub(crate) layout: Arc<Layout>,
}

impl<R: PageRead> RelationReader<R> {
    /// Opens a relation.
    ///
    /// # Errors
    /// A damaged or unreadable page; a damaged schema.
    ///
    /// # Cost
    /// Decodes the schema.
    pub fn open(root: &Tree, r: R) -> tidalite_pager::Result<Self> {
        let layout = read_layout(root, &r)?;
        Ok(Self::with_layout(root, r, Arc::new(layout)))
    }

    /// Opens a relation with a layout that was read before.
    #[must_use]
    pub fn with_layout(root: &Tree, r: R, layout: Arc<Layout>) -> Self {
        let root = *root;
        Self { root, r, layout }
    }

    /// The layout: the schema, with the places of its columns and indexes.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The layout: the schema, with the places of its columns and indexes.
    #[must_use]
    pub fn into_layout(self) -> Arc<Layout> {
        self.layout
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.layout.schema
    }

    pub(crate) fn rows_part(&self) -> tidalite_pager::Result<TableReader<'_>> {
        part(&self.root, &self.r, &ROWS)
    }

    pub(crate) fn index_part(&self, number: u32) -> tidalite_pager::Result<TableReader<'_>> {
        part(&self.root, &self.r, &index_key(number))
    }

    /// Number of rows.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads the page with the root of the rows.
    pub fn count(&self) -> tidalite_pager::Result<u64> {
        Ok(self.rows_part()?.len())
    }

    /// The encoded key of the row with this primary key, whether or not it exists. A hidden key is one cell of type
    /// `U64`.
    ///
    /// # Errors
    /// `Cell` and `Count` for cells that are not a primary key.
    pub fn row_key(&self, key: &[Cell]) -> Result<RowKey> {
        let pieces = self.layout.key_pieces();
        if key.len() != pieces.len() {
            return Err(crate::error::Error::Count {
                found: key.len(),
                expected: pieces.len(),
            });
        }
        bounds::encode(&self.layout, &pieces, key).map(RowKey)
    }

    /// Passes the row with this key to `found`; returns `None` if the key does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page; errors of `found`.
    ///
    /// # Cost
    /// One descent. Nothing is copied, unless the row is large.
    pub fn with_row<T>(
        &self,
        key: &RowKey,
        found: impl FnOnce(RowRef<'_>) -> tidalite_pager::Result<T>,
    ) -> tidalite_pager::Result<Option<T>> {
        let Some(value) = self.rows_part()?.get(&self.r, &key.0)? else {
            return Ok(None);
        };
        let value = value.bytes()?;
        found(RowRef::open(&self.layout, &key.0, &value)?).map(Some)
    }

    /// The row with this key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get_row(&self, key: &RowKey) -> tidalite_pager::Result<Option<Vec<Cell>>> {
        self.with_row(key, |row| row.to_cells())
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// `Cell` and `Count` for cells that are not a primary key; a damaged or unreadable page.
    pub fn get(&self, key: &[Cell]) -> Result<Option<Vec<Cell>>> {
        Ok(self.get_row(&self.row_key(key)?)?)
    }

    /// The rows of a range of primary keys, in the order of the keys.
    ///
    /// # Errors
    /// `Cell` and `Count` for cells that are not a primary key; a damaged or unreadable page.
    pub fn rows(&self, range: &KeyBounds) -> Result<Rows<'_, R>> {
        let span = bounds::span(&self.layout, &self.layout.key_pieces(), range)?;
        let rows = self.rows_part()?.cursor(&self.r)?;
        Ok(Rows::new(&self.layout, rows, None, span))
    }

    /// The rows of a range of primary keys whose row keys are also at or above `from` and below `to`.
    ///
    /// # Errors
    /// As for `rows`.
    pub fn rows_between(
        &self,
        range: &KeyBounds,
        (from, to): (Option<&RowKey>, Option<&RowKey>),
    ) -> Result<Rows<'_, R>> {
        let mut span = bounds::span(&self.layout, &self.layout.key_pieces(), range)?;
        span.cut(from.map(|key| &key.0[..]), to.map(|key| &key.0[..]));
        let rows = self.rows_part()?.cursor(&self.r)?;
        Ok(Rows::new(&self.layout, rows, None, span))
    }

    /// Keys that divide a range of primary keys into parts with equal numbers of rows: the first key of each part after
    /// the first part.
    ///
    /// # Errors
    /// As for `rows`.
    ///
    /// # Cost
    /// A descent for each part.
    pub fn split(&self, range: &KeyBounds, parts: usize) -> Result<Vec<RowKey>> {
        let span = bounds::span(&self.layout, &self.layout.key_pieces(), range)?;
        let table = self.rows_part()?;
        let ranks = self.ranks(&table, &span)?;
        let keys = table.split_range(&self.r, ranks, parts)?;
        Ok(keys.into_iter().map(RowKey).collect())
    }

    /// The rows of a range of keys of an index, in the order of the index. The keys consist of the columns of the index
    /// and of the primary key.
    ///
    /// # Errors
    /// As for `rows`; `Schema` if the index does not exist.
    ///
    /// # Cost
    /// A descent for each row.
    pub fn rows_by(&self, index: &str, range: &KeyBounds) -> Result<Rows<'_, R>> {
        let index = &self.layout.indexes[self.layout.index(index)?];
        let mut pieces = self.layout.index_pieces(index);
        let span = bounds::span(&self.layout, &pieces, range)?;
        pieces.truncate(index.columns.len());
        self.by_index(index.number, pieces, span)
    }

    fn by_index(&self, number: u32, pieces: Vec<Piece>, span: Span) -> Result<Rows<'_, R>> {
        let rows = self.rows_part()?.cursor(&self.r)?;
        let entries = self.index_part(number)?.cursor(&self.r)?;
        Ok(Rows::new(&self.layout, rows, Some((entries, pieces)), span))
    }

    /// Number of rows in a range of primary keys.
    ///
    /// # Errors
    /// As for `rows`.
    ///
    /// # Cost
    /// Two descents.
    pub fn count_in(&self, range: &KeyBounds) -> Result<u64> {
        let span = bounds::span(&self.layout, &self.layout.key_pieces(), range)?;
        Ok(self.between(&self.rows_part()?, &span)?)
    }

    /// Number of rows in a range of keys of an index.
    ///
    /// # Errors
    /// As for `rows_by`.
    ///
    /// # Cost
    /// Two descents.
    pub fn count_by(&self, index: &str, range: &KeyBounds) -> Result<u64> {
        let index = &self.layout.indexes[self.layout.index(index)?];
        let span = bounds::span(&self.layout, &self.layout.index_pieces(index), range)?;
        Ok(self.between(&self.index_part(index.number)?, &span)?)
    }

    fn between(&self, table: &TableReader<'_>, span: &Span) -> tidalite_pager::Result<u64> {
        let (from, to) = self.ranks(table, span)?;
        Ok(to.saturating_sub(from))
    }

    /// The numbers of keys below the lower end and below the upper end of a range.
    fn ranks(&self, table: &TableReader<'_>, span: &Span) -> tidalite_pager::Result<(u64, u64)> {
        if span.is_empty {
            return Ok((0, 0));
        }
        let from = table.rank(&self.r, &span.from)?;
        let to = match &span.to {
            Some(to) => table.rank(&self.r, to)?,
            None => table.len(),
        };
        Ok((from, to))
    }
}
