//! Expressions outside of queries.

use crate::error::Result;
use datafusion::common::DFSchema;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

/// Plans an expression over these columns. Functions of the present time give the one at which the statement began.
pub(crate) fn plan(
    session: &SessionState,
    expr: Expr,
    columns: &DFSchema,
) -> Result<Arc<dyn PhysicalExpr>> {
    let began = session.execution_props().query_execution_start_time;
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(columns.clone()))
        .with_config_options(Arc::clone(session.config_options()))
        .with_query_execution_start_time(began)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let expr = simplifier.simplify(simplifier.coerce(expr, columns)?)?;
    Ok(session.create_physical_expr(expr, columns)?)
}
