//! Statements that change the database.
//!
//! ```text
//! transaction   the write transaction of a connection, its savepoints and its readers
//! align         converts batches to the columns of a table
//! words         converts Arrow arrays to words of series
//! series        inserts batches of rows into series
//! delete        the rows of series that DELETE removes
//! joined        rewrites UPDATE ... FROM and DELETE ... USING as queries
//! written       the rows that a statement has written
//! returning     rewrites RETURNING as a query over these rows
//! expression    expressions outside queries
//! conflict      ON CONFLICT
//! relation      INSERT, UPDATE and DELETE of rows of relations
//! define/       CREATE, ALTER and DROP
//! ```

pub(crate) mod align;
pub(crate) mod conflict;
pub(crate) mod define;
pub(crate) mod delete;
pub(crate) mod expression;
pub(crate) mod joined;
pub(crate) mod relation;
pub(crate) mod returning;
pub(crate) mod series;
pub(crate) mod transaction;
mod words;
pub(crate) mod written;

use crate::error::Result;
use crate::relational::table::Purpose;
use crate::write::conflict::{Clause, column_of};
use crate::write::define::names::full_name;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, visit_relations};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Whether a change reads rows of tables: true except for INSERT with constant rows.
pub(crate) fn reads_rows(statement: &Statement) -> bool {
    let Statement::Statement(statement) = statement else {
        return true;
    };
    let ast::Statement::Insert(insert) = &**statement else {
        return true;
    };
    let relation = |_: &ast::ObjectName| ControlFlow::Break(());
    visit_relations(&insert.source, relation).is_break()
}

/// The table that a statement changes; `None` if it is not a simple name, which the planner rejects.
pub(crate) fn changed_name(statement: &Statement) -> Option<&ast::ObjectName> {
    let Statement::Statement(statement) = statement else {
        return None;
    };
    let table = match &**statement {
        ast::Statement::Insert(insert) => match &insert.table {
            ast::TableObject::TableName(name) => return Some(name),
            _ => return None,
        },
        ast::Statement::Update(update) => &update.table,
        ast::Statement::Delete(delete) => {
            let (ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables)) =
                &delete.from;
            tables.first()?
        }
        _ => return None,
    };
    match &table.relation {
        ast::TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}

/// The table that a statement changes, and the kind of change.
pub(crate) fn changed_table(statement: &Statement) -> Result<Option<(Arc<str>, Purpose)>> {
    let Some(name) = changed_name(statement) else {
        return Ok(None);
    };
    let is_insert = matches!(statement, Statement::Statement(statement)
        if matches!(**statement, ast::Statement::Insert(_)));
    let purpose = match is_insert {
        true => Purpose::Insert,
        false => Purpose::Change,
    };
    Ok(Some((full_name(name)?.into(), purpose)))
}

/// Removes the ON CONFLICT clause from an INSERT and returns it.
pub(crate) fn take_conflict(statement: &mut Statement) -> Result<Option<Clause>> {
    if let Statement::Statement(statement) = statement
        && let ast::Statement::Insert(insert) = &mut **statement
    {
        return Clause::take(insert).map(Some);
    }
    Ok(None)
}

/// The columns to which an UPDATE assigns values.
pub(crate) fn assigned_columns(statement: &Statement) -> Result<Vec<String>> {
    if let Statement::Statement(statement) = statement
        && let ast::Statement::Update(update) = &**statement
    {
        let assignments = update.assignments.iter();
        return assignments
            .map(|assignment| column_of(&assignment.target))
            .collect();
    }
    Ok(Vec::new())
}
