//! Cases that a new user meets early: pipes in both directions, windows of zero width, values of nested keys, series
//! that cannot be drawn.

use crate::support::{Folder, Ran};
use std::process::Stdio;

#[test]
fn backups_and_copies_go_through_pipes() {
    let folder = Folder::with_plant("backups_and_copies_go_through_pipes");
    let rows = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
    let mut backup = folder
        .command(&["backup", "plant.tdl", "-"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut restore = folder.command(&["restore", "there.tdl", "-"]);
    restore.stdin(backup.stdout.take().unwrap());
    Ran::of(restore).ok();
    assert!(backup.wait().unwrap().success());
    assert_eq!(rows("there.tdl"), rows("plant.tdl"));

    let copy = folder
        .command(&["copy", "plant.tdl", "-"])
        .output()
        .unwrap();
    folder.write("copy.tdl", copy.stdout);
    folder.say("check copy.tdl").ok();
    assert_eq!(rows("copy.tdl"), rows("plant.tdl"));
    let copy = folder
        .command(&["copy", "plant.tdl", "-", "--temporary", "."])
        .output()
        .unwrap();
    assert!(copy.status.success() && !copy.stdout.is_empty(), "{copy:?}");
    folder
        .say("copy plant.tdl - --temporary no/such")
        .failed(3, &["no/such"]);

    let words = ["plot", "plant.tdl", "hb.wind", "--png", "-"];
    let picture = folder.command(&words).output().unwrap();
    assert!(picture.stdout.starts_with(b"\x89PNG\r\n"), "{picture:?}");
    assert!(!folder.path("-").exists());
    folder
        .say("plot plant.tdl hb.wind --png - --svg -")
        .failed(2, &["only one picture"]);
}

/// An export does not follow a symbolic link that has the name of its unfinished file, so it cannot overwrite another
/// file.
#[test]
fn an_export_writes_to_nothing_that_is_there() {
    let folder = Folder::with_plant("an_export_writes_to_nothing_that_is_there");
    folder.write("other", "kept");
    std::os::unix::fs::symlink(folder.path("other"), folder.path("out.csv.part")).unwrap();
    folder.say("export plant.tdl hb.wind --output out.csv").ok();
    assert_eq!(std::fs::read(folder.path("other")).unwrap(), b"kept");
    assert!(!folder.path("out.csv").is_symlink());
}

#[test]
fn moving_a_pin_prints_its_old_commit() {
    let folder = Folder::with_plant("moving_a_pin_prints_its_old_commit");
    let first = folder.say("pins plant.tdl --add monday").ok();
    let again = folder.say("pins plant.tdl --add monday").ok();
    let txn = first.trim().strip_prefix("monday is pinned: ").unwrap();
    assert!(
        again.trim().ends_with(&format!("no longer {txn}")),
        "{again}"
    );
}

#[test]
fn a_value_does_not_take_the_place_of_a_table() {
    let folder = Folder::new("a_value_does_not_take_the_place_of_a_table");
    folder.say("kv put t.tdl topics --in plant level 3.5").ok();
    folder
        .say("kv put t.tdl topics plant 5")
        .failed(5, &["plant holds a table", "kv del"]);
    assert_eq!(
        folder.say("kv get t.tdl topics --in plant level").ok(),
        "3.5\n"
    );
    folder.say("kv put t.tdl topics name 5").ok();
    folder
        .say("kv put t.tdl topics --in name level 5")
        .failed(5, &["found a value", "--in"]);
    folder.say("kv del t.tdl topics plant").ok();
    folder.say("kv put t.tdl topics plant 5").ok();
    folder
        .run(&["kv", "put", "t.tdl", "", "k", "v"])
        .failed(2, &["1 to 255"]);
}

#[test]
fn tables_are_dropped_and_renamed() {
    let folder = Folder::new("tables_are_dropped_and_renamed");
    folder.say("kv put t.tdl one k 1").ok();
    folder.say("kv put t.tdl two --in k k 2").ok();
    folder.say("kv rename t.tdl one two").failed(5, &["two"]);
    folder
        .say("kv rename t.tdl none three")
        .failed(3, &["no table none"]);
    folder
        .say("kv rename t.tdl one three --durability lazy")
        .ok();
    folder.say("kv drop t.tdl two").ok();
    folder.say("kv drop t.tdl two").failed(3, &["no table two"]);
    folder
        .say("kv drop none.tdl two")
        .failed(3, &["no database"]);
    assert_eq!(folder.say("kv stat t.tdl").ok(), "three\t1 pair\n");
    assert_eq!(folder.say("kv get t.tdl three k").ok(), "1\n");
}

#[test]
fn widths_shorter_than_a_step_and_of_nothing() {
    let folder = Folder::new("widths_shorter_than_a_step_and_of_nothing");
    folder.write("a.csv", "time,a,b\n0,1,\n10,,1\n20,2,2\n30,3,\n");
    folder
        .say("import t.tdl a.csv --time-format s --quiet")
        .ok();
    let joined = folder
        .say("join t.tdl a b --kind as-of --tolerance 0s -f csv")
        .ok();
    assert_eq!(
        joined,
        "time,a,b\n1970-01-01T00:00:00Z,1,\n1970-01-01T00:00:20Z,2,2\n1970-01-01T00:00:30Z,3,\n"
    );
    let wrong = folder.say("join t.tdl a b --kind as-of --tolerance 0fortnights");
    wrong.failed(2, &["not a duration"]);
}

#[test]
fn compact_dates_are_read() {
    let folder = Folder::new("compact_dates_are_read");
    folder.write("a.csv", "time,v\n20140601,1\n20140602,2\n");
    folder.say("import t.tdl a.csv --quiet").ok();
    let days = folder.say("scan t.tdl v -f csv").ok();
    assert_eq!(
        days,
        "series,time,value\nv,2014-06-01T00:00:00Z,1\nv,2014-06-02T00:00:00Z,2\n"
    );
}

#[test]
fn texts_are_not_drawn() {
    let folder = Folder::new("texts_are_not_drawn");
    folder.write("a.csv", "time,n,s\n0,1,x\n10,2,y\n");
    folder
        .say("import t.tdl a.csv --time-format s --into log --columns n:i64,s:string --quiet")
        .ok();
    folder
        .say("plot t.tdl log -c s")
        .failed(2, &["holds strings"]);
    folder.say("plot t.tdl log -c n").ok();
}

#[test]
fn a_file_without_its_head_points_to_salvage() {
    let folder = Folder::with_plant("a_file_without_its_head_points_to_salvage");
    let mut bytes = std::fs::read(folder.path("plant.tdl")).unwrap();
    bytes[..24_576].fill(0);
    folder.write("broken.tdl", bytes);
    folder.say("check broken.tdl").failed(
        5,
        &["not a Tidalite database", "tidalite salvage broken.tdl"],
    );
}

#[test]
fn compact_prints_the_length_of_the_file() {
    let folder = Folder::with_plant("compact_prints_the_length_of_the_file");
    for n in 0..40 {
        folder.say(&format!("kv put plant.tdl t key {n}")).ok();
    }
    let out = folder.say("compact plant.tdl").ok();
    let bytes = std::fs::metadata(folder.path("plant.tdl")).unwrap().len();
    #[expect(clippy::cast_precision_loss, reason = "a small file")]
    let (kib, mib) = (bytes as f64 / 1024.0, bytes as f64 / 1_048_576.0);
    let told = [format!("{kib:.1} KiB"), format!("{mib:.2} MiB")];
    assert!(
        told.iter().any(|told| out.contains(told)),
        "{out}: {bytes} bytes"
    );
}
