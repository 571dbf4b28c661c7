//! Removal of points in a range and of whole series, and renaming.

use crate::support::Folder;
use tidalite::Database;

const A: &str = r#"hb.power{turbine="A"}"#;

#[test]
fn points_of_a_range_go_and_the_others_stay() {
    let folder = Folder::with_plant("points_of_a_range_go_and_the_others_stay");
    let rows = || folder.run(&["scan", "plant.tdl", "hb.*", "-f", "csv"]).ok();
    let before = rows();
    let range = ["--from", "2014-06-01 00:10", "--to", "2014-06-01 01:00"];
    let said = [&["remove", "plant.tdl", A], &range[..], &["-f", "csv"]].concat();
    let told = "series,removed,first,last,left\n\
        \"hb.power{turbine=\"\"A\"\"}\",49,2014-06-01T00:10:00Z,2014-06-01T00:59:00Z,70\n";
    let dry = folder.run(&[&said[..], &["--dry-run"]].concat());
    assert!(dry.err.contains("nothing was removed"), "{}", dry.err);
    assert_eq!(dry.ok(), told);
    assert_eq!(rows(), before);
    let ran = folder.run(&said);
    assert!(ran.err.is_empty(), "{}", ran.err);
    assert_eq!(ran.ok(), told);
    let gone = |line: &&str| {
        let (series, rest) = line.split_at(line.find(",2014").unwrap_or(0));
        let minute = rest.get(12..17).unwrap_or_default();
        series.contains("power") && series.contains("A") && ("00:10".."01:00").contains(&minute)
    };
    let expected: Vec<&str> = before.lines().filter(|line| !gone(line)).collect();
    assert_eq!(before.lines().count(), expected.len() + 49);
    assert_eq!(rows().lines().collect::<Vec<_>>(), expected);
    // The range has no points any more.
    folder.run(&said).failed(3, &["no point in this range"]);
    // The command removes the last minute of all series; a series without a point in that minute loses nothing.
    let out = folder
        .say("remove plant.tdl hb.power --last 1m -f json")
        .ok();
    assert!(
        out.contains(r#""removed":1,"first":"2014-06-01T01:59:00Z""#),
        "{out}"
    );
    assert_eq!(out.lines().count(), 2);
    folder.say("check plant.tdl").ok();
    assert!(folder.say("remove plant.tdl hb.power --to 2013").code == 3);
}

/// A name as the program prints it selects only the series with this name, even if it contains a `*`.
#[test]
fn a_printed_name_removes_one_series() {
    let folder = Folder::new("a_printed_name_removes_one_series");
    let db = Database::open(folder.path("odd.tdl")).expect("a new file");
    let mut tx = db.begin_write().expect("a transaction");
    for name in [r#""a*b""#, "aXb", r#""a?b""#] {
        let mut series = tx.series(name).expect("a series");
        series.insert("2014-06-01", 1.0).expect("a point");
    }
    tx.commit().expect("a commit");
    drop(db);
    let names = |pattern: &str| {
        let out = folder
            .run(&["series", "odd.tdl", pattern, "-f", "json"])
            .ok();
        out.lines().count()
    };
    assert_eq!(names("a*b"), 3);
    assert_eq!(names(r#""a*b""#), 1);
    folder.run(&["remove", "odd.tdl", r#""a*b""#]).ok();
    assert_eq!((names("a?b"), names(r#"a"?"b"#)), (2, 1));
    folder
        .run(&["series", "odd.tdl", r#""a*b""#])
        .failed(3, &[]);
}

#[test]
fn whole_series_go() {
    let folder = Folder::with_plant("whole_series_go");
    folder.say("pins plant.tdl --add before").ok();
    folder.say("annotate plant.tdl hb.power --set unit=kW").ok();
    let names = || {
        let out = folder.say("series plant.tdl -f csv").ok();
        out.lines().count() - 1
    };
    let out = folder.say("remove plant.tdl hb.power --dry-run").ok();
    assert!(out.contains("120  2014-06-01T00:00:00Z"), "{out}");
    assert_eq!(names(), 4);
    let out = folder.say("remove plant.tdl hb.power").ok();
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(out.lines().nth(1).unwrap().ends_with("-"), "{out}");
    assert_eq!(names(), 2);
    folder
        .say("remove plant.tdl hb.power")
        .failed(3, &["no series in plant.tdl matches `hb.power`"]);
    folder.say("check plant.tdl").ok();
    // Removing all points keeps the series. Afterwards a series without points can be removed, too.
    folder
        .say("remove plant.tdl hb.wind --from 2014 --to 2015")
        .ok();
    assert_eq!(names(), 2);
    folder.say("remove plant.tdl hb.wind").ok();
    folder
        .say("series plant.tdl")
        .failed(3, &["holds no series"]);
}

#[test]
fn a_series_gets_another_name() {
    let folder = Folder::with_plant("a_series_gets_another_name");
    // The rows of a series as times and values, without the name in front.
    let rows = |name: &str| -> Vec<String> {
        let out = folder.run(&["scan", "plant.tdl", name, "-f", "csv"]).ok();
        let own = |line: &str| line.split(",2014-").last().map(str::to_owned);
        out.lines().skip(1).filter_map(own).collect()
    };
    let before = rows(A);
    assert!(!before.is_empty());
    let new = r#"power{turbine="R1",site="x"}"#;
    let out = folder.run(&["rename", "plant.tdl", A, new]).ok();
    assert_eq!(
        out,
        "hb.power{turbine=\"A\"} is called power{site=\"x\",turbine=\"R1\"} now\n"
    );
    assert_eq!(rows(new), before);
    // The order of tags does not matter. A part of a name selects series, but it is not the name of one.
    let swapped = r#"power{site="x", turbine="R1"}"#;
    folder.run(&["rename", "plant.tdl", swapped, "p"]).ok();
    assert_eq!(rows("p"), before);
    for (old, told) in [
        ("hb.wind", "hb.wind{turbine=\"A\"}"),
        ("hb.*", "whole name"),
        ("nothing", "no series in plant.tdl matches"),
    ] {
        folder
            .run(&["rename", "plant.tdl", old, "q"])
            .failed(3, &[told]);
    }
    folder
        .run(&["rename", "plant.tdl", "p", r#"hb.wind{turbine="A"}"#])
        .failed(2, &["it is the name of"]);
    folder
        .run(&["rename", "plant.tdl", "p", "{"])
        .failed(2, &["cannot be used"]);
    let database = Database::open(folder.path("plant.tdl")).unwrap();
    let snapshot = database.begin_read().unwrap();
    assert_eq!(snapshot.list("").unwrap().len(), 4);
}
