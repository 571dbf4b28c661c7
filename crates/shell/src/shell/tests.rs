//! Runs sessions with buffers instead of a terminal.

use super::*;
use crate::failure::Failure;
use crate::settings::{Mode, Settings};
use crate::streams::{Screen, Streams};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Options};
use tidalite_sql::{Connection, ErrorKind};

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("tidalite-shell-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The result of a session, its output and its errors.
struct Ran {
    result: Result<Flow, Failure>,
    out: String,
    err: String,
}

/// An empty database in memory.
fn database() -> Database {
    let storage = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).unwrap()
}

/// Runs a text in an empty database.
fn run_with(settings: Settings, screen: fn() -> Option<Screen>, text: &str) -> Ran {
    let database = database();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams {
        out: &mut out,
        err: &mut err,
        screen,
        pager: None,
        progress: false,
    };
    let connection = Connection::new(&database).unwrap();
    let mut shell = Shell::new(connection, settings, streams);
    let result = shell.run_input(&mut text.as_bytes(), "test.sql");
    shell.end();
    drop(shell);
    Ran {
        result,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

fn csv() -> Settings {
    Settings {
        mode: Mode::Csv,
        ..Settings::default()
    }
}

fn run(text: &str) -> Ran {
    run_with(csv(), || None, text)
}

#[test]
fn statements_run_in_order() {
    let ran = run("SELECT 1 AS a; VALUES (2), (3);\n.headers off\nSELECT 'x;y' AS b");
    assert!(matches!(ran.result, Ok(Flow::Continue)));
    assert_eq!(ran.out, "a\n1\ncolumn1\n2\n3\nx;y\n");
    assert_eq!(ran.err, "");
}

#[test]
fn the_first_error_ends_the_input() {
    let ran = run("SELECT 1 AS a;\nSELECT\n  (1 2);\nSELECT 3 AS c;");
    let Err(Failure::Sql(error)) = &ran.result else {
        panic!("{:?}", ran.result);
    };
    assert_eq!(error.kind(), ErrorKind::Syntax);
    assert_eq!(ran.out, "a\n1\n");
    let lines: Vec<&str> = ran.err.lines().collect();
    assert!(lines[0].starts_with("error: syntax error: "), "{lines:?}");
    assert_eq!(
        lines[1..],
        ["  in test.sql, line 3", "    (1 2)", "       ^"]
    );
}

/// The number of errors that a session has printed.
fn errors(ran: &Ran) -> usize {
    let lines = ran.err.lines();
    lines.filter(|line| line.starts_with("error: ")).count()
}

#[test]
fn an_unknown_column_is_named_with_its_line() {
    let ran = run("SELECT 1 AS a;\nSELECT nothing;");
    assert!(ran.err.starts_with("error: invalid query: "), "{}", ran.err);
    assert!(ran.err.contains("nothing"), "{}", ran.err);
    assert!(ran.err.contains("\n  in test.sql, line 2\n"), "{}", ran.err);
    assert!(!ran.err.contains("\n\n"), "{}", ran.err);
}

#[test]
fn with_keep_going_the_first_error_is_returned() {
    let settings = Settings {
        keep_going: true,
        ..csv()
    };
    let text = "SELEC 1;\nSELECT 1 AS a;\n.wrong\nSELECT nothing;\nSELECT 2 AS b;";
    let ran = run_with(settings, || None, text);
    let Err(Failure::Sql(error)) = &ran.result else {
        panic!("{:?}", ran.result);
    };
    assert_eq!(error.kind(), ErrorKind::Syntax);
    assert_eq!(ran.out, "a\n1\nb\n2\n");
    assert_eq!(errors(&ran), 3, "{}", ran.err);
}

#[test]
fn a_table_ends_with_the_number_of_rows() {
    let ran = run_with(Settings::default(), || None, "VALUES (1), (2);");
    assert!(ran.out.ends_with("┘\n(2 rows)\n"), "{}", ran.out);
    let ran = run(".mode box\n.timer on\nSELECT 1;");
    assert!(ran.out.contains("(1 row, 0."), "{}", ran.out);
    assert_eq!(ran.err, "");
    // The output of other modes is meant for programs.
    let ran = run(".timer on\nSELECT 1 AS a;");
    assert_eq!(ran.out, "a\n1\n");
    assert!(ran.err.starts_with("time: 0."), "{}", ran.err);
}

#[test]
fn a_table_fits_the_screen_unless_a_width_is_set() {
    let screen = || {
        Some(Screen {
            width: 30,
            height: 100,
        })
    };
    let longest = |text: &str| {
        let ran = run_with(Settings::default(), screen, text);
        let lines = ran.out.lines().map(|line| line.chars().count());
        lines.max().unwrap()
    };
    let query = "SELECT repeat('word ', 20) AS a";
    assert!(longest(query) <= 30);
    let wide = longest(&format!(".width 60\n{query}"));
    assert!((31..=60).contains(&wide), "{wide}");
    assert!(longest(&format!(".width 60\n.width 0\n{query}")) <= 30);
}

#[test]
fn a_tall_result_without_a_pager_is_complete() {
    let screen = || {
        Some(Screen {
            width: 80,
            height: 5,
        })
    };
    let ran = run_with(csv(), screen, "SELECT value FROM range(0, 1000);");
    assert_eq!(ran.out.lines().count(), 1_001);
    assert!(ran.out.ends_with("999\n"));
}

#[test]
fn plans_come_before_or_instead_of_results() {
    let ran = run(".mode box\n.explain on\nSELECT 1 AS a;");
    let plan = ran.out.find("logical_plan:\n").unwrap();
    assert!(plan < ran.out.find("│ a │").unwrap(), "{}", ran.out);
    let ran = run(".mode box\n.explain full\nSELECT 1 AS a;");
    assert!(ran.out.contains("metrics=["), "{}", ran.out);
    assert!(!ran.out.contains("│"), "{}", ran.out);
    let ran = run(".explain on\n.explain off\nSELECT 1 AS a;");
    assert_eq!(ran.out, "a\n1\n");
}

#[test]
fn results_go_to_a_file_and_files_are_read() {
    let folder = Folder::new("files");
    let [out, inner] = ["out.csv", "inner.sql"].map(|name| folder.path(name));
    std::fs::write(&inner, "SELECT 1 AS a;\nSELECT nothing;").unwrap();
    let ran = run(&format!(
        ".output '{out}'\nSELECT 5 AS five;\n.output\n.read '{inner}'"
    ));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "five\n5\n");
    assert_eq!(ran.out, "a\n1\n");
    assert!(matches!(ran.result, Err(Failure::Sql(_))));
    assert_eq!(errors(&ran), 1, "{}", ran.err);
    assert!(
        ran.err.contains(&format!("in {inner}, line 2\n")),
        "{}",
        ran.err
    );
}

#[test]
fn results_do_not_overwrite_the_database() {
    let folder = Folder::new("database");
    let file = folder.path("a.tdl");
    std::fs::write(&file, "content").unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams {
        out: &mut out,
        err: &mut err,
        screen: || None,
        pager: None,
        progress: false,
    };
    let connection = Connection::new(&database()).unwrap();
    let shell = Shell::new(connection, csv(), streams);
    let mut shell = shell.database(Path::new(&file));
    let result = shell.run_text(&format!(".output '{}'", folder.path("./a.tdl")));
    assert!(matches!(result, Err(Failure::Command(_))));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "content");
}

#[test]
fn files_that_read_each_other_end() {
    let folder = Folder::new("loop");
    let file = folder.path("loop.sql");
    std::fs::write(&file, format!(".read '{file}'")).unwrap();
    let ran = run(&format!(".read '{file}'"));
    assert!(ran.err.contains("16 files read each other"), "{}", ran.err);
}

#[test]
fn missing_files_are_named() {
    let ran = run(".read none/missing.sql");
    assert!(matches!(ran.result, Err(Failure::File(_))));
    assert!(
        ran.err.starts_with("error: cannot read none/missing.sql: "),
        "{}",
        ran.err
    );
    let ran = run(".output none/missing.csv");
    assert!(
        ran.err
            .starts_with("error: cannot write none/missing.csv: "),
        "{}",
        ran.err
    );
}

#[test]
fn commands_answer() {
    let ran = run(".mode\n.help\n.quit\nSELECT 1;");
    assert!(matches!(ran.result, Ok(Flow::Quit)));
    assert!(
        ran.out.starts_with("csv\n.explain on|off|full"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("Int64(1)"));
    let ran = run(".tables nothing*");
    assert_eq!(ran.out, "name,kind\n");
    let ran = run(".schema nothing");
    assert!(matches!(ran.result, Err(Failure::Command(_))));
    assert!(
        ran.err.contains("there is no table `nothing`"),
        "{}",
        ran.err
    );
    let ran = run(".nullvalue NA\nSELECT NULL AS a;");
    assert_eq!(ran.out, "a\nNA\n");
}

#[test]
fn statements_without_columns_tell_their_rows_in_tables_only() {
    let text = "CREATE TABLE a (x BIGINT);\nINSERT INTO a VALUES (1), (2), (3);\nDELETE FROM a WHERE x = 2;\nSELECT x FROM a";
    let ran = run(text);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("x\n1\n3\n", ""));
    let ran = run_with(Settings::default(), || None, text);
    assert!(ran.out.starts_with("3 rows\n1 row\n┌"), "{}", ran.out);
}

#[test]
fn an_open_transaction_is_rolled_back_at_the_end() {
    let ran =
        run("BEGIN;\nCREATE TABLE a (x BIGINT);\nINSERT INTO a VALUES (1);\nSELECT x FROM a;");
    assert!(matches!(ran.result, Ok(Flow::Continue)));
    assert_eq!(ran.out, "x\n1\n");
    assert!(ran.err.contains("was rolled back"), "{}", ran.err);
    let ran = run("BEGIN; COMMIT;");
    assert_eq!(ran.err, "");
    let ran = run("COMMIT;");
    let Err(Failure::Sql(error)) = &ran.result else {
        panic!("{:?}", ran.result);
    };
    assert_eq!(error.kind(), ErrorKind::Transaction);
    assert!(
        ran.err.starts_with("error: there is no transaction"),
        "{}",
        ran.err
    );
}

#[test]
fn schemas_are_statements_that_run_again() {
    let create = "CREATE TABLE a (\n    x BIGINT NOT NULL DEFAULT 7,\n    \"two words\" TEXT,\n    PRIMARY KEY (x)\n);\nCREATE INDEX b ON a (\"two words\");\n";
    let ran = run(&format!("{create}.schema a"));
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (create, ""));
    let ran = run(&format!("{create}.schema"));
    let columns = "table,column,type,nullable\ntidalite_pins,";
    assert!(
        ran.out.starts_with(&format!("{create}{columns}")),
        "{}",
        ran.out
    );
    // The tables of the open transaction are listed, too.
    let ran = run(&format!("BEGIN;{create}.tables a\nROLLBACK;\n.tables a"));
    assert_eq!(ran.out, "name,kind\na,table\nname,kind\n");
}

#[test]
fn files_are_imported_into_tables() {
    let folder = Folder::new("import");
    let [one, two, copy] = ["it's.csv", "two.jsonl", "copy.parquet"].map(|name| folder.path(name));
    std::fs::write(&one, "id,name\n1,a\n2,\"b;c\"\n").unwrap();
    std::fs::write(&two, "{\"name\":\"d\",\"id\":3}\n").unwrap();
    let ran = run(&format!(
        ".import \"{one}\" things\n.import {two} things\nSELECT * FROM things ORDER BY id;\n\
         .mode parquet\n.output {copy}\nSELECT * FROM things ORDER BY id;\n.output\n.mode csv\n\
         .import {copy} others\nSELECT count(*) AS n, max(name) AS last FROM others;"
    ));
    assert_eq!(
        ran.out, "id,name\n1,a\n2,b;c\n3,d\nn,last\n3,d\n",
        "{}",
        ran.err
    );
    assert_eq!(ran.err, "");
    let ran = run(".import a.xyz t");
    assert!(ran.err.contains("is not known by its name"), "{}", ran.err);
    let ran = run(".import missing.csv t");
    assert!(ran.result.is_err() && !ran.err.is_empty());
}

#[test]
fn a_file_of_parquet_is_one_result() {
    let folder = Folder::new("binary");
    for (mode, magic) in [("parquet", "PAR1"), ("arrow", "ARROW1")] {
        let file = folder.path(mode);
        let ran = run(&format!(
            ".mode {mode}\n.output {file}\nSELECT 1 AS a;\nSELECT 2 AS a;"
        ));
        assert!(ran.err.contains("has one result"), "{}", ran.err);
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes.starts_with(magic.as_bytes()) && bytes.ends_with(magic.as_bytes()));
        let ran = run(&format!(
            ".mode {mode}\n.output {file}\nSELECT 1 AS a;\n.mode csv\nSELECT 2 AS a;"
        ));
        assert!(ran.err.contains("has one result"), "{}", ran.err);
    }
    // Each batch has a dictionary of its own.
    let file = folder.path("texts.arrow");
    let ran = run(&format!(
        ".mode arrow\n.output {file}\nSELECT arrow_cast(CAST(value AS TEXT), 'Dictionary(Int32, Utf8)') AS s FROM range(0, 20000);\n\
         .output\n.mode csv\nSELECT count(DISTINCT s) AS n FROM '{file}';"
    ));
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("n\n20000\n", ""));
    let screen = || {
        Some(Screen {
            width: 80,
            height: 24,
        })
    };
    let settings = Settings {
        mode: Mode::Parquet,
        ..Settings::default()
    };
    let ran = run_with(settings, screen, "SELECT 1 AS a;");
    assert!(matches!(ran.result, Err(Failure::Command(_))));
    assert!(ran.err.contains("needs a file"), "{}", ran.err);
    assert_eq!(ran.out, "");
}

/// A stream whose reader has closed it.
struct Closed;

impl std::io::Write for Closed {
    fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_the_session_quietly() {
    let database = database();
    let mut err = Vec::new();
    let settings = Settings {
        keep_going: true,
        ..csv()
    };
    let streams = Streams {
        out: &mut Closed,
        err: &mut err,
        screen: || None,
        pager: None,
        progress: false,
    };
    let connection = Connection::new(&database).unwrap();
    let result = Shell::new(connection, settings, streams).run_text("SELECT 1; SELEC 2;");
    assert!(matches!(result, Err(Failure::Output(_))), "{result:?}");
    assert_eq!(String::from_utf8(err).unwrap(), "");
}
