//! The RETURNING clause of a running statement. Its query is planned before the statement changes rows, so that a wrong
//! name changes nothing; it runs on the rows that were written.

use crate::catalog::computed::ComputedTable;
use crate::catalog::names::Names;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::metric::table::SeriesTable;
use crate::relational::table::RelationTable;
use crate::rows::{Rows, runtime};
use crate::slot::{Running, Slot};
use crate::write::returning::{self, ReturningClause};
use crate::write::written::Written;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use std::sync::{Arc, OnceLock};
use tidalite::AnyRead;

/// The RETURNING clause of a statement that changes a relation.
pub(crate) struct Returning {
    plan: LogicalPlan,
    tables: (Arc<Names>, Slot),
    /// `None` once the query has started.
    running: Option<Running>,
    schema: SchemaRef,
    /// The rows of the table that the query reads, set once the statement has written them.
    rows: Arc<OnceLock<Vec<RecordBatch>>>,
    written: Written,
    returned: Vec<RecordBatch>,
}

impl Connection {
    /// Plans the clause for the table with this name; `None` if the table does not exist, which the planner of the
    /// statement reports.
    pub(crate) fn plan_returning(
        &mut self,
        clause: ReturningClause,
        name: &str,
        state: &AnyRead,
        parameters: &[ScalarValue],
    ) -> Result<Option<Returning>> {
        let mut tables = self.tables_of(state);
        let running = tables.slot.run(state.clone());
        let Some(target) = tables.table(name)? else {
            return Ok(None);
        };
        if target.is::<SeriesTable>() {
            let problem = format!(
                "not supported: RETURNING for series; {name} is a table of series, whose rows can be merged with others when they are stored"
            );
            return Err(Error::new(ErrorKind::Syntax, problem));
        }
        let Some(relation) = target.downcast_ref::<RelationTable>() else {
            return Ok(None);
        };
        let rows: Arc<OnceLock<Vec<RecordBatch>>> = Arc::default();
        let written_rows = Arc::clone(&rows);
        let table = ComputedTable::new(relation.schema(), move || {
            Ok(written_rows.get().cloned().unwrap_or_default())
        });
        let written = Written::new(&relation.source.relation);
        tables.returned = Some(Arc::new(table));
        self.planner.begin(&tables);
        let query = clause.query()?;
        let mut plan = runtime()?.block_on(self.planner.logical(query))?;
        returning::check(&plan)?;
        if !parameters.is_empty() {
            plan = plan.with_param_values(parameters.to_vec())?;
        }
        Ok(Some(Returning {
            schema: SchemaRef::clone(plan.schema().inner()),
            plan,
            tables: (tables.names, tables.slot),
            running: Some(running),
            rows,
            written,
            returned: Vec::new(),
        }))
    }
}

impl Returning {
    /// Computes the result for the rows that were written.
    pub(crate) fn run(&mut self, connection: &Connection) -> Result<()> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        let rows = self.written.take()?;
        self.rows.get_or_init(|| rows);
        let (names, slot) = &self.tables;
        let rows = connection.rows_of(&self.plan, (names, slot), running)?;
        self.schema = rows.schema();
        self.returned = rows.collect::<Result<_>>()?;
        Ok(())
    }

    /// The result, for a statement that has changed this number of rows.
    pub(crate) fn finish(self, affected: u64) -> Rows {
        Rows::returned(self.schema, self.returned, affected)
    }
}

/// The collector for the rows that a statement writes, if the statement returns any.
pub(crate) fn written(returning: &mut Option<Returning>) -> Option<&mut Written> {
    returning.as_mut().map(|returning| &mut returning.written)
}

/// Computes the result of the clause, if there is one.
pub(crate) fn run(returning: &mut Option<Returning>, connection: &Connection) -> Result<()> {
    match returning {
        Some(returning) => returning.run(connection),
        None => Ok(()),
    }
}
