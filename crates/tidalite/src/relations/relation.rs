//! A relation, for reading.

use crate::catalog::table_name::Named;
use crate::relations::refusal::refused;
use crate::relations::rows::{RowRef, Rows};
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::sync::{Arc, OnceLock};
use tidalite_relations::{Cell, Error as Refusal, KeyBounds, RelationReader, RowKey, Schema};

/// A relation, in a snapshot or in the current state of a write transaction.
pub struct Relation<'a> {
    reader: RelationReader<Pages<'a>>,
    named: Named<'a>,
    count: u64,
}

impl<'a> Relation<'a> {
    pub(super) fn of(pages: Pages<'a>, found: Found<'a>) -> Result<Self> {
        let known = found.layout.and_then(OnceLock::get);
        let reader = match known {
            Some(layout) => RelationReader::with_layout(&found.tree, pages, Arc::clone(layout)),
            None => RelationReader::open(&found.tree, pages)?,
        };
        if let Some(place) = found.layout {
            place.get_or_init(|| Arc::clone(reader.layout()));
        }
        Ok(Self {
            count: reader.count()?,
            reader,
            named: found.named,
        })
    }

    fn or_refused<T>(&self, result: Result<T, Refusal>) -> Result<T> {
        result.map_err(|error| refused(self.named.as_str(), error))
    }

    /// Name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        self.named.as_str()
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.reader.schema()
    }

    /// Number of rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The row with this primary key; `None` if it does not exist. A hidden key is one cell of type `U64`.
    ///
    /// # Errors
    /// [`Schema`](crate::ErrorKind::Schema) for cells that are no primary key; a damaged or unreadable page.
    ///
    /// # Cost
    /// One descent.
    pub fn get(&self, key: &[Cell]) -> Result<Option<Vec<Cell>>> {
        self.or_refused(self.reader.get(key))
    }

    /// The row with this key; `None` if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One descent.
    pub fn get_row(&self, row: &RowKey) -> Result<Option<Vec<Cell>>> {
        Ok(self.reader.get_row(row)?)
    }

    /// Passes the row with this key to `found`, without copying it, and returns the result of `found`; `None` if the
    /// row does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page; errors of `found`.
    pub fn with_row<T>(
        &self,
        row: &RowKey,
        found: impl FnOnce(RowRef<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let done = self.reader.with_row(row, |row| Ok(found(RowRef(row))))?;
        done.transpose()
    }

    /// The key of the row with this primary key, whether or not such a row exists.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn row_key(&self, key: &[Cell]) -> Result<RowKey> {
        self.or_refused(self.reader.row_key(key))
    }

    /// The rows of a range of primary keys, in the order of the keys.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn rows(&self, range: KeyBounds) -> Result<Rows<'_>> {
        self.or_refused(self.reader.rows(&range)).map(Rows)
    }

    /// The rows of a range of keys of an index, in the order of the index. Its keys are the columns of the index,
    /// followed by the columns of the primary key. Nulls come first.
    ///
    /// # Errors
    /// As for [`get`](Self::get); [`Schema`](crate::ErrorKind::Schema) if there is no such index.
    ///
    /// # Cost
    /// One descent for each row.
    pub fn rows_by(&self, index: &str, range: KeyBounds) -> Result<Rows<'_>> {
        self.or_refused(self.reader.rows_by(index, &range))
            .map(Rows)
    }

    /// Number of rows in a range of primary keys.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    ///
    /// # Cost
    /// Two descents.
    pub fn count_in(&self, range: KeyBounds) -> Result<u64> {
        self.or_refused(self.reader.count_in(&range))
    }

    /// Number of rows in a range of keys of an index.
    ///
    /// # Errors
    /// As for [`rows_by`](Self::rows_by).
    ///
    /// # Cost
    /// Two descents.
    pub fn count_by(&self, index: &str, range: KeyBounds) -> Result<u64> {
        self.or_refused(self.reader.count_by(index, &range))
    }

    /// Keys that divide a range of primary keys into parts with equal numbers of rows, in ascending order. Each is the
    /// first key of a part after the first part. Several threads can read one part each with
    /// [`rows_between`](Self::rows_between).
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    ///
    /// # Cost
    /// A descent for each part.
    pub fn split(&self, range: KeyBounds, parts: usize) -> Result<Vec<RowKey>> {
        self.or_refused(self.reader.split(&range, parts))
    }

    /// The rows of a range of primary keys whose row keys are also at or above `from` and below `to`.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn rows_between(
        &self,
        range: KeyBounds,
        from: Option<&RowKey>,
        to: Option<&RowKey>,
    ) -> Result<Rows<'_>> {
        let rows = self.reader.rows_between(&range, (from, to));
        self.or_refused(rows).map(Rows)
    }

    /// Checks every rule of the format for the rows of the table, and calls `problem` with each violation: rows and
    /// indexes are compared in both directions. The check of a database does the same with all tables, and also checks
    /// their pages.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads the whole table.
    pub fn check(&self, problem: &mut dyn FnMut(&str)) -> Result<()> {
        Ok(self.reader.check(&mut |text| problem(&text))?)
    }
}
