//! Inserts the node above an aggregation that groups by `time_bucket_gapfill`.
//!
//! ```text
//! Projection: time_bucket_gapfill(..), locf(avg(v))        Projection: time_bucket_gapfill(..), locf(avg(v))
//!   Aggregate: time_bucket_gapfill(..); avg(v)               GapFill
//!                                                   =>         Projection: time_bucket_gapfill(..), avg(v),
//!                                                                          avg(v) AS locf(avg(v))
//!                                                                Aggregate: time_bucket(..) AS time_bucket_gapfill(..);
//!                                                                           avg(v)
//! ```
//!
//! On the right, `locf(avg(v))` is the name of a column.

use super::bounds::Bounds;
use super::calls::{Kind, call, misplaced};
use super::node::{Fill, GapFill};
use crate::functions::time_bucket::time_bucket;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Projection;
use datafusion::logical_expr::{Aggregate, Expr, Extension, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// The rule. It must run after the conversion of types.
#[derive(Debug)]
pub(crate) struct GapFillRule;

impl AnalyzerRule for GapFillRule {
    fn name(&self) -> &str {
        "gap_fill"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_changed = false;
        let plan = plan.transform_up_with_subqueries(|plan| {
            let rewritten = rewrite(plan)?;
            is_changed |= rewritten.transformed;
            // Aggregate columns become nullable, in all nodes above as well.
            rewritten.map_data(|plan| match is_changed {
                true => plan.recompute_schema(),
                false => Ok(plan),
            })
        })?;
        plan.data.apply_with_subqueries(|plan| {
            plan.apply_expressions(|expr| {
                expr.apply(|expr| match call(expr) {
                    Some((kind, _)) => misplaced(kind),
                    None => Ok(TreeNodeRecursion::Continue),
                })
            })
        })?;
        Ok(plan.data)
    }
}

fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Aggregate(aggregate) = &plan {
        return Ok(match filled(aggregate)? {
            Some(filled) => Transformed::yes(filled),
            None => Transformed::no(plan),
        });
    }
    let calls = fill_calls(&plan)?;
    let Some(first) = calls.first() else {
        return Ok(Transformed::no(plan));
    };
    let inputs = plan.inputs();
    let input = match inputs[..] {
        [input] => with_fills(input, &calls)?,
        _ => None,
    };
    let (Some(input), Some((kind, _))) = (input, call(first)) else {
        return Ok(Transformed::no(plan));
    };
    debug_assert!(kind != Kind::Bucket);
    let plan = plan.with_new_exprs(plan.expressions(), vec![input])?;
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let replaced = expr.transform_up(|expr| match call(&expr) {
            Some((Kind::Locf | Kind::Interpolate, _)) => {
                let column = Column::new_unqualified(expr.to_string());
                Ok(Transformed::yes(Expr::Column(column)))
            }
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(replaced.update_data(|expr| name.restore(expr)))
    })
}

/// The aggregation with the new node above it, if it groups by `time_bucket_gapfill`.
fn filled(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let bucket = |expr: &Expr| match call(without_alias(expr)) {
        Some((Kind::Bucket, args)) => Some(args.to_vec()),
        _ => None,
    };
    let groups = aggregate.group_expr.iter().map(bucket);
    let groups = groups.collect::<Vec<_>>();
    let Some(time) = groups.iter().position(Option::is_some) else {
        return Ok(None);
    };
    let mut args = groups[time].clone().unwrap_or_default();
    // The arguments are width and time, an optional zone, and an optional range.
    let limits = args.split_off(2 + args.len() % 2);
    let bounds = Bounds::new(limits.first(), limits.get(1), &args[1], &aggregate.input)?;
    let names = NamePreserver::new_for_projection();
    let mut group_expr = aggregate.group_expr.clone();
    let name = names.save(&group_expr[time]);
    group_expr[time] = name.restore(time_bucket().call(args.clone()));
    let mut fills = vec![Fill::Key; group_expr.len()];
    fills[time] = Fill::Time;
    fills.resize(aggregate.schema.fields().len(), Fill::Null);
    let aggregate = Aggregate::try_new(
        Arc::clone(&aggregate.input),
        group_expr,
        aggregate.aggr_expr.clone(),
    )?;
    // The width and the zone remain.
    args.remove(1);
    node(LogicalPlan::Aggregate(aggregate), fills, args, bounds).map(Some)
}

fn node(
    input: LogicalPlan,
    fills: Vec<Fill>,
    bins: Vec<Expr>,
    bounds: Bounds,
) -> Result<LogicalPlan> {
    let node = Arc::new(GapFill::new(input, fills, bins, bounds)?);
    Ok(LogicalPlan::Extension(Extension { node }))
}

fn without_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_alias(&alias.expr),
        _ => expr,
    }
}

/// The calls of `locf` and `interpolate` in the expressions of a plan.
fn fill_calls(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut calls = Vec::new();
    plan.apply_expressions(|expr| {
        expr.apply(|expr| {
            if matches!(call(expr), Some((Kind::Locf | Kind::Interpolate, _)))
                && !calls.contains(expr)
            {
                calls.push(expr.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(calls)
}

/// A plan whose gap-filling node has columns for these calls, named like the calls. `None` if the plan has no such
/// node.
fn with_fills(plan: &LogicalPlan, calls: &[Expr]) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Extension(extension) => match extension.node.as_any().downcast_ref() {
            Some(node) => extended(node, calls).map(Some),
            None => Ok(None),
        },
        // These nodes pass all columns of their input through.
        LogicalPlan::Filter(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) => {
            let inputs = plan.inputs();
            let Some(input) = with_fills(inputs[0], calls)? else {
                return Ok(None);
            };
            let plan = plan.with_new_exprs(plan.expressions(), vec![input])?;
            plan.recompute_schema().map(Some)
        }
        _ => Ok(None),
    }
}

/// The node with additional columns for these calls, above a projection that computes their arguments.
fn extended(gap_fill: &GapFill, calls: &[Expr]) -> Result<LogicalPlan> {
    let schema = gap_fill.input.schema();
    let mut exprs = schema
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect::<Vec<_>>();
    let mut fills = gap_fill.fills.clone();
    for expr in calls {
        let name = expr.to_string();
        let (Some((kind, [arg])), false) =
            (call(expr), schema.has_column_with_unqualified_name(&name))
        else {
            continue;
        };
        exprs.push(arg.clone().alias(name));
        fills.push(match kind {
            Kind::Interpolate => Fill::Linear,
            Kind::Locf | Kind::Bucket => Fill::Locf,
        });
    }
    let input = Projection::try_new(exprs, Arc::new(gap_fill.input.clone()))?;
    let input = LogicalPlan::Projection(input);
    node(input, fills, gap_fill.bins.clone(), gap_fill.bounds.clone())
}
