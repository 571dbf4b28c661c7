use crate::support::Folder;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_csv_file_becomes_series() {
    let folder = Folder::new("a_csv_file_becomes_series");
    folder.write(
        "a.csv",
        "time,site,temp,note\n2014-06-01,x,1.5,fine\n2014-06-02,x,NA,\n2014-06-03,y,2.5,\n",
    );
    let out = folder
        .say("import a.tdl a.csv --tag site --value temp")
        .ok();
    assert!(out.starts_with("3 rows, 2 points in 2 series in "), "{out}");
    assert!(out.contains("rows/s"), "{out}");
    let rows = folder.say("scan a.tdl temp --format csv").ok();
    assert_eq!(
        rows,
        "series,time,value\n\
         \"temp{site=\"\"x\"\"}\",2014-06-01T00:00:00Z,1.5\n\
         \"temp{site=\"\"y\"\"}\",2014-06-03T00:00:00Z,2.5\n"
    );
}

#[test]
fn these_words_are_null_unless_others_are_given() {
    let folder = Folder::new("these_words_are_null");
    folder.write(
        "a.csv",
        "time,v,w\n2014-06-01,,1\n2014-06-02,NA,1\n2014-06-05,null,1\n\
         2014-06-06,NULL,1\n2014-06-07, ,1\n2014-06-08,2.5,1\n",
    );
    let out = folder.say("import a.tdl a.csv").ok();
    assert!(out.starts_with("6 rows, 7 points in 2 series in "), "{out}");
    assert_eq!(
        folder.say("scan a.tdl v --format csv").ok(),
        "series,time,value\nv,2014-06-08T00:00:00Z,2.5\n"
    );
    // If --null is given, the default words for null are bad values, but an empty field is still null.
    folder
        .run(&["import", "b.tdl", "a.csv", "--value", "v", "--null", "-"])
        .failed(5, &["a.csv, line 3: `NA`", "--null"]);
}

#[test]
fn nan_is_a_value_and_survives_an_export() {
    let folder = Folder::new("nan_is_a_value");
    let csv = "time,v\n2014-06-01,NaN\n2014-06-02,\n2014-06-03,1.5\n2014-06-04,nan\n\
               2014-06-05T12:00:00Z,inf\n2014-06-05,-inf\n2014-06-06,-0.0\n2014-06-07,NA\n";
    folder.write("a.csv", csv);
    folder.say("import a.tdl a.csv").ok();
    let columns = "import b.tdl a.csv --columns v:f64?,v=w:f32? --into typed";
    folder.say(columns).ok();
    for (file, name, form, out) in [
        ("a", "v", "", "out.csv"),
        ("a", "v", "--wide", "out.csv"),
        ("b", "typed", "", "out.csv"),
        ("a", "v", "", "out.jsonl"),
        ("a", "v", "--wide", "out.jsonl"),
        ("b", "typed", "", "out.jsonl"),
    ] {
        let (first, second) = (format!("{file}.tdl"), format!("{file}-{out}{form}.tdl"));
        folder
            .say(&format!("export {first} {name} {form} -o {out} --replace"))
            .ok();
        let take = match (file, form) {
            ("b", _) => "--columns v:f64?,w:f32? --series series",
            (_, "") => "--series series",
            _ => "",
        };
        folder.say(&format!("import {second} {out} {take}")).ok();
        let scan = |file: &str| folder.say(&format!("scan {file} {name} -f csv")).ok();
        let (before, after) = (scan(&first), scan(&second));
        assert_eq!(before, after, "{form} {out}");
        assert_eq!(
            before.matches(",NaN").count(),
            if file == "b" { 4 } else { 2 },
            "{before}"
        );
        let words = ["-inf", ",inf", ",-0\n"];
        assert!(words.iter().all(|word| before.contains(word)), "{before}");
        // A row that has only nulls is stored if the column is nullable; otherwise it is not a point.
        let rows = if file == "b" { 8 } else { 6 };
        assert_eq!(before.lines().count(), 1 + rows, "{before}");
    }
    // For an input that writes NaN for missing values, --null must be given.
    folder.say("import c.tdl a.csv --null NaN,nan,NA").ok();
    let rows = folder.say("scan c.tdl v -f csv").ok();
    assert!(!rows.contains("NaN") && rows.lines().count() == 5, "{rows}");
}

#[test]
fn gzip_and_several_files_and_again() {
    let folder = Folder::new("gzip_and_several_files_and_again");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder
        .write_all(b"t;v\n1401580800;1\n1401580860;2\n")
        .unwrap();
    // The format is recognised by the content, not by the name.
    folder.write("one.dat", encoder.finish().unwrap());
    folder.write("two.csv", "t,v\n1401580920,3\n");
    for _ in 0..2 {
        folder.say("import a.tdl one.dat two.csv").ok();
        let rows = folder.say("scan a.tdl v --format csv").ok();
        assert_eq!(rows.lines().count(), 4, "{rows}");
        assert!(rows.ends_with("2014-06-01T00:02:00Z,3\n"), "{rows}");
    }
}

#[test]
fn json_lines_packed_with_zstd() {
    let folder = Folder::new("json_lines_packed_with_zstd");
    let mut lines = String::new();
    for minute in 0..5000 {
        let time = 1_401_580_800 + minute * 60;
        lines += &format!("{{\"time\":{time},\"site\":\"x\",\"wind\":{{\"speed\":{minute}.5}}}}\n");
    }
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let packed = ruzstd::encoding::compress_to_vec(lines.as_bytes(), level);
    folder.write("a.jsonl.zst", &packed);
    let out = folder.say("import a.tdl a.jsonl.zst --tag site").ok();
    assert!(
        out.starts_with("5,000 rows, 5,000 points in 1 series in "),
        "{out}"
    );
    let out = folder
        .say("aggregate a.tdl wind.speed --fn count,sum -f csv")
        .ok();
    assert!(out.ends_with(",5000,12500000\n"), "{out}");
    folder.write("cut.zst", &packed[..packed.len() / 2]);
    folder
        .say("import b.tdl cut.zst")
        .failed(5, &["cut.zst", "zstd -t"]);
    assert!(!folder.path("b.tdl").exists());
    let bad = lines.replacen("{\"time\":1401580860", "{\"tim\":1", 1);
    folder.write("bad.jsonl", bad);
    folder
        .say("import b.tdl bad.jsonl --tag site")
        .failed(5, &["line 2"]);
}

/// JSON lines may begin with a byte order mark, as programs on Windows write it.
#[test]
fn json_behind_a_byte_order_mark() {
    let folder = Folder::new("json_behind_a_byte_order_mark");
    folder.write(
        "a.jsonl",
        "\u{feff}{\"time\":\"2014-06-01\",\"v\":1}\r\n{\"time\":\"2014-06-02\",\"v\":2}\r\n",
    );
    folder.say("import a.tdl a.jsonl --quiet").ok();
    assert_eq!(
        folder.say("scan a.tdl v -f csv").ok(),
        "series,time,value\nv,2014-06-01T00:00:00Z,1\nv,2014-06-02T00:00:00Z,2\n"
    );
}

/// Texts are stored as they are: blanks belong to them, and in a column that is not nullable even null words are texts.
#[test]
fn texts_go_out_and_in_as_they_are() {
    let folder = Folder::new("texts_go_out_and_in_as_they_are");
    folder.write(
        "a.csv",
        "time,s,n\n2014-06-01,\"  a \",NA\n2014-06-02,null,  \n2014-06-03,,\"b\n, \"\"c\"\"\"\n",
    );
    let columns = "--columns s:string,n:string?";
    folder
        .say(&format!("import a.tdl a.csv --into log {columns} --quiet"))
        .ok();
    let out = folder.say("export a.tdl").ok();
    assert_eq!(
        out,
        "series,time,s,n\nlog,2014-06-01T00:00:00Z,  a ,\nlog,2014-06-02T00:00:00Z,null,  \n\
         log,2014-06-03T00:00:00Z,,\"b\n, \"\"c\"\"\"\n"
    );
    folder.write("b.csv", &out);
    folder
        .say(&format!(
            "import b.tdl b.csv --series series {columns} --quiet"
        ))
        .ok();
    assert_eq!(folder.say("export b.tdl").ok(), out);
}

/// A number equal to the word reserved for null makes its row a bad row, reported with its line. The import continues
/// if requested.
#[test]
fn a_number_that_encodes_null_is_a_bad_row() {
    let folder = Folder::new("a_number_that_encodes_null_is_a_bad_row");
    folder.write(
        "a.csv",
        "time,u\n2014-06-01,1\n2014-06-02,18446744073709551615\n2014-06-03,3\n",
    );
    let line = "import a.tdl a.csv --into log --columns u:u64?";
    folder
        .say(line)
        .failed(5, &["a.csv, line 3", "column u", "stands for null"]);
    let out = folder.say(&format!("{line} --on-error skip")).ok();
    assert!(out.contains("1 row skipped"), "{out}");
    let out = folder.say("scan a.tdl log -f csv").ok();
    assert_eq!(
        out,
        "series,time,u\nlog,2014-06-01T00:00:00Z,1\nlog,2014-06-03T00:00:00Z,3\n"
    );
}

/// If options name the columns, keys that appear late are ignored. Otherwise they are an error.
#[test]
fn keys_that_come_late_are_passed_over_where_columns_are_named() {
    let folder = Folder::new("keys_that_come_late_are_passed_over");
    let mut lines = String::new();
    for second in 0..1500 {
        let more = if second > 1400 { ",\"more\":1" } else { "" };
        lines += &format!("{{\"time\":{second},\"v\":{second},\"s\":\"x\"{more}}}\n");
    }
    folder.write("a.jsonl", lines);
    for (name, columns) in [
        ("a", "--into log --columns v:i64,s:string"),
        ("b", "--value v"),
    ] {
        let out = folder
            .say(&format!(
                "import {name}.tdl a.jsonl --time-format s {columns}"
            ))
            .ok();
        assert!(out.starts_with("1,500 rows, "), "{out}");
    }
    folder
        .say("import c.tdl a.jsonl --time-format s")
        .failed(5, &["line 1402", "`more`", "--columns"]);
}

#[test]
fn columns_are_listed_by_the_names_that_they_have() {
    let folder = Folder::new("columns_are_listed_by_the_names_that_they_have");
    folder.write("a.csv", "time,Vol,Price\n2014-06-01,2,3\n");
    folder
        .say("import a.tdl a.csv --into t --columns Vol:u64,Price:f64? --quiet")
        .ok();
    let out = folder.say("series a.tdl").ok();
    assert!(out.contains("Vol:u64 Price:f64?, time in nanos"), "{out}");
    folder
        .say("import a.tdl a.csv --into t --columns Vol:i64,Price:f64?")
        .failed(
            5,
            &[
                "t has Vol:u64 Price:f64?",
                "asked for was Vol:i64 Price:f64?",
            ],
        );
}

#[test]
fn local_times_patterns_numbers_and_new_names() {
    let folder = Folder::new("local_times_patterns_numbers_and_new_names");
    folder.write(
        "old.csv",
        "01.06.2014 02:10;7,5;1\n01.06.2014 02:20;x;2\n".replace(',', "."),
    );
    let words = [
        "import",
        "a.tdl",
        "old.csv",
        "--no-header",
        "--time",
        "1",
        "--time-format",
        "%d.%m.%Y %H:%M",
        "--tz",
        "Europe/Berlin",
        "--value",
        "2=level",
        "--value",
        "3=count",
        "--null",
        "x",
        "--prefix",
        "old.",
    ];
    folder.run(&words).ok();
    let rows = folder.say("scan a.tdl old.level --format csv").ok();
    assert_eq!(
        rows,
        "series,time,value\nold.level,2014-06-01T00:10:00Z,7.5\n"
    );
    let local = folder
        .say("scan a.tdl old.count --format csv --tz Europe/Berlin --limit 1")
        .ok();
    assert_eq!(
        local,
        "series,time,value\nold.count,2014-06-01T02:10:00+02:00,1\n"
    );
}

const WITH_BAD_ROWS: &str =
    "time,v\n2014-06-01,1\nyesterday,2\n2014-06-03,three\n2014-06-04\n2014-06-05,5\n";

#[test]
fn bad_rows_stop_the_import_and_store_nothing() {
    let folder = Folder::new("bad_rows_stop_the_import_and_store_nothing");
    folder.write("bad.csv", WITH_BAD_ROWS);
    folder.say("import a.tdl bad.csv --value v").failed(
        5,
        &[
            "bad.csv, line 3: `yesterday`",
            "nothing was stored",
            "--on-error skip",
        ],
    );
    assert!(
        !folder.path("a.tdl").exists(),
        "a file created for nothing stays behind"
    );
    // A failed import does not change the existing content of the database.
    folder.write("good.csv", "time,v\n2014-05-01,1\n");
    folder.say("import a.tdl good.csv").ok();
    folder
        .say("import a.tdl bad.csv --value v")
        .failed(5, &["line 3"]);
    assert_eq!(
        folder.say("scan a.tdl v --format csv").ok().lines().count(),
        2
    );
}

#[test]
fn bad_rows_are_skipped_on_request() {
    let folder = Folder::new("bad_rows_are_skipped_on_request");
    folder.write("bad.csv", WITH_BAD_ROWS);
    let ran = folder.say("import a.tdl bad.csv --value v --on-error skip");
    assert_eq!(ran.code, 0);
    for told in [
        "line 3: `yesterday`",
        "line 4: `three` in column `v`",
        "line 5: 1 field instead of 2",
    ] {
        assert!(ran.err.contains(told), "{}", ran.err);
    }
    assert!(ran.out.starts_with("2 rows, 2 points"), "{}", ran.out);
    assert!(ran.out.contains("3 rows skipped"), "{}", ran.out);
    folder.write("worse.csv", "time,v\n2014-06-01,a\n2014-06-02,b\n");
    folder
        .say("import b.tdl worse.csv --value v --on-error skip")
        .failed(5, &["none of 2 rows can be read"]);
    assert!(!folder.path("b.tdl").exists());
}

#[test]
fn commits_in_between_survive_a_later_bad_row() {
    let folder = Folder::new("commits_in_between_survive_a_later_bad_row");
    let mut csv = String::from("time,v\n");
    for second in 0..25 {
        csv += &format!("{},{second}\n", 1_401_580_800 + second);
    }
    csv += "x,1\n";
    folder.write("a.csv", csv);
    folder
        .say("import a.tdl a.csv --commit-every 10")
        .failed(5, &["line 27", "2 durable commits before it remain"]);
    let out = folder
        .say("aggregate a.tdl v --fn count,last --format csv")
        .ok();
    assert!(out.ends_with("v,20,19\n"), "{out}");
}

#[test]
fn standard_input_is_read() {
    let folder = Folder::new("standard_input_is_read");
    let mut child = folder
        .command(&["import", "a.tdl", "-", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"time,v\n2014-06-01,1\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(
        folder.say("latest a.tdl --format csv").ok(),
        "series,time,value\nv,2014-06-01T00:00:00Z,1\n"
    );
}

#[test]
fn garbage_is_refused_with_a_next_step() {
    let folder = Folder::new("garbage_is_refused_with_a_next_step");
    folder.write("empty.csv", "");
    folder.write("binary.csv", [0_u8, 1, 2, 3, 255]);
    folder.write("words.csv", "hello\nworld\n");
    folder.write("head.csv", "time,v\n");
    folder.write("data.csv", "2014-06-01,1\n2014-06-02,2\n");
    folder.write("cut.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]);
    folder.write("good.csv", "time,v\n2014-06-01,1\n");
    for (words, told) in [
        ("empty.csv", "is empty"),
        ("binary.csv", "binary data"),
        ("words.csv", "no column contains times"),
        ("data.csv", "--no-header"),
        ("cut.gz", "cannot read cut.gz"),
    ] {
        folder
            .say(&format!("import a.tdl {words}"))
            .failed(5, &[words, told]);
        assert!(
            !folder.path("a.tdl").exists(),
            "{words} left a database behind"
        );
    }
    assert_eq!(folder.say("import a.tdl head.csv").code, 5);
    folder
        .say("import a.tdl nosuch.csv")
        .failed(3, &["nosuch.csv", "no such file"]);
    folder
        .say("import a.tdl good.csv --tag place")
        .failed(3, &["no column `place`", "1=time 2=v"]);
    folder
        .say("import no/such/a.tdl good.csv")
        .failed(3, &["no folder no/such", "mkdir -p no/such"]);
    folder
        .say("import good.csv good.csv")
        .failed(5, &["not a Tidalite database"]);
    assert_eq!(
        std::fs::read(folder.path("good.csv")).unwrap(),
        b"time,v\n2014-06-01,1\n"
    );
}

#[test]
fn a_forgotten_tag_is_mentioned() {
    let folder = Folder::new("a_forgotten_tag_is_mentioned");
    folder.write(
        "a.csv",
        "time,site,v\n2014-06-01,x,1\n2014-06-01,y,2\n2014-06-02,x,3\n",
    );
    let ran = folder.say("import a.tdl a.csv");
    ran.failed(5, &["not used: site", "1 of 3 points", "--tag COLUMN"]);
    assert!(!folder.path("a.tdl").exists());
    let ran = folder.say("import a.tdl a.csv --merge replace");
    assert!(ran.err.contains("--tag site"), "{}", ran.err);
    let out = ran.ok();
    assert!(out.starts_with("3 rows, 2 points in 1 series"), "{out}");
    assert!(out.contains("1 point of this import was replaced"), "{out}");
    let ran = folder.say("import b.tdl a.csv --tag site");
    assert!(ran.err.is_empty(), "{}", ran.err);
    assert!(!ran.ok().contains("replaced"));
    // Under a merge policy other than `replace`, set now or at creation, no point is replaced.
    for merge in ["--merge keep-distinct", ""] {
        let out = folder.say(&format!("import c.tdl a.csv {merge}")).ok();
        assert!(!out.contains("replaced"), "{out}");
    }
}

/// Rows of two sensors at the same times, imported into one series, would lose half of the points. The import counts
/// replaced points, and refuses if they are many.
#[test]
fn points_that_replace_others_anywhere_are_counted_or_refused() {
    let folder = Folder::new("points_that_replace_others_anywhere");
    let mut text = "sensor,time,temp\n".to_owned();
    for sensor in ["A", "B"] {
        for row in 0..20_000 {
            text += &format!("{sensor},{},{}\n", 1_700_000_000 + row * 60, row % 7);
        }
    }
    folder.write("two.csv", &text);
    let ran = folder.say("import z.tdl two.csv");
    ran.failed(5, &["20,000 of 40,000 points", "--tag", "--merge replace"]);
    assert!(!folder.path("z.tdl").exists());
    for every in ["", " --commit-every 15000"] {
        let import = format!("import z.tdl two.csv --merge replace{every}");
        let out = folder.say(&import).ok();
        assert!(
            out.starts_with("40,000 rows, 20,000 points in 1 series"),
            "{out}"
        );
        assert!(out.contains("20,000 points of this import were"), "{out}");
        std::fs::remove_file(folder.path("z.tdl")).unwrap();
    }
    // With the option --tag nothing is lost, and importing again replaces older points, without an error.
    let out = folder.say("import y.tdl two.csv --tag sensor").ok();
    assert!(
        out.starts_with("40,000 rows, 40,000 points in 2 series"),
        "{out}"
    );
    assert!(!out.contains("replaced"), "{out}");
    let out = folder.say("import y.tdl two.csv --tag sensor").ok();
    assert!(
        out.contains("40,000 points that were stored before were replaced"),
        "{out}"
    );
    // Without --merge, an import may replace a few of many points.
    folder.write("few.csv", format!("{text}A,1700000000,9\n"));
    let out = folder.say("import x.tdl few.csv --tag sensor").ok();
    assert!(out.contains("1 point of this import was"), "{out}");
    let out = folder.say("import w.tdl two.csv --merge keep-first").ok();
    assert!(
        out.contains("20,000 points were not stored: their times were taken"),
        "{out}"
    );
    let out = folder.say("import v.tdl two.csv --merge keep-all").ok();
    assert!(
        out.starts_with("40,000 rows, 40,000 points in 1 series"),
        "{out}"
    );
}

/// A series has a column of every type, and the printed rows can be imported again.
#[test]
fn columns_of_every_type_in_one_series() {
    let folder = Folder::new("columns_of_every_type_in_one_series");
    let csv = "time,site,level,message,took,ok,id,raw,ratio,load\n\
        2014-06-01T00:00:00Z,x,-3,\"all, \"\"well\"\"\",1.25,true,00112233-4455-6677-8899-aabbccddeeff,00ff,0.1,7\n\
        2014-06-01T00:00:01Z,x,4,,NA,false,00000000-0000-0000-0000-000000000000,,2.5,NA\n";
    folder.write("a.csv", csv);
    let columns = "level:i64,message:string?,took:decimal(3)?,ok:bool,id:guid,raw:bytes?,ratio:f32,load=cpu:u64?";
    let import = format!("import a.tdl a.csv --into log --tag site --columns {columns}");
    let out = folder.say(&import).ok();
    assert!(out.starts_with("2 rows, 2 points in 1 series in "), "{out}");
    folder.say(&import).ok();
    let rows = folder.say("scan a.tdl log --format csv").ok();
    assert_eq!(
        rows,
        "series,time,level,message,took,ok,id,raw,ratio,cpu\n\
         \"log{site=\"\"x\"\"}\",2014-06-01T00:00:00Z,-3,\"all, \"\"well\"\"\",1.250,true,00112233-4455-6677-8899-aabbccddeeff,00ff,0.10000000149011612,7\n\
         \"log{site=\"\"x\"\"}\",2014-06-01T00:00:01Z,4,,,false,00000000-0000-0000-0000-000000000000,,2.5,\n"
    );
    let rows = folder.say("scan a.tdl log --format json").ok();
    let second = rows.lines().nth(1).unwrap();
    assert!(
        second.contains("\"message\":null,\"took\":null,\"ok\":false"),
        "{second}"
    );
    let table = folder.say("scan a.tdl log").ok();
    assert!(table.contains("all, \"well\""), "{table}");
    let listing = folder.say("series a.tdl").ok();
    assert!(listing.contains("took:decimal(3)?"), "{listing}");
    assert!(listing.contains("id:guid"), "{listing}");
    let sum = folder
        .say("aggregate a.tdl log --column took --fn count,sum --format csv")
        .ok();
    assert!(sum.ends_with(",1,1.250\n"), "{sum}");
    folder.say("check a.tdl").ok();
    folder.say("export a.tdl --output b.csv log").ok();
    // A value that does not fit its column makes the row a bad row.
    folder.write("bad.csv", "time,level\n2014-06-01,1.5\n");
    folder
        .say("import b.tdl bad.csv --into log --columns level:i64")
        .failed(5, &["`1.5` in column `level` is not a valid i64"]);
}

/// A commit after some lines of the line protocol does not divide a line, and lines count as rows of a CSV file do.
#[test]
fn commits_end_with_lines_of_the_line_protocol() {
    let folder = Folder::new("commits_end_with_lines_of_the_line_protocol");
    let (mut lines, mut rows) = (String::new(), "time,a,b,c\n".to_owned());
    for second in 1_704_067_200..1_704_067_208 {
        lines += &format!("m a={second},b=2,c=3 {second}000000000\n");
        rows += &format!("{second},{second},2,3\n");
    }
    folder.write("in.lp", lines);
    folder.write("in.csv", rows);
    let commit = |input: &str, file: &str| {
        folder
            .say(&format!("import {file} {input} --commit-every 2 --quiet"))
            .ok();
        let stat = folder.say(&format!("stat {file} -f csv")).ok();
        let line = stat.lines().nth(1).and_then(|line| line.split(',').next());
        line.and_then(|number| number.parse::<u64>().ok())
    };
    let of_rows = commit("in.csv", "rows.tdl");
    assert!(of_rows > Some(3), "{of_rows:?}");
    assert_eq!(commit("in.lp", "lines.tdl"), of_rows);
    folder
        .say("import rows.tdl in.csv --into a --dry-run")
        .failed(2, &["--columns"]);
}
