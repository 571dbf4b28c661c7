//! Creates the operator for the node.

use super::exec::{Columns, TimeJoinExec};
use super::node::{Rule, TimeJoin};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{Result, internal_err, not_impl_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use std::sync::Arc;

/// The planner of the node.
#[derive(Debug)]
pub(crate) struct TimeJoinPlanner;

#[async_trait]
impl ExtensionPlanner for TimeJoinPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<TimeJoin>() else {
            return Ok(None);
        };
        let [left, right] = physical_inputs else {
            return internal_err!("TimeJoin has two inputs, found {}", physical_inputs.len());
        };
        let columns = match &node.rule {
            Rule::AsOf(rule) => Columns::AsOf(rule.clone()),
            Rule::Window(window, aggregates) => {
                let of_right = right.schema();
                let aggregate = |expr: &Expr| -> Result<Arc<AggregateFunctionExpr>> {
                    let builder = LoweredAggregateBuilder::new(
                        expr,
                        node.right.schema(),
                        &of_right,
                        session.execution_props(),
                        context,
                    );
                    let lowered = builder.build()?;
                    if lowered.filter.is_some() || !lowered.order_bys.is_empty() {
                        return not_impl_err!("window_join: an aggregate with FILTER or ORDER BY");
                    }
                    Ok(lowered.aggregate)
                };
                let aggregates = aggregates.iter().map(aggregate);
                Columns::Window(window.clone(), aggregates.collect::<Result<_>>()?)
            }
        };
        let inputs = (Arc::clone(left), Arc::clone(right));
        let schema = Arc::clone(UserDefinedLogicalNodeCore::schema(node).inner());
        let exec = TimeJoinExec::new(inputs, node.sides()?, columns, schema)?;
        Ok(Some(Arc::new(exec)))
    }
}
