//! Views: named queries.
//!
//! The view `v` is stored as the relation `view/v`, whose only row contains the text of the query. So views are listed,
//! versioned and dropped like relations, and a new view invalidates the plans of earlier statements.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::table::{RelationTable, VIEW};
use async_trait::async_trait;
use datafusion::catalog::CatalogProviderList;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;
use tidalite::relation::{Cell, Column, ColumnType, KeyBounds, Schema};
use tidalite::{AnyRead, WriteTxn};

/// The column with the text of the query.
const QUERY: &str = "query";

/// Maximum nesting depth of views that read other views.
const DEPTH_MAX: usize = 32;

/// Plans the query of a view on the tables of a catalog.
#[async_trait]
pub(crate) trait PlanQuery: Send + Sync {
    async fn plan(&self, query: &str, tables: Arc<dyn CatalogProviderList>) -> Result<LogicalPlan>;
}

/// The planner of views, and the names of the views whose queries are currently being planned.
#[derive(Clone, Default)]
pub(crate) struct Views {
    /// `None` if tables are only being listed.
    planner: Option<Arc<dyn PlanQuery>>,
    open: Vec<String>,
    /// Whether a view whose query cannot be planned counts as a table without columns. It must not prevent other tables
    /// from being listed.
    pub(crate) are_listed: bool,
}

impl Views {
    /// Creates the views whose queries this planner plans.
    pub(crate) fn planned_by(planner: Arc<dyn PlanQuery>) -> Self {
        Self {
            planner: Some(planner),
            ..Self::default()
        }
    }

    /// The planner; `None` if tables are only being listed.
    pub(crate) fn planner(&self) -> Option<&Arc<dyn PlanQuery>> {
        self.planner.as_ref()
    }

    /// The same planner, for the tables of another database.
    pub(crate) fn elsewhere(&self) -> Self {
        Self {
            open: Vec::new(),
            ..self.clone()
        }
    }

    /// The views while the query of `view` is being planned.
    ///
    /// # Errors
    /// The query refers to the view itself, or views are nested too deeply.
    pub(crate) fn with(&self, view: &str) -> Result<Self> {
        if self.open.iter().any(|open| open == view) {
            return Err(problem(view, "its query reads the view itself"));
        }
        if self.open.len() >= DEPTH_MAX {
            let text = format!("more than {DEPTH_MAX} views read each other");
            return Err(problem(view, &text));
        }
        let mut views = self.clone();
        views.open.push(view.to_owned());
        Ok(views)
    }
}

/// The error for a view whose query cannot be planned. It has no position, because a position would refer to the text
/// of the view.
pub(crate) fn problem_of(view: &str, error: Error) -> Error {
    match error.database() {
        Some(_) => error,
        None => problem(view, error.message()),
    }
}

fn problem(view: &str, text: &str) -> Error {
    Error::new(ErrorKind::Plan, format!("view {view}: {text}"))
}

/// The name of the relation of a view.
fn relation_name(view: &str) -> String {
    format!("{VIEW}{view}")
}

/// The names of all views.
pub(crate) fn names(snapshot: &AnyRead) -> Result<Vec<String>> {
    let names = RelationTable::all_names(snapshot)?;
    let views = names.iter().filter_map(|name| name.strip_prefix(VIEW));
    Ok(views.map(str::to_owned).collect())
}

/// The query of a view; `None` if the view does not exist.
pub(crate) fn query(snapshot: &AnyRead, view: &str) -> Result<Option<String>> {
    let name = relation_name(view);
    if snapshot.table_types(&name)?.is_none() {
        return Ok(None);
    }
    let Some(relation) = snapshot.relation(&name)? else {
        return Ok(None);
    };
    let Some(column) = relation.schema().position(QUERY) else {
        return Ok(None);
    };
    let mut rows = relation.rows(KeyBounds::all())?;
    Ok(match rows.next()? {
        Some(row) => match row.cell(column)?.to_cell() {
            Cell::Text(query) => Some(query),
            _ => None,
        },
        None => None,
    })
}

/// Stores a view, replacing an existing view with this name.
pub(crate) fn create(txn: &mut WriteTxn, view: &str, query: &str) -> Result<()> {
    let name = relation_name(view);
    drop_relation(txn, &name)?;
    let schema = Schema::new().column(Column::new(QUERY, ColumnType::Text).not_null());
    let mut relation = txn.create_relation(&name, &schema)?;
    relation.insert(&[Cell::Text(query.to_owned())])?;
    Ok(())
}

/// Removes a view.
pub(crate) fn remove(txn: &mut WriteTxn, view: &str) -> Result<()> {
    drop_relation(txn, &relation_name(view))
}

fn drop_relation(txn: &mut WriteTxn, name: &str) -> Result<()> {
    txn.drop_table(name)?;
    Ok(())
}
