//! Attached files.

use std::path::PathBuf;
use tidalite::{Database, Steps};
use tidalite_sql::arrow::util::pretty::pretty_format_batches;
use tidalite_sql::{Connection, ErrorKind, Result, ScalarValue, TableKind};

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("tidalite-attached-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Creates a file with a row of each of two metrics, and a table.
    fn database(&self, name: &str, value: f64) -> Database {
        let db = Database::open(self.0.join(name)).unwrap();
        let mut tx = db.begin_write().unwrap();
        for metric in ["power", "wind.speed"] {
            let mut series = tx.series(&format!(r#"{metric}{{turbine="R1"}}"#)).unwrap();
            series.insert(Steps(1_000_000_000), value).unwrap();
        }
        tx.commit().unwrap();
        let mut sql = Connection::new(&db).unwrap();
        sql.query("CREATE TABLE turbines (id TEXT PRIMARY KEY, site TEXT)")
            .unwrap();
        sql.query("INSERT INTO turbines VALUES ('R1', 'hb')")
            .unwrap();
        db
    }

    fn attach(&self, sql: &mut Connection, file: &str, name: &str) -> Result<()> {
        let path = self.0.join(file);
        sql.query(&format!("ATTACH '{}' AS {name}", path.display()))
            .map(drop)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn table(sql: &mut Connection, query: &str) -> String {
    let rows = sql
        .query(query)
        .and_then(Iterator::collect::<Result<Vec<_>>>);
    pretty_format_batches(&rows.unwrap()).unwrap().to_string()
}

/// The only value of a result.
fn value(sql: &mut Connection, query: &str) -> String {
    let text = table(sql, query);
    let line = text.lines().nth(3).unwrap_or_default().to_owned();
    line.trim_matches(['|', ' ']).to_owned()
}

fn error(sql: &mut Connection, query: &str) -> (ErrorKind, String) {
    let rows = sql
        .query(query)
        .and_then(Iterator::collect::<Result<Vec<_>>>);
    let error = rows.expect_err(query);
    (error.kind(), error.to_string())
}

#[test]
fn tables_of_attached_files_are_read_beside_own_ones() {
    let folder = Folder::new("read");
    let own = folder.database("own.tdl", 1.0);
    let other = folder.database("other.tdl", 2.0);
    let mut sql = Connection::new(&own).unwrap();
    assert_eq!(value(&mut sql, "SELECT value FROM power"), "1.0");
    folder.attach(&mut sql, "other.tdl", "other").unwrap();
    for name in [
        "other.power",
        "other.public.power",
        r#"other."wind.speed""#,
        "other.wind.speed",
        r#"other.public."wind.speed""#,
    ] {
        assert_eq!(
            value(&mut sql, &format!("SELECT value FROM {name}")),
            "2.0",
            "{name}"
        );
    }
    assert_eq!(value(&mut sql, "SELECT value FROM power"), "1.0");
    assert_eq!(
        value(&mut sql, "SELECT site FROM other.turbines WHERE id = 'R1'"),
        "hb"
    );
    let sum = "SELECT a.value + b.value AS sum FROM power a JOIN other.power b ON a.time = b.time AND a.turbine = b.turbine";
    assert_eq!(value(&mut sql, sum), "3.0");
    let as_of = "SELECT value_right FROM asof_join(power, 'other.power')";
    assert_eq!(value(&mut sql, as_of), "2.0");
    assert_eq!(
        value(&mut sql, "SELECT count(*) FROM other.tidalite_series"),
        "2"
    );
    assert_eq!(
        value(&mut sql, "SELECT series FROM other.tidalite_stats"),
        "2"
    );
    let listed = "SELECT count(*) FROM information_schema.tables WHERE table_catalog = 'other' AND table_name = 'power'";
    assert_eq!(value(&mut sql, listed), "1");
    // A file can be attached to itself.
    folder.attach(&mut sql, "own.tdl", "own").unwrap();
    assert_eq!(
        value(
            &mut sql,
            "SELECT count(*) FROM own.power NATURAL JOIN power"
        ),
        "1"
    );
    // Later statements see later commits, also of a statement that ran before.
    for newest in ["3.0", "4.0"] {
        let mut tx = other.begin_write().unwrap();
        let mut series = tx.series(r#"power{turbine="R1"}"#).unwrap();
        series
            .insert(Steps(1_000_000_000), newest.parse::<f64>().unwrap())
            .unwrap();
        tx.commit().unwrap();
        assert_eq!(value(&mut sql, "SELECT value FROM other.power"), newest);
    }
    // A result that is still read outlives DETACH.
    let rows = sql.query("SELECT value FROM other.power").unwrap();
    sql.query("DETACH other").unwrap();
    assert_eq!(
        rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(),
        1
    );
    assert_eq!(
        error(&mut sql, "SELECT value FROM other.power").0,
        ErrorKind::Plan
    );
    drop(other);
}

#[test]
fn attached_tables_and_views_are_listed() {
    let folder = Folder::new("listed");
    let own = folder.database("own.tdl", 1.0);
    let other = folder.database("other.tdl", 2.0);
    let mut elsewhere = Connection::new(&other).unwrap();
    elsewhere
        .query("CREATE VIEW fast AS SELECT turbine, value FROM wind.speed WHERE value > 1")
        .unwrap();
    let mut sql = Connection::new(&own).unwrap();
    folder.attach(&mut sql, "other.tdl", "other").unwrap();
    let tables = sql.tables().unwrap();
    let attached = tables
        .iter()
        .filter_map(|table| Some((table.name.strip_prefix("other.")?, table.kind)));
    assert_eq!(
        attached.collect::<Vec<_>>(),
        [
            ("fast", TableKind::View),
            ("power", TableKind::Metric),
            ("turbines", TableKind::Table),
            ("wind", TableKind::Metric),
            ("wind.speed", TableKind::Metric),
        ]
    );
    let mut columns = |table: &str| -> Vec<String> {
        let schema = sql.columns(table).unwrap().unwrap();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    };
    assert_eq!(columns("other.fast"), ["turbine", "value"]);
    assert_eq!(columns("other.turbines"), ["id", "site"]);
    assert_eq!(
        columns("other.wind.speed"),
        ["time", "turbine", "flags", "value"]
    );
    assert_eq!(sql.columns("other.nothing").unwrap(), None);
    let definition = sql.definition("other.fast").unwrap().unwrap();
    assert!(definition.starts_with("CREATE VIEW fast"), "{definition}");
    // The view reads the tables of its file.
    assert_eq!(value(&mut sql, "SELECT value FROM other.fast"), "2.0");
    let written = "UPDATE turbines SET site = 'x' FROM other.fast WHERE id = turbine";
    assert_eq!(sql.execute(written).unwrap(), 1);
    assert_eq!(
        error(&mut sql, "DELETE FROM other.fast").1,
        "other.fast is in an attached file, which can only be read"
    );
}

#[test]
fn a_statement_reads_one_snapshot_of_each_file() {
    let folder = Folder::new("snapshot");
    let own = folder.database("own.tdl", 1.0);
    let other = folder.database("other.tdl", 2.0);
    let mut sql = Connection::new(&own).unwrap();
    folder.attach(&mut sql, "other.tdl", "other").unwrap();
    let rows = sql
        .query("SELECT max(a.value), max(b.value) FROM other.power a, other.power b")
        .unwrap();
    let mut tx = other.begin_write().unwrap();
    tx.series(r#"power{turbine="R1"}"#)
        .unwrap()
        .insert(Steps(2_000_000_000), 9.0)
        .unwrap();
    tx.commit().unwrap();
    let text = pretty_format_batches(&rows.collect::<Result<Vec<_>>>().unwrap())
        .unwrap()
        .to_string();
    assert!(text.contains("| 2.0") && !text.contains("9.0"), "{text}");
    // The snapshot ends with the statement.
    let readers = other.readers().unwrap();
    assert!(readers.is_empty(), "{readers:?}");
}

#[test]
fn a_name_of_a_file_precedes_own_names() {
    let folder = Folder::new("names");
    let own = folder.database("own.tdl", 1.0);
    drop(folder.database("other.tdl", 2.0));
    let mut tx = own.begin_write().unwrap();
    tx.series("other.power")
        .unwrap()
        .insert(Steps(0), 7.0)
        .unwrap();
    tx.commit().unwrap();
    let mut sql = Connection::new(&own).unwrap();
    for (statement, expected) in [
        ("SELECT 1", "7.0"),
        ("ATTACH", "2.0"),
        ("DETACH other", "7.0"),
    ] {
        match statement {
            "ATTACH" => folder.attach(&mut sql, "other.tdl", "other").unwrap(),
            statement => drop(sql.query(statement).unwrap()),
        }
        assert_eq!(
            value(&mut sql, "SELECT value FROM other.power"),
            expected,
            "{statement}"
        );
        assert_eq!(value(&mut sql, r#"SELECT value FROM "other.power""#), "7.0");
    }
}

#[test]
fn attached_files_are_not_changed() {
    let folder = Folder::new("errors");
    let own = folder.database("own.tdl", 1.0);
    drop(folder.database("other.tdl", 2.0));
    let mut sql = Connection::new(&own).unwrap();
    folder.attach(&mut sql, "other.tdl", "other").unwrap();
    for change in [
        "INSERT INTO other.power (time, turbine, value) VALUES ('2024-01-01', 'R1', 1.0)",
        "INSERT INTO other.turbines VALUES ('R2', 'hb')",
        "UPDATE other.turbines SET site = 'x'",
        "DELETE FROM other.public.turbines",
        "DELETE FROM other.power",
        "CREATE TABLE other.new (a INT)",
        "DROP TABLE other.turbines",
        "TRUNCATE other.power",
        "CREATE INDEX i ON other.turbines (site)",
        "ALTER TABLE other.turbines ADD COLUMN a INT",
    ] {
        let (kind, text) = error(&mut sql, change);
        assert_eq!(kind, ErrorKind::Plan, "{change}: {text}");
        assert!(
            text.contains("is in an attached file, which can only be read"),
            "{change}: {text}"
        );
    }
    let text = folder
        .attach(&mut sql, "other.tdl", "other")
        .expect_err("taken")
        .to_string();
    assert_eq!(text, "other is attached already; DETACH other ends that");
    let text = folder
        .attach(&mut sql, "other.tdl", "public")
        .expect_err("reserved")
        .to_string();
    assert_eq!(
        text,
        "public is a reserved name: choose another one for the file"
    );
    let missing = folder
        .attach(&mut sql, "missing.tdl", "missing")
        .expect_err("missing");
    assert_eq!(missing.kind(), ErrorKind::Database, "{missing}");
    assert!(!folder.0.join("missing.tdl").exists());
    assert_eq!(
        error(&mut sql, "DETACH nothing").1,
        "no file is attached as nothing"
    );
    assert_eq!(error(&mut sql, "ATTACH other AS b").0, ErrorKind::Syntax);
}

#[test]
fn a_statement_with_parameters_reads_an_attached_file_again() {
    let folder = Folder::new("parameters");
    let db = folder.database("own.tdl", 1.0);
    drop(folder.database("other.tdl", 2.0));
    let mut sql = Connection::new(&db).unwrap();
    folder.attach(&mut sql, "other.tdl", "other").unwrap();
    let query = "SELECT value FROM other.power WHERE value > $1";
    for (low, rows) in [(1.0, 1), (2.0, 0), (1.5, 1)] {
        let found = sql.query_with(query, &[ScalarValue::from(low)]).unwrap();
        let found: Vec<_> = found.collect::<Result<_>>().unwrap();
        let found: usize = found.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(found, rows, "{low}");
    }
}

#[test]
fn no_statement_changes_an_own_table_with_the_name_of_an_attached_one() {
    let folder = Folder::new("shadow");
    let db = folder.database("own.tdl", 1.0);
    drop(folder.database("other.tdl", 2.0));
    let mut sql = Connection::new(&db).unwrap();
    sql.query("CREATE TABLE other.turbines (id TEXT PRIMARY KEY, site TEXT)")
        .unwrap();
    sql.query("INSERT INTO other.turbines VALUES ('R1', 'own')")
        .unwrap();
    folder.attach(&mut sql, "other.tdl", "other").unwrap();
    for change in [
        "INSERT INTO other.turbines VALUES ('R2', 'x')",
        "INSERT INTO other.turbines SELECT 'R2', 'x'",
        "UPDATE other.turbines SET site = 'x' WHERE id = 'R1'",
        "UPDATE other.turbines SET site = site || 'x'",
        "DELETE FROM other.turbines WHERE id = 'R1'",
        "DELETE FROM other.turbines",
        "COPY other.turbines FROM 'none.csv'",
    ] {
        let error = sql.query(change).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Plan, "{change}: {error}");
        assert!(error.to_string().contains("attached"), "{change}: {error}");
    }
    assert_eq!(value(&mut sql, "SELECT site FROM other.turbines"), "hb");
    sql.query("DETACH other").unwrap();
    assert_eq!(value(&mut sql, "SELECT site FROM other.turbines"), "own");
}

#[test]
fn copy_does_not_replace_an_open_database() {
    let folder = Folder::new("copy");
    let db = folder.database("own.tdl", 1.0);
    drop(folder.database("other.tdl", 2.0));
    let mut sql = Connection::new(&db).unwrap();
    folder.attach(&mut sql, "other.tdl", "other").unwrap();
    for file in ["own.tdl", "other.tdl"] {
        let path = folder.0.join(file);
        let copy = format!("COPY power TO '{}' (FORMAT csv)", path.display());
        let error = sql.query(&copy).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::File, "{error}");
    }
    assert_eq!(value(&mut sql, "SELECT count(*) FROM other.power"), "1");
    assert!(db.check().unwrap().problems.is_empty());
}
