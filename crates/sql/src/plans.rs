//! Plans of statements that a connection has run before: the same text is not planned again as long as the list of
//! series stays the same.

use crate::catalog::names::Names;
use crate::error::Result;
use crate::metric::table::SeriesTable;
use crate::slot::Slot;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of plans that are kept.
const PLANS_MAX: usize = 64;

/// A plan, ready to run.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) physical: Arc<dyn ExecutionPlan>,
    pub(crate) context: Arc<TaskContext>,
    names: Arc<Names>,
    pub(crate) slot: Slot,
}

/// The plans, by the texts of their statements.
#[derive(Default)]
pub(crate) struct Plans(HashMap<String, Plan>);

impl Plan {
    pub(crate) fn new(
        physical: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        (names, slot): (Arc<Names>, Slot),
    ) -> Self {
        Self {
            physical,
            context,
            names,
            slot,
        }
    }
}

impl Plans {
    /// Whether a plan of this statement is kept, usable or not.
    pub(crate) fn knows(&self, sql: &str) -> bool {
        self.0.contains_key(sql)
    }

    /// The plan of a statement, to be run in another snapshot; `None` if it must be planned, or is running.
    pub(crate) fn find(&self, sql: &str, names: &Arc<Names>) -> Result<Option<Plan>> {
        let usable = |plan: &&Plan| Arc::ptr_eq(&plan.names, names) && !plan.slot.is_running();
        let Some(known) = self.0.get(sql).filter(usable) else {
            return Ok(None);
        };
        Ok(Some(Plan {
            physical: reset_plan_states(Arc::clone(&known.physical))?,
            ..known.clone()
        }))
    }

    /// Keeps a plan for later.
    pub(crate) fn keep(&mut self, sql: &str, plan: Plan) {
        if self.0.len() >= PLANS_MAX {
            // Which of them goes matters little: a program has few statements, or an unlimited number.
            if let Some(any) = self.0.keys().next().cloned() {
                self.0.remove(&any);
            }
        }
        self.0.insert(sql.to_owned(), plan);
    }
}

/// Whether a plan gives the right result in every later snapshot with the same series: it reads nothing but series, and
/// depends on nothing else, such as the present time.
pub(crate) fn can_be_kept(plan: &LogicalPlan) -> Result<bool> {
    let mut can = true;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                can &= provider.is::<SeriesTable>();
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => {
                can = false
            }
            _ => {}
        }
        node.apply_expressions(|expr| {
            let varies = expr.exists(|expr| {
                Ok(match expr {
                    Expr::ScalarFunction(call) => {
                        call.func.signature().volatility != Volatility::Immutable
                    }
                    Expr::ScalarVariable(..) => true,
                    _ => false,
                })
            })?;
            can &= !varies;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(can)
}
