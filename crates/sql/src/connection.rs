//! A connection: runs statements on a database.

use crate::catalog::names::Names;
use crate::catalog::providers::{Attached, Tables};
use crate::catalog::{series, system};
use crate::definition;
use crate::direct::change::RowChange;
use crate::direct::insert::InsertValues;
use crate::direct::lookup::Lookup;
use crate::error::{Error, ErrorKind, Result};
use crate::files::format::FileOptions;
use crate::files::read::read;
use crate::files::write::FileSink;
use crate::metric::layout::Layout;
use crate::metric::table::SeriesTable;
use crate::options::ConnectionOptions;
use crate::ordered::table::OrderedTable;
use crate::plans::{self, Kept, Plan, Plans, Unbound};
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
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, LogicalPlanBuilder, WriteOp};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite::{AnyRead, Database, Durability, WriteTxn};

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

fn conflict_of_series() -> Error {
    let problem = "not supported: ON CONFLICT for series; each keeps or replaces rows of one time by its merge policy";
    Error::new(ErrorKind::Syntax, problem)
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
            planner: Planner::new(database, options)?,
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
        self.query_with(sql, &[])
    }

    /// Runs one statement with values for its parameters `$1`, `$2`, ..., as [`query`](Self::query) does. A statement that is
    /// run again is not parsed again. The look-up of a row of a table by its primary key, and INSERT of constants and
    /// parameters, need no plan: they take microseconds.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, storage::MemoryStorage};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// use tidalite_sql::ScalarValue;
    ///
    /// let mut sql = tidalite_sql::Connection::new(&db)?;
    /// sql.query("CREATE TABLE turbines (id TEXT PRIMARY KEY, rated DOUBLE)")?;
    /// for (id, rated) in [("R1", 2.5), ("R2", 3.0)] {
    ///     let values = [ScalarValue::from(id), ScalarValue::from(rated)];
    ///     sql.query_with("INSERT INTO turbines VALUES ($1, $2)", &values)?;
    /// }
    /// let found = sql.query_with("SELECT rated FROM turbines WHERE id = $1", &[ScalarValue::from("R2")])?;
    /// assert_eq!(found.map(|batch| batch.map(|batch| batch.num_rows())).sum::<tidalite_sql::Result<usize>>()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`query`](Self::query); [`ErrorKind::Plan`] if a parameter has no value.
    pub fn query_with(&mut self, sql: &str, parameters: &[ScalarValue]) -> Result<Rows> {
        self.cancel.begin();
        if self.plans.reads(sql) {
            let state = self.session.state(&self.database)?;
            let names = self.names_of(&state);
            match self.plans.find(sql, &names)? {
                Some(Kept::Lookup(_, lookup)) => {
                    return Ok(Rows::ready(lookup.run(&state, parameters)?));
                }
                Some(Kept::Physical(plan)) => {
                    // If a step fails, the slot of the plan is emptied with `running`.
                    let running = plan.slot.run(state);
                    return Rows::of(plan, running, &self.cancel);
                }
                Some(Kept::Logical(plan)) => {
                    let running = plan.slot.run(state);
                    return self.run_unbound(&plan, running, parameters);
                }
                _ => {}
            }
        } else if let Some(insert) = self.plans.insert(sql)
            && let Some(inserted) = self.insert_values(&insert, parameters)?
        {
            return Ok(Rows::none(Some(inserted)));
        } else if let Some(change) = self.plans.change(sql)
            && let Some(changed) = self.change_row(&change, parameters)?
        {
            return Ok(Rows::none(Some(changed)));
        }
        match Statement::parse(sql)? {
            Statement::Read(statement, None) => {
                let state = self.session.state(&self.database)?;
                self.read(sql, statement, state, parameters)
            }
            Statement::Read(statement, Some(version)) => {
                let state = self.version(&version)?;
                self.read("", statement, state, parameters)
            }
            Statement::Change(statement) => {
                if let Some(insert) = InsertValues::of(&statement) {
                    let insert = Arc::new(insert);
                    if let Some(inserted) = self.insert_values(&insert, parameters)? {
                        if !parameters.is_empty() {
                            self.plans.keep(sql, Kept::Insert(insert));
                        }
                        return Ok(Rows::none(Some(inserted)));
                    }
                }
                if let Some(change) = RowChange::of(&statement) {
                    let change = Arc::new(change);
                    if let Some(changed) = self.change_row(&change, parameters)? {
                        if !parameters.is_empty() {
                            self.plans.keep(sql, Kept::Change(change));
                        }
                        return Ok(Rows::none(Some(changed)));
                    }
                }
                let changed =
                    self.in_transaction(|own, txn| own.change(statement, parameters, txn))?;
                Ok(Rows::none(Some(changed)))
            }
            statement => Ok(Rows::none(self.control(statement)?)),
        }
    }

    /// Changes the row with a primary key; returns `None`, having changed nothing, if the statement is about another table
    /// or other columns.
    fn change_row(
        &mut self,
        change: &Arc<RowChange>,
        parameters: &[ScalarValue],
    ) -> Result<Option<u64>> {
        let change = Arc::clone(change);
        self.in_transaction(|own, txn| {
            let target = own.target(&change.table, txn)?;
            let relation = target
                .as_ref()
                .and_then(|target| target.downcast_ref::<RelationTable>());
            match relation {
                Some(table) if change.fits(&table.source.relation) => {
                    txn.change_row(|txn| change.run(txn, parameters)).map(Some)
                }
                _ => Ok(None),
            }
        })
    }

    /// Inserts rows of constants and parameters; returns `None`, having changed nothing, if the columns do not fit the
    /// table: the planner then tells the problem and its place.
    fn insert_values(
        &mut self,
        insert: &Arc<InsertValues>,
        parameters: &[ScalarValue],
    ) -> Result<Option<u64>> {
        let insert = Arc::clone(insert);
        self.in_transaction(|own, txn| {
            let Some(target) = own.target(&insert.table, txn)? else {
                return Ok(None);
            };
            let schema = target.schema();
            if !insert.fits(&schema) {
                return Ok(None);
            }
            let batch = insert.batch(&schema, parameters)?;
            let clause = insert.clause.clone();
            let is_row = batch.num_rows() == 1;
            let batches = std::iter::once(Ok(batch));
            own.insert_into(
                &insert.table,
                &target,
                (&[], clause),
                (batches, is_row),
                txn,
            )
            .map(Some)
        })
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
    fn read(
        &mut self,
        sql: &str,
        statement: Parsed,
        state: AnyRead,
        parameters: &[ScalarValue],
    ) -> Result<Rows> {
        let tables = self.tables_of(&state);
        let running = tables.slot.run(state.clone());
        self.planner.begin(&tables);
        let planner = &self.planner;
        let logical = runtime()?.block_on(planner.logical(statement))?;
        let optimized = planner.optimize(&logical)?;
        if let Some(lookup) = Lookup::of(&optimized) {
            drop(running);
            let lookup = Arc::new(lookup);
            if !sql.is_empty() {
                let kept = Kept::Lookup(tables.names, Arc::clone(&lookup));
                self.plans.keep(sql, kept);
            }
            return Ok(Rows::ready(lookup.run(&state, parameters)?));
        }
        let (names, slot) = (tables.names, tables.slot);
        if !parameters.is_empty() {
            let plan = Arc::new(Unbound {
                names,
                slot,
                logical,
            });
            if !sql.is_empty() {
                self.plans.keep(sql, Kept::Logical(Arc::clone(&plan)));
            }
            return self.run_unbound(&plan, running, parameters);
        }
        let physical = runtime()?.block_on(planner.nodes(&optimized))?;
        let plan = Plan::new(physical, planner.context(), (names, slot));
        if plans::can_be_kept(&logical)? && !sql.is_empty() {
            self.plans.keep(sql, Kept::Physical(plan.clone()));
        }
        Rows::of(plan, running, &self.cancel)
    }

    /// Runs a plan with values for its parameters.
    fn run_unbound(
        &mut self,
        plan: &Unbound,
        running: Running,
        parameters: &[ScalarValue],
    ) -> Result<Rows> {
        let logical = plan
            .logical
            .clone()
            .with_param_values(parameters.to_vec())?;
        self.planner.begin_again();
        self.rows_of(&logical, (&plan.names, &plan.slot), running)
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
            Statement::Read(..) | Statement::Change(_) => Ok(None),
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
            Statement::Attach { file, name } => {
                self.planner.files().attach(&name, &file)?;
                // Names can mean other tables now.
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
    fn change(
        &mut self,
        mut statement: Parsed,
        parameters: &[ScalarValue],
        txn: &mut Transaction,
    ) -> Result<u64> {
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
        let mut plan = runtime()?.block_on(self.planner.change(statement))?;
        if !parameters.is_empty() {
            let input = plan.input.as_ref().clone();
            plan.input = Arc::new(input.with_param_values(parameters.to_vec())?);
        }
        let provider = source_as_provider(&plan.target)?;
        if let Some(table) = provider.downcast_ref::<SeriesTable>() {
            if on_conflict.is_some_and(|clause| !clause.is_none()) {
                return Err(conflict_of_series());
            }
            let layout = Arc::clone(&table.layout);
            return self.change_series(&layout, &plan, (tables, running), txn);
        }
        let Some(table) = provider.downcast_ref::<RelationTable>() else {
            let problem = format!("{} cannot be changed with SQL", plan.table_name);
            return Err(Error::new(ErrorKind::Plan, problem));
        };
        let (name, relation) = (&table.source.name, &table.source.relation);
        match plan.op {
            WriteOp::Insert(_) => {
                let clause = on_conflict.unwrap_or_else(Clause::none);
                let clause = clause.plan(name, relation, self.planner.session())?;
                let rows = self.rows_of(&plan.input, (&tables.names, &tables.slot), running)?;
                txn.change_atomically(|txn| {
                    let insert = |batch| write::relation::insert(txn, name, &batch?, &clause);
                    rows.map(insert).sum()
                })
            }
            WriteOp::Delete => {
                let key = datafusion::logical_expr::col(KEY);
                let keys = LogicalPlanBuilder::from(plan.input.as_ref().clone());
                let keys = keys.project([key])?.build()?;
                let rows = self.rows_of(&keys, (&tables.names, &tables.slot), running)?;
                txn.change_atomically(|txn| {
                    let delete = |batch| write::relation::delete(txn, name, &batch?);
                    rows.map(delete).sum()
                })
            }
            WriteOp::Update => {
                let mut rows = self.rows_of(&plan.input, (&tables.names, &tables.slot), running)?;
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
                let rows = self.rows_of(&plan.input, (&tables.names, &tables.slot), running)?;
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
        self.planner.files().expect_not_defined(&statement)?;
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
        let rows = self.rows_of(rows, (&tables.names, &tables.slot), running)?;
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
        let rows = self.read("", query, state, &[])?;
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
    /// use tidalite_sql::arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    ///
    /// let mut sql = tidalite_sql::Connection::new(&db)?;
    /// sql.execute("CREATE TABLE turbines (id TEXT PRIMARY KEY, rated DOUBLE)")?;
    /// let ids: ArrayRef = Arc::new(StringArray::from(vec!["R1", "R2"]));
    /// let rated: ArrayRef = Arc::new(Float64Array::from(vec![2.5, 3.0]));
    /// let rows = RecordBatch::try_from_iter([("id", ids), ("rated", rated)])?;
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
        let Some(target) = self.target(name, txn)? else {
            let problem = format!("there is no table {name}");
            return Err(Error::new(ErrorKind::Plan, problem));
        };
        let batches = batches(&target.schema())?;
        let clause = Clause::none();
        self.insert_into(name, &target, (columns, clause), (batches, false), txn)
    }

    /// The table with this name, to insert into.
    fn target(&self, name: &str, txn: &mut Transaction) -> Result<Option<Arc<dyn TableProvider>>> {
        let state = txn.definitions()?;
        let tables = Tables {
            changed: Some((name.into(), Purpose::Insert)),
            ..self.tables_of(&state)
        };
        let running = tables.slot.run(state);
        let table = tables.table(name);
        drop(running);
        table
    }

    /// Inserts batches into a table, or a single row.
    fn insert_into(
        &self,
        name: &str,
        table: &Arc<dyn TableProvider>,
        (columns, clause): (&[String], Clause),
        (batches, is_row): (impl Iterator<Item = Result<RecordBatch>>, bool),
        txn: &mut Transaction,
    ) -> Result<u64> {
        let mut aligned = Aligned::new(table, name, columns);
        let batches = batches.map(|batch| {
            self.cancel.check()?;
            aligned.align(&batch?)
        });
        if let Some(table) = table.downcast_ref::<SeriesTable>() {
            if !clause.is_none() {
                return Err(conflict_of_series());
            }
            let mut insert = SeriesInsert::new(&table.layout);
            let mut inserted = 0;
            for batch in batches {
                let batch = batch?;
                inserted += txn.change(|txn| insert.insert(txn, &batch))?;
            }
            return Ok(inserted);
        }
        if let Some(table) = table.downcast_ref::<RelationTable>() {
            let clause = clause.plan(name, &table.source.relation, self.planner.session())?;
            let insert = |txn: &mut WriteTxn| {
                let insert = |batch| write::relation::insert(txn, name, &batch?, &clause);
                batches.map(insert).sum()
            };
            return match is_row && !matches!(clause.action, Action::Replace) {
                true => txn.change_row(insert),
                false => txn.change_atomically(insert),
            };
        }
        Err(Error::new(
            ErrorKind::Plan,
            format!("{name} cannot be changed with SQL"),
        ))
    }

    /// Runs the input of a change.
    fn rows_of(
        &self,
        input: &LogicalPlan,
        (names, slot): (&Arc<Names>, &Slot),
        running: Running,
    ) -> Result<Rows> {
        let planner = &self.planner;
        let physical = runtime()?.block_on(planner.physical(input))?;
        let tables = (Arc::clone(names), slot.clone());
        let plan = Plan::new(physical, planner.context(), tables);
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
            reader: self.planner.reader().cloned(),
            changed: None,
            database: None,
            attached: Attached::default(),
            is_read_only: false,
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
        let text = found.map(|found| definition::definition(table, &found.source.relation));
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
        for table in [series::SERIES, system::STATS, system::PINS] {
            tables.push(name(table, TableKind::System));
        }
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tables)
    }
}
