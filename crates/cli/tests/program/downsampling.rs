//! `retention --downsample`: windows in place of old rows, and `window` across the border.

use crate::support::Folder;
use std::fmt::Write as _;

/// Minutes of sixty days, with a policy that keeps twenty of them before the newest.
fn folder(name: &str) -> Folder {
    tidalite_testkit::watch();
    let folder = Folder::new(name);
    let mut rows = "time,load\n".to_owned();
    for minute in 0..60 * 1440 {
        writeln!(rows, "{},{}", 1_704_067_200 + minute * 60, minute % 60).unwrap_or_default();
    }
    folder.write("load.csv", rows);
    folder.say("import a.tdl load.csv --quiet").ok();
    folder
}

const SET: &str = "retention a.tdl --set hours --series load --keep 20d --keep-from newest";

#[test]
fn old_rows_become_windows_and_are_read_across_the_border() {
    let folder = folder("old_rows_become_windows_and_are_read_across_the_border");
    let whole = "window a.tdl load --by 1d --fn count,mean,max -f csv";
    let before = folder.say(whole).ok();
    let set = format!("{SET} --downsample 1h --fn count,mean,max,p95");
    let listed = folder.say(&format!("{set} -f csv")).ok();
    assert!(listed.contains("1h,1h,\"count,mean,max,p95\""), "{listed}");
    let applied = folder.say("retention a.tdl --apply").ok();
    assert!(applied.contains("959 windows stored"), "{applied}");
    let rows = folder.say("aggregate a.tdl load --fn count -f csv").ok();
    assert!(rows.contains("load,28861"), "{rows}");
    let after = folder.say(whole);
    assert!(
        after.err.contains("load before 2024-02-09T23:00:00Z"),
        "{}",
        after.err
    );
    assert_eq!(after.ok(), before);
    let p95 = folder.say("window a.tdl load --by 1h --fn p95 -f csv").ok();
    assert_eq!(p95.lines().count(), 1 + 60 * 24);
    folder
        .say("window a.tdl load --by 1d --fn p95")
        .failed(2, &["p95 does not follow from the stored figures"]);
    // Gaps are filled over stored windows, too, and other commands note that they read points only.
    let filled = folder.say("window a.tdl load --by 1d --fn count,mean,max --fill 0 -f csv");
    assert_eq!(filled.ok(), before);
    let counted = folder.say("aggregate a.tdl load --fn count");
    assert!(
        counted.err.contains("replaced by windows"),
        "{}",
        counted.err
    );
    let cut =
        "window a.tdl load --by 1h --fn count --from 2024-01-05T03:30 --to 2024-01-05T06:00 -f csv";
    let cut = folder.say(cut);
    assert!(
        cut.err.contains("the range is cut to 2024-01-05T04:00:00Z"),
        "{}",
        cut.err
    );
    assert_eq!(cut.ok().lines().count(), 3);
    let cut = "window a.tdl load --by 1h --fn count,mean,max --fill 0 --from 2024-01-05T03:30 --to 2024-01-05T06:20 -f csv";
    let cut = folder.say(cut);
    assert_eq!(
        cut.err.matches("from stored windows").count(),
        1,
        "{}",
        cut.err
    );
    let out = cut.ok();
    assert!(
        out.contains("\nload,2024-01-05T04:00:00Z,60,29.5,59"),
        "{out}"
    );
    assert_eq!(out.lines().count(), 3, "{out}");
    let stored = folder.say("scan a.tdl load.1h --limit 1 -f csv").ok();
    assert!(
        stored.starts_with(
            "series,time,count,mean,max,p95\nload.1h,2024-01-01T00:00:00Z,60,29.5,59,"
        ),
        "{stored}"
    );
    assert!(folder.say("retention a.tdl --apply").ok().contains('0'));
    folder.say("check a.tdl").ok();
    let removed = folder.say("retention a.tdl --remove hours");
    assert!(removed.err.contains("'*.1h'"), "{}", removed.err);
}

#[test]
fn rules_of_windows_are_checked() {
    let folder = folder("rules_of_windows_are_checked");
    for (more, text) in [
        (
            "--downsample 1h --fn max(load)",
            "functions of every column",
        ),
        ("--downsample 1h --fn rate(1h)", "cannot be stored"),
        ("--downsample 1h --fn min_time", "cannot be stored"),
        ("--downsample 1x", "1x"),
        ("--fn mean", "--downsample"),
        ("--suffix h", "--downsample"),
    ] {
        let ran = folder.say(&format!("{SET} {more}"));
        assert_eq!(ran.code, 2, "{more}: {ran:?}");
        assert!(ran.err.contains(text), "{more}: {}", ran.err);
    }
    let without = "retention a.tdl --set hours --max-bytes 100000 --downsample 1h";
    folder.say(without).failed(2, &["--keep"]);
    let listed = folder
        .say(&format!("{SET} --downsample 1mo --tz Europe/Berlin -f csv"))
        .ok();
    assert!(
        listed.contains("1mo in Europe/Berlin,1mo,\"count,mean,min,max\""),
        "{listed}"
    );
}
