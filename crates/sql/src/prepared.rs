//! PREPARE, EXECUTE and DEALLOCATE: named statements whose parameters get values when they run.
//!
//! The text after AS is run like a text that a program passes to `query_with`, so its plan is kept like any other plan.

use crate::connection::Connection;
use crate::direct::value::Value;
use crate::error::{Error, ErrorKind, Result};
use crate::rows::Rows;
use crate::statement::{Prepared, Statement};
use crate::write::expression;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::sql::sqlparser::ast::{self, CastKind, DataType, Expr, ExprWithAlias};
use std::sync::Arc;

fn unknown(name: &str) -> Error {
    let problem = format!("there is no prepared statement {name}; PREPARE {name} AS ... makes one");
    Error::new(ErrorKind::Plan, problem)
}

impl Connection {
    /// Assigns a name to a statement.
    pub(crate) fn prepare(&mut self, name: String, statement: Prepared) -> Result<()> {
        if !matches!(
            Statement::parse(&statement.text)?,
            Statement::Read(..) | Statement::Change(_)
        ) {
            let problem = "PREPARE takes a statement that reads or changes rows";
            return Err(Error::new(ErrorKind::Syntax, problem));
        }
        if self.prepared.contains_key(&name) {
            let problem =
                format!("there is a prepared statement {name} already; DEALLOCATE {name} ends it");
            return Err(Error::new(ErrorKind::Plan, problem));
        }
        self.prepared.insert(name, statement);
        Ok(())
    }

    /// Removes a prepared statement, or all of them.
    pub(crate) fn deallocate(&mut self, name: &str) -> Result<()> {
        if name.eq_ignore_ascii_case("all") {
            self.prepared.clear();
            return Ok(());
        }
        let found = self.prepared.remove(name);
        found.map(drop).ok_or_else(|| unknown(name))
    }

    /// Runs a prepared statement with these values. They may contain parameters of the EXECUTE statement itself.
    pub(crate) fn execute_prepared(
        &mut self,
        name: &str,
        values: Vec<Expr>,
        parameters: &[ScalarValue],
    ) -> Result<Rows> {
        let prepared = self.prepared.get(name).ok_or_else(|| unknown(name))?;
        let Prepared { text, types } = prepared.clone();
        if !types.is_empty() && types.len() != values.len() {
            let (types, values) = (types.len(), values.len());
            let problem = format!("{name} has {types} parameters, {values} values are given");
            return Err(Error::new(ErrorKind::Plan, problem));
        }
        self.planner.begin_again();
        let types = types.into_iter().map(Some).chain(std::iter::repeat(None));
        let values = values.into_iter().zip(types);
        let values = values.map(|(value, ty)| self.constant(value, ty, parameters));
        let values = values.collect::<Result<Vec<_>>>()?;
        self.query_with(&text, &values)
    }

    /// The value of an expression without columns, converted to this type.
    fn constant(
        &self,
        expr: Expr,
        ty: Option<DataType>,
        parameters: &[ScalarValue],
    ) -> Result<ScalarValue> {
        let Some(data_type) = ty else {
            return match Value::of(&expr) {
                Some(value) => value.plain(parameters),
                None => self.evaluate(expr, parameters),
            };
        };
        let cast = |expr: Expr| Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(expr),
            data_type: data_type.clone(),
            array: false,
            format: None,
        };
        // All digits of decimals are kept.
        if let Some(value) = Value::of(&expr) {
            let null = Expr::Value(ast::Value::Null.into());
            let ty = self.evaluate(cast(null), parameters)?.data_type();
            return value.cast(parameters, &ty);
        }
        self.evaluate(cast(expr), parameters)
    }

    fn evaluate(&self, expr: Expr, parameters: &[ScalarValue]) -> Result<ScalarValue> {
        let session = self.planner.session();
        let columns = DFSchema::empty();
        let expr = ExprWithAlias { expr, alias: None };
        let expr = session.create_logical_expr_from_sql_expr(expr, &columns)?;
        let expr = expression::plan(session, expression::bound(expr, parameters)?, &columns)?;
        let one = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &one)?;
        let value = expr.evaluate(&row)?.into_array(1)?;
        Ok(ScalarValue::try_from_array(&value, 0)?)
    }
}
