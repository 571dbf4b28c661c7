//! Pushes conditions down through a join on time.
//!
//! A condition on left columns alone moves to the left input, because the join keeps every left row and the result of a
//! left row depends on no other left row. It also restricts the right input, as far as this drops only rows that cannot
//! match any left row. A condition on columns that are equal in matching rows applies to both inputs; a range of left
//! times, extended by the reach of the join, contains all right times that can match.

use super::asof::{AsOf, Direction};
use super::node::{Rule, TimeJoin, type_of};
use super::window::Window;
use crate::types::{constant_nanos, nanos_of};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Extension, Filter, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule. DataFusion's own rule moves conditions to the join before this one runs, and on to the tables in its next
/// pass.
#[derive(Debug)]
pub(crate) struct PushBelowTimeJoin;

impl OptimizerRule for PushBelowTimeJoin {
    fn name(&self) -> &str {
        "push_below_time_join"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else {
            return Ok(Transformed::no(plan));
        };
        let LogicalPlan::Extension(extension) = &*filter.input else {
            return Ok(Transformed::no(plan));
        };
        let Some(join) = extension.node.as_any().downcast_ref::<TimeJoin>() else {
            return Ok(Transformed::no(plan));
        };
        let conditions = split_conjunction_owned(filter.predicate.clone());
        let (left, rest): (Vec<Expr>, Vec<Expr>) = conditions
            .into_iter()
            .partition(|condition| is_of_left(join, condition));
        if left.is_empty() {
            return Ok(Transformed::no(plan));
        }
        let mut right = Vec::new();
        for condition in &left {
            right.extend(on_keys(join, condition)?);
        }
        right.extend(on_times(join, &left)?);
        let node = Arc::new(join.with_inputs(
            filtered(join.left.clone(), left)?,
            filtered(join.right.clone(), right)?,
        )?);
        let plan = LogicalPlan::Extension(Extension { node });
        Ok(Transformed::yes(filtered(plan, rest)?))
    }
}

fn filtered(plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(match conjunction(conditions) {
        Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?),
        None => plan,
    })
}

/// Whether a condition depends only on left columns.
fn is_of_left(join: &TimeJoin, condition: &Expr) -> bool {
    let columns = condition.column_refs();
    let mut columns = columns.iter();
    let is_of_left = columns.all(|column| join.left.schema().has_column(column));
    is_of_left
        && !condition.is_volatile()
        && !condition.contains_outer()
        && !has_subquery(condition)
}

fn has_subquery(condition: &Expr) -> bool {
    let is_subquery = |expr: &Expr| {
        matches!(
            expr,
            Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_)
        )
    };
    condition
        .exists(|expr| Ok(is_subquery(expr)))
        .unwrap_or(true)
}

/// The condition on the right columns, if each of its columns must be equal in matching rows.
fn on_keys(join: &TimeJoin, condition: &Expr) -> Result<Option<Expr>> {
    let other = |column: &Column| {
        join.by
            .iter()
            .find(|(left, _)| left == column)
            .map(|(_, right)| right)
    };
    for column in condition.column_refs() {
        match other(column) {
            // Constants in the condition have the type of the left column.
            Some(right) if type_of(&join.left, column)? == type_of(&join.right, right)? => {}
            _ => return Ok(None),
        }
    }
    let replaced = condition.clone().transform(|expr| {
        Ok(match &expr {
            Expr::Column(column) => match other(column) {
                Some(right) => Transformed::yes(Expr::Column(right.clone())),
                None => Transformed::no(expr),
            },
            _ => Transformed::no(expr),
        })
    })?;
    Ok(Some(replaced.data))
}

/// The conditions on right times that follow from conditions on left times.
fn on_times(join: &TimeJoin, conditions: &[Expr]) -> Result<Vec<Expr>> {
    let (before, after) = reach(&join.rule);
    let (mut low, mut high) = (None::<i128>, None::<i128>);
    for condition in conditions {
        let Some((operator, time)) = bound(&join.times.0, condition) else {
            continue;
        };
        if matches!(operator, Operator::Gt | Operator::GtEq | Operator::Eq) {
            low = Some(low.map_or(time, |low| low.max(time)));
        }
        if matches!(operator, Operator::Lt | Operator::LtEq | Operator::Eq) {
            high = Some(high.map_or(time, |high| high.min(time)));
        }
    }
    let ty = type_of(&join.right, &join.times.1)?;
    let column = || Expr::Column(join.times.1.clone());
    let low = low
        .zip(before)
        .and_then(|(low, before)| constant(low + before, &ty, false));
    let high = high
        .zip(after)
        .and_then(|(high, after)| constant(high + after, &ty, true));
    let low = low.map(|low| column().gt_eq(lit(low)));
    let high = high.map(|high| column().lt_eq(lit(high)));
    Ok(low.into_iter().chain(high).collect())
}

/// The distances from the left time to the first and to the last right time that can match; `None` if unlimited.
fn reach(rule: &Rule) -> (Option<i128>, Option<i128>) {
    match rule {
        Rule::Window(Window { from, to }, _) => (Some(*from), Some(*to)),
        Rule::AsOf(AsOf {
            direction,
            tolerance,
            ..
        }) => match direction {
            Direction::Backward => (tolerance.map(|most| -most), Some(0)),
            Direction::Forward => (Some(0), *tolerance),
            Direction::Nearest => (tolerance.map(|most| -most), *tolerance),
        },
    }
}

/// The comparison of a column with a constant time in nanoseconds.
fn bound(time: &Column, condition: &Expr) -> Option<(Operator, i128)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else {
        return None;
    };
    match (&**left, &**right) {
        (Expr::Column(column), Expr::Literal(value, _)) if column == time => {
            Some((*op, constant_nanos(value)?))
        }
        (Expr::Literal(value, _), Expr::Column(column)) if column == time => {
            Some((op.swap()?, constant_nanos(value)?))
        }
        _ => None,
    }
}

/// A time as a constant with this type, rounded down or up; `None` for other types, and for times outside their range.
fn constant(nanos: i128, ty: &DataType, is_up: bool) -> Option<ScalarValue> {
    let DataType::Timestamp(unit, zone) = ty else {
        return None;
    };
    let step = i128::from(nanos_of(*unit));
    let rest = i128::from(is_up && nanos.rem_euclid(step) != 0);
    let steps = i64::try_from(nanos.div_euclid(step) + rest).ok()?;
    ScalarValue::Int64(Some(steps))
        .cast_to(&DataType::Timestamp(*unit, zone.clone()))
        .ok()
}
