//! Rewrites the RETURNING clause as a query over the rows that a statement has written.
//!
//! ```text
//! UPDATE t AS a SET .. RETURNING id, a.v  =>  SELECT id, a.v FROM "__returned" AS a
//! ```
//!
//! Subqueries in the clause read the tables as they were before the statement, including the changed table.

use crate::catalog::providers::RETURNED;
use crate::error::{Error, ErrorKind, Result};
use crate::statement::parse_one;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, FromTable, Ident, ObjectName, SelectItem, SetExpr, TableFactor, TableObject,
    TableWithJoins, visit_relations,
};
use std::ops::ControlFlow;

/// The clause as written in the statement.
pub(crate) struct ReturningClause {
    items: Vec<SelectItem>,
    /// The name by which the expressions refer to the table.
    table: Ident,
}

impl ReturningClause {
    /// Removes the clause from a statement, because the planner does not support it, and returns it; `None` if the
    /// statement has none.
    pub(crate) fn take(statement: &mut Statement) -> Option<Self> {
        let Statement::Statement(statement) = statement else {
            return None;
        };
        let (items, table) = match &mut **statement {
            ast::Statement::Insert(insert) => {
                let name = match &insert.table {
                    TableObject::TableName(name) => last_part(name),
                    _ => None,
                };
                (insert.returning.take(), name)
            }
            ast::Statement::Update(update) => (update.returning.take(), name_of(&update.table)),
            ast::Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) =
                    &delete.from;
                (delete.returning.take(), tables.first().and_then(name_of))
            }
            _ => return None,
        };
        Some(Self {
            items: items?,
            table: table?,
        })
    }

    /// Whether the expressions contain subqueries that read tables.
    pub(crate) fn reads_tables(&self) -> bool {
        let relation = |_: &ObjectName| ControlFlow::Break(());
        visit_relations(&self.items, relation).is_break()
    }

    /// The query over the rows.
    pub(crate) fn query(self) -> Result<Statement> {
        let alias = Ident::with_quote('"', self.table.value);
        let mut query = parse_one(&format!("SELECT 1 FROM {RETURNED} AS {alias}"))?;
        // The expressions keep their positions in the text of the statement.
        if let Statement::Statement(statement) = &mut query
            && let ast::Statement::Query(query) = &mut **statement
            && let SetExpr::Select(select) = &mut *query.body
        {
            select.projection = self.items;
        }
        Ok(query)
    }
}

fn name_of(table: &TableWithJoins) -> Option<Ident> {
    match &table.relation {
        TableFactor::Table {
            alias: Some(alias), ..
        } => Some(alias.name.clone()),
        TableFactor::Table { name, .. } => last_part(name),
        _ => None,
    }
}

fn last_part(name: &ObjectName) -> Option<Ident> {
    name.0.last()?.as_ident().cloned()
}

/// Rejects a plan of the clause that does not return exactly one row for each written row.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let is_of_rows = match plan {
        LogicalPlan::Projection(projection) => matches!(
            &*projection.input,
            LogicalPlan::SubqueryAlias(_) | LogicalPlan::TableScan(_)
        ),
        _ => false,
    };
    if is_of_rows {
        return Ok(());
    }
    let problem = "RETURNING takes expressions of single rows: no aggregates, no window functions, and no functions that return several rows";
    Err(Error::new(ErrorKind::Plan, problem))
}
