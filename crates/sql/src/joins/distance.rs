//! Distances in time, as given in arguments: intervals for timestamps, and numbers for times that are integers.

use crate::types::interval_nanos;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, IntervalUnit, Schema};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::physical_expr::create_physical_expr;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

/// The distance that a constant argument represents: nanoseconds, or a plain number if the times are integers.
pub(super) fn distance(
    (function, argument): (&str, &str),
    sql: ast::Expr,
    is_number: bool,
    context: &mut dyn RelationPlannerContext,
) -> Result<i128> {
    let text = sql.to_string();
    let value = constant(sql, context)?;
    let found = match is_number {
        true => number(&value),
        false => nanos(&value)?,
    };
    let expected = match is_number {
        true => "a number, because the times are integers",
        false => "an interval of days or parts of days",
    };
    match found {
        Some(distance) => Ok(distance),
        None => plan_err!("{function}: the {argument} is {text}, expected {expected}"),
    }
}

/// Evaluates an expression without columns.
fn constant(sql: ast::Expr, context: &mut dyn RelationPlannerContext) -> Result<ScalarValue> {
    let no_columns = DFSchema::empty();
    let expr = context.sql_to_expr(sql, &no_columns)?;
    let planning = PhysicalPlanningContext::default();
    let expr = create_physical_expr(&expr, &no_columns, &ExecutionProps::new(), &planning)?;
    let no_rows = RecordBatch::new_empty(Arc::new(Schema::empty()));
    match expr.evaluate(&no_rows)? {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(_) => plan_err!("{expr} is not a constant"),
    }
}

fn number(value: &ScalarValue) -> Option<i128> {
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(number)) if value.data_type().is_integer() => number.map(i128::from),
        _ => None,
    }
}

fn nanos(value: &ScalarValue) -> Result<Option<i128>> {
    Ok(match value {
        ScalarValue::Utf8(_) | ScalarValue::Utf8View(_) | ScalarValue::LargeUtf8(_) => {
            interval_nanos(&value.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano))?)
        }
        other => interval_nanos(other),
    })
}
