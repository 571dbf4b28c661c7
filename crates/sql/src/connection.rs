//! A connection: runs statements on a database.

use crate::catalog::names::Names;
use crate::catalog::providers::Tables;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ConnectionOptions;
use crate::ordered::table::OrderedTable;
use crate::plans::{self, Plan, Plans};
use crate::session::Planner;
use crate::slot::{Running, Slot};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use futures::future::{Either, select};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tidalite::{Database, ReadTxn};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Runs statements on a database.
pub struct Connection {
    database: Database,
    planner: Planner,
    /// The tables of the newest list of series that a statement has seen.
    names: Mutex<Option<Arc<Names>>>,
    plans: Plans,
    cancel: CancelHandle,
}

/// Cancels the running statement of a connection from another thread.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<Cancel>);

#[derive(Debug, Default)]
struct Cancel {
    is_cancelled: AtomicBool,
    notify: Notify,
}

impl CancelHandle {
    /// Ends the running statement soon, with an error of kind [`ErrorKind::Cancelled`]. Later statements run.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
        self.0.notify.notify_one();
    }
}

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// The series of a metric, or of several metrics with a common prefix.
    Metric,
    /// An ordered table.
    Table,
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

/// The threads that run queries, shared by all connections of the process.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if tokio::runtime::Handle::try_current().is_ok() {
        let problem = "this call blocks, so it must not be made in a task of an async runtime; use spawn_blocking";
        return Err(Error::new(ErrorKind::Execution, problem));
    }
    if RUNTIME.get().is_none() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("tidalite-sql")
            .build()
            .map_err(|error| {
                Error::new(
                    ErrorKind::Execution,
                    format!("no thread can be started: {error}"),
                )
            })?;
        if let Err(surplus) = RUNTIME.set(runtime) {
            surplus.shutdown_background();
        }
    }
    RUNTIME
        .get()
        .ok_or_else(|| Error::new(ErrorKind::Execution, "there are no threads"))
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
            cancel: CancelHandle::default(),
        })
    }

    /// Runs one statement in a snapshot of the newest commit. Its rows are computed as they are read.
    ///
    /// # Errors
    /// [`ErrorKind`] lists them.
    pub fn query(&mut self, sql: &str) -> Result<Rows> {
        self.cancel.0.is_cancelled.store(false, Ordering::Relaxed);
        let snapshot = self.database.begin_read()?;
        let names = self.names_of(&snapshot);
        // If a step fails, the slot of the plan is emptied with `running`.
        let (plan, running) = match self.plans.find(sql, &names)? {
            Some(plan) => {
                let running = plan.slot.run(snapshot);
                (plan, running)
            }
            None => {
                let tables = Tables::new(names);
                let running = tables.slot.run(snapshot);
                (self.plan(sql, tables)?, running)
            }
        };
        // Nodes start tasks when they are executed.
        let entered = runtime()?.enter();
        let stream = execute_stream(plan.physical, plan.context)?;
        drop(entered);
        Ok(Rows {
            schema: stream.schema(),
            stream: Some(stream),
            cancel: self.cancel.clone(),
            _running: running,
        })
    }

    /// Plans a statement on these tables.
    fn plan(&mut self, sql: &str, tables: Tables) -> Result<Plan> {
        let statement = self.planner.parse(sql)?;
        self.planner.begin(&tables);
        let planner = &self.planner;
        let (plan, can_be_kept) = runtime()?.block_on(async {
            let logical = planner.logical(statement).await?;
            let physical = planner.physical(&logical).await?;
            let plan = Plan::new(physical, planner.context(), (tables.names, tables.slot));
            Ok::<_, Error>((plan, plans::can_be_kept(&logical)?))
        })?;
        if can_be_kept {
            self.plans.keep(sql, plan.clone());
        }
        Ok(plan)
    }

    /// The names of the tables in a snapshot.
    fn names_of(&self, snapshot: &ReadTxn) -> Arc<Names> {
        let version = snapshot.catalog_version();
        let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match known.as_ref().filter(|names| names.are_of(&version)) {
            Some(names) => Arc::clone(names),
            None => Arc::clone(known.insert(Arc::new(Names::new(version)))),
        }
    }

    /// Calls `ask` with the tables of the newest commit.
    fn with_tables<T>(&self, ask: impl FnOnce(&Tables) -> Result<T>) -> Result<T> {
        let snapshot = self.database.begin_read()?;
        let tables = Tables::new(self.names_of(&snapshot));
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

    /// The tables, in order of name.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<TableName>> {
        self.with_tables(Tables::list)
    }

    /// The columns of the table with this name; `None` if there is none.
    ///
    /// # Errors
    /// A damaged or unreadable page; two columns of a table with one name.
    pub fn columns(&self, table: &str) -> Result<Option<SchemaRef>> {
        let table = self.with_tables(|tables| tables.table(table))?;
        Ok(table.map(|table| table.schema()))
    }
}

impl Tables {
    /// The tables with these names, in a slot that is still empty.
    fn new(names: Arc<Names>) -> Self {
        let slot = Slot::default();
        Self { names, slot }
    }

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
            tables.push(name(&table, TableKind::Table));
        }
        tables.push(name(crate::catalog::series::SERIES, TableKind::System));
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tables)
    }
}

/// The rows of a result, in batches.
pub struct Rows {
    schema: SchemaRef,
    /// `None` after the last batch or an error.
    stream: Option<SendableRecordBatchStream>,
    cancel: CancelHandle,
    /// The snapshot of the statement ends with its rows.
    _running: Running,
}

impl Rows {
    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        let stream = self.stream.as_mut()?;
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return Some(Err(error)),
        };
        let cancel = &self.cancel.0;
        let next = runtime.block_on(async {
            let cancelled = pin!(async {
                while !cancel.is_cancelled.load(Ordering::Relaxed) {
                    cancel.notify.notified().await;
                }
            });
            match select(cancelled, stream.next()).await {
                Either::Left(_) => None,
                Either::Right((batch, _)) => Some(batch),
            }
        });
        match next {
            None => Some(Err(Error::new(
                ErrorKind::Cancelled,
                "the statement was cancelled",
            ))),
            Some(batch) => batch.map(|batch| batch.map_err(Error::from)),
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        if !matches!(batch, Some(Ok(_))) {
            self.stream = None;
        }
        batch
    }
}
