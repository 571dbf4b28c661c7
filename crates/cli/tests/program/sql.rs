//! SQL: statements of the command line and from a pipe, formats, and exit codes of errors.

use crate::support::{Folder, Ran};

fn sql(folder: &Folder, words: &[&str]) -> Ran {
    let mut all = vec!["sql", "plant.tdl"];
    all.extend(words);
    folder.run(&all)
}

/// Runs a script from standard input.
fn piped(folder: &Folder, words: &[&str], script: &str) -> Ran {
    let mut all = vec!["sql", "plant.tdl"];
    all.extend(words);
    folder.run_with(&all, script.as_bytes())
}

#[test]
fn statements_of_the_command_line_run_in_order() {
    let folder = Folder::with_plant("sql_command");
    let ran = sql(
        &folder,
        &[
            "-c",
            "SELECT 1 AS a; VALUES (2)",
            "-c",
            ".mode json",
            "--command",
            "SELECT 'x' AS b",
        ],
    );
    assert_eq!(
        ran.ok(),
        "\
┌───┐
│ a │
╞═══╡
│ 1 │
└───┘
(1 row)
┌─────────┐
│ column1 │
╞═════════╡
│       2 │
└─────────┘
(1 row)
[
{\"b\":\"x\"}
]
"
    );
}

#[test]
fn every_mode_has_its_text() {
    let folder = Folder::with_plant("sql_modes");
    let query = "SELECT 1 AS a, NULL AS b, 'x,y' AS c";
    let text = |mode: &str| sql(&folder, &["--mode", mode, "-c", query]).ok();
    assert_eq!(text("csv"), "a,b,c\n1,,\"x,y\"\n");
    assert_eq!(text("json"), "[\n{\"a\":1,\"b\":null,\"c\":\"x,y\"}\n]\n");
    assert_eq!(text("jsonl"), "{\"a\":1,\"b\":null,\"c\":\"x,y\"}\n");
    assert_eq!(
        text("markdown"),
        "| a | b | c |\n| ---: | --- | --- |\n| 1 | NULL | x,y |\n"
    );
    assert_eq!(text("line"), "a = 1\nb = NULL\nc = x,y\n");
    assert!(text("box").ends_with("┘\n(1 row)\n"));
    let ran = sql(&folder, &["--mode", "csv", "--no-header", "-c", query]);
    assert_eq!(ran.ok(), "1,,\"x,y\"\n");
    sql(&folder, &["--mode", "xml", "-c", query]).failed(2, &["xml", "jsonl"]);
}

#[test]
fn a_script_comes_from_a_pipe() {
    let folder = Folder::with_plant("sql_pipe");
    let script = "-- a comment; with a semicolon\n.mode csv\nSELECT\n  ';' AS a;\nSELECT 2 AS b";
    assert_eq!(piped(&folder, &[], script).ok(), "a\n;\nb\n2\n");
    // Without statements nothing happens.
    assert_eq!(piped(&folder, &[], "").ok(), "");
}

#[test]
fn the_first_error_ends_a_script() {
    let folder = Folder::with_plant("sql_errors");
    let script = "SELECT 1 AS a;\n\nSELECT (1 2);\nSELECT 3 AS c;\n";
    let ran = piped(&folder, &["--mode", "csv"], script);
    assert_eq!(ran.out, "a\n1\n");
    assert!(
        ran.err
            .contains("  in standard input, line 3\n  SELECT (1 2)\n            ^\n"),
        "{}",
        ran.err
    );
    ran.failed(2, &["error: syntax error: "]);
    let ran = piped(&folder, &["--mode", "csv", "--keep-going"], script);
    assert_eq!(ran.out, "a\n1\nc\n3\n");
    ran.failed(2, &["error: syntax error: "]);
    let ran = sql(
        &folder,
        &[
            "--keep-going",
            "--mode",
            "csv",
            "-c",
            "SELECT nothing",
            "-c",
            "SELEC",
            "-c",
            "SELECT 1 AS a",
        ],
    );
    assert_eq!(ran.out, "a\n1\n");
    ran.failed(3, &["invalid query: ", "syntax error: "]);
}

#[test]
fn errors_have_exit_codes() {
    let folder = Folder::with_plant("sql_codes");
    let failed =
        |text: &str, code: i32, told: &[&str]| sql(&folder, &["-c", text]).failed(code, told);
    failed("SELEC 1", 2, &["syntax error", "SELEC 1\n  ^\n"]);
    failed("SELECT nothing", 3, &["nothing", ".tables"]);
    failed("SELECT * FROM nowhere", 3, &["nowhere"]);
    failed(
        "SELECT CAST('x' AS INT)",
        5,
        &["execution failed", "TRY_CAST"],
    );
    failed(".tabels", 2, &["unknown command", "did you mean `.tables`"]);
    failed(".read missing.sql", 3, &["cannot read missing.sql"]);
    let missing = folder.run(&["sql", "missing.tdl", "-c", "SELECT 1"]);
    missing.failed(3, &["there is no database missing.tdl"]);
}

#[test]
fn a_database_can_be_opened_for_reading_only() {
    let folder = Folder::with_plant("sql_readonly");
    let before = std::fs::read(folder.path("plant.tdl")).unwrap();
    let ran = sql(
        &folder,
        &["--readonly", "--mode", "csv", "-c", "SELECT 1 AS a"],
    );
    assert_eq!(ran.ok(), "a\n1\n");
    assert_eq!(std::fs::read(folder.path("plant.tdl")).unwrap(), before);
}

#[test]
fn results_go_to_a_file() {
    let folder = Folder::with_plant("sql_output");
    folder.write("report.sql", "SELECT 1 AS a;\nSELECT 2 AS b;\n");
    let script = ".mode csv\n.output 'my report.csv'\n.read report.sql\n.output\nSELECT 3 AS c;\n";
    assert_eq!(piped(&folder, &[], script).ok(), "c\n3\n");
    let text = std::fs::read_to_string(folder.path("my report.csv")).unwrap();
    assert_eq!(text, "a\n1\nb\n2\n");
}

#[test]
fn statements_change_the_database() {
    let folder = Folder::with_plant("sql_changes");
    let script = "CREATE TABLE turbines (id TEXT PRIMARY KEY, rated DOUBLE NOT NULL);\n\
                  INSERT INTO turbines VALUES ('A', 2.5), ('B', 3.0);\n\
                  BEGIN;\nUPDATE turbines SET rated = 2.8 WHERE id = 'A';\nCOMMIT;\n";
    assert_eq!(piped(&folder, &[], script).ok(), "2 rows\n1 row\n");
    let rows = || {
        sql(
            &folder,
            &["--mode", "csv", "-c", "SELECT * FROM turbines ORDER BY id"],
        )
        .ok()
    };
    assert_eq!(rows(), "id,rated\nA,2.8\nB,3.0\n");
    let ran = piped(
        &folder,
        &["--mode", "csv"],
        "BEGIN;\nDELETE FROM turbines;\n",
    );
    assert!(ran.err.contains("was rolled back"), "{}", ran.err);
    assert_eq!(ran.ok(), "");
    assert_eq!(rows(), "id,rated\nA,2.8\nB,3.0\n");
    let failed =
        |text: &str, code: i32, told: &[&str]| sql(&folder, &["-c", text]).failed(code, told);
    failed("INSERT INTO turbines VALUES ('A', 1)", 5, &["ON CONFLICT"]);
    failed(
        "INSERT INTO turbines VALUES ('C', NULL)",
        5,
        &["rated", ".schema"],
    );
    failed("ROLLBACK", 2, &["there is no transaction", "BEGIN"]);
    failed(
        "COPY turbines FROM 'missing.csv'",
        5,
        &["missing.csv", "FORMAT csv"],
    );
    let ran = sql(&folder, &["--readonly", "-c", "DELETE FROM turbines"]);
    ran.failed(1, &["read-only", "--readonly"]);
    let ran = folder.run(&["sql", "new.tdl", "--create", "-c", "CREATE TABLE a (x INT)"]);
    assert_eq!(ran.ok(), "");
    let ran = folder.run(&["sql", "new.tdl", "-c", ".schema a"]);
    assert_eq!(ran.ok(), "CREATE TABLE a (\n    x INTEGER\n);\n");
}

#[test]
fn a_redirected_result_is_a_file_of_parquet() {
    let folder = Folder::with_plant("sql_parquet");
    let mut command = folder.command(&[
        "sql",
        "plant.tdl",
        "--mode",
        "parquet",
        "-c",
        "SELECT * FROM hb.wind",
    ]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    std::fs::write(folder.path("wind.parquet"), output.stdout).unwrap();
    let count = "SELECT count(*) AS n FROM 'wind.parquet'";
    assert_eq!(
        sql(&folder, &["--mode", "csv", "-c", count]).ok(),
        "n\n240\n"
    );
    let ran = sql(&folder, &["-c", ".import wind.parquet wind_rows"]);
    assert_eq!(ran.ok(), "240 rows\n");
}

/// While one process has an open transaction, another reads, and waits to write.
#[test]
fn another_process_reads_while_one_writes() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let folder = Folder::with_plant("sql_two");
    let mut command = folder.command(&["sql", "plant.tdl", "--mode", "csv"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(
            b"BEGIN;\nCREATE TABLE a (x INT);\nINSERT INTO a VALUES (1);\nSELECT x FROM a;\n",
        )
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Once there is a result, the transaction is open.
    assert_eq!(lines.next().unwrap().unwrap(), "x");
    for words in [&["--readonly"][..], &[]] {
        let mut words = words.to_vec();
        words.extend(["--mode", "csv", "-c", "SELECT count(*) AS n FROM hb.wind"]);
        assert_eq!(sql(&folder, &words).ok(), "n\n240\n");
    }
    let mut waiting = folder.command(&["sql", "plant.tdl", "-c", "CREATE TABLE b (x INT)"]);
    let mut waiting = waiting.stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(waiting.try_wait().unwrap().is_none(), "it did not wait");
    input.write_all(b"COMMIT;\n").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let waited = waiting.wait_with_output().unwrap();
    let notes = String::from_utf8_lossy(&waited.stderr);
    assert!(waited.status.success(), "{notes}");
    assert!(notes.contains("waiting: process"), "{notes}");
    let tables = sql(
        &folder,
        &[
            "--mode",
            "csv",
            "--no-header",
            "-c",
            ".tables a",
            "-c",
            ".tables b",
        ],
    );
    assert_eq!(tables.ok(), "a,table\nb,table\n");
}

#[test]
fn a_long_result_ends_quietly_when_the_pipe_is_closed() {
    use std::io::Read;
    let folder = Folder::with_plant("sql_closed");
    let query = "SELECT value FROM range(0, 100000000)";
    let mut command = folder.command(&["sql", "plant.tdl", "--mode", "csv", "-c", query]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut start = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(&start, b"value\n0\n");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// Ctrl-C cancels a statement, which ends a script.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_cancels_a_statement() {
    use std::io::Read;
    if crate::support::is_ignored(2) {
        println!("skipped: background");
        return;
    }
    let folder = Folder::with_plant("sql_interrupt");
    let query = "SELECT value FROM range(0, 100000000000)";
    let mut command = folder.command(&["sql", "plant.tdl", "--mode", "csv", "-c", query]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    // Once there is output, the statement is running.
    out.read_exact(&mut [0; 8]).unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    let mut kill = std::process::Command::new("kill");
    kill.args(["-INT", &child.id().to_string()]);
    assert!(kill.status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    reader.join().unwrap().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert_eq!(err, "error: the statement was cancelled\n");
}
