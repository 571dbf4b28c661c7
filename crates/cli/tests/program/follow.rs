//! `--follow`: points appear while other processes commit them.

use crate::support::{Folder, Running};

/// Imports points of the metric `v`, each given as host, minute and value.
fn store(folder: &Folder, points: &[(&str, u32, &str)]) {
    let mut csv = String::from("time,host,v\n");
    for (host, minute, value) in points {
        csv += &format!("2024-01-01T00:{minute:02}:00Z,{host},{value}\n");
    }
    folder.write("v.csv", csv);
    folder
        .say("import f.tdl v.csv --tag host --quiet --merge replace")
        .ok();
}

#[test]
fn scan_goes_on_with_what_is_committed() {
    let folder = Folder::new("follow-scan");
    store(&folder, &[("a", 0, "1"), ("a", 1, "2"), ("a", 2, "3")]);
    let scan = [
        "scan", "f.tdl", "v", "--follow", "--every", "20ms", "-f", "csv",
    ];
    let running = Running::start(&folder, &[&scan[..], &["--tail", "2"]].concat());
    running.expect(&[
        "series,time,value",
        "\"v{host=\"\"a\"\"}\",2024-01-01T00:01:00Z,2",
        "\"v{host=\"\"a\"\"}\",2024-01-01T00:02:00Z,3",
    ]);
    // New points, also between older ones, and changed ones; nothing is printed twice.
    store(&folder, &[("a", 4, "5"), ("a", 3, "4")]);
    running.expect(&[
        "\"v{host=\"\"a\"\"}\",2024-01-01T00:03:00Z,4",
        "\"v{host=\"\"a\"\"}\",2024-01-01T00:04:00Z,5",
    ]);
    store(&folder, &[("a", 1, "20")]);
    running.expect(&["\"v{host=\"\"a\"\"}\",2024-01-01T00:01:00Z,20"]);
    // A commit without points of these series prints nothing; a new series that the pattern selects is printed.
    folder.say("kv put f.tdl config x 1").ok();
    store(&folder, &[("b", 0, "7")]);
    running.expect(&["\"v{host=\"\"b\"\"}\",2024-01-01T00:00:00Z,7"]);
    // A removal prints nothing.
    folder
        .run(&["remove", "f.tdl", "v{host=\"a\"}", "--last", "1m"])
        .ok();
    store(&folder, &[("a", 9, "9")]);
    running.expect(&["\"v{host=\"\"a\"\"}\",2024-01-01T00:09:00Z,9"]);
}

#[test]
fn filters_and_ranges_apply_to_what_follows() {
    let folder = Folder::new("follow-filter");
    store(&folder, &[("a", 0, "1")]);
    let scan = [
        "scan", "f.tdl", "v", "--follow", "--every", "20ms", "-f", "csv",
    ];
    let range = ["--where", "3..", "--to", "2024-01-01T00:05:00Z"];
    let running = Running::start(&folder, &[&scan[..], &range].concat());
    store(&folder, &[("a", 1, "2"), ("a", 2, "3"), ("a", 6, "7")]);
    running.expect(&[
        "series,time,value",
        "\"v{host=\"\"a\"\"}\",2024-01-01T00:02:00Z,3",
    ]);
    store(&folder, &[("a", 3, "4")]);
    running.expect(&["\"v{host=\"\"a\"\"}\",2024-01-01T00:03:00Z,4"]);
    for line in [
        "scan f.tdl v --follow --limit 3",
        "scan f.tdl v --follow --reverse",
        "scan f.tdl v --follow --pin p",
        "latest f.tdl --follow --at now",
        "scan f.tdl v --every 1s",
    ] {
        assert_eq!(folder.say(line).code, 2, "{line}");
    }
}

#[test]
fn latest_prints_a_series_again_when_it_has_changed() {
    let folder = Folder::new("follow-latest");
    store(&folder, &[("a", 0, "1"), ("b", 0, "2")]);
    let words = [
        "latest", "f.tdl", "--follow", "--every", "20ms", "-f", "csv",
    ];
    let running = Running::start(&folder, &words);
    running.expect(&[
        "series,time,value",
        "\"v{host=\"\"a\"\"}\",2024-01-01T00:00:00Z,1",
        "\"v{host=\"\"b\"\"}\",2024-01-01T00:00:00Z,2",
    ]);
    store(&folder, &[("b", 1, "3")]);
    running.expect(&["\"v{host=\"\"b\"\"}\",2024-01-01T00:01:00Z,3"]);
    store(&folder, &[("a", 0, "1"), ("c", 5, "8")]);
    running.expect(&["\"v{host=\"\"c\"\"}\",2024-01-01T00:05:00Z,8"]);
    // A table appears at once, too, although its widths are measured from its first rows.
    let table = Running::start(&folder, &["latest", "f.tdl", "v{host=a}", "--follow"]);
    table.expect(&[
        "series       time                  value",
        "v{host=\"a\"}  2024-01-01T00:00:00Z      1",
    ]);
}
