//! A check compares each container with its series: differences in both directions are found and mended, and what a series
//! cannot hold is no difference.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::containers::{Append, Document};
use tidalite::maintenance::{Place, Salvage};
use tidalite::storage::MemoryStorage;
use tidalite::{
    Column, ColumnType, Database, MergePolicy, Options, Schema, Steps, Table, TableLayout,
    TableMut, Timestamp, Unit, Value,
};

const SERIES: &str = r#"t{container="c"}"#;

fn empty() -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).unwrap()
}

fn json(text: &str) -> Document {
    Document::from_json(text).unwrap()
}

/// Copies the rows of a table and of the tables in it.
pub(crate) fn copy_rows(from: &Table<'_>, to: &mut TableMut<'_>) {
    let mut cursor = from.cursor();
    let mut more = cursor.first().unwrap();
    while more {
        match cursor.nested().unwrap() {
            Some(below) => {
                let mut to = to.nested(cursor.key());
                to.make().unwrap();
                copy_rows(&below, &mut to);
            }
            None => to
                .put(cursor.key(), &cursor.value().unwrap())
                .map(drop)
                .unwrap(),
        }
        more = cursor.next().unwrap();
    }
}

/// A database with the container `c` in the table `t`, which has these messages, and with a series of the container as
/// `plant` makes it. Nothing keeps the two in step: the series is made before the container, which comes as rows of a table.
fn planted(messages: &[(i64, &str)], plant: impl FnOnce(&mut tidalite::WriteTxn)) -> Database {
    planted_in(empty(), messages, plant)
}

fn planted_in(
    db: Database,
    messages: &[(i64, &str)],
    plant: impl FnOnce(&mut tidalite::WriteTxn),
) -> Database {
    let source = empty();
    let mut tx = source.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    for (time, text) in messages {
        table
            .append(&Append::new("c", Timestamp(*time), &json(text)))
            .unwrap();
    }
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    plant(&mut tx);
    let mut to = tx
        .create_raw_table("t", TableLayout::Containers, ("", ""))
        .unwrap();
    let snap = source.begin_read().unwrap();
    copy_rows(&snap.raw_table("t").unwrap().unwrap(), &mut to);
    tx.commit().unwrap();
    db
}

/// Creates the series of a container, with the columns `x` and `y` and these rows.
fn series(tx: &mut tidalite::WriteTxn, rows: &[(i64, Option<f64>, Option<f64>)]) {
    let columns = ["x", "y"].map(|name| Column::nullable(name, ColumnType::F64));
    let mut schema = Schema::new(Unit::Nanos, []);
    schema.columns.extend(columns);
    let mut series = tx
        .open_series(SERIES)
        .schema(&schema)
        .merge(MergePolicy::KeepAll)
        .open()
        .unwrap();
    let value = |x: Option<f64>| x.map_or(Value::Null, Value::F64);
    for &(time, x, y) in rows {
        series
            .insert_values(Steps(time), &[value(x), value(y)])
            .unwrap();
    }
}

const MESSAGES: [(i64, &str); 4] = [
    (1, r#"{"x": 1}"#),
    (2, r#"{"x": 2, "y": 0.5}"#),
    (2, r#"{"x": 3, "state": "on"}"#),
    (3, r#"{"state": "off"}"#),
];

const ROWS: [(i64, Option<f64>, Option<f64>); 3] = [
    (1, Some(1.0), None),
    (2, Some(2.0), Some(0.5)),
    (2, Some(3.0), None),
];

/// The problems of a check, without the table, the container and the next step, which all must have.
fn problems(db: &Database) -> Vec<String> {
    let report = db.check().unwrap();
    let of = "container c of t: ";
    let next = "; `rebuild_series` or `tidalite container rebuild` makes the series anew from the messages";
    let findings = report.findings.iter();
    findings
        .map(|finding| {
            let problem = finding.problem.strip_prefix(of).unwrap();
            let problem = problem.strip_suffix(next).unwrap();
            match &finding.place {
                Place::Series {
                    name, column, span, ..
                } => {
                    assert_eq!(name, SERIES);
                    let column = column.as_deref().unwrap_or_default();
                    let time = span.map_or(String::new(), |(from, to)| {
                        assert_eq!(from, to);
                        from.to_string()
                    });
                    format!("{time} {column} {problem}")
                }
                place => format!("{place}: {problem}"),
            }
        })
        .collect()
}

#[track_caller]
fn expect(db: &Database, expected: &[&str]) {
    assert_eq!(problems(db), expected);
    let mut tx = db.begin_write().unwrap();
    tx.containers("t").unwrap().rebuild_series().unwrap();
    tx.commit().unwrap();
    assert_eq!(problems(db), [""; 0]);
    let snap = db.begin_read().unwrap();
    let series = snap.series(SERIES).unwrap().unwrap();
    let mut rows = Vec::new();
    let at = |name: &str| {
        let columns = &series.info().schema.columns;
        columns
            .iter()
            .position(|column| column.name == name)
            .unwrap()
    };
    let (x, y) = (at("x"), at("y"));
    let value = |word: u64| Some(f64::from_bits(word)).filter(|x| !x.is_nan());
    series
        .query(..)
        .for_each(|time, words| rows.push((time, value(words[x]), value(words[y]))))
        .unwrap();
    assert_eq!(rows, ROWS);
}

#[test]
fn a_series_in_step_is_no_problem() {
    let db = planted(&MESSAGES, |tx| series(tx, &ROWS));
    expect(&db, &[]);
}

#[test]
fn rows_that_are_missing_or_too_many_are_found() {
    let db = planted(&MESSAGES, |tx| {
        series(tx, &[ROWS[2], (3, Some(9.0), None)]);
    });
    expect(
        &db,
        &[
            "3  has a row without a message",
            "1  has no row of the message with x = 1",
            "2  has no row of the message with x = 2",
        ],
    );
    // Behind the last message, and one row twice.
    let db = planted(&MESSAGES, |tx| {
        let mut rows = ROWS.to_vec();
        rows.extend([ROWS[1], (4, None, None)]);
        series(tx, &rows);
    });
    expect(
        &db,
        &[
            "2  has a row without a message",
            "4  has a row without a message",
        ],
    );
}

#[test]
fn numbers_that_differ_are_found() {
    let db = planted(&MESSAGES, |tx| {
        series(tx, &[(1, Some(1.5), None), (2, Some(2.0), None), ROWS[2]]);
    });
    expect(
        &db,
        &[
            "1 x is 1.5, in the message 1",
            "2 y is null, in the message 0.5",
        ],
    );
}

#[test]
fn a_missing_series_and_missing_columns_are_found() {
    let db = planted(&MESSAGES, |_| {});
    expect(
        &db,
        &["table t: the series does not exist, but a message has x = 1"],
    );
    let db = planted(&MESSAGES, |tx| {
        let mut schema = Schema::new(Unit::Nanos, []);
        schema.columns.push(Column::nullable("x", ColumnType::F64));
        let series = tx.open_series(SERIES).schema(&schema);
        let mut series = series.merge(MergePolicy::KeepAll).open().unwrap();
        for (time, x, _) in ROWS {
            series
                .insert_values(Steps(time), &[x.unwrap().into()])
                .unwrap();
        }
    });
    expect(&db, &["2  has no column y, but a message has this number"]);
}

#[test]
fn a_column_that_holds_no_numbers_is_found() {
    let db = planted(&MESSAGES, |tx| {
        let mut schema = Schema::new(Unit::Nanos, []);
        schema.columns.push(Column::nullable("x", ColumnType::F64));
        schema
            .columns
            .push(Column::nullable("y", ColumnType::String));
        let series = tx.open_series(SERIES).schema(&schema);
        let mut series = series.merge(MergePolicy::KeepAll).open().unwrap();
        for (time, x, _) in ROWS {
            let row = [x.unwrap().into(), Value::Null];
            series.insert_values(Steps(time), &row).unwrap();
        }
    });
    expect(&db, &[" y has the type string, which holds no numbers"]);
}

#[test]
fn a_series_of_another_kind_is_found() {
    let db = planted(&MESSAGES, |tx| {
        tx.series(SERIES).unwrap();
    });
    let report = db.check().unwrap();
    assert_eq!(
        report.problems,
        [
            "series t{container=\"c\"}: container c of t: has another unit, merge policy or columns than the series of a \
             container: rename it; `rebuild_series` or `tidalite container rebuild` makes the series anew from the messages"
        ]
    );
}

/// Only the first differences of each container are told.
#[test]
fn many_differences_are_counted() {
    let messages: Vec<(i64, &str)> = (0..50).map(|time| (time, r#"{"x": 1}"#)).collect();
    let db = planted(&messages, |tx| {
        let rows: Vec<_> = (0..50).map(|time| (2 * time, Some(2.0), None)).collect();
        series(tx, &rows);
    });
    assert_eq!(
        problems(&db),
        [
            "0 x is 2, in the message 1",
            "2 x is 2, in the message 1",
            "4 x is 2, in the message 1",
            "  47 more rows differ",
            "1  has no row of the message with x = 1",
            "3  has no row of the message with x = 1",
            "5  has no row of the message with x = 1",
            "  22 more rows or numbers are missing",
        ]
    );
}

/// If anything is lost, a salvage makes series that differ anew, and keeps rows that no message has.
#[test]
fn a_salvage_mends_series_and_keeps_rows_without_messages() {
    let folder = std::env::temp_dir().join(format!("tidalite-mended-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("damaged.tdl");
    let db = Database::open(&path).unwrap();
    let db = planted_in(db, &MESSAGES, |tx| {
        series(tx, &[ROWS[0], (7, Some(7.0), None)]);
        tx.table("lost")
            .unwrap()
            .put(b"key", &[b'!'; 2000])
            .unwrap();
    });
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    for at in 0..bytes.len() - 100 {
        if bytes[at..at + 100] == [b'!'; 100] {
            bytes[at] = 0;
        }
    }
    std::fs::write(&path, bytes).unwrap();
    let saved = empty();
    let report = Salvage::of(&path).to_database(&saved).unwrap();
    let told = format!("{:?}", report.lost);
    assert!(told.contains("kept as t{container"), "{told}");
    expect(&saved, &[]);
    let snap = saved.begin_read().unwrap();
    let kept = snap.series(r#"t{container="c",salvaged="1"}"#).unwrap();
    assert_eq!(kept.unwrap().count().unwrap(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}
