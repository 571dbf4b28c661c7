//! Replaces partial aggregates over series by statistics from the trees.

use crate::aggregate::bins::Outermost;
use crate::aggregate::node::TreeAggregate;
use crate::aggregate::request::Request;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use std::sync::Arc;

/// The optimizer rule. It must run while partial and final aggregates still follow each other directly.
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
            Ok(match replacement(&plan, threads) {
                Some(node) => Transformed::yes(node),
                None => Transformed::no(plan),
            })
        })
        .data()?
        .transform_down(|plan| {
            Ok(match with_outermost_bins(&plan) {
                Some(node) => Transformed::yes(node),
                None => Transformed::no(plan),
            })
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

/// The final aggregate over the replacement of the partial one. The groups are few, so one thread merges them faster
/// than several threads could.
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
    merged_over(whole, Arc::new(node))
}

/// The final aggregate over another input.
fn merged_over(
    whole: &AggregateExec,
    input: Arc<dyn ExecutionPlan>,
) -> Option<Arc<dyn ExecutionPlan>> {
    let merged = AggregateExec::try_new(
        AggregateMode::Final,
        whole.group_expr().clone(),
        whole.aggr_expr().to_vec(),
        whole.filter_expr().to_vec(),
        input,
        whole.input_schema(),
    );
    merged.ok().map(|merged| Arc::new(merged) as _)
}

/// For a sort by bins with a limit: the same sort over an aggregate that returns only the bins that can be within the
/// limit.
///
/// If a group of some bin is within the limit, the number of bins with rows that lie further out is below the limit,
/// both over all series and in each single series.
fn with_outermost_bins(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = plan.downcast_ref::<SortExec>()?;
    let first = sort.expr().first();
    let mut key = Arc::clone(&first.expr);
    let mut projections = Vec::new();
    let mut input = sort.input();
    while let Some(projection) = input.downcast_ref::<ProjectionExec>() {
        let column = key.downcast_ref::<Column>()?.index();
        key = Arc::clone(&projection.expr()[column].expr);
        projections.push(projection);
        input = projection.input();
    }
    let merged = input.downcast_ref::<AggregateExec>()?;
    let node = merged.input().downcast_ref::<TreeAggregate>()?;
    let group = node.groups().get(key.downcast_ref::<Column>()?.index())?;
    group.bin()?;
    let outermost = Outermost {
        bins: sort.fetch()?,
        are_last: first.options.descending,
    };
    let mut input = merged_over(merged, Arc::new(node.only(outermost)))?;
    for projection in projections.into_iter().rev() {
        let exprs = projection.expr().to_vec();
        input = Arc::new(ProjectionExec::try_new(exprs, input).ok()?);
    }
    let sorted = SortExec::new(sort.expr().clone(), input).with_fetch(sort.fetch());
    Some(Arc::new(sorted))
}
