//! Other database files, attached under a name for reading.

use crate::catalog::names::{Names, NewestNames};
use crate::error::{Error, ErrorKind, Result};
use datafusion::sql::sqlparser::ast::{self, ObjectName};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tidalite::{AnyRead, Database, Options};

/// The name of the database's own catalog.
pub(crate) const CATALOG: &str = "tidalite";

/// The default schema, which contains names that have no schema.
pub(crate) const PUBLIC: &str = "public";

/// The schema of the views about tables, in every catalog.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

/// The files that a connection has attached, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(BTreeMap<String, File>);

/// An attached file.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) database: Database,
    names: Arc<NewestNames>,
}

impl Files {
    /// Attaches a file.
    ///
    /// # Errors
    /// The name is taken; the file cannot be opened.
    pub(crate) fn attach(&mut self, name: &str, path: &str) -> Result<()> {
        if [CATALOG, PUBLIC, INFORMATION_SCHEMA].contains(&name) {
            return Err(plan(format!(
                "{name} is a reserved name: choose another one for the file"
            )));
        }
        if self.0.contains_key(name) {
            return Err(plan(format!(
                "{name} is attached already; DETACH {name} ends that"
            )));
        }
        let database = Options::new().read_only(true).open(path)?;
        let file = File {
            database,
            names: Arc::default(),
        };
        self.0.insert(name.to_owned(), file);
        Ok(())
    }

    /// Detaches a file. Running queries continue to read it.
    ///
    /// # Errors
    /// No file with this name is attached.
    pub(crate) fn detach(&mut self, name: &str) -> Result<()> {
        match self.0.remove(name) {
            Some(_) => Ok(()),
            None => Err(plan(format!("no file is attached as {name}"))),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&File> {
        self.0.get(name)
    }

    /// The attached databases.
    pub(crate) fn databases(&self) -> impl Iterator<Item = &Database> {
        self.0.values().map(|file| &file.database)
    }

    /// Returns an error if a statement would create or change a table in an attached file.
    pub(crate) fn expect_not_defined(&self, statement: &ast::Statement) -> Result<()> {
        let names: Vec<&ObjectName> = match statement {
            ast::Statement::CreateTable(create) => vec![&create.name],
            ast::Statement::CreateView(create) => vec![&create.name],
            ast::Statement::CreateIndex(create) => vec![&create.table_name],
            ast::Statement::AlterTable(alter) => vec![&alter.name],
            ast::Statement::Drop { names, .. } => names.iter().collect(),
            ast::Statement::Truncate(truncate) => truncate
                .table_names
                .iter()
                .map(|target| &target.name)
                .collect(),
            _ => Vec::new(),
        };
        names.into_iter().try_for_each(|name| self.expect_own(name))
    }

    /// Returns an error if a table is in an attached file.
    pub(crate) fn expect_own(&self, table: &ObjectName) -> Result<()> {
        match &table.0[..] {
            [first, _, ..]
                if first
                    .as_ident()
                    .is_some_and(|first| self.0.contains_key(&first.value)) =>
            {
                Err(read_only(table))
            }
            _ => Ok(()),
        }
    }
}

impl File {
    /// The names of the tables in a snapshot of the file.
    pub(crate) fn names_of(&self, snapshot: &AnyRead) -> Arc<Names> {
        self.names.of(snapshot)
    }
}

fn plan(problem: String) -> Error {
    Error::new(ErrorKind::Plan, problem)
}

/// The error for a statement that would change a table in an attached file.
pub(crate) fn read_only(table: &dyn fmt::Display) -> Error {
    plan(format!(
        "{table} is in an attached file, which can only be read"
    ))
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("File")
    }
}
