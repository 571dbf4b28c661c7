//! The write transaction of a connection, with its savepoints and a reader of its state.
//!
//! Invariants
//! 1. `reader` shows the state after the last change. After a change it is `None` until a statement reads.
//! 2. If nothing was changed, the state is `base`. A reader of the transaction is then avoided, because it flushes the
//!    write buffer.
//! 3. After an error in the middle of a change the transaction has failed: it can only be rolled back, either
//!    completely or to a savepoint.

use crate::error::{Error, ErrorKind, Result};
use tidalite::{
    AnyRead, Database, Durability, ErrorKind as DatabaseErrorKind, Savepoint, WriteTxn,
};

/// An unfinished transaction.
pub(crate) struct Transaction {
    txn: WriteTxn,
    base: AnyRead,
    reader: Option<AnyRead>,
    has_changed: bool,
    /// Whether tables were created, altered or dropped.
    has_defined: bool,
    savepoints: Vec<Named>,
    has_failed: bool,
    /// Whether this is the transaction of a single statement.
    is_single: bool,
}

/// A savepoint with the name that the SQL statement gave it.
struct Named {
    name: String,
    savepoint: Savepoint,
    has_defined: bool,
}

impl Transaction {
    /// Begins a transaction; waits until other writers have finished.
    pub(crate) fn begin(database: &Database, is_single: bool) -> Result<Self> {
        let txn = database.begin_write()?;
        let base = database.begin_read()?.into();
        Ok(Self {
            txn,
            base,
            reader: None,
            has_changed: false,
            has_defined: false,
            savepoints: Vec::new(),
            has_failed: false,
            is_single,
        })
    }

    /// The state after all changes so far.
    pub(crate) fn state(&mut self) -> Result<AnyRead> {
        self.expect_usable()?;
        if !self.has_changed {
            return Ok(self.base.clone());
        }
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        let reader = AnyRead::from(self.txn.reader()?);
        self.reader = Some(reader.clone());
        Ok(reader)
    }

    /// A state that has the current tables and columns, but possibly not the current series and rows.
    pub(crate) fn definitions(&mut self) -> Result<AnyRead> {
        if self.has_defined {
            return self.state();
        }
        self.expect_usable()?;
        Ok(self.base.clone())
    }

    /// Changes rows.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut WriteTxn) -> Result<T>,
    ) -> Result<T> {
        self.expect_usable()?;
        self.reader = None;
        self.has_changed = true;
        // After an error or a panic the transaction remains failed.
        self.has_failed = true;
        let done = change(&mut self.txn)?;
        self.has_failed = false;
        Ok(done)
    }

    /// Changes a single row. The engine makes the change completely or not at all, so a refused row changes nothing.
    pub(crate) fn change_row<T>(
        &mut self,
        change: impl FnOnce(&mut WriteTxn) -> Result<T>,
    ) -> Result<T> {
        let done = self.change(change);
        let is_refusal = |error: &tidalite::Error| {
            matches!(
                error.kind(),
                DatabaseErrorKind::UniqueViolation
                    | DatabaseErrorKind::NotNullViolation
                    | DatabaseErrorKind::Schema
                    | DatabaseErrorKind::Limit
            )
        };
        if let Err(error) = &done
            && (error.database().is_some_and(is_refusal) || error.kind() != ErrorKind::Database)
        {
            self.has_failed = false;
        }
        done
    }

    /// Changes rows. An error undoes the whole change, and the transaction continues.
    pub(crate) fn change_atomically<T>(
        &mut self,
        change: impl FnOnce(&mut WriteTxn) -> Result<T>,
    ) -> Result<T> {
        self.expect_usable()?;
        if self.is_single {
            return self.change(change);
        }
        let savepoint = self.txn.savepoint()?;
        let done = self.change(change);
        if done.is_err() {
            self.txn.rollback_to(&savepoint)?;
            self.has_failed = false;
        }
        done
    }

    /// Changes tables, like `change_atomically`.
    pub(crate) fn define_atomically<T>(
        &mut self,
        change: impl FnOnce(&mut WriteTxn) -> Result<T>,
    ) -> Result<T> {
        self.has_defined = true;
        self.change_atomically(change)
    }

    pub(crate) fn expect_usable(&self) -> Result<()> {
        if self.has_failed {
            let problem = "an earlier statement of the transaction failed; end it with ROLLBACK, or go back with ROLLBACK TO";
            return Err(Error::new(ErrorKind::Transaction, problem));
        }
        Ok(())
    }

    pub(crate) fn savepoint(&mut self, name: &str) -> Result<()> {
        self.expect_usable()?;
        // The flush before a savepoint does not invalidate readers.
        let savepoint = self.txn.savepoint()?;
        self.savepoints.push(Named {
            name: name.to_owned(),
            savepoint,
            has_defined: self.has_defined,
        });
        Ok(())
    }

    /// Undoes all changes since a savepoint, which remains.
    pub(crate) fn rollback_to(&mut self, name: &str) -> Result<()> {
        let place = self.find(name)?;
        self.savepoints.truncate(place + 1);
        let named = &self.savepoints[place];
        self.reader = None;
        self.has_failed = true;
        self.txn.rollback_to(&named.savepoint)?;
        self.has_defined = named.has_defined;
        self.has_failed = false;
        Ok(())
    }

    /// Removes a savepoint and all later ones; their changes are kept.
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        self.expect_usable()?;
        let place = self.find(name)?;
        self.savepoints.truncate(place);
        Ok(())
    }

    /// The newest savepoint with this name.
    fn find(&self, name: &str) -> Result<usize> {
        let place = self.savepoints.iter().rposition(|named| named.name == name);
        place.ok_or_else(|| {
            let problem = format!("there is no savepoint {name}");
            Error::new(ErrorKind::Transaction, problem)
        })
    }

    /// Commits the changes, if there are any.
    pub(crate) fn commit(self, durability: Durability) -> Result<()> {
        self.expect_usable()?;
        drop(self.reader);
        if self.has_changed {
            self.txn.commit_with(durability)?;
        }
        Ok(())
    }
}
