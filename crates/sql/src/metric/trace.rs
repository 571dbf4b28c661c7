//! Traces expressions in a plan back to the columns of the table that a scan reads.

use crate::metric::layout::Role;
use crate::metric::scan::SeriesScan;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::sync::Arc;

/// A scan, with the projections above it. The *depth* of an expression is the number of projections above it.
pub(crate) struct Trace<'p> {
    pub(crate) scan: &'p SeriesScan,
    /// The topmost projection comes first.
    projections: Vec<&'p ProjectionExec>,
}

impl<'p> Trace<'p> {
    /// Follows a plan down to a scan; `None` if anything other than projections is above it.
    pub(crate) fn to_scan(plan: &'p Arc<dyn ExecutionPlan>) -> Option<Self> {
        let mut projections: Vec<&ProjectionExec> = Vec::new();
        let mut input = plan;
        while let Some(projection) = input.downcast_ref::<ProjectionExec>() {
            projections.push(projection);
            input = projection.input();
        }
        let scan = input.downcast_ref::<SeriesScan>()?;
        Some(Self { scan, projections })
    }

    /// The expression whose values an expression at this depth returns unchanged, and its depth.
    pub(crate) fn traced<'e>(
        &'e self,
        expr: &'e Arc<dyn PhysicalExpr>,
        depth: usize,
    ) -> (&'e Arc<dyn PhysicalExpr>, usize) {
        let (mut expr, mut depth) = (expr, depth);
        while let Some(column) = expr.downcast_ref::<Column>()
            && let Some(projection) = self.projections.get(depth)
        {
            expr = &projection.expr()[column.index()].expr;
            depth += 1;
        }
        (expr, depth)
    }

    /// The role of the column, if the expression is a column of the table.
    pub(crate) fn role(&self, expr: &Arc<dyn PhysicalExpr>, depth: usize) -> Option<Role> {
        let (expr, depth) = self.traced(expr, depth);
        let column = expr.downcast_ref::<Column>()?;
        debug_assert_eq!(
            depth,
            self.projections.len(),
            "a column below all projections"
        );
        Some(self.scan.layout.role(self.scan.projection[column.index()]))
    }

    /// The value of the expression, if it is a constant.
    pub(crate) fn literal<'e>(
        &'e self,
        expr: &'e Arc<dyn PhysicalExpr>,
        depth: usize,
    ) -> Option<&'e ScalarValue> {
        let (expr, _) = self.traced(expr, depth);
        expr.downcast_ref::<Literal>().map(Literal::value)
    }

    /// The same plan with another node in place of the scan.
    pub(crate) fn replaced(&self, scan: Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let mut plan = scan;
        for projection in self.projections.iter().rev() {
            let exprs = projection.expr().to_vec();
            plan = Arc::new(ProjectionExec::try_new(exprs, plan).ok()?);
        }
        Some(plan)
    }
}
