//! Creates the SQL statement that `.import` runs.

use crate::failure::Failure;
use std::path::Path;
use tidalite_sql::{Connection, FileOptions};

/// The statement that copies a file into a table: COPY, or CREATE TABLE if the table does not exist.
pub(super) fn statement(
    connection: &mut Connection,
    file: &str,
    table: &str,
) -> Result<String, Failure> {
    if FileOptions::for_file(Path::new(file)).is_none() {
        return Err(Failure::Command(format!(
            "the format of {file} is not known by its name: .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .arrow, .feather or .ipc"
        )));
    }
    let known = connection.columns(table).map_err(Failure::Sql)?;
    let table = format!("\"{}\"", table.replace('"', "\"\""));
    let path = format!("'{}'", file.replace('\'', "''"));
    Ok(match known {
        Some(_) => format!("COPY {table} FROM {path}"),
        None => format!("CREATE TABLE {table} AS SELECT * FROM {path}"),
    })
}
