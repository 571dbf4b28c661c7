//! The rows of series that DELETE removes: an interval of time, and conditions on tags.

use crate::error::{Error, ErrorKind, Result};
use crate::metric::filters::Wanted;
use crate::metric::layout::Layout;
use datafusion::catalog::Session;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{LogicalPlan, TableProviderFilterPushDown};
use tidalite::{Steps, WriteTxn};

/// The rows that a plan of DELETE reads; `None` if there is none.
pub(crate) fn wanted(
    layout: &Layout,
    plan: &LogicalPlan,
    session: &dyn Session,
) -> Result<Option<Wanted>> {
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::EmptyRelation(_) => return Ok(None),
            LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                let is_exact = |filter| {
                    let pushdown = layout.pushdown(filter);
                    matches!(pushdown, TableProviderFilterPushDown::Exact)
                };
                if let Some(filter) = scan.filters.iter().find(|filter| !is_exact(filter)) {
                    return Err(problem(&filter.to_string()));
                }
                let filters = unnormalize_cols(scan.filters.iter().cloned());
                return layout.wanted(session, &filters).map(Some);
            }
            LogicalPlan::Filter(filter) => return Err(problem(&filter.predicate.to_string())),
            other => return Err(problem(&other.display().to_string())),
        };
    }
}

fn problem(condition: &str) -> Error {
    let problem = format!(
        "DELETE from series takes one interval of time and conditions on tags, joined by AND; it cannot evaluate {condition}"
    );
    Error::new(ErrorKind::Plan, problem)
}

/// Removes rows; returns their number.
pub(crate) fn rows(txn: &mut WriteTxn, layout: &Layout, wanted: &Wanted) -> Result<u64> {
    let mut removed = 0;
    for &member in &wanted.members {
        for part in &layout.members[member].parts {
            let (from, to) = (
                part.clock.steps(wanted.from).0,
                part.clock.steps(wanted.to).1,
            );
            if from <= to {
                let mut series = txn.series_by_id(part.info.id)?;
                removed += series.delete(Steps(from)..=Steps(to))?;
            }
        }
    }
    Ok(removed)
}
