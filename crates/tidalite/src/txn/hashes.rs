//! The hash tables that a write transaction has open, with records that are not stored in pages yet.

use crate::txn::open_hash::OpenHash;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_index::HashWriter;
use tidalite_kv::Tree;
use tidalite_pager::WriteTxn as PagesMut;

impl WriteTxn {
    /// Index among the open hash tables of the open table at `index`, which must be a hash table.
    pub(crate) fn open_hash(&mut self, index: usize) -> Result<usize> {
        let table = &self.tables[index];
        if let Some(at) = self.hashes.iter().position(|hash| hash.table == table.id) {
            return Ok(at);
        }
        let writer = HashWriter::open(&table.tree, &self.pages)?;
        let table = table.id;
        self.hashes.push(OpenHash { table, writer });
        Ok(self.hashes.len() - 1)
    }

    /// Adds a hash table that was just created in the open table at `index`.
    pub(crate) fn add_hash(&mut self, index: usize, writer: HashWriter) {
        let table = self.tables[index].id;
        self.hashes.push(OpenHash { table, writer });
    }

    /// Changes a hash table and its tree. An error breaks the transaction.
    pub(crate) fn change_hash<T>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut HashWriter, &mut Tree, &mut PagesMut) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.changing(|txn| {
            let OpenHash { table, writer } = &mut txn.hashes[at];
            let open = txn.tables.iter_mut().find(|open| open.id == *table);
            let Some(open) = open else {
                unreachable!("the table of a hash table is open");
            };
            open.append_cursor.forget();
            open.changed = true;
            Ok(change(writer, &mut open.tree, &mut txn.pages)?)
        })
    }

    /// Stores the records of all hash tables in pages.
    pub(crate) fn store_hashes(&mut self) -> Result<()> {
        for at in 0..self.hashes.len() {
            if !self.hashes[at].writer.is_stored() {
                self.change_hash(at, |writer, tree, pages| writer.store(tree, pages))?;
            }
        }
        Ok(())
    }

    /// Forgets a hash table with the records that are not stored.
    pub(crate) fn forget_hash(&mut self, table: u64) {
        self.hashes.retain(|hash| hash.table != table);
    }
}
