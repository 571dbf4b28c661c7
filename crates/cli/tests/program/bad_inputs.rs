//! Inputs that `import` cannot read: the error names their format and the next step.

use crate::support::Folder;
use std::io::Write;

#[track_caller]
fn refused(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>, told: &[&str]) {
    folder.write(name, bytes);
    folder.say(&format!("import a.tdl {name}")).failed(5, told);
    assert!(!folder.path("a.tdl").exists(), "{name} left a database");
}

#[test]
fn formats_that_are_no_text_are_named() {
    let folder = Folder::new("formats_that_are_no_text_are_named");
    for (bytes, told, next) in [
        (&b"PAR1\x15\x04\0"[..], "Parquet", "damaged"),
        (b"ARROW1\0\0", "Arrow", "damaged"),
        (b"FEA1\0\0\0", "a Feather file", "pandas"),
        (b"BZh91AY&SY", "compressed with bzip2", "bzip2 -dc"),
        (b"\xfd7zXZ\0\0", "compressed with xz", "xz -dc"),
        (b"PK\x03\x04\x14\0a.csv", "a ZIP archive", "unzip -p"),
        (
            b"PK\x03\x04\x14\0\x06\0[Content_Types].xml",
            "an Excel workbook (.xlsx)",
            "as CSV",
        ),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Excel workbook", "as CSV"),
        (b"SQLite format 3\0", "an SQLite database", "sqlite3"),
        (b"time,v\n\0\0", "a zero byte in line 2", "UTF-8"),
    ] {
        refused(&folder, "a.dat", bytes, &["a.dat", told, next]);
    }
}

#[test]
fn text_that_is_not_utf_8_can_be_converted() {
    let folder = Folder::new("text_that_is_not_utf_8");
    let next = "--encoding windows-1252";
    refused(&folder, "a.csv", b"time,H\xf6he\n2014-06-01,1\n", &[next]);
    folder.write("b.csv", b"time,ort,v\n2014-06-01,K\xf6ln,1\n");
    folder
        .say("import a.tdl b.csv --tag ort")
        .failed(5, &["b.csv, line 2", next]);
}

#[test]
fn packed_data_that_are_damaged_are_not_called_binary() {
    let folder = Folder::new("packed_data_that_are_damaged");
    let mut state = 7_u64;
    let mut csv = String::from("time,v\n");
    for second in 0..50_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        csv += &format!("{},{}\n", 1_401_580_800 + second, state % 100_000);
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(csv.as_bytes()).unwrap();
    let mut packed = encoder.finish().unwrap();
    let from = packed.len() / 10;
    packed[from..from + 300].fill(0);
    folder.write("a.csv.gz", packed);
    let ran = folder.say("import a.tdl a.csv.gz");
    assert!(!ran.err.contains("binary data"), "{}", ran.err);
    ran.failed(5, &["a.csv.gz", "gzip data are damaged", "gzip -t"]);
}

#[test]
fn cells_that_are_no_numbers_are_shown() {
    let folder = Folder::new("cells_that_are_no_numbers");
    for (text, told) in [
        ("time,p\n2014-06-01,12%\n", &["`12%` in column `p`"][..]),
        (
            "time,state\n2014-06-01,ON\n",
            &["`ON` in column `state`", "--columns"],
        ),
        (
            "time\n2014-06-01\n",
            &["no column holds numbers", "--delimiter"],
        ),
    ] {
        refused(&folder, "a.csv", text, told);
    }
}

#[test]
fn a_quote_that_is_not_closed_is_named() {
    let folder = Folder::new("a_quote_that_is_not_closed");
    refused(
        &folder,
        "a.csv",
        "time,note\n2014-06-01,\"a\n2014-06-02,b\n",
        &["a quote that begins in line 2 is not closed"],
    );
    // Without the error, the rows after the open quote would silently become part of a cell.
    let text = "time,v,note\n2014-06-01,1,a\n2014-06-02,2,\"b\n2014-06-03,3,c\n";
    refused(
        &folder,
        "a.csv",
        text,
        &["a.csv, line 3: a quote is not closed"],
    );
    let ran = folder.say("import a.tdl a.csv --on-error skip");
    assert!(ran.err.contains("line 3: a quote"), "{}", ran.err);
    assert!(ran.ok().starts_with("1 row,"));
}

/// pandas writes a data frame with an index column that has no name. The import uses such a column only if there is no
/// other.
#[test]
fn a_column_without_a_name_is_used_only_if_needed() {
    let folder = Folder::new("a_column_without_a_name");
    folder.write("a.csv", ",time,v\n0,2014-06-01,1.5\n1,2014-06-02,2.5\n");
    let ran = folder.say("import a.tdl a.csv");
    assert_eq!(ran.err, "");
    assert!(ran.ok().starts_with("2 rows, 2 points in 1 series"));
    folder.write("index.csv", ",v\n2014-06-01,1.5\n2014-06-02,2.5\n");
    folder.say("import a.tdl index.csv").ok();
    folder.write("end.csv", "time,v,\n2014-06-01,1.5,\n");
    folder.say("import a.tdl end.csv").ok();
    folder.write("only.csv", "time,\n2014-06-01,1.5\n");
    folder.say("import a.tdl only.csv").ok();
    folder.write("site.csv", ",time,v\nx,2014-06-01,1.5\n");
    folder.say("import a.tdl site.csv --tag 1=site").ok();
    let out = folder.say("series a.tdl -f csv").ok();
    for name in ["\nv,", "\ncolumn2,", "v{site=\"\"x\"\"}"] {
        assert!(out.contains(name), "{name}: {out}");
    }
}

#[test]
fn numbers_that_are_no_times_are_refused() {
    let folder = Folder::new("numbers_that_are_no_times");
    refused(
        &folder,
        "excel.csv",
        "time,v\n36526,1\n45292.5,2\n",
        &["1 `time`", "`36526`", "Excel", "--time-format s"],
    );
    let counter = "time,v\n0,1\n1,2\n2,3\n";
    refused(
        &folder,
        "count.csv",
        counter,
        &["`0`", "`2`", "1970-01-01", "--time-format s"],
    );
    let out = folder.say("import a.tdl count.csv --time-format s").ok();
    assert!(out.starts_with("3 rows, 3 points"), "{out}");
    // On the command line too, a number that has the form of a date is a date.
    folder.write("a.csv", "time,v\n20140531,1\n20140601,2\n20140602,3\n");
    folder.say("import b.tdl a.csv --quiet").ok();
    for (from, to) in [
        ("20140601", "20140602"),
        ("20140601T000000Z", "20140601T010000Z"),
    ] {
        let line = format!("scan b.tdl v --from {from} --to {to} -f csv");
        assert_eq!(
            folder.say(&line).ok(),
            "series,time,value\nv,2014-06-01T00:00:00Z,2\n"
        );
    }
}

#[test]
fn a_taken_time_is_reported_as_text() {
    let folder = Folder::new("a_time_that_is_taken");
    folder.write("a.csv", "time,v\n2024-10-27,1\n2024-10-27,2\n");
    for unit in ["ns", "ms"] {
        folder
            .say(&format!("import a.tdl a.csv --merge error --unit {unit}"))
            .failed(5, &["series v", "2024-10-27", "--merge keep-first"]);
    }
}

#[test]
fn negative_numbers_are_wrong_values() {
    let folder = Folder::with_plant("negative_numbers_are_wrong_values");
    for line in [
        "scan plant.tdl hb.wind -n -1",
        "scan plant.tdl hb.wind --limit -1",
        "import plant.tdl plant.csv --commit-every -5",
    ] {
        let ran = folder.say(line);
        assert!(ran.err.contains("invalid value '-"), "{}", ran.err);
        assert!(!ran.err.contains("'-- -"), "{}", ran.err);
        ran.failed(2, &[]);
    }
}

/// An interrupted first import leaves no file behind. (It is not tested that ignored signals stay ignored, because the
/// shell would need `trap`.)
#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_first_import_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let folder = Folder::new("an_interrupted_first_import");
    let signals = [("INT", 2), ("TERM", 15), ("HUP", 1)];
    let heeded = signals
        .into_iter()
        .filter(|(_, number)| !crate::support::is_ignored(*number));
    for (signal, number) in heeded {
        for (name, had_before) in [("new.tdl", false), ("old.tdl", true)] {
            if had_before {
                folder.write("a.csv", "time,v\n2014-06-01,1\n");
                folder.say("import old.tdl a.csv --quiet").ok();
            }
            let mut child = folder
                .command(&["import", name, "-", "--quiet"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut pipe = child.stdin.take().unwrap();
            let mut rows = String::from("time,v\n");
            for second in 0..40_000 {
                rows += &format!("{},{second}\n", 1_401_580_800 + second);
            }
            pipe.write_all(rows.as_bytes()).unwrap();
            let begun = Instant::now();
            while !folder.path(name).exists()
                || !folder.say(&format!("readers {name}")).out.contains("write")
            {
                assert!(begun.elapsed() < Duration::from_secs(20), "it never writes");
            }
            let kill = Command::new("kill")
                .args([format!("-{signal}"), child.id().to_string()])
                .status();
            assert!(kill.unwrap().success());
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(number), "{status:?}");
            drop(pipe);
            assert_eq!(folder.path(name).exists(), had_before, "{signal}");
            if had_before {
                let out = folder.say("scan old.tdl v -f csv").ok();
                assert_eq!(out, "series,time,value\nv,2014-06-01T00:00:00Z,1\n");
            } else {
                assert!(!folder.path("new.tdl-lock").exists());
            }
        }
    }
}
