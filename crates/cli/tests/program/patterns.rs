//! Patterns of series with conditions on tags: every command that selects series takes them.

use crate::support::{Folder, Ran};

/// Creates a database of two metrics with three hosts each, of which one has no site.
fn with_hosts(name: &str) -> Folder {
    let folder = Folder::new(name);
    let mut csv = String::from("time,host,site,load,heat\n");
    for minute in 0..10 {
        for (host, site) in [("a1", "north"), ("a2", "north sea"), ("b1", "")] {
            csv += &format!("2014-06-01T00:{minute:02}:00Z,{host},{site},{minute}.5,{minute}\n");
        }
    }
    folder.write("hosts.csv", csv);
    folder
        .say("import hosts.tdl hosts.csv --tag host --tag site --quiet")
        .ok();
    folder
}

/// The hosts of the metric `load` whose series a pattern selects.
#[track_caller]
fn hosts(folder: &Folder, pattern: &str) -> String {
    let names = folder
        .run(&["series", "hosts.tdl", pattern, "-f", "csv"])
        .ok();
    let host = |line: &str| Some(line.split_once("host=\"\"")?.1.get(..2)?.to_owned());
    let found: Vec<String> = names
        .lines()
        .filter(|line| line.starts_with("\"load"))
        .filter_map(host)
        .collect();
    found.join(" ")
}

#[test]
fn conditions_on_tags_select_series() {
    tidalite_testkit::watch();
    let folder = with_hosts("patterns-select");
    for (pattern, expected) in [
        (r#"load{host!="a1"}"#, "a2 b1"),
        (r#"load{host in ("a1","b1")}"#, "a1 b1"),
        (r#"load{host not in (a1, b1)}"#, "a2"),
        (r#"load{host=a*}"#, "a1 a2"),
        (r#"load{site="north"*}"#, "a1 a2"),
        (r#"load{host=~"[ab]1"}"#, "a1 b1"),
        (r#"load{host!~"a.*"}"#, "b1"),
        (r#"*{not (host="a1"),not (host="b1")}"#, "a2"),
        (r#"load{site=""}"#, "b1"),
        (r#"load{site!=""}"#, "a1 a2"),
        (r#"{site="north"}{host="b1"}"#, "a1 b1"),
    ] {
        assert_eq!(hosts(&folder, pattern), expected, "{pattern}");
    }
}

/// Runs each command that selects series with a pattern that only `load` of the host `b1` matches.
#[test]
fn every_command_takes_conditions_on_tags() {
    tidalite_testkit::watch();
    let folder = with_hosts("patterns-commands");
    let pattern = r#"lo*{host!="a1",site!~"north.+",not (host=~"a.*")}"#;
    let run = |words: &[&str]| -> Ran {
        let words: Vec<&str> = words
            .iter()
            .map(|&word| if word == "SERIES" { pattern } else { word })
            .collect();
        folder.run(&words)
    };
    folder.say("pins hosts.tdl --add before").ok();
    for words in [
        &["series", "hosts.tdl", "SERIES", "-f", "csv"][..],
        &["latest", "hosts.tdl", "SERIES", "-f", "csv"],
        &["aggregate", "hosts.tdl", "SERIES", "-f", "csv"],
        &["annotate", "hosts.tdl", "SERIES", "--set", "unit=W"],
        &["annotate", "hosts.tdl", "SERIES", "-f", "csv"],
    ] {
        let told = run(words).ok();
        let lines = told.lines().filter(|line| !line.starts_with("series,"));
        assert_eq!(lines.count(), 1, "{words:?}: {told}");
    }
    for words in [
        &["scan", "hosts.tdl", "SERIES", "-f", "csv"][..],
        &["window", "hosts.tdl", "SERIES", "--by", "1m", "-f", "csv"],
        &["join", "hosts.tdl", "SERIES", "-f", "csv"],
        &[
            "join",
            "hosts.tdl",
            "load{host=b1}",
            "-f",
            "csv",
            "--where",
            &format!("{pattern}=0.."),
        ],
        &["export", "hosts.tdl", "SERIES"],
    ] {
        let told = run(words).ok();
        assert_eq!(told.lines().count(), 11, "{words:?}: {told}");
        assert!(
            !told.contains("a1") && !told.contains("a2"),
            "{words:?}: {told}"
        );
    }
    let told = run(&[
        "candles",
        "hosts.tdl",
        "SERIES",
        "--level",
        "0",
        "-f",
        "csv",
    ])
    .ok();
    assert!(told.contains(",10,") && !told.contains("a1"), "{told}");
    let drawn = run(&["plot", "hosts.tdl", "SERIES"]).ok();
    assert!(drawn.contains("b1") && !drawn.contains("a1"), "{drawn}");
    let set = [
        "retention",
        "hosts.tdl",
        "--set",
        "p",
        "--keep",
        "5m",
        "--keep-from",
        "newest",
    ];
    run(&[&set[..], &["--series", "SERIES"]].concat()).ok();
    let preview = folder
        .say("retention hosts.tdl --apply --dry-run -f csv")
        .ok();
    assert!(
        preview.contains("b1") && !preview.contains("a1"),
        "{preview}"
    );
    let removed = run(&["remove", "hosts.tdl", "SERIES", "-f", "csv"]).ok();
    assert_eq!(removed.lines().count(), 2, "{removed}");
    let changed = run(&[
        "changed",
        "hosts.tdl",
        "SERIES",
        "--since",
        "before",
        "-f",
        "csv",
    ])
    .ok();
    assert!(
        changed.contains("b1") && !changed.contains("a1"),
        "{changed}"
    );
}

#[test]
fn wrong_patterns_are_explained() {
    tidalite_testkit::watch();
    let folder = with_hosts("patterns-wrong");
    let series = |pattern: &str| folder.run(&["series", "hosts.tdl", pattern]);
    series("load{host>1}").failed(
        2,
        &["expected =, !=", "at character 11", "next: write 'name'"],
    );
    series(r#"load{host=~"("}"#).failed(2, &["invalid regular expression", "at character 11"]);
    series(r#"load{hots="a1"}"#).failed(3, &["no series", "no series has the tag `hots`"]);
    let policy = [
        "retention",
        "hosts.tdl",
        "--set",
        "p",
        "--keep",
        "1d",
        "--series",
        "a{b",
    ];
    folder.run(&policy).failed(2, &["expected ="]);
    let all = series(r#"load{hots!="a1",host!="a1"}"#);
    assert!(
        all.err.contains("note: no series has the tag `hots`"),
        "{all:?}"
    );
    assert!(!all.err.contains("`host`"), "{all:?}");
    assert_eq!(all.ok().lines().count(), 3);
}
