//! DROP TABLE and TRUNCATE.

use crate::catalog::providers::Tables;
use crate::catalog::views;
use crate::error::Result;
use crate::metric::table::SeriesTable;
use crate::relational::declared;
use crate::relational::table::RelationTable;
use crate::write::define::names::{full_name, plan_error};
use datafusion::sql::sqlparser::ast::ObjectName;

/// A table to be dropped or emptied.
pub(crate) enum Dropped {
    Table(String),
    /// The declaration of a metric, which has no rows.
    Declaration(String),
    Series(Vec<tidalite::SeriesId>),
}

/// The tables to be dropped or emptied.
pub(super) fn dropped(
    names: &[ObjectName],
    if_exists: bool,
    tables: &Tables,
) -> Result<Vec<Dropped>> {
    let mut dropped = Vec::new();
    for name in names {
        let name = full_name(name)?;
        let Some(table) = tables.table(&name)? else {
            if views::query(&tables.slot.snapshot()?, &name)?.is_some() {
                return Err(plan_error(format_args!(
                    "{name} is a view; DROP VIEW removes it"
                )));
            }
            if if_exists {
                continue;
            }
            return Err(plan_error(format_args!("there is no table {name}")));
        };
        if table.is::<RelationTable>() {
            dropped.push(Dropped::Table(name));
        } else if let Some(table) = table.downcast_ref::<SeriesTable>() {
            let sources = table.layout.sources.iter();
            for source in sources.clone().filter(|source| source.declared.is_some()) {
                dropped.push(Dropped::Declaration(declared::relation_name(
                    &source.metric,
                )));
            }
            let series = sources.flat_map(|source| source.series.iter().map(|info| info.id));
            dropped.push(Dropped::Series(series.collect()));
        } else {
            return Err(plan_error(format_args!(
                "{name} cannot be changed with SQL"
            )));
        }
    }
    Ok(dropped)
}
