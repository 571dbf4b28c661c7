//! Imports of local times that clocks repeat or skip.

use crate::support::Folder;
use std::fmt::Write;

const AUTUMN: &str = "time,v\n2024-10-27 01:30,1\n2024-10-27 02:00,2\n2024-10-27 02:30,3\n\
    2024-10-27 02:00,4\n2024-10-27 02:30,5\n2024-10-27 03:00,6\n";

const AUTUMN_SCANNED: &str = "series,time,value\nv,2024-10-26T23:30:00Z,1\nv,2024-10-27T00:00:00Z,2\n\
    v,2024-10-27T00:30:00Z,3\nv,2024-10-27T01:00:00Z,4\nv,2024-10-27T01:30:00Z,5\nv,2024-10-27T02:00:00Z,6\n";

#[test]
fn the_order_of_rows_resolves_the_repeated_hour() {
    let folder = Folder::new("the_repeated_hour_is_told_apart");
    folder.write("a.csv", AUTUMN);
    let mut json = String::new();
    let mut german = String::from("wann;v\n");
    for line in AUTUMN.lines().skip(1) {
        let (time, v) = line.split_once(',').unwrap();
        writeln!(json, "{{\"time\":\"{time}\",\"v\":{v}}}").unwrap();
        writeln!(german, "27.10.2024 {};{v}", &time[11..]).unwrap();
    }
    folder.write("a.jsonl", json);
    folder.write("german.csv", german);
    let pattern = ["--time-format", "%d.%m.%Y %H:%M", "--time", "wann"];
    for (name, input, more) in [
        ("a.tdl", "a.csv", &[][..]),
        ("b.tdl", "a.jsonl", &[]),
        ("c.tdl", "german.csv", &pattern),
    ] {
        let words = ["import", name, input, "--tz", "Europe/Berlin"];
        let out = folder.run(&[&words[..], more].concat()).ok();
        assert!(out.starts_with("6 rows, 6 points"), "{out}");
        assert!(
            out.contains("repeated hour (clocks set back): 4; the order of the rows"),
            "{out}"
        );
        assert!(!out.contains("guessed"), "{out}");
        let out = folder.say(&format!("scan {name} v -f csv")).ok();
        assert_eq!(out, AUTUMN_SCANNED, "{input}");
    }
    // The times of a series with several columns are read in the same way.
    folder
        .say("import d.tdl a.csv --tz Europe/Berlin --into log --columns v:i64 --quiet")
        .ok();
    let out = folder.say("scan d.tdl log -f csv").ok();
    assert_eq!(
        out,
        AUTUMN_SCANNED
            .replace("\nv,", "\nlog,")
            .replace("value", "v")
    );
    // An import without a zone prints no summary of local times.
    let ran = folder.say("import e.tdl a.csv");
    ran.failed(5, &["2 of 6 points", "--tz"]);
    let out = folder.say("import e.tdl a.csv --merge replace").ok();
    assert!(!out.contains("hour"), "{out}");
}

/// In an input of ten blocks or more, the import must find the hour that is repeated when clocks go back. It has two
/// sensors, and each minute of that hour occurs twice.
#[test]
fn the_repeated_hour_is_found_in_inputs_of_many_blocks() {
    let folder = Folder::new("the_repeated_hour_in_many_blocks");
    let zone = "America/New_York";
    // One row per second, from 8 hours before the clock change to 8 hours after it.
    let begin = 1_730_613_600 - 8 * 3600;
    let seconds = 16 * 3600;
    let local = |second: i64| {
        let offset = if second < 8 * 3600 { 4 } else { 5 };
        let wall = begin + second - offset * 3600 - 1_730_505_600;
        let (day, wall) = (2 + wall / 86_400, wall % 86_400);
        let (hour, minute, second) = (wall / 3600, wall / 60 % 60, wall % 60);
        format!("2024-11-{day:02} {hour:02}:{minute:02}:{second:02}")
    };
    let row = |csv: &mut String, site: &str, second: i64| {
        writeln!(csv, "{},{site},{second}", local(second)).unwrap();
    };
    let (mut in_turn, mut after) = (String::from("time,site,v\n"), String::from("time,site,v\n"));
    for second in 0..seconds {
        row(&mut in_turn, "x", second);
        row(&mut in_turn, "y", second);
    }
    for site in ["x", "y"] {
        (0..seconds).for_each(|second| row(&mut after, site, second));
    }
    for (name, csv) in [("in_turn", in_turn), ("after", after)] {
        folder.write("a.csv", csv);
        let out = folder
            .say(&format!("import {name}.tdl a.csv --tag site --tz {zone}"))
            .ok();
        assert!(out.contains("clocks set back): 14400;"), "{name}: {out}");
        for site in ["x", "y"] {
            let series = format!("v{{site=\"{site}\"}}");
            let words = ["scan", &format!("{name}.tdl"), &series, "-f", "csv"];
            let out = folder.run(&words).ok();
            let quoted = format!("\"v{{site=\"\"{site}\"\"}}\"");
            let mut expected = String::from("series,time,value\n");
            for second in 0..seconds {
                let time = jiff::Timestamp::from_second(begin + second).unwrap();
                writeln!(expected, "{quoted},{time},{second}").unwrap();
            }
            assert!(out == expected, "{name} {site}");
        }
    }
}

#[test]
fn a_skipped_time_is_a_bad_row() {
    let folder = Folder::new("a_skipped_time_is_a_bad_row");
    folder.write(
        "gap.csv",
        "time,v\n2024-03-31 01:30,1\n2024-03-31 02:30,3\n2024-03-31 04:00,6\n",
    );
    let line = "import a.tdl gap.csv --tz Europe/Berlin";
    folder.say(line).failed(
        5,
        &[
            "gap.csv, line 3: `2024-03-31 02:30` does not exist in Europe/Berlin",
            "--nonexistent shift",
        ],
    );
    let out = folder.say(&format!("{line} --on-error skip")).ok();
    assert!(
        out.contains("skipped hour (clocks set forward): 1; rows skipped"),
        "{out}"
    );
    let out = folder.say(&format!("{line} --nonexistent shift")).ok();
    assert!(
        out.contains("skipped hour (clocks set forward): 1; moved forward"),
        "{out}"
    );
    let out = folder.say("scan a.tdl v -f csv").ok();
    assert!(out.contains("2024-03-31T01:30:00Z,3\n"), "{out}");
}

#[test]
fn ambiguous_local_times_are_refused_or_decided_by_an_option() {
    let folder = Folder::new("what_the_order_does_not_tell");
    folder.write(
        "thrice.csv",
        "time,v\n2024-10-27 01:00,1\n2024-10-27 02:00,2\n2024-10-27 02:00,3\n2024-10-27 02:00,4\n2024-10-27 03:00,5\n",
    );
    let line = "import a.tdl thrice.csv --tz Europe/Berlin";
    folder.say(line).failed(
        5,
        &[
            "thrice.csv, line 3: ",
            "2024-10-27T02:00:00+02:00",
            "2024-10-27T02:00:00+01:00",
            "--tag",
            "--ambiguous",
        ],
    );
    assert!(!folder.path("a.tdl").exists());
    let ran = folder.say(&format!("{line} --on-error skip"));
    for told in ["line 3: ", "line 4: ", "line 5: "] {
        assert!(ran.err.contains(told), "{}", ran.err);
    }
    let out = ran.ok();
    assert!(
        out.contains("a repeated local time is ambiguous: 3"),
        "{out}"
    );
    folder.write("once.csv", "time,v\n2024-10-27 02:00,2\n");
    for (which, instant) in [("earlier", "00"), ("later", "01"), ("infer", "00")] {
        let name = format!("{which}.tdl");
        let out = folder
            .say(&format!(
                "import {name} once.csv --tz Europe/Berlin --ambiguous {which}"
            ))
            .ok();
        assert!(out.contains("clocks set back): 1;"), "{out}");
        assert_eq!(out.contains("guessed: 1"), which == "infer", "{out}");
        let out = folder.say(&format!("scan {name} v -f csv")).ok();
        assert_eq!(
            out,
            format!("series,time,value\nv,2024-10-27T{instant}:00:00Z,2\n")
        );
    }
    folder
        .say("import b.tdl once.csv --tz Europe/Berlin --ambiguous refuse")
        .failed(5, &["once.csv, line 2: `2024-10-27 02:00` occurs twice"]);
}

/// Leap seconds are refused, and 24:00 is midnight. (Regression: a leap second was stored as the second before, and
/// replaced the row of that second.)
#[test]
fn leap_seconds_are_refused_and_24_hours_are_midnight() {
    let folder = Folder::new("leap_seconds_and_24_hours");
    folder.write(
        "leap.csv",
        "time,v\n2016-12-31T23:59:59Z,1\n2016-12-31T23:59:60Z,2\n2017-01-01T00:00:00Z,3\n",
    );
    folder
        .say("import a.tdl leap.csv")
        .failed(5, &["leap.csv, line 3: ", "leap second"]);
    folder.write(
        "day.csv",
        "time,v\n2024-12-31 23:00,1\n2024-12-31 24:00,2\n2025-01-01 01:00,3\n",
    );
    folder.say("import a.tdl day.csv").ok();
    assert_eq!(
        folder.say("scan a.tdl v -f csv").ok(),
        "series,time,value\nv,2024-12-31T23:00:00Z,1\nv,2025-01-01T00:00:00Z,2\nv,2025-01-01T01:00:00Z,3\n"
    );
    folder.write("german.csv", "time;v\n31.12.2024 24:00;2\n");
    let pattern = ["--time-format", "%d.%m.%Y %H:%M", "--quiet"];
    let words = ["import", "b.tdl", "german.csv"];
    folder.run(&[&words[..], &pattern].concat()).ok();
    assert_eq!(
        folder.say("scan b.tdl v -f csv").ok(),
        "series,time,value\nv,2025-01-01T00:00:00Z,2\n"
    );
}

/// Ten days from 2016-10-26T00:00Z on, a point in every hour, whose value is the number of hours before it.
fn ten_days(folder: &Folder) {
    let mut csv = "time,site,v\n".to_owned();
    for hour in 0..24 * 10 {
        let second = 1_477_440_000 + hour * 3600;
        csv += &format!("{second},a,{hour}\n");
    }
    folder.write("a.csv", csv);
    folder
        .say("import a.tdl a.csv --time-format s --tag site")
        .ok();
}

/// A note says that windows of a fixed width leave their time of day when clocks are set.
#[test]
fn fixed_windows_that_leave_midnight_are_mentioned() {
    let folder = Folder::new("windows_that_leave_midnight");
    ten_days(&folder);
    let told = "clocks in Europe/Berlin change at 2016-10-30T02:00:00+01:00";
    let line = "window a.tdl v* --tz Europe/Berlin --fn mean";
    for more in [
        "--by 24h",
        "--by 24h --fill null",
        "--by 24h --group-by site",
        "--by 6h",
    ] {
        let ran = folder.say(&format!("{line} {more}"));
        assert!(ran.err.contains(told), "{more}: {}", ran.err);
        assert_eq!(ran.err.matches("note:").count(), 1, "{}", ran.err);
        ran.ok();
    }
    for more in [
        "--by 1h",
        "--by 24h --from 2016-11-01",
        "--by 15m",
        "--by 1d",
        "--by 1mo",
    ] {
        let ran = folder.say(&format!("{line} {more}"));
        assert_eq!(ran.err, "", "{more}");
    }
    let ran = folder.say("plot a.tdl v* --tz Europe/Berlin --by 24h");
    assert!(ran.err.contains(told), "{}", ran.err);
    let ran = folder.say("plot a.tdl v* --tz Europe/Berlin --by 1d");
    assert!(!ran.err.contains(told), "{}", ran.err);
}

/// Regression: daily figures after a change of the clocks were those of days that began at 23:00, and depended on the
/// range of the query.
#[test]
fn days_weeks_and_months_follow_the_clocks() {
    let folder = Folder::new("days_follow_the_clocks");
    ten_days(&folder);
    let zone = "--tz Europe/Berlin -f csv --fn count,first";
    let days = "\
2016-10-29T00:00:00+02:00,24,70
2016-10-30T00:00:00+02:00,25,94
2016-10-31T00:00:00+01:00,24,119
2016-11-01T00:00:00+01:00,24,143
";
    let range = "--from 2016-10-29 --to 2016-11-02";
    let with_series: String = days
        .lines()
        .map(|day| format!("\"v{{site=\"\"a\"\"}}\",{day}\n"))
        .collect();
    for (more, expected) in [
        ("", format!("series,time,count,first\n{with_series}")),
        ("--group-by=", format!("time,count,first\n{days}")),
        (
            "--fill null",
            format!("series,time,count,first\n{with_series}"),
        ),
    ] {
        let line = format!("window a.tdl v* --by 1d {zone} {range} {more}");
        assert_eq!(folder.say(&line).ok(), expected, "{more}");
    }
    // The same day with another range.
    let line =
        format!("window a.tdl v* --by 1d {zone} --from 2016-10-31 --to 2016-11-01 --group-by=");
    assert_eq!(
        folder.say(&line).ok(),
        "time,count,first\n2016-10-31T00:00:00+01:00,24,119\n"
    );
    let by = |width: &str| {
        let line = format!("window a.tdl v* --by {width} {zone} --group-by=");
        folder.say(&line).ok()
    };
    // Weeks begin on Monday, or on the weekday of an origin.
    assert_eq!(
        by("1w"),
        "time,count,first\n2016-10-24T00:00:00+02:00,119,0\n2016-10-31T00:00:00+01:00,121,119\n"
    );
    assert_eq!(
        by("1w --origin 2016-01-03"),
        "time,count,first\n2016-10-23T00:00:00+02:00,94,0\n2016-10-30T00:00:00+02:00,146,94\n"
    );
    assert_eq!(
        by("1mo"),
        "time,count,first\n2016-10-01T00:00:00+02:00,143,0\n2016-11-01T00:00:00+01:00,97,143\n"
    );
    assert_eq!(
        by("1q"),
        "time,count,first\n2016-10-01T00:00:00+02:00,240,0\n"
    );
    assert_eq!(
        by("1y --origin 2000-11-01"),
        "time,count,first\n2015-11-01T00:00:00+01:00,143,0\n2016-11-01T00:00:00+01:00,97,143\n"
    );
    // A fixed offset is a zone.
    let line = "window a.tdl v* --by 1d --tz +05:30 -f csv --fn count --group-by= --to 2016-10-27";
    assert_eq!(
        folder.say(line).ok(),
        "time,count\n2016-10-26T00:00:00+05:30,19\n"
    );
}

/// Times relative to the present. The points lie hours apart, so that the test may take its time.
#[test]
fn times_relative_to_the_present_are_understood() {
    let folder = Folder::new("relative_times");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let mut csv = "time,v\n".to_owned();
    for hours in [100_u64, 50, 30, 3] {
        csv += &format!("{},{hours}\n", now - hours * 3600);
    }
    folder.write("a.csv", csv);
    folder.say("import a.tdl a.csv --time-format s").ok();
    for (range, expected) in [
        ("--from -4h", "3"),
        ("--from now-2d --to -10h", "30"),
        ("--from -40h --to now", "30,3"),
        ("--to -3d", "100"),
        ("--from yesterday-9d --to tomorrow", "100,50,30,3"),
        ("--from -1mo --to today-3d", "100"),
    ] {
        let shown = folder.say(&format!("scan a.tdl v {range} -f csv")).ok();
        let values: Vec<&str> = shown
            .lines()
            .skip(1)
            .filter_map(|line| line.rsplit(',').next())
            .collect();
        assert_eq!(values.join(","), expected, "{range}");
    }
    folder
        .say("scan a.tdl v --from -1x")
        .failed(2, &["-1x", "today+8h"]);
    folder
        .say("scan a.tdl v --from nowhere")
        .failed(2, &["nowhere"]);
}
