//! Opening buffered tables, in a snapshot or in a write transaction.

use crate::buffered::read::{BufferedTable, view_of};
use crate::buffered::write::BufferedTableMut;
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::open_types::{expect_layout, types_of};
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;
use tidalite_index::BufferedWriter;

const LAYOUT: TableLayout = TableLayout::Buffered;

impl<S: ReadSource> Reading<S> {
    /// Opens the buffered table with this name; returns `None` if it does not exist. Keys and values are plain bytes,
    /// or have the types with which the table was created. Plain bytes open a table of any types.
    ///
    /// # Errors
    /// `WrongType` for another kind of table or other types; a damaged or unreadable page.
    pub fn buffered_table<K, V>(&self, name: &str) -> Result<Option<BufferedTable<'_, K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let Some(found) = self.find(name)? else {
            return Ok(None);
        };
        expect_layout::<K, V>(name, found.types.as_deref(), LAYOUT, true)?;
        view_of(self.pages.view(), found).map(Some)
    }
}

impl WriteTxn {
    /// Opens a buffered table; creates it if it does not exist.
    ///
    /// A buffered table is an ordered table that collects writes in sorted runs and later merges many entries at a time
    /// into its rows. Choose it for keys that arrive in random order in large transactions: it is then several times as
    /// fast as a [`table`](Self::table). Ascending keys do not need runs: a plain table appends them.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut sessions = tx.buffered_table::<u64, str>("sessions")?;
    /// for n in 0..1000u64 {
    ///     sessions.put(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15), &format!("session {n}"))?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let sessions = snap.buffered_table::<u64, str>("sessions")?.ok_or("no table")?;
    /// assert_eq!(sessions.get(&0)?.as_deref(), Some("session 0"));
    /// assert_eq!(sessions.range(..)?.count(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for another kind of table or other types; `Broken`;
    /// errors of the file.
    pub fn buffered_table<K, V>(&mut self, name: &str) -> Result<BufferedTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let Some(found) = self.find(name)? else {
            let index = self.open_with(name, false, Some(types_of::<K, V>(LAYOUT)?))?;
            return self.create_buffered(index);
        };
        expect_layout::<K, V>(name, found.types.as_deref(), LAYOUT, false)?;
        self.open_found_buffered(name)
    }

    /// Creates a buffered table with types that are given only by their names, as in
    /// [`TableTypes`](crate::table::TableTypes), and opens it for changes to the bytes of its keys and values. The
    /// bytes must decode as these types.
    ///
    /// # Errors
    /// `InvalidName` if the name is invalid; `AlreadyExists` if a table has it; `Limit` if the name of a type is longer
    /// than 255 bytes; `Broken`; errors of the file.
    pub fn create_raw_buffered_table(
        &mut self,
        name: &str,
        types: (&str, &str),
    ) -> Result<BufferedTableMut<'_>> {
        self.create_raw_table(name, LAYOUT, types)?;
        let Some(index) = self.open_table(name, Some(false))? else {
            unreachable!("it was created");
        };
        self.create_buffered(index)
    }

    /// Opens an existing buffered table for changes to the bytes of its keys and values, whatever their types; returns
    /// `None`, and creates nothing, if it does not exist. The bytes must decode as the stored types.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; `Broken`; errors of the file.
    pub fn raw_buffered_table(&mut self, name: &str) -> Result<Option<BufferedTableMut<'_>>> {
        let Some(found) = self.find(name)? else {
            return Ok(None);
        };
        expect_layout::<[u8], [u8]>(name, found.types.as_deref(), LAYOUT, true)?;
        self.open_found_buffered(name).map(Some)
    }

    /// Rebuilds a damaged buffered table, and calls `problem` with the text of each defect.
    pub(crate) fn recover_buffered_table(
        &mut self,
        name: &str,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        if let Some(index) = self.open_table(name, Some(false))? {
            let writer = self.change_table(index, |tree, pages| {
                BufferedWriter::recover(tree, pages, problem)
            })?;
            self.add_buffered(index, writer);
        }
        Ok(())
    }

    /// Opens an existing buffered table for changes; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// As for [`buffered_table`](Self::buffered_table).
    pub fn buffered_table_if_exists<K, V>(
        &mut self,
        name: &str,
    ) -> Result<Option<BufferedTableMut<'_, K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        match self.find(name)? {
            Some(_) => self.buffered_table(name).map(Some),
            None => Ok(None),
        }
    }

    /// Creates a buffered table in an empty open table.
    fn create_buffered<K, V>(&mut self, index: usize) -> Result<BufferedTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let writer = self.change_table(index, BufferedWriter::create)?;
        self.add_buffered(index, writer);
        Ok(BufferedTableMut::new(self, index, self.buffered.len() - 1))
    }

    /// Opens a buffered table that exists.
    fn open_found_buffered<K, V>(&mut self, name: &str) -> Result<BufferedTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let Some(index) = self.open_table(name, Some(false))? else {
            unreachable!("it was found");
        };
        let at = self.open_buffered(index)?;
        Ok(BufferedTableMut::new(self, index, at))
    }
}
