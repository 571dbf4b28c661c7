//! Creates the operator for the node, and evaluates its constants.

use super::bounds::Bound;
use super::calls::Kind;
use super::exec::GapFillExec;
use super::fill::Grid;
use super::node::GapFill;
use crate::functions::args;
use crate::functions::bucket::Buckets;
use crate::types::{constant_nanos, nanos_of};
use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use std::sync::Arc;

/// The planner of the node.
#[derive(Debug)]
pub(crate) struct GapFillPlanner;

#[async_trait]
impl ExtensionPlanner for GapFillPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<GapFill>() else {
            return Ok(None);
        };
        let [input] = physical_inputs else {
            return internal_err!("GapFill has one input, found {}", physical_inputs.len());
        };
        let name = Kind::Bucket.name();
        let constant = |what: &str, expr: &Expr| -> Result<ScalarValue> {
            let no_columns = DFSchema::empty();
            let expr = planner.create_physical_expr(expr, &no_columns, session, context)?;
            args::constant(name, what, &expr)
        };
        let [width, options @ ..] = &node.bins[..] else {
            return internal_err!("GapFill has no width");
        };
        let options = options.iter().map(|zone| constant("time zone", zone));
        let options = options.collect::<Result<Vec<_>>>()?;
        let schema = input.schema();
        let time = schema.field(node.time()).data_type();
        let width = constant("width", width)?;
        let Some(buckets) = Buckets::new(name, &width, time, &options)? else {
            return plan_err!("{name}: the width is NULL, expected an interval");
        };
        let step = nanos_of(args::unit_of(time)?).into();
        let steps = |what: &str, bound: &Bound| -> Result<(i128, i128)> {
            let value = constant(what, &bound.time)?;
            let nanos = match value.data_type() {
                DataType::Timestamp(_, _) => constant_nanos(&value),
                other => return plan_err!("{name}: the {what} is a {other}, expected a timestamp"),
            };
            match nanos {
                Some(nanos) => Ok((nanos.div_euclid(step), nanos.rem_euclid(step))),
                None => plan_err!("{name}: the {what} is NULL, expected a timestamp"),
            }
        };
        // First and last time of the range, in steps of the column.
        let (mut first, mut last) = (i128::MIN, i128::MAX);
        for bound in &node.bounds.starts {
            let (at, rest) = steps("start", bound)?;
            let is_within = bound.is_inclusive && rest == 0;
            first = first.max(if is_within { at } else { at + 1 });
        }
        for bound in &node.bounds.finishes {
            let (at, rest) = steps("finish", bound)?;
            let is_without = !bound.is_inclusive && rest == 0;
            last = last.min(if is_without { at - 1 } else { at });
        }
        let grid = Grid::new(buckets, (first, last), step);
        let exec = GapFillExec::new(Arc::clone(input), node.fills.clone(), grid)?;
        Ok(Some(Arc::new(exec)))
    }
}
