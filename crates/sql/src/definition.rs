//! The definition of a relation, as statements that would create it again.

use crate::error::{Error, Result};
use crate::relational::types;
use datafusion::common::format::DEFAULT_FORMAT_OPTIONS;
use datafusion::sql::sqlparser::keywords::{
    Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_IDENTIFIER, RESERVED_FOR_TABLE_ALIAS,
};
use std::fmt::Write;
use tidalite::relation::{Cell, Column, ColumnType, Schema, TimeUnit};

/// Keywords that begin a constraint within CREATE TABLE.
const CONSTRAINTS: [&str; 8] = [
    "CHECK",
    "CONSTRAINT",
    "FOREIGN",
    "FULLTEXT",
    "INDEX",
    "KEY",
    "PRIMARY",
    "UNIQUE",
];

/// The CREATE TABLE statement of a relation, and a CREATE INDEX statement for each of its indexes. Each ends with a
/// semicolon.
pub(crate) fn definition(table: &str, schema: &Schema) -> Result<String> {
    let mut parts = Vec::new();
    for column in &schema.columns {
        parts.push(column_text(column)?);
    }
    if !schema.primary_key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", list(&schema.primary_key)));
    }
    let table = quoted(table);
    let mut text = format!("CREATE TABLE {table} (\n    {}\n);", parts.join(",\n    "));
    for index in &schema.indexes {
        let unique = if index.unique { "UNIQUE " } else { "" };
        let (name, columns) = (quoted(&index.name), list(&index.columns));
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\nCREATE {unique}INDEX {name} ON {table} ({columns});"
        );
    }
    Ok(text)
}

/// The CREATE VIEW statement for a query, with a semicolon at the end.
pub(crate) fn of_view(view: &str, query: &str) -> String {
    format!("CREATE VIEW {} AS {query};", quoted(view))
}

fn list(columns: &[String]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    columns.join(", ")
}

fn column_text(column: &Column) -> Result<String> {
    let mut text = format!("{} {}", quoted(&column.name), type_text(column.kind));
    if column.not_null {
        text += " NOT NULL";
    }
    if let Some(default) = &column.default {
        text += " DEFAULT ";
        text += &constant_text(column.kind, default)?;
    }
    Ok(text)
}

fn type_text(kind: ColumnType) -> String {
    let name = match kind {
        ColumnType::Bool => "BOOLEAN",
        ColumnType::I16 => "SMALLINT",
        ColumnType::I32 => "INTEGER",
        ColumnType::I64 => "BIGINT",
        ColumnType::U64 => "BIGINT UNSIGNED",
        ColumnType::F32 => "REAL",
        ColumnType::F64 => "DOUBLE",
        ColumnType::Bytes => "BYTEA",
        ColumnType::Date => "DATE",
        ColumnType::Guid => "UUID",
        ColumnType::Decimal { precision, scale } => {
            return format!("DECIMAL({precision}, {scale})");
        }
        ColumnType::Time { unit, zoned } => {
            let digits = match unit {
                TimeUnit::Seconds => 0,
                TimeUnit::Millis => 3,
                TimeUnit::Micros => 6,
                _ => 9,
            };
            let zone = if zoned { " WITH TIME ZONE" } else { "" };
            return format!("TIMESTAMP({digits}){zone}");
        }
        _ => "TEXT",
    };
    name.to_owned()
}

/// A constant as SQL text. Dates, times and unusual numbers are written as text literals, which are converted to the
/// type of the column.
fn constant_text(kind: ColumnType, value: &Cell) -> Result<String> {
    Ok(match value {
        Cell::Null => "NULL".to_owned(),
        Cell::Bool(value) => value.to_string().to_uppercase(),
        Cell::U64(value) => value.to_string(),
        Cell::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{digits}'")
        }
        Cell::Text(text) => text_literal(text),
        value => {
            let constant = types::constant(kind, value)?.to_array()?;
            let format = arrow::util::display::ArrayFormatter::try_new(
                constant.as_ref(),
                &DEFAULT_FORMAT_OPTIONS,
            )?;
            let text = format.value(0).try_to_string().map_err(Error::from)?;
            let is_whole = matches!(kind, ColumnType::I16 | ColumnType::I32 | ColumnType::I64);
            let is_finite = matches!(value, Cell::F64(value) if value.is_finite());
            let is_number = is_whole || is_finite || matches!(kind, ColumnType::Decimal { .. });
            match is_number {
                true => text,
                false => text_literal(&text),
            }
        }
    })
}

fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as written in SQL: in quotes, unless it is a plain word that is not a keyword.
fn quoted(name: &str) -> String {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_plain = name.starts_with(is_first)
        && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
        && !is_reserved(name);
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

fn is_reserved(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let reserved = [
        RESERVED_FOR_COLUMN_ALIAS,
        RESERVED_FOR_IDENTIFIER,
        RESERVED_FOR_TABLE_ALIAS,
    ];
    CONSTRAINTS.contains(&upper.as_str())
        || keyword(&upper).is_some_and(|word| reserved.iter().any(|words| words.contains(&word)))
}

fn keyword(upper: &str) -> Option<Keyword> {
    use datafusion::sql::sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX};
    let at = ALL_KEYWORDS.binary_search(&upper).ok()?;
    Some(ALL_KEYWORDS_INDEX[at])
}

#[cfg(test)]
mod tests {
    use crate::Connection;
    use std::sync::Arc;
    use tidalite::Options;
    use tidalite::storage::MemoryStorage;

    fn connection() -> Connection {
        let storage = Arc::new(MemoryStorage::new());
        let database = Options::new().open_storage(storage).unwrap();
        Connection::new(&database).unwrap()
    }

    #[test]
    fn a_definition_creates_the_same_table() {
        let mut sql = connection();
        sql.execute(
            "CREATE TABLE \"farm.turbines\" (id BIGINT, \"Name\" TEXT NOT NULL DEFAULT 'it''s', \"select\" DOUBLE DEFAULT 0.1,
             ok BOOLEAN DEFAULT true, small SMALLINT DEFAULT -3, i INTEGER, u BIGINT UNSIGNED DEFAULT 18446744073709551615,
             f REAL DEFAULT 1.5, price DECIMAL(10, 2) DEFAULT 12.50, d DATE DEFAULT '2024-02-29',
             at TIMESTAMP(3) WITH TIME ZONE DEFAULT '2024-02-29T12:00:00.5Z', local TIMESTAMP(9), s TIMESTAMP(0), us TIMESTAMP(6),
             b BYTEA DEFAULT X'00ff', g UUID DEFAULT '00112233-4455-6677-8899-aabbccddeeff', PRIMARY KEY (id, d))",
        )
        .unwrap();
        sql.execute("CREATE INDEX by_price ON \"farm.turbines\" (price, ok)")
            .unwrap();
        sql.execute("CREATE UNIQUE INDEX \"by name\" ON \"farm.turbines\" (\"Name\")")
            .unwrap();
        let text = sql.definition("farm.turbines").unwrap().unwrap();
        assert!(
            text.contains("Name TEXT NOT NULL DEFAULT 'it''s',\n"),
            "{text}"
        );
        assert!(
            text.contains("at TIMESTAMP(3) WITH TIME ZONE DEFAULT"),
            "{text}"
        );
        let mut copy = connection();
        for statement in text.split_inclusive(";\n") {
            copy.execute(statement).unwrap();
        }
        assert_eq!(copy.definition("farm.turbines").unwrap().unwrap(), text);
        let schema = |sql: &mut Connection| sql.columns("farm.turbines").unwrap().unwrap();
        assert_eq!(schema(&mut copy), schema(&mut sql));
        assert_eq!(sql.definition("tidalite_series").unwrap(), None);
        assert_eq!(sql.definition("nothing").unwrap(), None);
    }

    #[test]
    fn tables_of_an_open_transaction_are_listed() {
        let mut sql = connection();
        sql.execute("BEGIN").unwrap();
        sql.execute("CREATE TABLE a (x BIGINT)").unwrap();
        let has =
            |sql: &mut Connection| sql.tables().unwrap().iter().any(|table| table.name == "a");
        assert!(has(&mut sql) && sql.definition("a").unwrap().is_some());
        sql.execute("ROLLBACK").unwrap();
        assert!(!has(&mut sql));
    }
}
