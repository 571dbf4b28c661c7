//! Opens the table that a command refers to, and describes its errors.

use crate::commands::layouts::{exists_as, noun};
use crate::database::{failure, open, open_or_create, open_to_write};
use crate::exit::{Failure, Outcome};
use crate::output::printable;
use crate::store;
use crate::terminal::Terminal;
use std::path::Path;
use tidalite::{Database, ErrorKind, ReadTxn, TableLayout, WriteTxn};

/// Prints one line that confirms a change.
pub(crate) fn told(text: &str, terminal: &mut Terminal<'_>) -> Outcome {
    writeln!(terminal.out, "{}", printable(text))?;
    Ok(terminal.out.flush()?)
}

/// A table of topics, a queue, a bucket or a table of containers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub path: &'a Path,
    pub table: &'a str,
    pub layout: TableLayout,
}

impl Place<'_> {
    /// The name of the command for tables of this layout.
    fn command(&self) -> &'static str {
        match self.layout {
            TableLayout::Topics => "topic",
            TableLayout::Queue => "queue",
            TableLayout::Bucket => "object",
            TableLayout::Containers => "container",
            TableLayout::Hash => "hash",
            TableLayout::Relation => "sql",
            TableLayout::Rows | TableLayout::Buffered => "kv",
        }
    }

    /// Converts an error of a call on the table to a failure with advice for the user.
    pub(crate) fn fail(&self, error: &tidalite::Error) -> Failure {
        let (command, path, table) = (self.command(), self.path.display(), self.table);
        let shows = format!("`tidalite {command} stat {path} --table {table}` shows");
        let is_refusal = error.found_and_expected().is_some();
        match error.kind() {
            kind if kind == ErrorKind::Limit || kind == ErrorKind::InvalidInput && is_refusal => {
                Failure::bad_input(error).hint(format!("{shows} the limits of the table"))
            }
            ErrorKind::AlreadyExists | ErrorKind::InvalidName | ErrorKind::WrongType
                if is_refusal =>
            {
                Failure::bad_input(error).hint(format!("{shows} the table"))
            }
            ErrorKind::NotFound if is_refusal => {
                Failure::not_found(error).hint(format!("{shows} the table"))
            }
            _ => failure(self.path, error),
        }
    }

    /// The failure for a table that does not exist.
    pub(crate) fn missing(&self) -> Failure {
        let (command, path) = (self.command(), self.path.display());
        let kind = noun(self.layout).trim_start_matches("a ");
        Failure::not_found(format!("there is no {kind} {}", self.table)).hint(format!(
            "`tidalite {command} stat {path}` lists them; --table selects one"
        ))
    }

    /// Whether the table exists; a failure if it has another layout.
    pub(crate) fn exists(&self, snap: &ReadTxn) -> Outcome<bool> {
        exists_as(snap, self.path, self.table, self.layout)
    }

    fn expect(&self, db: &Database) -> Outcome<ReadTxn> {
        let snap = db.begin_read().map_err(|error| self.fail(&error))?;
        match self.exists(&snap)? {
            true => Ok(snap),
            false => Err(self.missing()),
        }
    }

    /// Opens the database for reading, with a snapshot in which the table exists.
    pub(crate) fn open(&self) -> Outcome<(Database, ReadTxn)> {
        let db = open(self.path)?;
        let snap = self.expect(&db)?;
        Ok((db, snap))
    }

    /// Opens the database for writing; the table must exist.
    pub(crate) fn open_to_write(&self) -> Outcome<Database> {
        let db = open_to_write(self.path)?;
        self.expect(&db)?;
        Ok(db)
    }

    /// Opens the database for writing, and creates the file if it does not exist. The table may be missing, but must
    /// not have another layout.
    pub(crate) fn open_or_create(&self) -> Outcome<(Database, bool)> {
        let db = open_or_create(self.path)?;
        let snap = db.begin_read().map_err(|error| self.fail(&error))?;
        let exists = self.exists(&snap)?;
        drop(snap);
        Ok((db, exists))
    }

    pub(crate) fn begin(&self, db: &Database) -> Outcome<WriteTxn> {
        db.begin_write().map_err(|error| self.fail(&error))
    }

    pub(crate) fn commit(&self, tx: WriteTxn) -> Outcome {
        store::commit(tx).map_err(|error| self.fail(&error))
    }

    /// Commits the only transaction of a command, and closes the database.
    pub(crate) fn finish(&self, tx: WriteTxn, db: Database) -> Outcome {
        self.commit(tx)?;
        self.close(db)
    }

    pub(crate) fn close(&self, db: Database) -> Outcome {
        store::close(db).map_err(|error| self.fail(&error))
    }
}

/// The kind of change that `create` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Altered {
    Created,
    Changed,
    Unchanged,
}

/// Determines the change that `create` makes to a table. `stored` are the options of the table, if it exists; `wanted`
/// are these options, changed by the options that the user has given.
pub(crate) fn alter<O: PartialEq>(
    place: &Place<'_>,
    stored: Option<&O>,
    wanted: &O,
    may_alter: bool,
) -> Outcome<Altered> {
    match (stored, may_alter) {
        (None, true) => Err(place.missing()),
        (None, false) => Ok(Altered::Created),
        (Some(stored), _) if stored == wanted => Ok(Altered::Unchanged),
        (Some(_), true) => Ok(Altered::Changed),
        (Some(_), false) => Err(Failure::bad_input(format!(
            "table {} exists with other options",
            place.table
        ))
        .hint("--alter changes the given options of an existing table")),
    }
}

impl Altered {
    /// Prints one line that describes the change.
    pub(crate) fn tell(self, place: &Place<'_>, terminal: &mut Terminal<'_>) -> Outcome {
        let done = match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "exists already with these options",
        };
        told(&format!("table {} {done}", place.table), terminal)
    }
}
