//! Statements that change the database: its rows, tables and files.

use crate::catalog::names::Names;
use crate::catalog::providers::Tables;
use crate::connection::Connection;
use crate::direct::change::RowChange;
use crate::direct::insert::{InsertValues, RelationInsert};
use crate::error::{Error, ErrorKind, Result};
use crate::files::format::FileOptions;
use crate::files::write::FileSink;
use crate::metric::layout::Layout;
use crate::metric::table::SeriesTable;
use crate::plans::{InsertTarget, Kept, PreparedInsert};
use crate::relational::table::{KEY, Purpose, RelationTable};
use crate::returning::{self, Returning};
use crate::rows::{Rows, runtime};
use crate::write;
use crate::write::align::Aligned;
use crate::write::conflict::{Action, Clause, OnConflict};
use crate::write::define::Definition;
use crate::write::delete::{FoundRows, Selected};
use crate::write::joined::Joined;
use crate::write::relation::Update;
use crate::write::series::SeriesInsert;
use crate::write::transaction::Transaction;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp, col};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast;
use std::path::Path;
use std::sync::Arc;
use tidalite::{AnyRead, Database, WriteTxn};

fn conflict_of_series() -> Error {
    let problem = "not supported: ON CONFLICT for series; each keeps or replaces rows of one time by its merge policy";
    Error::new(ErrorKind::Syntax, problem)
}

fn unchangeable(table: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Plan,
        format!("{table} cannot be changed with SQL"),
    )
}

/// A change of the rows of a relation that a plan returns.
enum RowsChange<'c> {
    Update {
        /// The columns that are assigned new values.
        columns: &'c [String],
        /// Whether the plan can return a row several times.
        is_joined: bool,
    },
    Delete,
}

/// The plan with its parameters replaced by values.
fn bound(plan: LogicalPlan, parameters: &[ScalarValue]) -> Result<LogicalPlan> {
    match parameters.is_empty() {
        true => Ok(plan),
        false => Ok(plan.with_param_values(parameters.to_vec())?),
    }
}

/// The relation whose rows a join selects for a change.
fn joined_table(name: &str, tables: &Tables) -> Result<RelationTable> {
    if let Some(table) = RelationTable::find(name, &tables.slot, Purpose::Change)? {
        return Ok(table);
    }
    match tables.table(name)? {
        Some(table) if table.is::<SeriesTable>() => {
            let problem = format!(
                "not supported: FROM, USING and another name for a table of series, {name}; a subquery can read other tables: WHERE tag IN (SELECT ...)"
            );
            Err(Error::new(ErrorKind::Syntax, problem))
        }
        Some(_) => Err(unchangeable(name)),
        None => {
            let problem = format!("there is no table {name}");
            Err(Error::new(ErrorKind::Plan, problem))
        }
    }
}

impl Connection {
    /// Changes the row with a primary key. Returns `None`, with nothing changed, if the statement refers to another
    /// table or other columns.
    pub(crate) fn change_row(
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

    /// Inserts rows that consist of constants and parameters. Returns `None`, with nothing changed, if the columns do
    /// not match the table; the planner then reports the problem with its position. `kept` is the statement as prepared
    /// by an earlier run.
    pub(crate) fn insert_values(
        &mut self,
        sql: &str,
        (insert, kept): (Arc<InsertValues>, Option<&Arc<PreparedInsert>>),
        parameters: &[ScalarValue],
    ) -> Result<Option<u64>> {
        self.in_transaction(|own, txn| {
            let names = own.names.of(&txn.definitions()?);
            if let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.names, &names)) {
                return own.run_insert(kept, parameters, txn).map(Some);
            }
            let Some(prepared) = own.prepare_insert((insert, names), parameters, txn)? else {
                return Ok(None);
            };
            let prepared = Arc::new(prepared);
            if !parameters.is_empty() {
                own.plans.keep(sql, Kept::Insert(Arc::clone(&prepared)));
            }
            own.run_insert(&prepared, parameters, txn).map(Some)
        })
    }

    /// Finds the table of an INSERT; returns `None` if the columns do not match.
    fn prepare_insert(
        &self,
        (insert, names): (Arc<InsertValues>, Arc<Names>),
        parameters: &[ScalarValue],
        txn: &mut Transaction,
    ) -> Result<Option<PreparedInsert>> {
        let Some(table) = self.target(&insert.table, txn)? else {
            return Ok(None);
        };
        if !insert.fits(&table.schema()) {
            return Ok(None);
        }
        let target = match table.downcast_ref::<RelationTable>() {
            None => InsertTarget::Other(table),
            Some(table) => {
                let schema = &table.source.relation;
                let clause = insert.clause.clone();
                let on_conflict = match clause.can_be_kept() {
                    true => {
                        let session = (self.planner.session(), parameters);
                        Some(clause.plan(&insert.table, schema, session)?)
                    }
                    false => None,
                };
                InsertTarget::Relation(RelationInsert::new(&insert, schema, on_conflict))
            }
        };
        Ok(Some(PreparedInsert {
            names,
            insert,
            target,
        }))
    }

    /// Inserts the rows of a prepared INSERT; returns their number.
    fn run_insert(
        &mut self,
        prepared: &PreparedInsert,
        parameters: &[ScalarValue],
        txn: &mut Transaction,
    ) -> Result<u64> {
        let insert = &prepared.insert;
        match &prepared.target {
            InsertTarget::Relation(relation) => {
                let rows = relation.cells(insert, parameters)?.into_iter().map(Ok);
                let planned;
                let on_conflict = match &relation.on_conflict {
                    Some(kept) => kept,
                    None => {
                        self.planner.begin_again();
                        let clause = insert.clause.clone();
                        let session = (self.planner.session(), parameters);
                        planned = clause.plan(&insert.table, &relation.schema, session)?;
                        &planned
                    }
                };
                let run = |txn: &mut WriteTxn| {
                    let mut relation = write::relation::open(txn, &insert.table)?;
                    write::relation::insert_rows(&mut relation, rows, on_conflict, None)
                };
                match insert.is_row() && !matches!(on_conflict.action, Action::Replace) {
                    true => txn.change_row(run),
                    false => txn.change_atomically(run),
                }
            }
            InsertTarget::Other(table) => {
                let batch = insert.batch(&table.schema(), parameters)?;
                let (name, clause) = (&insert.table, insert.clause.clone());
                let rows = std::iter::once(Ok(batch));
                self.insert_into(
                    name,
                    table,
                    (&[], clause),
                    (rows, parameters),
                    &mut None,
                    txn,
                )
            }
        }
    }

    /// Runs INSERT, UPDATE or DELETE. Returns the number of rows, and the rows of the RETURNING clause.
    pub(crate) fn change(
        &mut self,
        mut statement: Parsed,
        parameters: &[ScalarValue],
        txn: &mut Transaction,
    ) -> Result<Rows> {
        let clause = write::returning::ReturningClause::take(&mut statement);
        let clause_reads = clause.as_ref().is_some_and(|clause| clause.reads_tables());
        let state = match clause_reads || write::reads_rows(&statement) {
            true => txn.state()?,
            false => txn.definitions()?,
        };
        let changed = write::changed_table(&statement)?;
        let mut returning = match (clause, &changed) {
            (Some(clause), Some((name, _))) => {
                self.plan_returning(clause, name, &state, parameters)?
            }
            _ => None,
        };
        let tables = Tables {
            changed,
            ..self.tables_of(&state)
        };
        let affected =
            self.change_rows(statement, (tables, state), parameters, &mut returning, txn)?;
        Ok(match returning {
            Some(returning) => returning.finish(affected),
            None => Rows::none(Some(affected)),
        })
    }

    /// Runs a change of rows in these tables; returns the number of rows.
    fn change_rows(
        &mut self,
        mut statement: Parsed,
        (tables, state): (Tables, AnyRead),
        parameters: &[ScalarValue],
        returning: &mut Option<Returning>,
        txn: &mut Transaction,
    ) -> Result<u64> {
        let clause = write::take_conflict(&mut statement)?;
        let assigned = write::assigned_columns(&statement)?;
        let running = tables.slot.run(state.clone());
        self.planner.begin(&tables);
        if let Some(joined) = Joined::of(&statement)?
            && let Some((name, _)) = &tables.changed
        {
            let table = joined_table(name, &tables)?;
            let is_update = joined.is_update();
            let query = joined.query(&table.source.relation)?;
            let plan = runtime()?.block_on(self.planner.logical(query))?;
            let plan = bound(plan, parameters)?;
            let change = match is_update {
                true => RowsChange::Update {
                    columns: &assigned,
                    is_joined: true,
                },
                false => RowsChange::Delete,
            };
            let rows =
                |input: &LogicalPlan| self.rows_of(input, (&tables.names, &tables.slot), running);
            return self.change_relation(&table, (change, &plan), rows, returning, txn);
        }
        let mut plan = runtime()?.block_on(self.planner.change(statement))?;
        plan.input = Arc::new(bound(plan.input.as_ref().clone(), parameters)?);
        let table = source_as_provider(&plan.target)?;
        let rows =
            |input: &LogicalPlan| self.rows_of(input, (&tables.names, &tables.slot), running);
        if let WriteOp::Insert(InsertOp::Append) = plan.op {
            let name = plan.table_name.to_string();
            let (clause, rows) = (clause.unwrap_or_default(), rows(&plan.input)?);
            let rows = (rows, parameters);
            return self.insert_into(&name, &table, (&[], clause), rows, returning, txn);
        }
        if let Some(table) = table.downcast_ref::<SeriesTable>() {
            return self.delete_from_series(&table.layout, &plan, (rows, &state), txn);
        }
        let Some(table) = table.downcast_ref::<RelationTable>() else {
            return Err(unchangeable(&plan.table_name));
        };
        let change = match plan.op {
            WriteOp::Delete => RowsChange::Delete,
            WriteOp::Update => RowsChange::Update {
                columns: &assigned,
                is_joined: false,
            },
            _ => {
                return Err(Error::new(
                    ErrorKind::Syntax,
                    format!("not supported: {}", plan.op),
                ));
            }
        };
        self.change_relation(table, (change, &plan.input), rows, returning, txn)
    }

    /// Updates or deletes the rows of a relation that a plan returns, with their keys in the last column. Returns their
    /// number.
    fn change_relation(
        &self,
        table: &RelationTable,
        (change, input): (RowsChange<'_>, &LogicalPlan),
        rows: impl FnOnce(&LogicalPlan) -> Result<Rows>,
        returning: &mut Option<Returning>,
        txn: &mut Transaction,
    ) -> Result<u64> {
        let name = &table.source.name;
        match change {
            RowsChange::Delete => {
                let mut rows = match returning {
                    Some(_) => rows(input)?,
                    None => {
                        let keys = LogicalPlanBuilder::from(input.clone());
                        rows(&keys.project([col(KEY)])?.build()?)?
                    }
                };
                txn.change_atomically(|txn| {
                    let delete = |sum, batch: Result<RecordBatch>| {
                        let written = returning::written(returning);
                        Ok::<_, Error>(sum + write::relation::delete(txn, name, &batch?, written)?)
                    };
                    let deleted = rows.try_fold(0, delete)?;
                    returning::run(returning, self)?;
                    Ok(deleted)
                })
            }
            RowsChange::Update { columns, is_joined } => {
                let mut rows = rows(input)?;
                let mut update = Update::new(name, &table.source.relation, columns, is_joined);
                txn.change_atomically(|txn| {
                    rows.try_for_each(|batch| {
                        update.update(txn, &batch?, returning::written(returning))
                    })?;
                    let updated = update.finish(txn)?;
                    returning::run(returning, self)?;
                    Ok(updated)
                })
            }
        }
    }

    /// Runs DELETE on series.
    fn delete_from_series(
        &self,
        layout: &Layout,
        plan: &DmlStatement,
        (rows, state): (impl FnOnce(&LogicalPlan) -> Result<Rows>, &AnyRead),
        txn: &mut Transaction,
    ) -> Result<u64> {
        if !matches!(plan.op, WriteOp::Delete) {
            let problem = format!(
                "rows of series are not updated: INSERT replaces the row of a time, unless the series keeps several; {} is a table of series",
                plan.table_name
            );
            return Err(Error::new(ErrorKind::Syntax, problem));
        }
        let session = self.planner.session();
        let input = session.optimize(&plan.input)?;
        match write::delete::selected(layout, &input, session)? {
            Selected::Nothing => Ok(0),
            Selected::Interval(wanted) => {
                txn.change(|txn| write::delete::interval(txn, layout, &wanted))
            }
            Selected::Rows => {
                let columns = plan.input.schema().columns();
                let columns = columns.into_iter().take(1 + layout.tags.len());
                let keys = LogicalPlanBuilder::from(plan.input.as_ref().clone());
                let keys = keys.project(columns.map(Expr::Column))?.build()?;
                let mut found = FoundRows::new(layout);
                for batch in rows(&keys)? {
                    self.cancel.check()?;
                    found.add(&batch?)?;
                }
                let ranges = found.ranges(state)?;
                txn.change(|txn| write::delete::ranges(txn, &ranges))
            }
        }
    }

    /// Runs CREATE, ALTER or DROP; returns the number of rows of CREATE TABLE ... AS.
    pub(crate) fn define(
        &mut self,
        statement: ast::Statement,
        txn: &mut Transaction,
    ) -> Result<Option<u64>> {
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
        let clause = OnConflict::default();
        let inserted = txn.define_atomically(|txn| {
            plan.apply(txn)?;
            let insert = |batch| write::relation::insert(txn, name, &batch?, &clause, None);
            rows.map(insert).sum()
        })?;
        Ok(Some(inserted))
    }

    /// Writes the rows of a query to a file; returns their number.
    pub(crate) fn copy_to(
        &mut self,
        query: Parsed,
        file: &str,
        options: &[ast::CopyOption],
    ) -> Result<u64> {
        let options = FileOptions::of_copy(file, options)?;
        let own = self.planner.files().databases().chain([&self.database]);
        let path = Path::new(file).canonicalize().ok();
        let is_own = |own: &Database| own.path().is_some() && own.path() == path.as_deref();
        if own.into_iter().any(is_own) {
            let problem = format!("{file} is a database that is open; COPY would replace it");
            return Err(Error::new(ErrorKind::File, problem));
        }
        let state = self.session.state(&self.database)?;
        let rows = self.read("", query, state, &[])?;
        let mut sink = FileSink::create(Path::new(file), &rows.schema(), &options)?;
        for batch in rows {
            sink.write(&batch?)?;
        }
        sink.finish()
    }

    /// Inserts batches into a table, all in one transaction. Columns are matched by name and converted to the types of
    /// the table. A column that the batches lack gets its default, or null. This is the fastest way to load rows.
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
    /// [`ErrorKind::Plan`] for an unknown table or column; otherwise as for INSERT. After an error nothing is inserted.
    pub fn insert(
        &mut self,
        table: &str,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<u64> {
        self.cancel.begin();
        let batches = batches.into_iter().map(Ok);
        self.in_transaction(|own, txn| own.insert_batches(table, &[], |_| Ok(batches), txn))
    }

    /// Inserts batches. If `columns` are given, they are the names of the batches' columns in order; otherwise the
    /// batches contain the names.
    pub(crate) fn insert_batches<B: Iterator<Item = Result<RecordBatch>>>(
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
        let clause = Clause::default();
        let rows = (batches, &[][..]);
        self.insert_into(name, &target, (columns, clause), rows, &mut None, txn)
    }

    /// The table with this name, as the target of an insert.
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

    /// Inserts batches into a table. The ON CONFLICT clause may contain parameters.
    fn insert_into(
        &self,
        name: &str,
        table: &Arc<dyn TableProvider>,
        (columns, clause): (&[String], Clause),
        (batches, parameters): (impl Iterator<Item = Result<RecordBatch>>, &[ScalarValue]),
        returning: &mut Option<Returning>,
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
            let name = &table.source.name;
            let session = (self.planner.session(), parameters);
            let clause = clause.plan(name, &table.source.relation, session)?;
            return txn.change_atomically(|txn| {
                let mut inserted = 0;
                for batch in batches {
                    let written = returning::written(returning);
                    inserted += write::relation::insert(txn, name, &batch?, &clause, written)?;
                }
                returning::run(returning, self)?;
                Ok(inserted)
            });
        }
        Err(unchangeable(name))
    }
}
