//! The output shows the stored data: values of texts instead of their addresses, exact counts instead of estimates, and
//! columns that do not depend on the data.

use crate::support::{Folder, Ran};
use std::io::Read;
use std::process::Stdio;

/// Imports series with columns of every kind: `mixed` with the columns g, n, msg, x and t, and `words` with the columns
/// a and b, which have no numbers.
fn with_texts(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write(
        "mixed.csv",
        "time,g,n,msg,t\n\
         2024-01-01,00112233-4455-6677-8899-aabbccddeeff,1,on,0aff\n\
         2024-01-02,00112233-4455-6677-8899-aabbccddee00,,off,\n\
         2024-01-03,00112233-4455-6677-8899-aabbccddee00,7,on,01\n",
    );
    folder
        .say("import z.tdl mixed.csv --into mixed --columns g:guid,n:i64?,msg:string,t:bytes --quiet")
        .ok();
    folder.write("words.csv", "time,a,b\n2024-01-01,x,y\n2024-01-02,x,z\n");
    folder
        .say("import z.tdl words.csv --into words --columns a:string,b:string --quiet")
        .ok();
    folder
}

#[test]
fn figures_of_texts_are_refused() {
    let folder = with_texts("figures_of_texts_are_refused");
    for command in [
        "aggregate z.tdl mixed",
        "aggregate z.tdl mixed --fn min --top 1",
        "window z.tdl mixed --by 1d",
        "window z.tdl mixed --by 1d --fn count,last",
        "window z.tdl mixed --by 1d --fill null",
        "window z.tdl mixed --by 1d --fn max --group-by=",
        "window z.tdl mixed --by 1d --fn max --group-by= --by-metric",
        "candles z.tdl mixed --level 0",
        "plot z.tdl mixed",
        "scan z.tdl mixed --fn sum",
    ] {
        for (column, what) in [("g", "GUIDs"), ("msg", "strings"), ("t", "bytes")] {
            folder.say(&format!("{command} --column {column}")).failed(
                2,
                &[&format!("`{column}` of mixed holds {what}"), "--column: n"],
            );
        }
    }
    for command in ["aggregate z.tdl words", "window z.tdl words --by 1d"] {
        folder
            .say(command)
            .failed(2, &["`b` of words holds strings", "--fn count"]);
    }
    folder
        .say("candles z.tdl words --level 0")
        .failed(2, &["`b` of words holds strings"]);
    // The values of any column can be counted, also of a text column.
    let count = folder.say("aggregate z.tdl words --fn count -f csv").ok();
    assert_eq!(count, "series,count\nwords,2\n");
    for more in ["", " --group-by=", " --fill null"] {
        let line = format!("window z.tdl mixed --column msg --by 1d --fn count -f csv{more}");
        let count = folder.say(&line).ok();
        assert_eq!(count.lines().count(), 4, "{count}");
        assert!(
            count.lines().skip(1).all(|line| line.ends_with("Z,1")),
            "{count}"
        );
    }
    // The values of a text column can be printed.
    let values = folder.say("join z.tdl words --column a -f csv").ok();
    assert_eq!(values.lines().nth(1), Some("2024-01-01T00:00:00Z,x"));
    folder.say("latest z.tdl words").ok();
}

#[test]
fn the_default_column_is_the_last_one_with_numbers() {
    let folder = with_texts("the_default_column_is_the_last_one_with_numbers");
    let sum = folder
        .say("aggregate z.tdl mixed --fn sum,count -f csv")
        .ok();
    assert_eq!(sum, "series,sum,count\nmixed,8,2\n");
    folder.write(
        "b.csv",
        "time,b,f\n2024-01-01,true,1.5\n2024-01-02,false,2.5\n",
    );
    folder
        .say("import z.tdl b.csv --into two --columns f:f64,b:bool --quiet")
        .ok();
    let max = folder.say("aggregate z.tdl two --fn max,mean -f csv").ok();
    assert_eq!(max, "series,max,mean\ntwo,true,0.5\n");
    let wanted = folder
        .say("aggregate z.tdl two --where f=2.. --fn count -f csv")
        .ok();
    assert_eq!(wanted, "series,count\ntwo,1\n");
    // The series have different columns; the gaps of each series are filled in its own columns.
    let filled = folder
        .say("window z.tdl * --by 1d --fn count --fill null -f csv")
        .ok();
    assert!(
        filled.contains("words,2024-01-02T00:00:00Z,1\n"),
        "{filled}"
    );
    folder
        .say("window z.tdl * --by 1d --fn count --group-by= --mix-metrics")
        .failed(2, &["different columns", "--column"]);
}

#[test]
fn the_columns_do_not_depend_on_the_data() {
    let folder = Folder::with_plant("the_columns_do_not_depend_on_the_data");
    let head = |words: &[&str]| {
        let out = folder.run(words).ok();
        out.lines().next().unwrap_or_default().to_owned()
    };
    let one = r#"hb.wind{turbine="A"}"#;
    for (command, expected) in [
        ("scan", "series,time,value"),
        ("scan --fn sum", "series,time,sum"),
        ("scan --frequent 1", "series,value,count,at_least,at_most"),
        ("window --by 1h --fn max", "series,time,max"),
        ("window --by 1h --fn max --fill null", "series,time,max"),
        ("aggregate --fn max", "series,max"),
        ("latest", "series,time,value"),
        (
            "series",
            "series,points,first,last,bytes_per_point,columns,merge",
        ),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        for pattern in [one, "hb.wind", "hb.*"] {
            let all = [
                &[words[0], "plant.tdl", pattern],
                &words[1..],
                &["-f", "csv"],
            ]
            .concat();
            assert_eq!(head(&all), expected, "{all:?}");
        }
    }
    let candles = ["candles", "plant.tdl", one, "--level", "0", "-f", "csv"];
    assert!(head(&candles).starts_with("series,first,last,"));
    // The output format *table*, which is read by people, omits columns that are the same on every line.
    assert!(head(&["scan", "plant.tdl", one]).starts_with("time"));
    let filled = ["window", "plant.tdl", one, "--by", "1h", "--fill", "null"];
    assert!(head(&filled).starts_with("time"));
    assert!(!head(&["series", "plant.tdl"]).contains("merge"));
}

#[test]
fn metrics_are_mixed_only_on_request() {
    let folder = Folder::with_plant("metrics_are_mixed_only_on_request");
    let mixed = "window plant.tdl hb.* --by 1h --fn count --group-by turbine";
    folder
        .say(mixed)
        .failed(2, &["hb.power, hb.wind", "--by-metric", "--mix-metrics"]);
    let out = folder.say(&format!("{mixed} --mix-metrics -f csv")).ok();
    assert!(out.contains("A,2014-06-01T00:00:00Z,119\n"), "{out}");
}

#[test]
fn an_empty_window_has_no_points_whatever_fills_it() {
    let folder = Folder::new("an_empty_window_has_no_points_whatever_fills_it");
    folder.write("a.csv", "time,v\n2024-01-01,1\n2024-01-03,3\n");
    folder.say("import a.tdl a.csv --quiet").ok();
    for (fill, filled) in [
        ("null", ""),
        ("previous", "1"),
        ("linear", "2"),
        ("-1.5", "-1.5"),
        ("nan", "NaN"),
    ] {
        let line = format!("window a.tdl v --by 1d --fn count,mean --fill {fill} -f csv");
        let out = folder.say(&line).ok();
        let expected = format!("v,2024-01-02T00:00:00Z,0,{filled}");
        assert_eq!(out.lines().nth(2), Some(&expected[..]), "{out}");
    }
}

#[test]
fn frequent_values_are_counted_exactly() {
    let folder = Folder::new("frequent_values_are_counted_exactly");
    // One value occurs 380 times. More other values than the estimate has counters occur once each.
    let mut csv = String::from("time,v\n");
    for n in 0..20_000 {
        let value = if n < 380 { 42 } else { n };
        csv += &format!("{},{value}\n", 1_700_000_000 + n);
    }
    folder.write("a.csv", csv);
    folder.say("import a.tdl a.csv --quiet").ok();
    let out = folder.say("scan a.tdl v --frequent 3 -f csv").ok();
    assert_eq!(
        out,
        "series,value,count,at_least,at_most\nv,42,380,380,380\nv,380,1,1,1\nv,381,1,1,1\n"
    );
    let table = folder.say("scan a.tdl v --frequent 1").ok();
    assert_eq!(table, "value  count\n   42    380\n");
}

#[test]
fn a_wide_export_has_every_column_and_row() {
    let folder = with_texts("a_wide_export_has_every_column_and_row");
    folder.write("single.csv", "time,single\n2024-01-02,5\n");
    folder.say("import z.tdl single.csv --quiet").ok();
    let wide = folder.say("export z.tdl --wide").ok();
    assert_eq!(
        wide,
        "time,mixed.g,mixed.n,mixed.msg,mixed.t,single,words.a,words.b\n\
         2024-01-01T00:00:00Z,00112233-4455-6677-8899-aabbccddeeff,1,on,0aff,,x,y\n\
         2024-01-02T00:00:00Z,00112233-4455-6677-8899-aabbccddee00,,off,,5,x,z\n\
         2024-01-03T00:00:00Z,00112233-4455-6677-8899-aabbccddee00,7,on,01,,,\n"
    );
    // The exported file is imported again.
    folder.write("wide.csv", &wide);
    folder
        .say("import y.tdl wide.csv --into mixed --quiet --columns mixed.g=g:guid,mixed.n=n:i64?,mixed.msg=msg:string,mixed.t=t:bytes")
        .ok();
    let scan = |file: &str| folder.say(&format!("scan {file} mixed -f csv")).ok();
    assert_eq!(scan("y.tdl"), scan("z.tdl"));
    // A row that has only nulls counts as a row.
    folder.write("null.csv", "time,n\n2024-01-01,1\n2024-01-02,\n");
    folder
        .say("import n.tdl null.csv --into n --columns n:i64? --quiet")
        .ok();
    assert_eq!(folder.say("export n.tdl --wide").ok().lines().count(), 3);
    // Two series would write an output column of the same name, which is refused.
    folder.write("other.csv", "time,mixed.n\n2024-01-01,1\n");
    folder.say("import z.tdl other.csv --quiet").ok();
    folder
        .say("export z.tdl --wide")
        .failed(2, &["two columns would be called mixed.n", "--wide"]);
    // Points for which no line has a place are reported.
    folder.write("twice.csv", "time,v\n2024-01-01,1\n2024-01-01,2\n");
    folder
        .say("import twice.tdl twice.csv --merge keep-all --quiet")
        .ok();
    let ran = folder.say("export twice.tdl --wide");
    assert!(ran.err.contains("1 point omitted"), "{}", ran.err);
    assert_eq!(ran.ok(), "time,v\n2024-01-01T00:00:00Z,2\n");
}

#[test]
fn pictures_are_not_written_over_and_have_a_least_size() {
    let folder = Folder::with_plant("pictures_are_not_written_over_and_have_a_least_size");
    for name in ["a.png", "a.svg"] {
        let kind = &name[2..];
        folder.write(name, "kept");
        let plot = format!("plot plant.tdl hb.wind --{kind} {name}");
        folder
            .say(&plot)
            .failed(1, &["exists already", "--replace"]);
        assert_eq!(std::fs::read(folder.path(name)).unwrap(), b"kept");
        folder.say(&format!("{plot} --replace")).ok();
        assert_ne!(std::fs::read(folder.path(name)).unwrap(), b"kept");
        for size in ["--width 159", "--height 89"] {
            folder
                .say(&format!("{plot} --replace {size}"))
                .failed(2, &["at least 160 by 90 pixels"]);
        }
    }
    let ran = folder.say("plot plant.tdl hb.wind --by 1h --fn max-time");
    assert!(
        !ran.err.contains("min-time,") && ran.err.contains("stddev"),
        "{}",
        ran.err
    );
    ran.failed(2, &["invalid value 'max-time'"]);
    // A plot of a single point has one label, the time of the point.
    let one = [
        "plot",
        "plant.tdl",
        r#"hb.wind{turbine="A"}"#,
        "--to",
        "2014-06-01T00:01",
        "--svg",
        "-",
    ];
    let svg = folder.run(&one).ok();
    assert!(
        svg.contains(">2014-06-01</text>") && !svg.contains("23:59"),
        "{svg}"
    );
}

#[test]
fn a_copy_into_a_closed_pipe_ends_quietly() {
    let folder = Folder::new("a_copy_into_a_closed_pipe_ends_quietly");
    let mut csv = String::from("time,v\n");
    for n in 0..200_000_u64 {
        csv += &format!(
            "{},{}\n",
            1_700_000_000 + n,
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_003
        );
    }
    folder.write("a.csv", csv);
    folder.say("import a.tdl a.csv --quiet").ok();
    for more in [&[][..], &["--image"]] {
        let words = [&["copy", "a.tdl", "-"], more].concat();
        let mut copy = folder.command(&words);
        let mut copy = copy
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = copy.stdout.take().unwrap();
        out.read_exact(&mut [0; 100]).unwrap();
        drop(out);
        let ended = copy.wait_with_output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(
            (ended.status.code(), told.as_str()),
            (Some(0), ""),
            "{more:?}"
        );
    }
}

#[test]
fn counts_use_the_singular_and_changes_one_line_each() {
    let folder = Folder::new("one_thing_is_told_in_the_singular");
    folder.write("a.csv", "time,v\n2024-01-01,1\n");
    folder.say("import a.tdl a.csv --quiet").ok();
    let told = |line: &str| folder.say(line).ok();
    assert_eq!(told("export a.tdl -o out.csv"), "1 row in out.csv\n");
    assert!(told("plot a.tdl v").contains("1 point, "));
    assert_eq!(told("annotate a.tdl v --set unit=m"), "1 series changed\n");
    told("pins a.tdl --add monday");
    assert_eq!(
        told("pins a.tdl --remove monday"),
        "monday is no longer pinned\n"
    );
    assert_eq!(told("kv create a.tdl t"), "table t created\n");
    assert_eq!(told("kv create a.tdl t"), "table t exists already\n");
    assert_eq!(told("kv put a.tdl t k 1"), "k stored in t\n");
    assert_eq!(told("kv stat a.tdl"), "t\t1 pair\n");
    assert_eq!(told("kv rename a.tdl t u"), "t is called u now\n");
    assert_eq!(told("kv del a.tdl u k"), "k removed from u\n");
    assert_eq!(told("kv clear a.tdl u"), "table u cleared\n");
    assert_eq!(told("kv drop a.tdl u"), "table u dropped\n");
    let limit: Ran = folder.say("scan a.tdl v -n -1");
    assert!(!limit.err.contains("-- -1"), "{}", limit.err);
    limit.failed(2, &["invalid value '-1' for '--limit"]);
}

/// The output format *table* prints whole numbers exactly, and rounds other numbers so that they do not look like whole
/// numbers.
#[test]
fn a_table_does_not_round_to_whole_numbers() {
    let folder = Folder::new("a_table_does_not_round_to_whole_numbers");
    folder.write(
        "a.csv",
        "time,v\n2024-01-01,16688623782.25\n2024-01-02,0.29745\n",
    );
    folder.say("import a.tdl a.csv --quiet").ok();
    let line = |of: &str| {
        let out = folder.say(&format!("aggregate a.tdl v --fn {of}")).ok();
        out.lines()
            .nth(1)
            .unwrap_or_default()
            .trim_start_matches("v ")
            .trim()
            .to_owned()
    };
    assert_eq!(line("sum"), "16688623782.5");
    // An extreme has as many digits as the figures beside it; CSV and JSON have all.
    assert_eq!(line("max"), "16688623782.2");
    let filled = folder
        .say("window a.tdl v --by 1d --fn max --fill null")
        .ok();
    assert!(filled.contains("16688623782.2"), "{filled}");
    let exact = folder.say("aggregate a.tdl v --fn max -f csv").ok();
    assert!(exact.contains("16688623782.25"), "{exact}");
}
