//! Statements that change the database.
//!
//! ```text
//! transaction   the write transaction of a connection, its savepoints and its readers
//! words         arrays of Arrow as words of series
//! series        batches of rows into series
//! delete        the rows of series that DELETE removes
//! ```

pub(crate) mod delete;
pub(crate) mod series;
pub(crate) mod transaction;
mod words;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, visit_relations};
use std::ops::ControlFlow;

/// Whether a change reads rows of tables: everything but INSERT with constant rows.
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
