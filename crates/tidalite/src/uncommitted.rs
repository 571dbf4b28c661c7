//! Reading what a write transaction has done so far, in other threads, while it goes on.

use crate::catalog::{self, SeriesKey};
use crate::error::Result;
use crate::leaves::stored_tree;
use crate::multi::MultiTable;
use crate::name::SeriesName;
use crate::opened::OpenedSeries;
use crate::pages::Pages;
use crate::roots::Roots;
use crate::series::{EVER, Series};
use crate::table::Table;
use crate::table_roots::find_table;
use crate::tables::expect_kind;
use crate::write::{OpenTable, WriteTxn};
use std::sync::Arc;
use tidalite_base::TxnId;
use tidalite_codec::Rows;
use tidalite_kv::Tree;
use tidalite_runs::Front;

/// A write transaction as it was when this was made: for any number of threads, while the transaction goes on in its own. It
/// does not follow the transaction, and ends with it: reading what was uncommitted then gives `Store(Ended)`.
pub struct UncommittedRead {
    pages: tidalite_pager::UncommittedRead,
    roots: Roots,
    front: Front,
    open: Vec<OpenTable>,
}

impl WriteTxn {
    /// A reader of the transaction as it is now, what is not committed included. Rows of series that wait in memory are stored first, as
    /// for a savepoint; pages are shared, not copied, until the transaction changes them.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("tidalite-uncommitted-{}.tdl", std::process::id()));
    /// use tidalite::Database;
    /// let db = Database::open(&path)?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("config")?.put(b"speed", b"7")?;
    /// let reader = tx.reader()?;
    /// tx.table("config")?.put(b"speed", b"8")?;
    /// std::thread::scope(|threads| {
    ///     for _ in 0..2 {
    ///         threads.spawn(|| {
    ///             let table = reader.table("config").unwrap().unwrap();
    ///             assert_eq!(table.get(b"speed").unwrap().unwrap(), b"7");
    ///         });
    ///     }
    /// });
    /// drop(tx);
    /// assert!(reader.has_ended());
    /// # drop((reader, db));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `savepoint`.
    pub fn reader(&mut self) -> Result<UncommittedRead> {
        // It stores what waits in memory; what it would go back to is not needed.
        drop(self.savepoint()?);
        self.changing(|txn| {
            let pages = txn.pages.reader()?;
            Ok(UncommittedRead {
                front: Front::load(&pages, &txn.roots.front)?,
                pages,
                roots: Roots::clone(&txn.roots),
                open: txn.tables.clone(),
            })
        })
    }
}

impl UncommittedRead {
    /// The number that the transaction will have.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.pages.txn()
    }

    /// True when the transaction has ended, or went back behind this reader.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.pages.has_ended()
    }

    fn find(&self, name: &str) -> Result<Option<(u64, Tree)>> {
        match self.open.iter().find(|open| open.name == name) {
            Some(open) => Ok(Some((open.id, open.tree))),
            None if name.is_empty() || name.len() > crate::write::TABLE_NAME_BYTES_MAX => Ok(None),
            None => find_table(&self.roots, &self.pages, name),
        }
    }

    /// The table with this name.
    ///
    /// # Errors
    /// `TableKind` for a table of multi-values; `Store(Ended)`; a damaged or unreadable page.
    pub fn table(&self, name: &str) -> Result<Option<Table<'_>>> {
        let found = expect_kind(self.find(name)?, name, false)?;
        Ok(found.map(|(_, tree)| Table::new(Pages::Uncommitted(&self.pages), tree)))
    }

    /// The table of multi-values with this name.
    ///
    /// # Errors
    /// `TableKind` for a table that has one value a key; else as for `table`.
    pub fn multi_table(&self, name: &str) -> Result<Option<MultiTable<'_>>> {
        let found = expect_kind(self.find(name)?, name, true)?;
        Ok(found.map(|(_, tree)| MultiTable::new(Pages::Uncommitted(&self.pages), tree)))
    }

    /// The series with this name.
    ///
    /// # Errors
    /// `Name` for a text that is no name; else as for `table`.
    pub fn series(&self, name: &str) -> Result<Option<Series<'_>>> {
        let name = SeriesName::parse(name)?;
        let found = catalog::find(&self.roots, &self.pages, SeriesKey::Name(&name))?;
        let Some(id) = found else { return Ok(None) };
        let Some(info) = catalog::info(&self.roots, &self.pages, id)? else {
            return Ok(None);
        };
        let types = info.schema.word_types();
        let tree = stored_tree(&self.roots.records, &self.pages, id, &types)?;
        let mut late = Rows::new(types.len());
        self.front.rows(&self.pages, id, &types, EVER, &mut late)?;
        let pages = Pages::Uncommitted(&self.pages);
        let state = Arc::new(OpenedSeries { info, tree, late });
        Ok(Some(Series::new(pages, state, &self.roots, 0)))
    }
}
