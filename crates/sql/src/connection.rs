//! A connection: runs statements on a database.

use crate::catalog::names::{Names, NewestNames};
use crate::catalog::providers::{Attached, Tables};
use crate::catalog::views::{self, Views};
use crate::catalog::{series, system};
use crate::definition;
use crate::direct::change::RowChange;
use crate::direct::insert::InsertValues;
use crate::direct::lookup::Lookup;
use crate::error::Result;
use crate::options::ConnectionOptions;
use crate::ordered::table::OrderedTable;
use crate::plans::{self, Kept, Plan, Plans, Unbound};
use crate::relational::table::{Purpose, RelationTable};
use crate::rows::{CancelHandle, Rows, runtime};
use crate::session::Planner;
use crate::slot::{Running, Slot};
use crate::statement::{Prepared, Statement};
use crate::write;
use crate::write::transaction::Transaction;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::{AnyRead, Database, Durability};

/// Runs statements on a database.
pub struct Connection {
    pub(crate) database: Database,
    pub(crate) planner: Planner,
    pub(crate) names: NewestNames,
    pub(crate) plans: Plans,
    /// The statements created by PREPARE, by name.
    pub(crate) prepared: HashMap<String, Prepared>,
    pub(crate) session: Session,
    pub(crate) durability: Durability,
    pub(crate) cancel: CancelHandle,
}

/// The state of the database that statements read and change.
#[derive(Default)]
pub(crate) enum Session {
    /// Each statement runs in a transaction of its own.
    #[default]
    Auto,
    /// A read-only transaction, which reads one state.
    Reading(AnyRead),
    /// A transaction that reads and changes the database.
    Writing(Box<Transaction>),
}

impl Session {
    /// The state of the database that a query reads.
    pub(crate) fn state(&mut self, database: &Database) -> Result<AnyRead> {
        match self {
            Self::Auto => Ok(database.begin_read()?.into()),
            Self::Reading(state) => Ok(state.clone()),
            Self::Writing(txn) => txn.state(),
        }
    }
}

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// The series of a metric, or of several metrics with a common prefix.
    Metric,
    /// A table with typed columns, created with `CREATE TABLE`.
    Table,
    /// A named query, created with `CREATE VIEW`.
    View,
    /// An ordered table of keys and values.
    Ordered,
    /// A table that describes the database, such as `tidalite_series`.
    System,
}

/// A table and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The name, including its dots. In a statement it is written in quotes, or with the part before a dot as its
    /// schema.
    pub name: String,
    /// The kind of the table.
    pub kind: TableKind,
    /// The name of the attached file that has the table; `None` for the database of the connection. In a statement the
    /// table is written as `file.table`, with each part in its own quotes.
    pub file: Option<String>,
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
    /// A thread cannot be started.
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
            names: NewestNames::default(),
            plans: Plans::default(),
            prepared: HashMap::new(),
            session: Session::Auto,
            durability: options.durability,
            cancel: CancelHandle::default(),
        })
    }

    /// Runs one statement. The rows of a query are computed while they are read, and belong to one state of the
    /// database: the newest commit, or the connection's transaction with its changes so far. A statement that changes
    /// the database is complete when this call returns; outside a transaction it is also committed.
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
    /// [`ErrorKind`](crate::ErrorKind) lists them.
    pub fn query(&mut self, sql: &str) -> Result<Rows> {
        self.query_with(sql, &[])
    }

    /// Runs one statement with values for its parameters `$1`, `$2`, ..., like [`query`](Self::query). A statement that
    /// is run again is not parsed again. Looking up a row of a table by its primary key, and INSERT of constants and
    /// parameters, need no plan and take microseconds.
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
    /// As for [`query`](Self::query); [`ErrorKind::Plan`](crate::ErrorKind::Plan) if a parameter has no value.
    pub fn query_with(&mut self, sql: &str, parameters: &[ScalarValue]) -> Result<Rows> {
        self.cancel.begin();
        if self.plans.reads(sql) {
            let state = self.session.state(&self.database)?;
            let names = self.names.of(&state);
            match self.plans.find(sql, &names, &state)? {
                Some(Kept::Lookup(_, lookup)) => {
                    if let Some(found) = lookup.run(&state, parameters)? {
                        return Ok(Rows::ready(found));
                    }
                }
                Some(Kept::Physical(plan, _)) => {
                    // If a step fails, `running` is dropped, which empties the slot of the plan.
                    let running = plan.slot.run(state);
                    return Rows::of(plan, running, &self.cancel);
                }
                Some(Kept::Logical(plan)) => {
                    let running = plan.slot.run(state);
                    return self.run_unbound(&plan, running, parameters);
                }
                _ => {}
            }
        } else if let Some(kept) = self.plans.insert(sql)
            && let insert = (Arc::clone(&kept.insert), Some(&kept))
            && let Some(inserted) = self.insert_values(sql, insert, parameters)?
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
                if let Some(table) = write::changed_name(&statement) {
                    self.planner.files().expect_own(table)?;
                }
                if let Some(insert) = InsertValues::of(&statement) {
                    let insert = (Arc::new(insert), None);
                    if let Some(inserted) = self.insert_values(sql, insert, parameters)? {
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
                self.in_transaction(|own, txn| own.change(statement, parameters, txn))
            }
            Statement::Execute(name, values) => self.execute_prepared(&name, values, parameters),
            statement => Ok(Rows::none(self.control(statement)?)),
        }
    }

    /// Runs one statement to its end; returns the number of rows that it has changed or returned.
    ///
    /// # Errors
    /// [`ErrorKind`](crate::ErrorKind) lists them.
    pub fn execute(&mut self, sql: &str) -> Result<u64> {
        let mut rows = self.query(sql)?;
        if let Some(affected) = rows.affected_rows() {
            return Ok(affected);
        }
        rows.try_fold(0, |rows, batch| Ok(rows + batch?.num_rows() as u64))
    }

    /// Whether a transaction begun with `BEGIN` is open.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        !matches!(self.session, Session::Auto)
    }

    /// Runs a statement that only reads. The plan is kept with the text `sql` as its key, unless the text is empty.
    pub(crate) fn read(
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
        let lookup = Lookup::of(&optimized).map(Arc::new);
        let found = lookup.as_ref().map(|lookup| lookup.run(&state, parameters));
        let found = found.transpose()?.flatten();
        // With other parameters, the next look-up may find few rows even if this one finds many.
        let is_kept = lookup.is_some() && (found.is_some() || !parameters.is_empty());
        if let Some(lookup) = lookup.filter(|_| is_kept && !sql.is_empty()) {
            let kept = Kept::Lookup(Arc::clone(&tables.names), lookup);
            self.plans.keep(sql, kept);
        }
        if let Some(found) = found {
            drop(running);
            return Ok(Rows::ready(found));
        }
        let (names, slot) = (tables.names, tables.slot);
        if !parameters.is_empty() {
            let keeps = !is_kept && !sql.is_empty() && plans::can_be_bound_again(&logical)?;
            let plan = Arc::new(Unbound {
                names,
                slot,
                logical,
            });
            if keeps {
                self.plans.keep(sql, Kept::Logical(Arc::clone(&plan)));
            }
            return self.run_unbound(&plan, running, parameters);
        }
        let physical = runtime()?.block_on(planner.nodes(&optimized))?;
        let plan = Plan::new(physical, planner.context(), (names, slot));
        if !sql.is_empty()
            && plans::can_be_kept(&logical)?
            && let Some(relations) = plans::relations(&optimized, &plan.physical)?
        {
            self.plans
                .keep(sql, Kept::Physical(plan.clone(), relations));
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

    /// Runs the plan that supplies the rows of a change.
    pub(crate) fn rows_of(
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

    /// The tables of a state, in a new slot that is still empty.
    pub(crate) fn tables_of(&self, state: &AnyRead) -> Tables {
        Tables {
            names: self.names.of(state),
            slot: Slot::default(),
            reader: self.planner.reader().cloned(),
            changed: None,
            returned: None,
            database: None,
            views: Views::default(),
            attached: Attached::default(),
            is_read_only: false,
        }
    }

    /// Calls `ask` with the tables of the state that a query would read.
    fn with_tables<T>(&mut self, ask: impl FnOnce(&Tables) -> Result<T>) -> Result<T> {
        let snapshot = self.session.state(&self.database)?;
        let tables = self.planner.complete(self.tables_of(&snapshot));
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

    /// The tables of the open transaction, or of the newest commit, sorted by name, followed by the tables of attached
    /// files, `file.table`, except the tables that describe such a file.
    ///
    /// # Errors
    /// A damaged or unreadable page; a transaction that has failed.
    pub fn tables(&mut self) -> Result<Vec<TableName>> {
        self.with_tables(Tables::list)
    }

    /// The columns of the table with this name; `None` if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page; a table in which two columns have the same name; a transaction that has failed.
    pub fn columns(&mut self, table: &str) -> Result<Option<SchemaRef>> {
        let find = |tables: &Tables| {
            let (tables, table) = tables.of_file(table)?;
            match tables.table(table)? {
                Some(found) => Ok(Some(found)),
                None => runtime()?.block_on(tables.view(table)),
            }
        };
        Ok(self.with_tables(find)?.map(|table| table.schema()))
    }

    /// The statements that would create a table with typed columns again, without its rows: `CREATE TABLE`, and
    /// `CREATE INDEX` for each index. For a view the statement is `CREATE VIEW`. `None` for other kinds of tables, and
    /// for unknown names.
    ///
    /// # Errors
    /// A damaged or unreadable page; a transaction that has failed.
    pub fn definition(&mut self, table: &str) -> Result<Option<String>> {
        self.with_tables(|tables| {
            let (tables, table) = tables.of_file(table)?;
            if let Some(found) = RelationTable::find(table, &tables.slot, Purpose::Read)? {
                return definition::definition(table, &found.source.relation).map(Some);
            }
            let query = views::query(&tables.slot.snapshot()?, table)?;
            Ok(query.map(|query| definition::of_view(table, &query)))
        })
    }
}

impl Tables {
    /// All tables, including tables of attached files, sorted by name.
    fn list(&self) -> Result<Vec<TableName>> {
        let mut tables = self.list_own()?;
        for (file, attached) in self.attached_tables()? {
            let own = attached.list_own()?.into_iter();
            let own = own.filter(|table| table.kind != TableKind::System);
            tables.extend(own.map(|table| TableName {
                name: format!("{file}.{}", table.name),
                file: Some(file.clone()),
                ..table
            }));
        }
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        // If the database and a file have a table of the same name, the database's own table comes first; `columns`
        // finds this one.
        tables.dedup_by(|next, known| next.file.is_some() && next.name == known.name);
        Ok(tables)
    }

    fn list_own(&self) -> Result<Vec<TableName>> {
        let name = |name: &str, kind| TableName {
            name: name.to_owned(),
            kind,
            file: None,
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
        for view in views::names(&snapshot)? {
            tables.push(name(&view, TableKind::View));
        }
        for table in [series::SERIES, system::STATS, system::PINS] {
            tables.push(name(table, TableKind::System));
        }
        Ok(tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::Options;
    use tidalite::storage::MemoryStorage;

    #[test]
    fn statements_are_kept_without_their_plans_where_they_need_none() {
        let storage = Arc::new(MemoryStorage::new());
        let database = Options::new().open_storage(storage).unwrap();
        let mut sql = Connection::new(&database).unwrap();
        sql.execute("CREATE TABLE t (a BIGINT, b BIGINT, c TEXT, PRIMARY KEY (a, b))")
            .unwrap();
        sql.execute("CREATE INDEX t_c ON t (c)").unwrap();
        sql.execute(
            "INSERT INTO t SELECT value, 1, 'x' FROM unnest(generate_series(1, 3000)) AS s (value)",
        )
        .unwrap();
        let (number, text) = (ScalarValue::from(1_i64), ScalarValue::from("x"));
        let cases = [
            (
                "SELECT c FROM t WHERE a = $1",
                vec![number.clone()],
                "look-up",
            ),
            ("SELECT a FROM t WHERE c = $1", vec![text], "look-up"),
            (
                "SELECT a FROM t WHERE a > $1",
                vec![number.clone()],
                "unbound plan",
            ),
            ("SELECT a FROM t WHERE c = 'y'", vec![], "look-up"),
            // More rows than a look-up returns.
            ("SELECT a FROM t WHERE c = 'x'", vec![], "plan"),
            (
                "SELECT a, sum(b) FROM t WHERE b < 5 GROUP BY a",
                vec![],
                "plan",
            ),
            // The plan contains the number of rows as a constant.
            ("SELECT count(*) FROM t", vec![], "nothing"),
            ("SELECT now(), a FROM t", vec![], "nothing"),
            (
                "INSERT INTO t VALUES ($1, 2, 'z')",
                vec![number.clone()],
                "insert",
            ),
            (
                "UPDATE t SET c = 'w' WHERE a = $1 AND b = 2",
                vec![number],
                "change",
            ),
        ];
        for (text, parameters, kept) in cases {
            sql.query_with(text, &parameters).unwrap().for_each(drop);
            assert_eq!(sql.plans.kind(text), kept, "{text}");
        }
    }
}
