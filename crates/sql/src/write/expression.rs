//! Expressions outside queries.

use crate::error::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ParamValues, ScalarValue};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

/// The expression with its parameters replaced by values.
pub(crate) fn bound(expr: Expr, parameters: &[ScalarValue]) -> Result<Expr> {
    let parameters = ParamValues::from(parameters.to_vec());
    let bound = expr.transform_up(|expr| {
        Ok(match &expr {
            Expr::Placeholder(placeholder) => {
                let value = parameters.get_placeholders_with_values(&placeholder.id)?;
                Transformed::yes(Expr::Literal(value.value, None))
            }
            _ => Transformed::no(expr),
        })
    });
    Ok(bound?.data)
}

/// Plans an expression over these columns. Functions of the current time return the time at which the statement began.
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
