//! Plans of statements that a connection has run before. The same text is not planned again as long as the list of
//! series and the schemas of relations do not change.

use crate::catalog::names::Names;
use crate::direct::change::RowChange;
use crate::direct::insert::{InsertValues, RelationInsert};
use crate::direct::lookup::Lookup;
use crate::error::Result;
use crate::metric::table::SeriesTable;
use crate::relational::scan::RelationScan;
use crate::relational::table::RelationTable;
use crate::slot::Slot;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::AnyRead;

/// Maximum number of plans that are kept.
const PLANS_MAX: usize = 64;

/// A relation may always grow or shrink by this many rows without a new plan, even if it was small.
const ROWS_OF_NOTE: u64 = 1000;

/// A plan that is ready to run.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) physical: Arc<dyn ExecutionPlan>,
    pub(crate) context: Arc<TaskContext>,
    names: Arc<Names>,
    pub(crate) slot: Slot,
}

/// The plan of a statement whose parameters have no values yet.
pub(crate) struct Unbound {
    pub(crate) names: Arc<Names>,
    /// The slot that the tables of the plan read.
    pub(crate) slot: Slot,
    pub(crate) logical: LogicalPlan,
}

/// An INSERT whose table has been looked up.
pub(crate) struct PreparedInsert {
    /// The tables for which it is valid.
    pub(crate) names: Arc<Names>,
    pub(crate) insert: Arc<InsertValues>,
    pub(crate) target: InsertTarget,
}

/// The target table of an INSERT.
pub(crate) enum InsertTarget {
    Relation(RelationInsert),
    Other(Arc<dyn TableProvider>),
}

/// The names of the relations that a plan reads, each with its number of rows when the plan was created.
pub(crate) type Relations = Arc<[(Arc<str>, u64)]>;

/// A statement that is kept and need not be parsed and planned again.
#[derive(Clone)]
pub(crate) enum Kept {
    /// A plan without parameters, and the relations that it reads.
    Physical(Plan, Relations),
    /// The plan of a statement with parameters, before the parameters have values.
    Logical(Arc<Unbound>),
    Lookup(Arc<Names>, Arc<Lookup>),
    Insert(Arc<PreparedInsert>),
    Change(Arc<RowChange>),
}

/// The kept statements, by their texts.
#[derive(Default)]
pub(crate) struct Plans(HashMap<String, Kept>);

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

impl Plan {
    /// A copy of the plan that can run in another snapshot.
    fn again(&self) -> Result<Self> {
        Ok(Self {
            physical: reset_plan_states(Arc::clone(&self.physical))?,
            ..self.clone()
        })
    }
}

impl Plans {
    /// Whether a reading statement with this text is kept.
    pub(crate) fn reads(&self, sql: &str) -> bool {
        matches!(
            self.0.get(sql),
            Some(Kept::Physical(..) | Kept::Logical(..) | Kept::Lookup(..))
        )
    }

    /// The kept INSERT with this text.
    pub(crate) fn insert(&self, sql: &str) -> Option<Arc<PreparedInsert>> {
        match self.0.get(sql) {
            Some(Kept::Insert(insert)) => Some(Arc::clone(insert)),
            _ => None,
        }
    }

    /// The kept UPDATE or DELETE with this text.
    pub(crate) fn change(&self, sql: &str) -> Option<Arc<RowChange>> {
        match self.0.get(sql) {
            Some(Kept::Change(change)) => Some(Arc::clone(change)),
            _ => None,
        }
    }

    /// The kept statement with this text, if it is valid for these tables; `None` if it must be planned again, or is
    /// currently running.
    pub(crate) fn find(
        &self,
        sql: &str,
        names: &Arc<Names>,
        state: &AnyRead,
    ) -> Result<Option<Kept>> {
        let Some(kept) = self.0.get(sql) else {
            return Ok(None);
        };
        Ok(match kept {
            Kept::Physical(plan, relations)
                if Arc::ptr_eq(&plan.names, names)
                    && !plan.slot.is_running()
                    && have_similar_sizes(relations, state)? =>
            {
                Some(Kept::Physical(plan.again()?, Arc::clone(relations)))
            }
            Kept::Logical(plan) if Arc::ptr_eq(&plan.names, names) && !plan.slot.is_running() => {
                Some(kept.clone())
            }
            Kept::Lookup(own, _) if Arc::ptr_eq(own, names) => Some(kept.clone()),
            _ => None,
        })
    }

    /// The kind of the kept statement with this text.
    #[cfg(test)]
    pub(crate) fn kind(&self, sql: &str) -> &'static str {
        match self.0.get(sql) {
            None => "nothing",
            Some(Kept::Physical(..)) => "plan",
            Some(Kept::Logical(_)) => "unbound plan",
            Some(Kept::Lookup(..)) => "look-up",
            Some(Kept::Insert(_)) => "insert",
            Some(Kept::Change(_)) => "change",
        }
    }

    /// Keeps a statement for later.
    pub(crate) fn keep(&mut self, sql: &str, kept: Kept) {
        if self.0.len() >= PLANS_MAX && !self.0.contains_key(sql) {
            // An arbitrary entry is removed: a program either has few statements, or an unlimited number of them.
            if let Some(any) = self.0.keys().next().cloned() {
                self.0.remove(&any);
            }
        }
        self.0.insert(sql.to_owned(), kept);
    }
}

/// Whether a plan can be bound to new parameters. This requires that it reads only tables of this database, whose state
/// is in the plan's slot: attached files have slots of their own, and files of rows may change.
pub(crate) fn can_be_bound_again(plan: &LogicalPlan) -> Result<bool> {
    let mut can = true;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let provider = source_as_provider(&scan.source)?;
            can &= provider.is::<SeriesTable>() || provider.is::<RelationTable>();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(can)
}

/// Whether relations have about as many rows as when the plan was created. The number of rows has influenced the order
/// of joins and the number of threads.
fn have_similar_sizes(relations: &Relations, state: &AnyRead) -> Result<bool> {
    for (name, planned) in relations.iter() {
        let Some(relation) = state.relation(name)? else {
            return Ok(false);
        };
        let (least, most) = (
            relation.count().min(*planned),
            relation.count().max(*planned),
        );
        if most > 2 * least + ROWS_OF_NOTE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The relations that a plan reads; `None` if the plan contains results computed from their numbers of rows, which may
/// change.
pub(crate) fn relations(
    optimized: &LogicalPlan,
    physical: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Relations>> {
    let mut wanted = 0;
    optimized.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            wanted += usize::from(source_as_provider(&scan.source)?.is::<RelationTable>());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut found: Vec<(Arc<str>, u64)> = Vec::new();
    let mut scans = 0;
    physical.apply(|node| {
        if let Some(scan) = node.downcast_ref::<RelationScan>() {
            scans += 1;
            let name = scan.table();
            if !found.iter().any(|(known, _)| known == name) {
                found.push((Arc::clone(name), scan.rows_of_table()?));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((scans == wanted).then(|| found.into()))
}

/// Whether a plan gives correct results in every later snapshot with the same series and schemas: it reads only series
/// and relations, and depends on nothing else, such as the current time.
pub(crate) fn can_be_kept(plan: &LogicalPlan) -> Result<bool> {
    let mut can = true;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                can &= provider.is::<SeriesTable>() || provider.is::<RelationTable>();
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
