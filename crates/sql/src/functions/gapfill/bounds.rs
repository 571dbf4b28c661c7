//! The time range to fill, as expressions. It comes from the arguments of `time_bucket_gapfill`, or otherwise from
//! conditions in WHERE.

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, Result, plan_err};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, LogicalPlan, Operator};

/// An end of the range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    /// A constant time.
    pub(super) time: Expr,
    /// Whether this time itself belongs to the range.
    pub(super) is_inclusive: bool,
}

/// The ends of the range. If there are several candidates, the narrowest range is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    pub(super) starts: Vec<Bound>,
    pub(super) finishes: Vec<Bound>,
}

impl Bounds {
    /// The range for a call with these start and finish arguments, on the rows of `input`.
    pub(super) fn new(
        start: Option<&Expr>,
        finish: Option<&Expr>,
        time: &Expr,
        input: &LogicalPlan,
    ) -> Result<Self> {
        let mut found = Self::default();
        found.search(input, uncast(time));
        if let Some(start) = start.filter(|start| !is_null(start)) {
            found.starts = vec![Bound {
                time: constant("start", start)?,
                is_inclusive: true,
            }];
        }
        if let Some(finish) = finish.filter(|finish| !is_null(finish)) {
            found.finishes = vec![Bound {
                time: constant("finish", finish)?,
                is_inclusive: false,
            }];
        }
        for (bounds, name, operator) in [
            (&found.starts, "start", ">="),
            (&found.finishes, "finish", "<"),
        ] {
            if bounds.is_empty() {
                return plan_err!(
                    "time_bucket_gapfill: the {name} is missing: give it as an argument, or as a condition in WHERE, {} {operator} '2024-01-01'",
                    uncast(time)
                );
            }
        }
        Ok(found)
    }

    /// Adds conditions on `time`, which is an expression on the rows of `plan`.
    fn search(&mut self, plan: &LogicalPlan, time: &Expr) {
        match plan {
            LogicalPlan::Filter(filter) => {
                for condition in split_conjunction(&filter.predicate) {
                    self.add(condition, time);
                }
                self.search(&filter.input, time);
            }
            LogicalPlan::Sort(sort) => self.search(&sort.input, time),
            LogicalPlan::Limit(limit) => self.search(&limit.input, time),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(column) = position(time, plan) else {
                    return;
                };
                let column = Column::from(alias.input.schema().qualified_field(column));
                self.search(&alias.input, &Expr::Column(column));
            }
            LogicalPlan::Projection(projection) => {
                if let Some(column) = position(time, plan) {
                    let expr = projection.expr[column].clone().unalias();
                    self.search(&projection.input, uncast(&expr));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, condition: &Expr, time: &Expr) {
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if uncast(left) == time && is_constant(right) {
                    self.add_comparison(*op, right);
                } else if uncast(right) == time
                    && is_constant(left)
                    && let Some(op) = op.swap()
                {
                    self.add_comparison(op, left);
                }
            }
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) if uncast(expr) == time => {
                if is_constant(low) {
                    self.add_comparison(Operator::GtEq, low);
                }
                if is_constant(high) {
                    self.add_comparison(Operator::LtEq, high);
                }
            }
            _ => {}
        }
    }

    fn add_comparison(&mut self, operator: Operator, limit: &Expr) {
        let bound = |is_inclusive| Bound {
            time: limit.clone(),
            is_inclusive,
        };
        match operator {
            Operator::Gt => self.starts.push(bound(false)),
            Operator::GtEq => self.starts.push(bound(true)),
            Operator::Lt => self.finishes.push(bound(false)),
            Operator::LtEq => self.finishes.push(bound(true)),
            Operator::Eq => {
                self.starts.push(bound(true));
                self.finishes.push(bound(true));
            }
            _ => {}
        }
    }
}

/// Position of the column, if the expression is a column of the plan.
fn position(expr: &Expr, plan: &LogicalPlan) -> Option<usize> {
    match expr {
        Expr::Column(column) => plan.schema().maybe_index_of_column(column),
        _ => None,
    }
}

fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(Cast { expr, field }) if field.data_type().is_temporal() => uncast(expr),
        _ => expr,
    }
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(Cast { expr, .. }) => is_null(expr),
        Expr::Literal(value, _) => value.is_null(),
        _ => false,
    }
}

/// Whether an expression has the same value for all rows, and this value is known before the query runs.
fn is_constant(expr: &Expr) -> bool {
    let is_variable = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_) | Expr::OuterReferenceColumn(_, _)
        ))
    };
    let has_variable = expr.exists(is_variable).unwrap_or(true);
    !has_variable && !expr.is_volatile() && expr.column_refs().is_empty()
}

fn constant(name: &str, expr: &Expr) -> Result<Expr> {
    if !is_constant(expr) {
        return plan_err!("time_bucket_gapfill: the {name} is {expr}, expected a constant");
    }
    Ok(expr.clone())
}
