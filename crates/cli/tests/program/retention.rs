//! `retention --apply`: caps hold, previews change nothing, and a clock that is ahead must be confirmed.

use crate::support::Folder;
use std::fmt::Write;
use std::time::Duration;
use tidalite::retention::{Clocks, Retention};
use tidalite::topics::Message;
use tidalite::{Options, Steps, TableLayout, Timestamp, Tuning};
use tidalite_testkit::rng::Rng;

const DAY: i64 = 86_400 * 1_000_000_000;

/// Creates a folder with a database of twelve series, imported one series after the other, as from an export.
fn imported(name: &str) -> Folder {
    let folder = Folder::new(name);
    let mut rng = Rng::new(12);
    let mut csv = String::from("turbine,time,power\n");
    for turbine in 0..12 {
        for minute in 0..20_000 {
            let time = 1_388_534_400 + minute * 60;
            writeln!(csv, "T{turbine},{time},{:.6}", rng.f64()).unwrap();
        }
    }
    folder.write("wind.csv", &csv);
    folder
        .say("import r.tdl wind.csv --tag turbine --quiet")
        .ok();
    folder
}

#[test]
fn a_cap_counts_space_in_use_and_removes_the_minimum() {
    let folder = imported("a_cap_counts_what_is_in_use");
    let stat = || {
        let options = Options::new().read_only(true);
        options.open(folder.path("r.tdl")).unwrap().stat().unwrap()
    };
    let used = || {
        let stat = stat();
        4096 * (stat.pages_total - stat.pages_free - stat.pages_pending)
    };
    let in_use = used();
    let cap = in_use + 4096;
    assert!(cap < stat().file_bytes);
    let out = folder
        .say(&format!(
            "retention r.tdl --set cap --max-bytes {cap} --apply"
        ))
        .ok();
    assert!(out.starts_with("0 rows removed from 0 series"), "{out}");
    assert_eq!(stat().rows(), 240_000);
    let cap = in_use * 3 / 4;
    folder
        .say(&format!("retention r.tdl --set cap --max-bytes {cap}"))
        .ok();
    let out = folder.say("retention r.tdl --apply --dry-run -f csv").ok();
    assert_eq!(out.lines().next(), Some("series,rows,first,last,bytes"));
    // It is enough to remove the oldest leaves of some series; each leaf holds 16,384 rows.
    let leaves = out.lines().skip(1).filter(|line| line.contains(",16384,"));
    let (shown, leaves) = (out.lines().count() - 1, leaves.count());
    assert!((1..12).contains(&shown) && shown == leaves, "{out}");
    assert!(out.contains("2014-01-01T00:00:00Z"), "{out}");
    assert_eq!(stat().rows(), 240_000, "a preview changes nothing");
    let out = folder.say("retention r.tdl --apply").ok();
    let gone = 240_000 - stat().rows();
    assert!(
        gone.div_ceil(16_384).abs_diff(shown as u64) <= 1,
        "{gone} of {shown}"
    );
    assert!(out.contains(" rows removed from "), "{out}");
    assert!(out.contains(" in use, "), "{out}");
    assert!(used() <= cap && used() + 200_000 > cap, "{}", used());
    folder.say("check r.tdl").ok();
}

#[test]
fn a_clock_that_is_ahead_is_confirmed() {
    let folder = Folder::new("a_clock_that_is_ahead_is_confirmed");
    let now = Timestamp::now().0;
    // The newest commit was made a week ago, and the computer has been restarted since.
    let clocks = move || Clocks {
        wall_ns: now - 7 * DAY,
        since_boot_ns: 1,
        boot: 1,
    };
    let db = Options::new()
        .tuning(Tuning::new().clock(clocks))
        .open(folder.path("a.tdl"))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut load = tx.series("load").unwrap();
    for day in 8..18 {
        load.insert(Steps(now - day * DAY), 1.0).unwrap();
    }
    let policy = Retention {
        keep: Some(Duration::from_secs(5 * 86_400)),
        ..Retention::default()
    };
    tx.set_retention("short", &policy).unwrap();
    tx.commit().unwrap();
    drop(db);
    let out = folder.say("retention a.tdl --apply --dry-run -f csv").ok();
    assert!(out.contains("load,6,"), "{out}");
    folder.say("retention a.tdl --apply").failed(
        1,
        &["only the computer's clock makes too old", "168 h", "--yes"],
    );
    let rows = |out: String| out.lines().count() - 1;
    assert_eq!(rows(folder.say("scan a.tdl load -f csv").ok()), 4);
    let out = folder.say("retention a.tdl --apply --yes").ok();
    assert!(
        out.starts_with("4 rows removed from 1 series in 1 commit"),
        "{out}"
    );
    // The clock was confirmed, so it is trusted from now on.
    folder.say("retention a.tdl --apply").ok();
}

#[test]
fn an_archive_keeps_rows_near_its_newest_row() {
    let folder = Folder::new("an_archive_keeps_rows_near_its_newest_row");
    let mut csv = String::from("time,v\n");
    for day in 1..=30 {
        writeln!(csv, "2013-06-{day:02},{day}").unwrap();
    }
    folder.write("a.csv", &csv);
    folder.say("import a.tdl a.csv --quiet").ok();
    folder
        .say("retention a.tdl --set archive --keep 10d --keep-from newest")
        .ok();
    let out = folder.say("retention a.tdl -f csv").ok();
    assert!(out.contains("archive,,864000,newest,,"), "{out}");
    let out = folder.say("retention a.tdl --apply").ok();
    assert!(
        out.starts_with("19 rows removed from 1 series in 1 commit\n"),
        "{out}"
    );
    folder
        .say("retention a.tdl --set none --keep-from newest")
        .failed(2, &["--keep"]);
}

#[test]
fn expired_messages_are_removed_too() {
    let folder = Folder::new("retention-messages");
    let db = Options::new().open(folder.path("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    let old = Message {
        expires: Some(Timestamp::parse("2014-01-02").unwrap()),
        ..Message::new("hall/1", b"21.5")
    };
    let published = Timestamp::parse("2014-01-01").unwrap();
    let mut topics = tx.topics("broker").unwrap();
    topics.set(&old, published).unwrap();
    tx.commit().unwrap();
    drop(db);
    let maintained =
        "1 table of messages maintained: 1 message and 0 objects removed in 1 commit\n";
    let nothing = "0 rows removed from 0 series in 0 commits\n";
    let out = folder.say("retention a.tdl --apply").ok();
    assert_eq!(out, format!("{maintained}{nothing}"));
    assert_eq!(folder.say("retention a.tdl --apply").ok(), nothing);
    let db = Options::new().open(folder.path("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    let layout = TableLayout::Topics;
    let mut damaged = tx.create_raw_table("lost", layout, ("", "")).unwrap();
    damaged.put(&[0], b"nonsense").unwrap();
    tx.commit().unwrap();
    drop(db);
    folder
        .say("retention a.tdl --apply")
        .failed(4, &["table lost", "tidalite check"]);
}
