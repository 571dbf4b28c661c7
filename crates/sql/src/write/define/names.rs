//! Names of tables, columns and indexes in statements that define them.

use crate::catalog::providers::Tables;
use crate::error::{Error, ErrorKind, Result};
use crate::relational::table::{Purpose, RelationTable};
use datafusion::sql::sqlparser::ast::ObjectName;

pub(super) fn syntax(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Syntax, format!("not supported: {problem}"))
}

pub(super) fn plan_error(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Plan, problem)
}

/// The full name of a table, in the form of the catalog.
pub(crate) fn full_name(name: &ObjectName) -> Result<String> {
    let mut parts = Vec::new();
    for part in &name.0 {
        let ident = part.as_ident().ok_or_else(|| syntax(name))?;
        parts.push(ident.value.as_str());
    }
    let own = [
        crate::catalog::providers::CATALOG,
        crate::catalog::providers::PUBLIC,
    ];
    let parts = match &parts[..] {
        [catalog, schema, table] if [*catalog, *schema] == own => &[*table][..],
        [schema, table] if *schema == own[1] => &[*table][..],
        parts => parts,
    };
    Ok(parts.join("."))
}

/// The relation with a name.
pub(super) fn relation_of(name: &str, tables: &Tables) -> Result<RelationTable> {
    if let Some(relation) = RelationTable::find(name, &tables.slot, Purpose::Read)? {
        return Ok(relation);
    }
    Err(plan_error(match tables.exists(name)? {
        true => format!(
            "{name} was not created with CREATE TABLE, so its columns cannot be changed here"
        ),
        false => format!("there is no table {name}"),
    }))
}

pub(super) fn expect_column(table: &RelationTable, column: &str) -> Result<()> {
    match table.source.relation.position(column) {
        Some(_) => Ok(()),
        None => Err(plan_error(format_args!(
            "table {} has no column {column}",
            table.source.name
        ))),
    }
}

/// The relation that has an index with this name.
pub(super) fn table_of_index(index: &str, tables: &Tables) -> Result<Option<String>> {
    let snapshot = tables.slot.snapshot()?;
    for name in RelationTable::names(&snapshot)? {
        if let Some(relation) = snapshot.relation(&name)?
            && relation
                .schema()
                .indexes
                .iter()
                .any(|own| own.name == index)
        {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
