//! Runs the files in `slt/`, in the format of sqllogictest. `FIXTURE name` opens one of the databases in `fixtures`, `PIN
//! name` pins its newest commit.
//! With `TIDALITE_SLT=rewrite` the files get the results that are found: read the difference before it is committed.

use crate::fixtures;
use sqllogictest::{DBOutput, DefaultColumnType, Runner};
use std::path::Path;
use tidalite::Database;
use tidalite_sql::arrow::datatypes::DataType;
use tidalite_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use tidalite_sql::{Connection, Error};

struct Engine {
    database: Database,
    connection: Connection,
}

impl Engine {
    fn new(fixture: &str) -> Self {
        let database = fixtures::database(fixture);
        let connection = Connection::new(&database).unwrap();
        Self {
            database,
            connection,
        }
    }
}

/// The folder of files that statements call `DIR`.
fn folder() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slt");
    std::fs::create_dir_all(&folder).unwrap();
    folder.display().to_string()
}

/// An error without the path of the folder.
#[derive(Debug)]
struct Problem(String);

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl<E: Into<Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        let text = error.into().to_string();
        let folder = folder();
        // DataFusion prints paths without the slash in front.
        let text = text.replace(&folder, "DIR");
        Self(text.replace(folder.trim_start_matches('/'), "DIR"))
    }
}

impl sqllogictest::DB for Engine {
    type Error = Problem;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Problem> {
        if let Some(name) = sql.strip_prefix("FIXTURE ") {
            *self = Self::new(name.trim());
            return Ok(DBOutput::StatementComplete(0));
        }
        if let Some(name) = sql.strip_prefix("PIN ") {
            self.database.pin(name.trim()).unwrap();
            return Ok(DBOutput::StatementComplete(0));
        }
        let sql = sql.replace("'DIR/", &format!("'{}/", folder()));
        let rows = self.connection.query(&sql)?;
        if rows.schema().fields().is_empty() {
            return Ok(DBOutput::StatementComplete(
                rows.affected_rows().unwrap_or(0),
            ));
        }
        let schema = rows.schema();
        let types = schema.fields().iter().map(|field| match field.data_type() {
            ty if ty.is_integer() => DefaultColumnType::Integer,
            ty if ty.is_floating() => DefaultColumnType::FloatingPoint,
            DataType::Utf8 | DataType::Dictionary(..) => DefaultColumnType::Text,
            _ => DefaultColumnType::Any,
        });
        let types = types.collect();
        let mut lines = Vec::new();
        for batch in rows {
            let batch = batch?;
            let options = FormatOptions::default().with_null("NULL");
            let columns = batch.columns().iter();
            let columns: Vec<_> = columns
                .map(|column| ArrayFormatter::try_new(column, &options))
                .collect::<Result<_, _>>()?;
            for row in 0..batch.num_rows() {
                let value = |column: &ArrayFormatter<'_>| match column.value(row).to_string() {
                    text if text.is_empty() => "(empty)".to_owned(),
                    text => text,
                };
                let cells: Vec<String> = columns.iter().map(value).collect();
                match cells.iter().any(|cell| cell.contains('\n')) {
                    // A plan has many lines, of which the file has one each.
                    true => lines.extend(
                        cells
                            .join(" ")
                            .trim_end()
                            .lines()
                            .map(|line| vec![line.to_owned()]),
                    ),
                    false => lines.push(cells),
                }
            }
        }
        Ok(DBOutput::Rows { types, rows: lines })
    }
}

#[test]
fn every_file_gives_its_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "slt"));
    files.sort();
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for file in files {
        let mut runner = Runner::new(async || Ok(Engine::new("empty")));
        if std::env::var("TIDALITE_SLT").as_deref() == Ok("rewrite") {
            let updated = runner.update_test_file(
                &file,
                " ",
                sqllogictest::default_validator,
                sqllogictest::default_normalizer,
                sqllogictest::default_column_validator,
            );
            futures::executor::block_on(updated).unwrap();
        } else if let Err(error) = runner.run_file(&file) {
            failures.push(error.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
