//! Transactions of a connection, and statements that are not queries.

use crate::connection::{Connection, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::files::format::FileOptions;
use crate::files::read::read;
use crate::plans::Plans;
use crate::statement::{Copy, Statement, Version};
use crate::write::define::names::full_name;
use crate::write::transaction::Transaction;
use arrow::datatypes::SchemaRef;
use std::path::Path;
use tidalite::AnyRead;

fn no_transaction() -> Error {
    let problem = "there is no transaction; BEGIN opens one";
    Error::new(ErrorKind::Transaction, problem)
}

fn reads_only() -> Error {
    let problem = "the transaction is read-only; BEGIN without READ ONLY opens one that may write";
    Error::new(ErrorKind::Transaction, problem)
}

impl Connection {
    /// A snapshot of an earlier version.
    pub(crate) fn version(&self, version: &Version) -> Result<AnyRead> {
        let name = match version {
            Version::Pin(name) => name.clone(),
            Version::Txn(wanted) => {
                let newest = self.database.begin_read()?;
                if newest.txn().0 == *wanted {
                    return Ok(newest.into());
                }
                let pins = self.database.pins()?;
                let Some(pin) = pins.into_iter().find(|pin| pin.txn.0 == *wanted) else {
                    let problem = format!(
                        "version {wanted} is not kept: the newest is {}, and no pin has this version",
                        newest.txn().0
                    );
                    return Err(Error::new(ErrorKind::Plan, problem));
                };
                pin.name
            }
        };
        Ok(self.database.begin_read_at(&name)?.into())
    }

    /// Runs a statement that changes the database or controls the transaction; returns the number of rows.
    pub(crate) fn control(&mut self, statement: Statement) -> Result<Option<u64>> {
        let none = |()| None;
        match statement {
            Statement::Read(..) | Statement::Change(_) | Statement::Execute(..) => Ok(None),
            Statement::Prepare(name, statement) => self.prepare(name, statement).map(none),
            Statement::Deallocate(name) => self.deallocate(&name).map(none),
            Statement::Copy(_) if self.planner.reader().is_none() => {
                let problem = "this connection may not read and write files";
                Err(Error::new(ErrorKind::Syntax, problem))
            }
            Statement::Copy(Copy::To {
                query,
                file,
                options,
            }) => self.copy_to(query, &file, &options).map(Some),
            Statement::Copy(Copy::From {
                table,
                columns,
                file,
                options,
            }) => {
                let options = FileOptions::of_copy(&file, &options)?;
                self.planner.files().expect_own(&table)?;
                let table = full_name(&table)?;
                let columns: Vec<String> = columns.into_iter().map(|c| c.value).collect();
                self.in_transaction(|own, txn| {
                    let read = |schema: &SchemaRef| read(Path::new(&file), &options, schema);
                    own.insert_batches(&table, &columns, read, txn)
                })
                .map(Some)
            }
            Statement::Define(statement) => {
                self.in_transaction(|own, txn| own.define(*statement, txn))
            }
            Statement::Begin { read_only, version } => {
                if self.is_in_transaction() {
                    let problem =
                        "a transaction is open already; SAVEPOINT marks a state within it";
                    return Err(Error::new(ErrorKind::Transaction, problem));
                }
                self.session = match (read_only, version) {
                    (false, _) => {
                        Session::Writing(Box::new(Transaction::begin(&self.database, false)?))
                    }
                    (true, None) => Session::Reading(self.database.begin_read()?.into()),
                    (true, Some(version)) => Session::Reading(self.version(&version)?),
                };
                Ok(None)
            }
            Statement::Commit => {
                if let Session::Writing(txn) = &self.session {
                    // A failed transaction remains open, so that it can be rolled back to a savepoint.
                    txn.expect_usable()?;
                }
                match std::mem::take(&mut self.session) {
                    Session::Writing(txn) => {
                        txn.commit(self.durability)?;
                        Ok(None)
                    }
                    Session::Reading(_) => Ok(None),
                    Session::Auto => Err(no_transaction()),
                }
            }
            Statement::Rollback => match std::mem::take(&mut self.session) {
                Session::Auto => Err(no_transaction()),
                Session::Reading(_) | Session::Writing(_) => Ok(None),
            },
            Statement::RollbackTo(name) => self.transaction()?.rollback_to(&name).map(none),
            Statement::Savepoint(name) => self.transaction()?.savepoint(&name).map(none),
            Statement::Release(name) => self.transaction()?.release(&name).map(none),
            Statement::Attach { file, name } => {
                self.planner.files().attach(&name, &file)?;
                // Names may now refer to other tables.
                self.plans = Plans::default();
                Ok(None)
            }
            Statement::Detach(name) => self.planner.files().detach(&name).map(none),
        }
    }

    /// The write transaction that is open.
    fn transaction(&mut self) -> Result<&mut Transaction> {
        match &mut self.session {
            Session::Writing(txn) => Ok(txn),
            Session::Reading(_) => Err(reads_only()),
            Session::Auto => Err(no_transaction()),
        }
    }

    /// Runs `work` in the open transaction, or in a transaction of its own.
    pub(crate) fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Transaction) -> Result<T>,
    ) -> Result<T> {
        match std::mem::take(&mut self.session) {
            Session::Writing(mut txn) => {
                let done = txn.expect_usable().and_then(|()| work(self, &mut txn));
                self.session = Session::Writing(txn);
                done
            }
            reading @ Session::Reading(_) => {
                self.session = reading;
                Err(reads_only())
            }
            Session::Auto => {
                let mut txn = Transaction::begin(&self.database, true)?;
                let done = work(self, &mut txn)?;
                txn.commit(self.durability)?;
                Ok(done)
            }
        }
    }
}
