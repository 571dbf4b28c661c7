//! Opening hash tables, in a snapshot or in a write transaction.

use crate::hash::options::HashTableOptions;
use crate::hash::read::{HashTable, view_of};
use crate::hash::write::HashTableMut;
use crate::tables::codec::{TableKey, TableValue};
use crate::tables::open_types::{expect_layout, types_of};
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;
use tidalite_index::HashWriter;
use tidalite_pager::{Error as FileError, Refusal};

const LAYOUT: TableLayout = TableLayout::Hash;

impl<S: ReadSource> Reading<S> {
    /// Opens the hash table with this name; returns `None` if it does not exist. Keys and values are plain bytes, or
    /// have the types with which the table was created. Plain bytes open a table of any types: keys and values are then
    /// their stored bytes.
    ///
    /// # Errors
    /// `WrongType` for another kind of table or other types; a damaged or unreadable page.
    pub fn hash_table<K, V>(&self, name: &str) -> Result<Option<HashTable<'_, K, V>>>
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
    /// Opens a hash table; creates it with the default options if it does not exist.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let guid = [7u8; 16];
    /// let mut tx = db.begin_write()?;
    /// let mut devices = tx.hash_table::<[u8; 16], str>("devices")?;
    /// devices.set(&guid, "pump 3")?;
    /// assert_eq!(devices.get(&guid)?.as_deref(), Some("pump 3"));
    /// tx.commit()?;
    ///
    /// let snap = db.begin_read()?;
    /// let devices = snap.hash_table::<[u8; 16], str>("devices")?.ok_or("no table")?;
    /// assert_eq!(devices.get(&guid)?.as_deref(), Some("pump 3"));
    /// assert_eq!(devices.get(&[8; 16])?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for another kind of table or other types; `Broken`;
    /// errors of the file.
    pub fn hash_table<K, V>(&mut self, name: &str) -> Result<HashTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        self.open_hash_table(name, None)
    }

    /// Opens a hash table; creates it with these options if it does not exist.
    ///
    /// # Errors
    /// As for [`hash_table`](Self::hash_table); `InvalidInput` if the options cannot be used together or with the type
    /// of the keys; `WrongType` if the table exists and has other options. The seed of an existing table may differ: it
    /// stays as it is.
    pub fn hash_table_with<K, V>(
        &mut self,
        name: &str,
        options: &HashTableOptions,
    ) -> Result<HashTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        self.open_hash_table(name, Some(options))
    }

    /// Opens an existing hash table for changes; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// As for [`hash_table`](Self::hash_table).
    pub fn hash_table_if_exists<K, V>(
        &mut self,
        name: &str,
    ) -> Result<Option<HashTableMut<'_, K, V>>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        match self.find(name)? {
            Some(_) => self.open_hash_table(name, None).map(Some),
            None => Ok(None),
        }
    }

    /// Opens an existing hash table for changes to the bytes of its keys and values, whatever their types; returns
    /// `None`, and creates nothing, if it does not exist. The bytes must decode as the stored types.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; `Broken`; errors of the file.
    pub fn raw_hash_table(&mut self, name: &str) -> Result<Option<HashTableMut<'_>>> {
        let Some(found) = self.find(name)? else {
            return Ok(None);
        };
        expect_layout::<[u8], [u8]>(name, found.types.as_deref(), LAYOUT, true)?;
        let (index, at) = self.open_found_hash(name)?;
        Ok(Some(HashTableMut::new(self, index, at)))
    }

    /// Rebuilds the index of a hash table that may have lost parts, from its records. If its options are lost, the
    /// table becomes a table of bytes, and the result is false.
    pub(crate) fn recover_hash_table(&mut self, name: &str) -> Result<bool> {
        let Some(index) = self.open_table(name, Some(false))? else {
            return Ok(true);
        };
        let tree = self.tables[index].tree;
        if !HashWriter::can_recover(&tree, &self.pages) {
            self.open_with(name, false, None)?;
            return Ok(false);
        }
        let writer = self.change_table(index, HashWriter::recover)?;
        self.add_hash(index, writer);
        Ok(true)
    }

    fn open_hash_table<K, V>(
        &mut self,
        name: &str,
        options: Option<&HashTableOptions>,
    ) -> Result<HashTableMut<'_, K, V>>
    where
        K: TableKey + ?Sized,
        V: TableValue + ?Sized,
    {
        let Some(found) = self.find(name)? else {
            let options = options.copied().unwrap_or_default().stored();
            let is_text = [<str as TableKey>::NAME, <[u8] as TableKey>::NAME].contains(&K::NAME);
            let problem = match options.fold_case && !is_text {
                true => {
                    Some("keys that are no texts, and whose letters of both cases are equal".into())
                }
                false => options.problem(),
            };
            if let Some(problem) = problem {
                let expected = "options that can be used together";
                return Err(FileError::refused(Refusal::InvalidInput, problem, expected).into());
            }
            let index = self.open_with(name, false, Some(types_of::<K, V>(LAYOUT)?))?;
            let writer = self.change_table(index, |tree, pages| {
                HashWriter::create(tree, pages, options)
            })?;
            self.add_hash(index, writer);
            return Ok(HashTableMut::new(self, index, self.hashes.len() - 1));
        };
        expect_layout::<K, V>(name, found.types.as_deref(), LAYOUT, false)?;
        let (index, at) = self.open_found_hash(name)?;
        let stored = self.hashes[at].writer.options();
        if let Some(options) = options.filter(|options| !options.matches(stored)) {
            let found = format!("hash table {name} with {stored:?}");
            let expected = format!("{:?}", options.stored());
            return Err(FileError::refused(Refusal::WrongType, found, expected).into());
        }
        Ok(HashTableMut::new(self, index, at))
    }

    /// Opens a hash table that exists; returns its indexes among the open tables and the open hash tables.
    fn open_found_hash(&mut self, name: &str) -> Result<(usize, usize)> {
        let Some(index) = self.open_table(name, Some(false))? else {
            unreachable!("it was found");
        };
        Ok((index, self.open_hash(index)?))
    }
}
