//! Checks of a single hash table.

use crate::hash::read::HashTable;
use crate::types::error::Result;

impl<K: ?Sized, V: ?Sized> HashTable<'_, K, V> {
    /// Checks every rule of the format about the rows of the table, and calls `problem` with each violation. The check
    /// of a database ([`Database::check`](crate::Database::check)) does the same with all tables, and checks their
    /// pages, too. Use this after a copy of a table row by row.
    ///
    /// # Errors
    /// A damaged or unreadable page, rows that cannot be decoded.
    ///
    /// # Cost
    /// Reads the whole table.
    pub fn check(&self, problem: &mut dyn FnMut(&str)) -> Result<()> {
        Ok(self.reader.check(&mut |text| problem(&text))?)
    }
}
