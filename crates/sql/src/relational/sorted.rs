//! Scans relations in the order of the sort above them, for `ORDER BY key DESC LIMIT n`.
//!
//! Rows are returned in the order of the primary key. If a sort requires the opposite order, the scan reads from the
//! end. With a limit it begins with small batches, because a query may need only a few rows.

use crate::relational::scan::RelationScan;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use std::sync::Arc;

/// Makes scans below a sort return rows in the order of the sort, if this is the order of the primary key in either
/// direction. A later rule removes the sort.
#[derive(Debug)]
pub(crate) struct ScansInOrder;

impl PhysicalOptimizerRule for ScansInOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            Ok(match replacement(&plan)? {
                Some(node) => Transformed::yes(node),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "scans_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn replacement(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = plan.downcast_ref::<SortExec>() else {
        return Ok(None);
    };
    for is_reversed in [false, true] {
        let Some(input) = ordered(sort.input(), is_reversed, sort.fetch())? else {
            return Ok(None);
        };
        let order = sort.expr().iter().cloned();
        if input.equivalence_properties().ordering_satisfy(order)? {
            let sorted = SortExec::new(sort.expr().clone(), input).with_fetch(sort.fetch());
            return Ok(Some(Arc::new(sorted)));
        }
    }
    Ok(None)
}

/// The same rows from a scan in this direction; `None` if the rows do not come from a scan.
fn ordered(
    plan: &Arc<dyn ExecutionPlan>,
    is_reversed: bool,
    fetch: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<RelationScan>() {
        let scan = scan.in_order(is_reversed, fetch);
        return Ok(scan.map(|scan| Arc::new(scan) as _));
    }
    if !plan.is::<FilterExec>() && !plan.is::<ProjectionExec>() {
        return Ok(None);
    }
    let [child] = plan.children()[..] else {
        return Ok(None);
    };
    match ordered(child, is_reversed, fetch)? {
        Some(child) => replace_children_if_necessary(Arc::clone(plan), vec![child]).map(Some),
        None => Ok(None),
    }
}
