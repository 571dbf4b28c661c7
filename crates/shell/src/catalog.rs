//! Lists tables and columns: the results of `.tables` and `.schema`, and the names for completion.

use crate::command::nearest;
use std::sync::Arc;
use tidalite_sql::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use tidalite_sql::arrow::datatypes::SchemaRef;
use tidalite_sql::arrow::error::ArrowError;
use tidalite_sql::{Connection, Result, TableKind, TableName};

/// Maximum number of tables whose columns are completed, so that a database with many tables opens without a delay.
const TABLES_COMPLETED_MAX: usize = 1_000;

/// The rows of `.tables`: the tables whose names match a pattern.
pub(crate) fn tables(connection: &mut Connection, pattern: Option<&str>) -> Result<RecordBatch> {
    let mut tables = connection.tables()?;
    tables.retain(|table| pattern.is_none_or(|pattern| is_match(pattern, table)));
    let kinds = tables.iter().map(|table| match table.kind {
        TableKind::Metric => "metric",
        TableKind::Table => "table",
        TableKind::View => "view",
        TableKind::Ordered => "ordered",
        TableKind::System => "system",
        _ => "other",
    });
    let names = tables.iter().map(|table| table.name.as_str());
    batch([("name", texts(names)), ("kind", texts(kinds))])
}

/// The output of `.schema`.
pub(crate) struct Schemas {
    /// The statements that create the tables with typed columns and the views.
    pub statements: String,
    /// The columns of all other tables, if there are any.
    pub columns: Option<RecordBatch>,
}

/// The schema of one table or of all tables. The inner `Err` is the error text for an unknown table.
pub(crate) fn schema(
    connection: &mut Connection,
    table: Option<&str>,
) -> Result<std::result::Result<Schemas, String>> {
    let all = connection.tables()?;
    let selected: Vec<&TableName> = all
        .iter()
        .filter(|name| match table {
            Some(table) => name.name == table,
            None => name.file.is_none(),
        })
        .collect();
    if let (Some(table), []) = (table, &selected[..]) {
        return Ok(Err(unknown(table, &all)));
    }
    let mut statements = String::new();
    let (mut tables, mut names, mut types, mut nullable) = (vec![], vec![], vec![], vec![]);
    for table in selected {
        if matches!(table.kind, TableKind::Table | TableKind::View)
            && let Some(definition) = connection.definition(&table.name)?
        {
            statements += &definition;
            statements.push('\n');
            continue;
        }
        let Some(schema) = connection.columns(&table.name)? else {
            continue;
        };
        for field in schema.fields() {
            tables.push(table.name.clone());
            names.push(field.name().clone());
            types.push(field.data_type().to_string());
            nullable.push(field.is_nullable());
        }
    }
    if tables.is_empty() && !statements.is_empty() {
        return Ok(Ok(Schemas {
            statements,
            columns: None,
        }));
    }
    let text = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let batch = batch([
        ("table", text(tables)),
        ("column", text(names)),
        ("type", text(types)),
        ("nullable", Arc::new(BooleanArray::from(nullable))),
    ]);
    let schemas = |batch| Schemas {
        statements,
        columns: Some(batch),
    };
    batch.map(|batch| Ok(schemas(batch)))
}

fn unknown(table: &str, all: &[TableName]) -> String {
    let near = nearest(table, all.iter().map(|known| known.name.as_str()));
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    let table: String = table.escape_debug().collect();
    format!("there is no table `{table}`; {near}`.tables` lists the tables")
}

fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(texts))
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<RecordBatch> {
    let batch: std::result::Result<_, ArrowError> = RecordBatch::try_from_iter(columns);
    Ok(batch?)
}

/// Compares the name of a table with a pattern in which `*` matches any text. Case is ignored.
fn is_match(pattern: &str, table: &TableName) -> bool {
    matches(&pattern.to_lowercase(), &table.name.to_lowercase())
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    // Each part between two stars is searched at the earliest possible position, and the last part at the end.
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// The names that the editor completes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Tables and their columns.
    pub tables: Vec<(String, Vec<String>)>,
}

impl Names {
    /// Reads the names from the database. Names that cannot be read are not completed.
    pub(crate) fn read(connection: &mut Connection) -> Self {
        let mut tables = connection.tables().unwrap_or_default();
        // The editor completes unqualified names only, so tables of attached files are omitted.
        tables.retain(|table| table.file.is_none());
        let tables = tables.iter().enumerate().map(|(index, table)| {
            let schema: Option<SchemaRef> = match index < TABLES_COMPLETED_MAX {
                true => connection.columns(&table.name).ok().flatten(),
                false => None,
            };
            let fields = schema.iter().flat_map(|schema| schema.fields().iter());
            let columns = fields.map(|field| field.name().clone()).collect();
            (table.name.clone(), columns)
        });
        Self {
            tables: tables.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [
            ("wind", "wind"),
            ("*", ""),
            ("w*", "wind"),
            ("*nd", "wind"),
            ("w*n*", "wind"),
            ("*i*d", "wind speed"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("win", "wind"),
            ("w*x", "wind"),
            ("*ab*ab", "ab"),
            ("", "a"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn an_unknown_table_gets_a_suggestion() {
        let table = TableName {
            name: "wind_speed".to_owned(),
            kind: TableKind::Metric,
            file: None,
        };
        assert_eq!(
            unknown("windspeed", &[table]),
            "there is no table `windspeed`; did you mean `wind_speed`? `.tables` lists the tables"
        );
    }
}
