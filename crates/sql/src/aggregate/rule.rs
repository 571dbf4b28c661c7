//! Replaces partial aggregates over series by statistics from the trees.

use crate::aggregate::node::TreeAggregate;
use crate::aggregate::request::Request;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use std::sync::Arc;

/// The rule. It must run while partial and final aggregates still follow each other directly.
#[derive(Debug)]
pub(crate) struct AggregatesFromTrees;

impl PhysicalOptimizerRule for AggregatesFromTrees {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let threads = config.execution.target_partitions;
        plan.transform_down(|plan| {
            let Some(node) = replacement(&plan, threads) else {
                return Ok(Transformed::no(plan));
            };
            Ok(Transformed::yes(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "aggregates_from_trees"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The final aggregate over the replaced partial one.
fn replacement(plan: &Arc<dyn ExecutionPlan>, threads: usize) -> Option<Arc<dyn ExecutionPlan>> {
    let whole = plan.downcast_ref::<AggregateExec>()?;
    if !matches!(
        whole.mode(),
        AggregateMode::Final | AggregateMode::FinalPartitioned
    ) {
        return None;
    }
    let partial = whole.input().downcast_ref::<AggregateExec>()?;
    if *partial.mode() != AggregateMode::Partial {
        return None;
    }
    let request = Request::of(partial)?;
    let node = TreeAggregate::new(request, partial.aggr_expr(), partial.schema(), threads)?;
    // The groups are few: one thread merges them sooner than several would divide them.
    let merged = AggregateExec::try_new(
        AggregateMode::Final,
        whole.group_expr().clone(),
        whole.aggr_expr().to_vec(),
        whole.filter_expr().to_vec(),
        Arc::new(node),
        whole.input_schema(),
    );
    merged.ok().map(|merged| Arc::new(merged) as _)
}
