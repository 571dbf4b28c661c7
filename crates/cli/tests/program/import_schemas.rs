//! Imports into series created by a program, and units of time.

use crate::support::Folder;
use tidalite::{Column, ColumnType, Database, Schema, Steps, Unit};

const UNITS: [(&str, Unit); 5] = [
    ("ns", Unit::Nanos),
    ("us", Unit::Micros),
    ("ms", Unit::Millis),
    ("s", Unit::Seconds),
    ("ticks", Unit::Ticks),
];

/// Creates a database with one series, as a program would, and inserts one row at the raw time 7.
fn with_series(folder: &Folder, file: &str, name: &str, schema: &Schema) {
    let database = Database::open(folder.path(file)).unwrap();
    let mut txn = database.begin_write().unwrap();
    let mut series = txn.series_with(name, schema).unwrap();
    series
        .insert_row(Steps(7), &vec![0; schema.columns.len()])
        .unwrap();
    txn.commit().unwrap();
}

/// The unit of a series, and the raw times and words of one of its columns.
fn rows(folder: &Folder, file: &str, name: &str, column: usize) -> (Unit, Vec<(i64, u64)>) {
    let database = Database::open(folder.path(file)).unwrap();
    let snapshot = database.begin_read().unwrap();
    let series = snapshot.series(name).unwrap().unwrap();
    let mut rows = Vec::new();
    let all = series.query(..);
    all.for_each(|time, words| rows.push((time, words[column])))
        .unwrap();
    (series.info().schema.unit, rows)
}

/// Single values are stored only in a series with one value column. (Regression: they were stored in the second column
/// of any series with two, and nanoseconds were taken for its steps.)
#[test]
fn single_values_go_into_no_other_columns() {
    let folder = Folder::new("single_values_go_into_no_other_columns");
    folder.write("a.csv", "time,v\n2014-06-01,1.5\n");
    let two_floats = [("temp", ColumnType::F64), ("humidity", ColumnType::F64)];
    let nullable = Schema {
        columns: vec![
            Column::new("flags", ColumnType::I64),
            Column::nullable("value", ColumnType::F64),
        ],
        unit: Unit::Nanos,
    };
    let others = [
        (
            Schema::new(Unit::Ticks, two_floats),
            "temp:f64,humidity:f64",
        ),
        (
            Schema::new(Unit::Nanos, [("value", ColumnType::F64)]),
            "value:f64",
        ),
        (
            Schema::new(
                Unit::Nanos,
                [("value", ColumnType::F64), ("flags", ColumnType::I64)],
            ),
            "value:f64,flags:i64",
        ),
        (nullable, "flags:i64,value:f64?"),
    ];
    for (i, (schema, columns)) in others.iter().enumerate() {
        let file = format!("{i}.tdl");
        with_series(&folder, &file, "v", schema);
        let before = folder.say(&format!("scan {file} v -f csv --flags")).ok();
        let found = format!("series v has {schema}");
        let unit = schema.unit;
        let expected = format!("flags:i64 value:f64, time in {unit}");
        for line in ["import", "import --commit-every 1 --on-error skip"] {
            let line = line.replacen("import", &format!("import {file} a.csv"), 1);
            folder
                .say(&line)
                .failed(5, &[&found, &expected, &format!("--columns '{columns}'")]);
        }
        let after = folder.say(&format!("scan {file} v -f csv --flags")).ok();
        assert_eq!(before, after, "{schema}");
        // A column of the input that has no values for the series does not affect it.
        folder.write("null.csv", "time,v,w\n2014-06-01,,1\n");
        folder
            .say(&format!("import {file} null.csv --value v --value w"))
            .ok();
    }
}

#[test]
fn times_go_into_the_unit_of_the_series() {
    let folder = Folder::new("times_go_into_the_unit_of_the_series");
    folder.write("a.csv", "time,v\n1969-12-31T23:59:58Z,1\n2014-06-01,2\n");
    for (name, unit) in UNITS {
        let file = format!("{name}.tdl");
        let columns = Schema::point().columns;
        with_series(&folder, &file, "v", &Schema { unit, columns });
        // Options for new series do not change a series that exists.
        let out = folder.say(&format!("import {file} a.csv --unit ms")).ok();
        assert!(out.starts_with("2 rows, 2 points in 1 series"), "{out}");
        let per_second = 1_000_000_000 / unit.nanos();
        let step = |seconds: i64| seconds * per_second + unit.steps_to_1970();
        let mut expected = vec![
            (7, 0.0_f64.to_bits()),
            (step(-2), 1.0_f64.to_bits()),
            (step(1_401_580_800), 2.0_f64.to_bits()),
        ];
        expected.sort_unstable();
        assert_eq!(rows(&folder, &file, "v", 1), (unit, expected));
    }
}

/// A time between two steps of the series' unit, or beyond 64 bits, is a bad row that is reported with its line.
#[test]
fn a_time_that_the_unit_has_not_is_a_bad_row() {
    let folder = Folder::new("a_time_that_the_unit_has_not_is_a_bad_row");
    folder.write(
        "a.csv",
        "time,v,w\n2014-06-01T00:00:00Z,1,1\n2014-06-01T00:00:00.000000001Z,,2\n9000-01-01,3,\n2014-06-02,4,4\n",
    );
    folder
        .say("import a.tdl a.csv")
        .failed(5, &["a.csv, line 4", "9000-01-01", "series v", "2262"]);
    folder.say("import a.tdl a.csv --unit ms").failed(
        5,
        &[
            "a.csv, line 3",
            ".000000001Z lies between two steps of series w",
            "millis",
        ],
    );
    let ran = folder.say("import a.tdl a.csv --unit s --on-error skip");
    assert!(ran.err.contains("line 3:"), "{}", ran.err);
    let out = ran.ok();
    assert!(out.starts_with("3 rows, 5 points in 2 series"), "{out}");
    assert!(out.contains("1 row skipped"), "{out}");
    assert_eq!(
        folder.say("scan a.tdl v -f csv").ok(),
        "series,time,value\nv,2014-06-01T00:00:00Z,1\nv,2014-06-02T00:00:00Z,4\nv,9000-01-01T00:00:00Z,3\n"
    );
    // A time that is not a whole step is a bad row in a series of named columns, too.
    let into = "--into log --columns v:f64?,w:f64?";
    folder
        .say(&format!("import b.tdl a.csv {into} --unit us"))
        .failed(5, &["a.csv, line 3", "two steps of series log"]);
    let ran = folder.say(&format!("import b.tdl a.csv {into} --on-error skip"));
    assert!(ran.err.contains("a.csv, line 4"), "{}", ran.err);
    assert_eq!(folder.say("scan b.tdl log -f csv").ok().lines().count(), 4);
}

/// An export can be imported again in every unit, with times as dates or as numbers, for single values and for several
/// columns. An existing series keeps its unit.
#[test]
fn an_export_comes_back_in_every_unit() {
    let folder = Folder::new("an_export_comes_back_in_every_unit");
    for (name, unit) in UNITS {
        let file = format!("{name}.tdl");
        let typed = Schema::new(
            unit,
            [("volume", ColumnType::U64), ("note", ColumnType::String)],
        );
        let (first, last) = (unit.steps_to_1970() - 1, unit.steps_to_1970() + 1);
        let database = Database::open(folder.path(&file)).unwrap();
        let mut txn = database.begin_write().unwrap();
        let columns = Schema::point().columns;
        let mut single = txn.series_with("v", &Schema { unit, columns }).unwrap();
        for (time, value) in [(first, f64::NAN), (last, -0.0), (last + 1, 0.1)] {
            single.insert_point(Steps(time), 0, value).unwrap();
        }
        if unit == Unit::Ticks {
            // The time is in the year 1, which nanoseconds since 1970 cannot represent.
            single.insert_point(Steps(0), 0, 1.0).unwrap();
        }
        let mut log = txn.series_with("log", &typed).unwrap();
        for (time, volume) in [(first, u64::MAX), (last, 7)] {
            log.insert_values(Steps(time), &[volume.into(), "a,\"b".into()])
                .unwrap();
        }
        txn.commit().unwrap();
        drop(database);
        for (way, times) in [("dates", ""), ("numbers", "--times ns")] {
            let format = if times.is_empty() {
                ""
            } else {
                "--time-format ns"
            };
            let (csv, back) = (format!("{name}-{way}.csv"), format!("{name}-{way}.tdl"));
            for (series, take) in [
                ("v", "--series series"),
                ("log", "--series series --columns volume:u64,note:string"),
            ] {
                let out = format!("export {file} {series} -o {csv} --replace {times}");
                folder.say(&out).ok();
                let take = format!("import {back} {csv} {take} {format}");
                folder.say(&format!("{take} --unit {name}")).ok();
                // The export is imported again into the existing series.
                folder.say(&take).ok();
                let column = usize::from(series == "v");
                assert_eq!(
                    rows(&folder, &file, series, column),
                    rows(&folder, &back, series, column),
                    "{series} {name} {way}"
                );
                assert_eq!(
                    folder.say(&format!("scan {file} {series} -f json")).ok(),
                    folder.say(&format!("scan {back} {series} -f json")).ok()
                );
            }
        }
    }
}
