//! A connection: runs statements on a database.

use crate::catalog::names::Names;
use crate::catalog::providers::Tables;
use crate::definition;
use crate::error::{Error, ErrorKind, Result};
use crate::files::format::FileOptions;
use crate::files::read::read;
use crate::files::write::FileSink;
use crate::metric::layout::Layout;
use crate::metric::table::SeriesTable;
use crate::options::ConnectionOptions;
use crate::ordered::table::OrderedTable;
use crate::plans::{self, Plan, Plans};
use crate::relational::table::{KEY, Purpose, RelationTable};
use crate::rows::{CancelHandle, Rows, runtime};
use crate::session::Planner;
use crate::slot::{Running, Slot};
use crate::statement::{Copy, Statement, Version};
use crate::write;
use crate::write::align::Aligned;
use crate::write::conflict::{Action, Clause, OnConflict};
use crate::write::define::{Definition, full_name};
use crate::write::relation::Update;
use crate::write::series::SeriesInsert;
use crate::write::transaction::Transaction;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, LogicalPlanBuilder, WriteOp};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite::{AnyRead, Database, Durability};

/// Runs statements on a database.
pub struct Connection {
    database: Database,
    planner: Planner,
    /// The tables of the newest list of series that a statement has seen.
    names: Mutex<Option<Arc<Names>>>,
    plans: Plans,
    session: Session,
    durability: Durability,
    cancel: CancelHandle,
}

/// The state that statements read and change.
#[derive(Default)]
enum Session {
    /// Each statement is a transaction of its own.
    #[default]
    Auto,
    /// A transaction that reads one state.
    Reading(AnyRead),
    /// A transaction that reads and changes.
    Writing(Box<Transaction>),
}

impl Session {
    /// The state in which a query reads.
    fn state(&mut self, database: &Database) -> Result<AnyRead> {
        match self {
            Self::Auto => Ok(database.begin_read()?.into()),
            Self::Reading(state) => Ok(state.clone()),
            Self::Writing(txn) => txn.state(),
        }
    }
}

fn no_transaction() -> Error {
    let problem = "there is no transaction; BEGIN opens one";
    Error::new(ErrorKind::Transaction, problem)
}

fn reads_only() -> Error {
    let problem = "the transaction is read-only; BEGIN without READ ONLY opens one that may write";
    Error::new(ErrorKind::Transaction, problem)
}

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// The series of a metric, or of several metrics with a common prefix.
    Metric,
    /// A table with typed columns, created with `CREATE TABLE`.
    Table,
    /// An ordered table of keys and values.
    Ordered,
    /// A table about the database, such as `tidalite_series`.
    System,
}

/// A table and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The name, with its dots; a statement writes it in quotes, or with the text before a dot as the schema.
    pub name: String,
    /// The kind of the table.
    pub kind: TableKind,
}

impl Connection {
    /// Creates a connection to a database with the default options.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, storage::MemoryStorage};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// use tidalite_sql::{Connection, arrow::util::pretty::pretty_format_batches};
    ///
    /// let mut tx = db.begin_write()?;
    /// for (host, load) in [("a", 0.5), ("b", 1.5)] {
    ///     tx.series(&format!(r#"load{{host="{host}"}}"#))?.insert("2014-06-01T00:10:00Z", load)?;
    /// }
    /// tx.commit()?;
    /// let mut sql = Connection::new(&db)?;
    /// let rows = sql.query("SELECT host, max(value) AS load FROM load GROUP BY host ORDER BY host")?;
    /// let batches = rows.collect::<tidalite_sql::Result<Vec<_>>>()?;
    /// assert_eq!(pretty_format_batches(&batches)?.to_string(), "\
    /// +------+------+
    /// | host | load |
    /// +------+------+
    /// | a    | 0.5  |
    /// | b    | 1.5  |
    /// +------+------+");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Threads cannot be started.
    pub fn new(database: &Database) -> Result<Self> {
        Self::with_options(database, &ConnectionOptions::default())
    }

    /// Creates a connection to a database.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_options(database: &Database, options: &ConnectionOptions) -> Result<Self> {
        runtime()?;
        Ok(Self {
            database: database.clone(),
            planner: Planner::new(options)?,
            names: Mutex::default(),
            plans: Plans::default(),
            session: Session::Auto,
            durability: options.durability,
            cancel: CancelHandle::default(),
        })
    }

    /// Runs one statement. The rows of a query are computed as they are read, in one state of the database: the newest
    /// commit, or the connection's transaction with its changes so far. A statement that changes the database has done so
    /// when this call returns; outside of a transaction it is committed, too.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, storage::MemoryStorage};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # tx.series(r#"load{host="a"}"#)?.insert("2014-06-01T00:10:00Z", 0.5)?;
    /// # tx.commit()?;
    /// let mut sql = tidalite_sql::Connection::new(&db)?;
    /// sql.query("BEGIN")?;
    /// let inserted = sql.query("INSERT INTO load (time, host, value) VALUES ('2014-06-01T00:20:00Z', 'b', 1.5)")?;
    /// assert_eq!(inserted.affected_rows(), Some(1));
    /// sql.query("ROLLBACK")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind`] lists them.
    pub fn query(&mut self, sql: &str) -> Result<Rows> {
        self.cancel.begin();
        if self.plans.knows(sql) {
            let state = self.session.state(&self.database)?;
            let names = self.names_of(&state);
            if let Some(plan) = self.plans.find(sql, &names)? {
                // If a step fails, the slot of the plan is emptied with `running`.
                let running = plan.slot.run(state);
                return Rows::of(plan, running, &self.cancel);
            }
        }
        match Statement::parse(sql)? {
            Statement::Read(statement, None) => {
                let state = self.session.state(&self.database)?;
                self.read(sql, statement, state)
            }
            Statement::Read(statement, Some(version)) => {
                let state = self.version(&version)?;
                self.read("", statement, state)
            }
            statement => Ok(Rows::none(self.control(statement)?)),
        }
    }

    /// Runs one statement to its end; returns the number of rows that it has changed or returned.
    ///
    /// # Errors
    /// [`ErrorKind`] lists them.
    pub fn execute(&mut self, sql: &str) -> Result<u64> {
        let mut rows = self.query(sql)?;
        if let Some(affected) = rows.affected_rows() {
            return Ok(affected);
        }
        rows.try_fold(0, |rows, batch| Ok(rows + batch?.num_rows() as u64))
    }

    /// Whether a transaction is open, begun with `BEGIN`.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        !matches!(self.session, Session::Auto)
    }

    /// Runs a statement that reads. A plan is kept under the text `sql`, unless that is empty.
    fn read(&mut self, sql: &str, statement: Parsed, state: AnyRead) -> Result<Rows> {
        let tables = self.tables_of(&state);
        let running = tables.slot.run(state);
        self.planner.begin(&tables);
        let planner = &self.planner;
        let (plan, can_be_kept) = runtime()?.block_on(async {
            let logical = planner.logical(statement).await?;
            let physical = planner.physical(&logical).await?;
            let plan = Plan::new(physical, planner.context(), (tables.names, tables.slot));
            Ok::<_, Error>((plan, plans::can_be_kept(&logical)?))
        })?;
        if can_be_kept && !sql.is_empty() {
            self.plans.keep(sql, plan.clone());
        }
        Rows::of(plan, running, &self.cancel)
    }

    /// A snapshot of an earlier version.
    fn version(&self, version: &Version) -> Result<AnyRead> {
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
    fn control(&mut self, statement: Statement) -> Result<Option<u64>> {
        let none = |()| None;
        match statement {
            Statement::Read(..) => Ok(None),
            Statement::Change(statement) => self
                .in_transaction(|own, txn| own.change(statement, txn))
                .map(Some),
            Statement::Copy(_) if self.planner.files().is_none() => {
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
            Statement::Commit => match std::mem::take(&mut self.session) {
                Session::Writing(txn) => {
                    txn.commit(self.durability)?;
                    Ok(None)
                }
                Session::Reading(_) => Ok(None),
                Session::Auto => Err(no_transaction()),
            },
            Statement::Rollback => match std::mem::take(&mut self.session) {
                Session::Auto => Err(no_transaction()),
                Session::Reading(_) | Session::Writing(_) => Ok(None),
            },
            Statement::RollbackTo(name) => self.transaction()?.rollback_to(&name).map(none),
            Statement::Savepoint(name) => self.transaction()?.savepoint(&name).map(none),
            Statement::Release(name) => self.transaction()?.release(&name).map(none),
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

    /// Runs `work` in the open transaction, or in one of its own.
    fn in_transaction<T>(
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

    /// Runs INSERT, UPDATE or DELETE; returns the number of rows.
    fn change(&mut self, mut statement: Parsed, txn: &mut Transaction) -> Result<u64> {
        let state = match write::reads_rows(&statement) {
            true => txn.state()?,
            false => txn.definitions()?,
        };
        let changed = write::changed_table(&statement)?;
        let on_conflict = write::take_conflict(&mut statement)?;
        let assigned = write::assigned_columns(&statement)?;
        let tables = Tables {
            changed,
            ..self.tables_of(&state)
        };
        let running = tables.slot.run(state);
        self.planner.begin(&tables);
        let plan = runtime()?.block_on(self.planner.change(statement))?;
        let provider = source_as_provider(&plan.target)?;
        if let Some(table) = provider.downcast_ref::<SeriesTable>() {
            if on_conflict.is_some_and(|clause| !clause.is_none()) {
                let problem = "not supported: ON CONFLICT for series; each keeps or replaces rows of one time by its merge policy";
                return Err(Error::new(ErrorKind::Syntax, problem));
            }
            let layout = Arc::clone(&table.layout);
            return self.change_series(&layout, &plan, (tables, running), txn);
        }
        let Some(table) = provider.downcast_ref::<RelationTable>() else {
            let problem = format!("{} cannot be changed with SQL", plan.table_name);
            return Err(Error::new(ErrorKind::Plan, problem));
        };
        let (name, relation) = (&table.name, &table.relation);
        match plan.op {
            WriteOp::Insert(_) => {
                let clause = on_conflict.unwrap_or_else(Clause::none);
                let clause = clause.plan(name, relation, self.planner.session())?;
                let rows = self.rows_of(&plan.input, tables, running)?;
                txn.change_atomically(|txn| {
                    let insert = |batch| write::relation::insert(txn, name, &batch?, &clause);
                    rows.map(insert).sum()
                })
            }
            WriteOp::Delete => {
                let key = datafusion::logical_expr::col(KEY);
                let keys = LogicalPlanBuilder::from(plan.input.as_ref().clone());
                let keys = keys.project([key])?.build()?;
                let rows = self.rows_of(&keys, tables, running)?;
                txn.change_atomically(|txn| {
                    let delete = |batch| write::relation::delete(txn, name, &batch?);
                    rows.map(delete).sum()
                })
            }
            WriteOp::Update => {
                let mut rows = self.rows_of(&plan.input, tables, running)?;
                let mut update = Update::new(name, relation, &assigned);
                txn.change_atomically(|txn| {
                    rows.try_for_each(|batch| update.update(txn, &batch?))?;
                    update.finish(txn)
                })
            }
            _ => Err(Error::new(
                ErrorKind::Syntax,
                format!("not supported: {}", plan.op),
            )),
        }
    }

    /// Runs INSERT or DELETE on series.
    fn change_series(
        &self,
        layout: &Arc<Layout>,
        plan: &DmlStatement,
        (tables, running): (Tables, Running),
        txn: &mut Transaction,
    ) -> Result<u64> {
        match plan.op {
            WriteOp::Insert(_) => {
                let rows = self.rows_of(&plan.input, tables, running)?;
                let mut insert = SeriesInsert::new(layout);
                let mut inserted = 0;
                for batch in rows {
                    let batch = batch?;
                    inserted += txn.change(|txn| insert.insert(txn, &batch))?;
                }
                Ok(inserted)
            }
            WriteOp::Delete => {
                let session = self.planner.session();
                let input = session.optimize(&plan.input)?;
                match write::delete::wanted(layout, &input, session)? {
                    None => Ok(0),
                    Some(wanted) => txn.change(|txn| write::delete::rows(txn, layout, &wanted)),
                }
            }
            _ => Err(Error::new(
                ErrorKind::Syntax,
                format!(
                    "rows of series are not updated: INSERT replaces the row of a time, unless the series keeps several; {} is a table of series",
                    plan.table_name
                ),
            )),
        }
    }

    /// Runs CREATE, ALTER or DROP; returns the number of rows of CREATE TABLE ... AS.
    fn define(&mut self, statement: ast::Statement, txn: &mut Transaction) -> Result<Option<u64>> {
        let state = txn.state()?;
        let tables = self.tables_of(&state);
        let running = tables.slot.run(state);
        self.planner.begin(&tables);
        let plan = Definition::plan(statement, &tables, &self.planner);
        let plan = runtime()?.block_on(plan)?;
        let Definition::Create {
            name,
            rows: Some(rows),
            ..
        } = &plan
        else {
            drop(running);
            txn.define_atomically(|txn| plan.apply(txn))?;
            return Ok(None);
        };
        let rows = self.rows_of(rows, tables, running)?;
        let clause = OnConflict {
            target: None,
            action: Action::Fail,
        };
        let inserted = txn.define_atomically(|txn| {
            plan.apply(txn)?;
            let insert = |batch| write::relation::insert(txn, name, &batch?, &clause);
            rows.map(insert).sum()
        })?;
        Ok(Some(inserted))
    }

    /// Writes the rows of a query to a file; returns their number.
    fn copy_to(&mut self, query: Parsed, file: &str, options: &[ast::CopyOption]) -> Result<u64> {
        let options = FileOptions::of_copy(file, options)?;
        let state = self.session.state(&self.database)?;
        let rows = self.read("", query, state)?;
        let mut sink = FileSink::create(Path::new(file), &rows.schema(), &options)?;
        for batch in rows {
            sink.write(&batch?)?;
        }
        sink.finish()
    }

    /// Inserts batches into a table. Their columns are found by name and converted to the types of the table; a column of
    /// the table that they lack is null, or has its default. This is the fastest way to load rows, and one transaction.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, storage::MemoryStorage};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// use tidalite_sql::arrow::array::{Float64Array, RecordBatch, StringArray, record_batch};
    ///
    /// let mut sql = tidalite_sql::Connection::new(&db)?;
    /// sql.execute("CREATE TABLE turbines (id TEXT PRIMARY KEY, rated DOUBLE)")?;
    /// let rows = record_batch!(("id", Utf8, ["R1", "R2"]), ("rated", Float64, [2.5, 3.0]))?;
    /// assert_eq!(sql.insert("turbines", [rows])?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Plan`] for an unknown table or column; as for INSERT. Nothing is inserted then.
    pub fn insert(
        &mut self,
        table: &str,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<u64> {
        self.cancel.begin();
        let batches = batches.into_iter().map(Ok);
        self.in_transaction(|own, txn| own.insert_batches(table, &[], |_| Ok(batches), txn))
    }

    /// Inserts batches. If `columns` are given, they are the columns of the batches in order; otherwise these have names.
    fn insert_batches<B: Iterator<Item = Result<RecordBatch>>>(
        &mut self,
        name: &str,
        columns: &[String],
        batches: impl FnOnce(&SchemaRef) -> Result<B>,
        txn: &mut Transaction,
    ) -> Result<u64> {
        let state = txn.definitions()?;
        let tables = Tables {
            changed: Some((name.into(), Purpose::Insert)),
            ..self.tables_of(&state)
        };
        let running = tables.slot.run(state);
        let Some(table) = tables.table(name)? else {
            return Err(Error::new(
                ErrorKind::Plan,
                format!("there is no table {name}"),
            ));
        };
        drop(running);
        let mut aligned = Aligned::new(&table, name, columns);
        let batches = batches(&table.schema())?;
        let cancel = self.cancel.clone();
        let mut batches = batches.map(|batch| {
            cancel.check()?;
            aligned.align(&batch?)
        });
        if let Some(table) = table.downcast_ref::<SeriesTable>() {
            let mut insert = SeriesInsert::new(&table.layout);
            return txn
                .change_atomically(|txn| batches.map(|batch| insert.insert(txn, &batch?)).sum());
        }
        if table.is::<RelationTable>() {
            let clause = OnConflict {
                target: None,
                action: Action::Fail,
            };
            return txn.change_atomically(|txn| {
                let insert = |batch| write::relation::insert(txn, name, &batch?, &clause);
                batches.by_ref().map(insert).sum()
            });
        }
        Err(Error::new(
            ErrorKind::Plan,
            format!("{name} cannot be changed with SQL"),
        ))
    }

    /// Runs the input of a change.
    fn rows_of(&self, input: &LogicalPlan, tables: Tables, running: Running) -> Result<Rows> {
        let planner = &self.planner;
        let physical = runtime()?.block_on(planner.physical(input))?;
        let plan = Plan::new(physical, planner.context(), (tables.names, tables.slot));
        Rows::of(plan, running, &self.cancel)
    }

    /// The names of the tables in a snapshot.
    fn names_of(&self, snapshot: &AnyRead) -> Arc<Names> {
        let version = snapshot.catalog_version();
        let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match known.as_ref().filter(|names| names.are_of(&version)) {
            Some(names) => Arc::clone(names),
            None => Arc::clone(known.insert(Arc::new(Names::new(version)))),
        }
    }

    /// The tables of a state, in a slot that is still empty.
    fn tables_of(&self, state: &AnyRead) -> Tables {
        Tables {
            names: self.names_of(state),
            slot: Slot::default(),
            files: self.planner.files().cloned(),
            changed: None,
        }
    }

    /// Calls `ask` with the tables of the state in which a query reads.
    fn with_tables<T>(&mut self, ask: impl FnOnce(&Tables) -> Result<T>) -> Result<T> {
        let snapshot = self.session.state(&self.database)?;
        let tables = self.tables_of(&snapshot);
        let running = tables.slot.run(snapshot);
        let answer = ask(&tables);
        drop(running);
        answer
    }

    /// A handle that cancels statements of this connection from another thread.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// The tables of the open transaction, or of the newest commit, in order of name.
    ///
    /// # Errors
    /// A damaged or unreadable page; a transaction that has failed.
    pub fn tables(&mut self) -> Result<Vec<TableName>> {
        self.with_tables(Tables::list)
    }

    /// The columns of the table with this name; `None` if there is none.
    ///
    /// # Errors
    /// A damaged or unreadable page; two columns of a table with one name; a transaction that has failed.
    pub fn columns(&mut self, table: &str) -> Result<Option<SchemaRef>> {
        let table = self.with_tables(|tables| tables.table(table))?;
        Ok(table.map(|table| table.schema()))
    }

    /// The statements that create a table of typed columns again, without its rows: `CREATE TABLE`, and `CREATE INDEX` for
    /// each index. `None` for tables of other kinds, and for unknown names.
    ///
    /// # Errors
    /// A damaged or unreadable page; a transaction that has failed.
    pub fn definition(&mut self, table: &str) -> Result<Option<String>> {
        let found =
            self.with_tables(|tables| RelationTable::find(table, &tables.slot, Purpose::Read))?;
        let text = found.map(|found| definition::definition(table, &found.relation));
        text.transpose()
    }
}

impl Tables {
    /// All tables, in order of name.
    fn list(&self) -> Result<Vec<TableName>> {
        let name = |name: &str, kind| TableName {
            name: name.to_owned(),
            kind,
        };
        let snapshot = self.slot.snapshot()?;
        let metrics = self.names.metrics(&snapshot)?.iter().map(String::as_str);
        let mut tables: Vec<TableName> = metrics
            .chain(self.names.wide_tables(&snapshot)?)
            .map(|metric| name(metric, TableKind::Metric))
            .collect();
        for table in OrderedTable::names(&snapshot)? {
            tables.push(name(&table, TableKind::Ordered));
        }
        for table in RelationTable::names(&snapshot)? {
            tables.push(name(&table, TableKind::Table));
        }
        tables.push(name(crate::catalog::series::SERIES, TableKind::System));
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tables)
    }
}
