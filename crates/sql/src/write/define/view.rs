//! CREATE VIEW and DROP VIEW.

use crate::catalog::providers::Tables;
use crate::catalog::views;
use crate::error::Result;
use crate::session::Planner;
use crate::write::define::names::{plan_error, syntax};
use datafusion::sql::sqlparser::ast::{self, CreateTableOptions, visit_expressions};
use std::ops::ControlFlow;

/// The query of a view to be created with this name; `None` if the view exists and the statement has IF NOT EXISTS.
pub(super) async fn created(
    name: &str,
    create: ast::CreateView,
    tables: &Tables,
    planner: &Planner,
) -> Result<Option<String>> {
    let known = views::query(&tables.slot.snapshot()?, name)?;
    if create.if_not_exists && tables.exists(name)? {
        return Ok(None);
    }
    match known {
        Some(_) if create.or_replace => {}
        Some(_) => {
            return Err(plan_error(format_args!(
                "there is a view {name} already; CREATE OR REPLACE VIEW gives it another query"
            )));
        }
        None if tables.exists(name)? => {
            return Err(plan_error(format_args!("there is a table {name} already")));
        }
        None => {}
    }
    let query = view_query(create)?;
    let tables = planner.with_views(tables.clone());
    tables.planned_view(name, &query).await?;
    Ok(Some(query))
}

/// The views that a statement drops.
pub(super) fn dropped(names: Vec<String>, if_exists: bool, tables: &Tables) -> Result<Vec<String>> {
    let snapshot = tables.slot.snapshot()?;
    let mut dropped = Vec::new();
    for name in names {
        match views::query(&snapshot, &name)? {
            Some(_) => dropped.push(name),
            None if if_exists => {}
            None => return Err(plan_error(format_args!("there is no view {name}"))),
        }
    }
    Ok(dropped)
}

/// The text of the query of a view.
fn view_query(create: ast::CreateView) -> Result<String> {
    let plain = ast::CreateView {
        or_alter: false,
        or_replace: false,
        materialized: false,
        secure: false,
        name: create.name.clone(),
        name_before_not_exists: false,
        columns: create.columns.clone(),
        query: create.query.clone(),
        options: CreateTableOptions::None,
        cluster_by: Vec::new(),
        comment: None,
        with_no_schema_binding: false,
        if_not_exists: false,
        temporary: false,
        copy_grants: false,
        to: None,
        params: None,
    };
    let given = ast::CreateView {
        or_replace: false,
        if_not_exists: false,
        name_before_not_exists: false,
        ..create
    };
    if given != plain || given.columns.iter().any(|column| column.options.is_some()) {
        return Err(syntax(given));
    }
    let placeholder = |expr: &ast::Expr| match expr {
        ast::Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    if visit_expressions(&given.query, placeholder).is_break() {
        return Err(syntax("parameters of a view"));
    }
    if given.columns.is_empty() {
        return Ok(given.query.to_string());
    }
    let columns = given.columns.iter().map(|column| column.name.to_string());
    let columns: Vec<String> = columns.collect();
    Ok(format!(
        "SELECT * FROM ({}) AS v ({})",
        given.query,
        columns.join(", ")
    ))
}
