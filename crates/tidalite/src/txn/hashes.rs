//! The hash tables and buffered tables that a write transaction has open, with records that are not stored in pages
//! yet.

use crate::txn::open_hash::{OpenBuffered, OpenHash, OpenWriter};
use crate::txn::open_table::OpenTable;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_index::{BufferedWriter, HashWriter};
use tidalite_kv::Tree;
use tidalite_pager::WriteTxn as PagesMut;

/// The tree of an open table that is about to change.
fn changing_tree(tables: &mut [OpenTable], id: u64) -> &mut Tree {
    let open = tables.iter_mut().find(|open| open.id == id);
    let Some(open) = open else {
        unreachable!("the table of an open writer is open");
    };
    open.append_cursor.forget();
    open.changed = true;
    &mut open.tree
}

/// Index of the writer of a table among the open writers of its kind.
fn find<W>(open: &[OpenWriter<W>], table: u64) -> Option<usize> {
    open.iter().position(|open| open.table == table)
}

impl WriteTxn {
    /// Index among the open hash tables of the open table at `index`, which must be a hash table.
    pub(crate) fn open_hash(&mut self, index: usize) -> Result<usize> {
        let OpenTable { id, tree, .. } = &self.tables[index];
        if let Some(at) = find(&self.hashes, *id) {
            return Ok(at);
        }
        let writer = HashWriter::open(tree, &self.pages)?;
        self.add_hash(index, writer);
        Ok(self.hashes.len() - 1)
    }

    /// Index among the open buffered tables of the open table at `index`, which must be a buffered table.
    pub(crate) fn open_buffered(&mut self, index: usize) -> Result<usize> {
        let OpenTable { id, tree, .. } = &self.tables[index];
        if let Some(at) = find(&self.buffered, *id) {
            return Ok(at);
        }
        let writer = BufferedWriter::open(tree, &self.pages)?;
        self.add_buffered(index, writer);
        Ok(self.buffered.len() - 1)
    }

    /// Adds a hash table that was just opened or created in the open table at `index`.
    pub(crate) fn add_hash(&mut self, index: usize, writer: HashWriter) {
        let table = self.tables[index].id;
        let writer = writer.with_run_bytes(self.shared.run_bytes);
        self.hashes.push(OpenHash { table, writer });
    }

    /// Adds a buffered table that was just opened or created in the open table at `index`.
    pub(crate) fn add_buffered(&mut self, index: usize, writer: BufferedWriter) {
        let table = self.tables[index].id;
        let writer = writer.with_run_bytes(self.shared.run_bytes);
        self.buffered.push(OpenBuffered { table, writer });
    }

    /// Changes a hash table and its tree. An error breaks the transaction.
    pub(crate) fn change_hash<T>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut HashWriter, &mut Tree, &mut PagesMut) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.changing(|txn| {
            let OpenHash { table, writer } = &mut txn.hashes[at];
            let tree = changing_tree(&mut txn.tables, *table);
            Ok(change(writer, tree, &mut txn.pages)?)
        })
    }

    /// Changes a buffered table and its tree. An error breaks the transaction.
    pub(crate) fn change_buffered<T>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut BufferedWriter, &mut Tree, &mut PagesMut) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.changing(|txn| {
            let OpenBuffered { table, writer } = &mut txn.buffered[at];
            let tree = changing_tree(&mut txn.tables, *table);
            Ok(change(writer, tree, &mut txn.pages)?)
        })
    }

    /// Stores the records of all hash tables and the entries of all buffered tables in pages.
    pub(crate) fn store_hashes(&mut self) -> Result<()> {
        for at in 0..self.hashes.len() {
            if !self.hashes[at].writer.is_stored() {
                self.change_hash(at, |writer, tree, pages| writer.store(tree, pages))?;
            }
        }
        for at in 0..self.buffered.len() {
            if !self.buffered[at].writer.is_stored() {
                self.change_buffered(at, |writer, tree, pages| writer.store(tree, pages))?;
            }
        }
        Ok(())
    }

    /// Forgets a hash table or buffered table with the records that are not stored.
    pub(crate) fn forget_writer(&mut self, table: u64) {
        self.hashes.retain(|open| open.table != table);
        self.buffered.retain(|open| open.table != table);
    }
}
