//! Inputs of many blocks, which several threads parse: the rows, their order and the line numbers in errors must be the
//! same as in the file.

use crate::support::Folder;
use std::fmt::Write;

/// Number of rows that makes the files below at least ten blocks long.
const ROWS: usize = 60_000;

/// The text for a row; some texts contain line ends, quotes and commas.
fn note(row: usize) -> String {
    match row % 5 {
        0 => format!("first line {row}\nsecond, \"quoted\" line\r\n"),
        1 => String::new(),
        2 => format!("  {row} "),
        _ => format!("note {}", row % 97),
    }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[test]
fn rows_in_quotes_across_blocks_come_back_as_they_were() {
    let folder = Folder::new("rows_in_quotes_across_blocks");
    let mut csv = String::from("series,time,n,note\n");
    for row in 0..ROWS {
        let (day, second) = (1 + row / 86_400, row % 86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let time = format!("2014-06-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
        let note = quoted(&note(row));
        writeln!(csv, "log,{time},{row},{note}").unwrap();
    }
    assert!(csv.len() > 2_000_000);
    folder.write("a.csv", &csv);
    let take = "--series series --columns n:i64,note:string";
    let out = folder.say(&format!("import a.tdl a.csv {take}")).ok();
    assert!(
        out.starts_with("60,000 rows, 60,000 points in 1 series"),
        "{out}"
    );
    let back = folder.say("export a.tdl").ok();
    assert!(back == csv, "what was exported is not what was imported");
    // If the time of a row already has a row, the new row is left out, and its texts are not added to the series.
    let again = csv.replace("note ", "other ");
    folder.write("b.csv", again);
    for merge in ["keep-first", "keep-distinct"] {
        let file = format!("{merge}.tdl");
        folder.say(&format!("copy a.tdl {file}")).ok();
        folder
            .say(&format!(
                "import {file} b.csv {take} --merge {merge} --quiet"
            ))
            .ok();
        let out = folder.say(&format!("export {file}")).ok();
        match merge {
            "keep-first" => assert!(out == csv),
            _ => assert_eq!(out.matches("other ").count(), ROWS / 5 * 2),
        }
        folder.say(&format!("check {file}")).ok();
    }
}

#[test]
fn series_in_turn_across_blocks_have_all_their_rows() {
    let folder = Folder::new("series_in_turn_across_blocks");
    let mut csv = String::from("t,site,v,w\r\n");
    for row in 0..ROWS {
        let v = if row % 10 == 3 {
            "NA".to_owned()
        } else {
            format!("{row}.5")
        };
        write!(
            csv,
            "{},site {},{v},{}\r\n",
            1_401_580_800 + row,
            row % 7,
            row % 100
        )
        .unwrap();
    }
    folder.write("a.csv", &csv);
    let out = folder.say("import a.tdl a.csv --tag site").ok();
    assert!(
        out.starts_with("60,000 rows, 114,000 points in 14 series"),
        "{out}"
    );
    for site in 0..7 {
        let rows = (site..ROWS).step_by(7);
        let values = rows.clone().filter(|row| row % 10 != 3);
        let count = values.clone().count();
        let sum: f64 = values.map(|row| row as f64 + 0.5).sum();
        let name = format!("v{{site=\"site {site}\"}}");
        let out = folder
            .run(&[
                "aggregate",
                "a.tdl",
                &name,
                "--fn",
                "count,sum,last",
                "-f",
                "csv",
            ])
            .ok();
        let last = rows.clone().rfind(|row| row % 10 != 3).unwrap();
        assert!(
            out.ends_with(&format!(",{count},{sum},{last}.5\n")),
            "{out}"
        );
    }
    folder.say("check a.tdl").ok();
    // The same rows are imported again as compressed JSON lines.
    let mut lines = String::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let v = fields[2].replace("NA", "null");
        writeln!(
            lines,
            "{{\"t\":{},\"site\":\"{}\",\"v\":{v},\"w\":{}}}",
            fields[0], fields[1], fields[3]
        )
        .unwrap();
    }
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let packed = ruzstd::encoding::compress_to_vec(lines.as_bytes(), level);
    folder.write("a.jsonl.zst", packed);
    folder
        .say("import b.tdl a.jsonl.zst --tag site --quiet")
        .ok();
    let scan = |file: &str| folder.say(&format!("export {file}")).ok();
    assert!(scan("a.tdl") == scan("b.tdl"));
}

#[test]
fn errors_in_late_blocks_have_their_lines() {
    let folder = Folder::new("errors_in_late_blocks_have_their_lines");
    let mut csv = String::from("time,v,note\n");
    for row in 0..ROWS {
        let v = if row % 20_000 == 19_999 {
            "x".to_owned()
        } else {
            row.to_string()
        };
        let note = if row % 3 == 0 {
            "\"two\nlines\""
        } else {
            "one"
        };
        writeln!(csv, "{},{v},{note}", 1_401_580_800 + row).unwrap();
        if row == 30_000 {
            csv += "\n\n";
        }
    }
    // Returns the number of the line at which a row begins. Lines count from 1, and the header is line 1. Every third
    // row has two lines, and two empty lines follow row 30,000.
    let line = |row: usize| 2 + row + row.div_ceil(3) + if row > 30_000 { 2 } else { 0 };
    let lines = [19_999, 39_999, 59_999].map(line);
    for (number, line) in lines.iter().enumerate() {
        assert!(
            csv.lines().nth(line - 1).unwrap().contains(",x,"),
            "{number}"
        );
    }
    folder.write("a.csv", &csv);
    let first = format!("a.csv, line {}: `x` in column `v`", lines[0]);
    folder
        .say("import a.tdl a.csv --value v")
        .failed(5, &[&first, "nothing was stored"]);
    assert!(!folder.path("a.tdl").exists());
    folder
        .say("import a.tdl a.csv --value v --commit-every 5000")
        .failed(5, &[&first, "3 durable commits before it remain"]);
    let out = folder.say("aggregate a.tdl v --fn count,last -f csv").ok();
    assert!(out.ends_with(",15000,14999\n"), "{out}");
    let ran = folder.say("import a.tdl a.csv --value v --on-error skip");
    for line in lines {
        assert!(
            ran.err.contains(&format!("line {line}:")),
            "{line}: {}",
            ran.err
        );
    }
    let out = ran.ok();
    assert!(out.starts_with("59,997 rows, 59,997 points"), "{out}");
    // A time that the series cannot represent is found only when rows are stored; it is reported with its line all the
    // same.
    let late = csv
        .replace(",x,", ",1,")
        .replacen("1401630000,", "1401630000.5,", 1);
    folder.write("late.csv", &late);
    folder
        .say("import b.tdl late.csv --value v --unit s")
        .failed(
            5,
            &[&format!(
                "late.csv, line {}: ",
                line(1_401_630_000 - 1_401_580_800)
            )],
        );
    // A truncated last block is reported after all good rows were read.
    let mut packed = {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(csv.replace(",x,", ",1,").as_bytes(), level)
    };
    packed.truncate(packed.len() - 1000);
    folder.write("cut.csv.zst", packed);
    folder
        .say("import c.tdl cut.csv.zst --value v --commit-every 10000")
        .failed(5, &["cut.csv.zst", "durable commits before it remain"]);
}

/// Columns given by number are compared by the names in each file, so two files that swap their columns do not go into
/// one series.
#[test]
fn files_that_call_columns_otherwise_do_not_go_into_one_series() {
    let folder = Folder::new("files_that_call_columns_otherwise");
    folder.write("x.csv", "time,temp,humidity\n2014-06-01,1,2\n");
    folder.write("y.csv", "time,humidity,temp\n2014-06-02,2,1\n");
    folder
        .say("import a.tdl x.csv y.csv --into log --columns 2:f64,3:f64")
        .failed(
            5,
            &[
                "log has temp:f64 humidity:f64",
                "asked for was humidity:f64 temp:f64",
            ],
        );
    assert!(!folder.path("a.tdl").exists());
    folder
        .say("import a.tdl x.csv y.csv --into log --columns temp:f64,humidity:f64 --quiet")
        .ok();
    assert_eq!(
        folder.say("scan a.tdl log -f csv").ok(),
        "series,time,temp,humidity\nlog,2014-06-01T00:00:00Z,1,2\nlog,2014-06-02T00:00:00Z,1,2\n"
    );
}
