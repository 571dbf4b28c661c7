//! Numbers are read back as they were written, and a bad cell affects only that cell.

use crate::support::Folder;

/// The values of a series as `scan` prints them, without the header line.
fn values(folder: &Folder, file: &str, name: &str) -> Vec<String> {
    let out = folder.say(&format!("scan {file} {name} -f csv")).ok();
    let lines = out.lines().skip(1);
    lines
        .map(|line| line.rsplit(',').next().unwrap_or_default().to_owned())
        .collect()
}

/// Whole numbers beyond 53 bits stay exact. (Regression: they were rounded to doubles without a warning, and the
/// difference of two meter readings was 4 instead of 2.)
#[test]
fn whole_numbers_beyond_53_bits_stay_whole() {
    let folder = Folder::new("whole_numbers_beyond_53_bits");
    let meter = ["9007199254740991", "9007199254740993", "9007199254740995"];
    let serial = ["1", "18446744073709551615", "9223372036854775808"];
    let (mut csv, mut json) = ("time,meter,serial,v\n".to_owned(), String::new());
    for (day, (meter, serial)) in meter.into_iter().zip(serial).enumerate() {
        let day = day + 1;
        csv += &format!("2024-01-0{day},{meter},{serial},0.{day}\n");
        json += &format!(
            "{{\"time\":\"2024-01-0{day}\",\"meter\":{meter},\"serial\":{serial},\"v\":0.{day}}}\n"
        );
    }
    folder.write("a.csv", &csv);
    folder.write("a.jsonl", json);
    for (file, input) in [("a.tdl", "a.csv"), ("b.tdl", "a.jsonl")] {
        folder.say(&format!("import {file} {input}")).ok();
        assert_eq!(values(&folder, file, "meter"), meter);
        assert_eq!(values(&folder, file, "serial"), serial);
        assert_eq!(values(&folder, file, "v"), ["0.1", "0.2", "0.3"]);
    }
    let out = folder.say("series a.tdl").ok();
    for schema in ["value:i64, time", "value:u64, time", "value:f64, time"] {
        assert!(out.contains(schema), "{schema}: {out}");
    }
    let out = folder.say("aggregate a.tdl meter --fn min,max -f csv").ok();
    assert!(
        out.contains(",9007199254740991,9007199254740995\n"),
        "{out}"
    );
    // Importing the file again changes nothing, small numbers can be stored, too, and the export can be imported.
    folder.say("import a.tdl a.csv").ok();
    assert_eq!(values(&folder, "a.tdl", "meter"), meter);
    folder.write("small.csv", "time,meter\n2024-01-04,7\n");
    folder.say("import a.tdl small.csv").ok();
    assert_eq!(values(&folder, "a.tdl", "meter")[3], "7");
    let out = folder.say("export a.tdl").ok();
    folder.write("all.csv", &out);
    folder.say("import c.tdl all.csv --series series").ok();
    assert_eq!(folder.say("export c.tdl").ok(), out);
}

/// A series of doubles accepts the whole numbers that a double represents exactly, and no others.
#[test]
fn values_that_a_series_cannot_store_exactly_are_bad() {
    let folder = Folder::new("what_a_series_cannot_store_exactly");
    folder.write("first.csv", "time,v\n2024-01-01,0.5\n");
    folder.say("import a.tdl first.csv").ok();
    folder.write(
        "then.csv",
        "time,v\n2024-01-02,9007199254740994\n2024-01-03,9007199254740993\n",
    );
    folder.say("import a.tdl then.csv").failed(
        5,
        &[
            "line 3",
            "series v: 9007199254740993",
            "doubles",
            "nothing was stored",
        ],
    );
    let ran = folder.say("import a.tdl then.csv --on-error null");
    assert!(ran.err.contains("line 3: series v"), "{}", ran.err);
    assert!(ran.ok().contains("1 value skipped"));
    assert_eq!(values(&folder, "a.tdl", "v"), ["0.5", "9007199254740994"]);
    // In the other order, whole numbers come first, and a fraction follows after some of these are stored.
    let mut csv = "time,n\n".to_owned();
    for second in 0..5_000_u64 {
        csv += &format!("{second},{}\n", 9_007_199_254_740_993 + second);
    }
    csv += "5000,0.5\n5001,-7\n";
    folder.write("late.csv", csv);
    let line = "import b.tdl late.csv --time-format s";
    folder
        .say(line)
        .failed(5, &["line 5002", "series n: 0.5", "whole numbers"]);
    let out = folder.say(&format!("{line} --on-error null")).ok();
    assert!(out.starts_with("5,002 rows, 5,001 points"), "{out}");
    let out = folder.say("aggregate b.tdl n --fn min,max -f csv").ok();
    assert!(out.contains(",-7,9007199254745992\n"), "{out}");
}

/// Numbers beyond the range of a double are refused. (Regression: 1e400 became infinite and 1e-400 became zero.)
#[test]
fn magnitudes_beyond_a_double_are_refused() {
    let folder = Folder::new("magnitudes_beyond_a_double");
    for (text, told) in [
        ("1e400", "too large"),
        ("1e-400", "too small"),
        ("99999999999999999999999", "more digits"),
    ] {
        folder.write(
            "a.csv",
            format!("time,v\n2024-01-01,{text}\n2024-01-02,1\n"),
        );
        folder
            .say("import a.tdl a.csv")
            .failed(5, &["line 2", text, told]);
        // With the type f64 a number becomes the nearest double, if it is within the range of doubles.
        let ran = folder.say("import a.tdl a.csv --into x --columns v:f64");
        assert_eq!(ran.code == 0, told == "more digits", "{text}: {}", ran.err);
    }
    folder.write("a.csv", "time,v\n2024-01-01,1e39\n");
    folder
        .say("import a.tdl a.csv --into y --columns v:f32")
        .failed(5, &["`1e39` in column `v` is not a valid f32"]);
    folder.write(
        "a.csv",
        "time,v\n2024-01-01,inf\n2024-01-02,NaN\n2024-01-03,-0.0\n",
    );
    folder.say("import b.tdl a.csv").ok();
    assert_eq!(values(&folder, "b.tdl", "v"), ["inf", "NaN", "-0"]);
}

const ONE_BAD_CELL: &str = "time,a,b,c\n2024-01-01,1,Err,3\n2024-01-02,4,5,6\n";

/// A bad cell affects only that cell. (Regression: a column with a bad cell among its first rows was dropped without a
/// warning.)
#[test]
fn a_bad_cell_costs_that_cell() {
    let folder = Folder::new("a_bad_cell_costs_that_cell");
    folder.write("a.csv", ONE_BAD_CELL);
    folder.say("import a.tdl a.csv").failed(
        5,
        &[
            "line 2: `Err` in column `b` is not a number",
            "--on-error null",
            "--null WORD",
        ],
    );
    let ran = folder.say("import a.tdl a.csv --on-error null");
    assert!(
        ran.err
            .contains("value skipped: a.csv, line 2: `Err` in column `b`"),
        "{}",
        ran.err
    );
    let out = ran.ok();
    assert!(out.starts_with("2 rows, 5 points in 3 series"), "{out}");
    assert!(out.contains("\n1 value skipped\n"), "{out}");
    assert_eq!(values(&folder, "a.tdl", "b"), ["5"]);
    let ran = folder.say("import b.tdl a.csv --on-error skip");
    assert!(
        ran.err.contains("row skipped: a.csv, line 2"),
        "{}",
        ran.err
    );
    assert!(ran.ok().starts_with("1 row, 3 points in 3 series"));
    folder.say("import c.tdl a.csv --null Err").ok();
    assert_eq!(values(&folder, "c.tdl", "b"), ["5"]);
}

/// A row without a readable time is left out, and its cells are not counted one by one.
#[test]
fn rows_without_a_time_are_bad() {
    let folder = Folder::new("a_row_without_a_time");
    folder.write(
        "a.csv",
        "time,a,b\n2024-01-01,1,x\nyesterday,x,x\n2024-01-03,5\n2024-01-04,x,7\n",
    );
    let ran = folder.say("import a.tdl a.csv --value a --value b --on-error null");
    for told in [
        "value skipped: a.csv, line 2: `x` in column `b`",
        "row skipped: a.csv, line 3: `yesterday`",
        "row skipped: a.csv, line 4: 2 fields",
        "value skipped: a.csv, line 5: `x` in column `a`",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    let out = ran.ok();
    assert!(out.starts_with("2 rows, 2 points"), "{out}");
    assert!(out.contains("2 rows skipped\n2 values skipped"), "{out}");
    folder.write("none.csv", "time,a\n2024-01-01,x\n2024-01-02,y\n");
    folder
        .say("import b.tdl none.csv --value a --on-error null")
        .failed(5, &["no value in 2 rows can be read"]);
    assert!(!folder.path("b.tdl").exists());
}

/// In a series of several columns, a bad cell becomes null only if its column is nullable.
#[test]
fn a_bad_cell_of_a_typed_column_is_null_where_it_may_be() {
    let folder = Folder::new("a_bad_cell_of_a_typed_column");
    folder.write("a.csv", ONE_BAD_CELL);
    let line = "import a.tdl a.csv --into log --on-error null --columns";
    let ran = folder.say(&format!("{line} a:i64,b:i64?,c:f64"));
    assert!(
        ran.err.contains("`Err` in column `b` is not a valid i64"),
        "{}",
        ran.err
    );
    ran.ok();
    let out = folder.say("scan a.tdl log -f csv").ok();
    assert!(out.contains("T00:00:00Z,1,,3\n"), "{out}");
    let ran = folder.say(&format!(
        "{} a:i64,b:i64,c:f64",
        line.replace("a.tdl", "b.tdl")
    ));
    assert!(ran.err.contains("row skipped"), "{}", ran.err);
    assert!(ran.ok().starts_with("1 row,"));
}

/// A column with few numbers among words is not imported as values, but it is mentioned.
#[test]
fn a_column_with_some_numbers_is_mentioned() {
    let folder = Folder::new("a_column_with_some_numbers");
    folder.write(
        "a.csv",
        "time,v,id\n2024-01-01,1,A1\n2024-01-02,2,B2\n2024-01-03,3,17\n",
    );
    let ran = folder.say("import a.tdl a.csv");
    assert!(
        ran.err.contains(
            "id (numbers in 1 of the first 3 cells: --value id --on-error null stores them)"
        ),
        "{}",
        ran.err
    );
    assert!(ran.ok().starts_with("3 rows, 3 points in 1 series"));
    folder
        .say("import a.tdl a.csv --value id --on-error null")
        .ok();
    assert_eq!(values(&folder, "a.tdl", "id"), ["17"]);
}
