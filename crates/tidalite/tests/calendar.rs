//! Windows of the calendar, against a grouping of all rows by their local dates.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::query::{Fill, GroupWindow};
use tidalite::storage::MemoryStorage;
use tidalite::{
    ColumnType, Database, Direction, ErrorKind, Figure, Grid, Options, Schema, Timestamp, Unit,
    Zone,
};

const SECOND: i64 = 1_000_000_000;
/// 1990-01-01, and thirty years.
const FROM: i64 = 631_152_000 * SECOND;
const ROWS: i64 = 30 * 365 * 24;
/// Rows lie 61 minutes apart, so that they have every minute of the hour.
const STEP: i64 = 61 * 60 * SECOND;

const ALL: &str = r#"all{side="a"}"#;
const COARSE: &str = r#"all{side="b"}"#;
const M_A: &str = r#"m{s="a"}"#;
const M_B: &str = r#"m{s="b"}"#;

/// Zones with hours and half hours of daylight saving, in both hemispheres; with midnights that are skipped or come
/// twice; with dates that are skipped; and with clocks that are set back over midnight.
const ZONES: [&str; 12] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Antarctica/Troll",
    "UTC",
];

fn memory(threads: usize) -> Database {
    tidalite_testkit::watch();
    Options::new()
        .scan_threads(threads)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn time(row: i64) -> i64 {
    FROM + row * STEP
}

fn monday(date: Date) -> Date {
    let back = date.weekday().to_monday_zero_offset();
    date.checked_sub(jiff::Span::new().days(back)).unwrap()
}

/// The first date of the unit that contains a date.
type Begin = fn(Date) -> Date;

fn units() -> Vec<(Grid, Begin)> {
    vec![
        (Grid::days(1), |date| date),
        (Grid::weeks(1), monday),
        (Grid::months(1), Date::first_of_month),
        (Grid::quarters(1), |date| {
            Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).unwrap()
        }),
        (Grid::years(1), Date::first_of_year),
        // Fiscal years, from April on.
        (
            Grid::years(1).origin(Timestamp::parse("2001-04-01T12:00:00Z").unwrap()),
            |date| {
                let year = date.year() - i16::from(date.month() < 4);
                Date::new(year, 4, 1).unwrap()
            },
        ),
    ]
}

/// The local dates of the rows. They never go back: where clocks are set back over midnight, the repeated end of a day
/// belongs to the day that has begun.
fn dates_of(rules: &TimeZone) -> Vec<Date> {
    let date = |nanos: i64| {
        let at = jiff::Timestamp::from_nanosecond(nanos.into()).unwrap();
        rules.to_datetime(at).date()
    };
    let first = jiff::Timestamp::from_nanosecond(FROM.into()).unwrap();
    let mut changes = rules.following(first).peekable();
    let mut newest = Date::MIN;
    let rows = (0..ROWS).map(|row| {
        while let Some(change) = changes
            .peek()
            .map(|change| change.timestamp().as_nanosecond() as i64)
            && change <= time(row)
        {
            newest = newest.max(date(change - 1));
            changes.next();
        }
        newest = newest.max(date(time(row)));
        newest
    });
    rows.collect()
}

#[test]
fn windows_have_the_rows_of_their_local_dates() {
    for threads in [1, 2] {
        let db = memory(threads);
        let mut tx = db.begin_write().unwrap();
        let seconds = Schema::new(Unit::Seconds, [("value", ColumnType::F64)]);
        for row in 0..ROWS {
            let value = (row % 1000) as f64;
            tx.series(ALL)
                .unwrap()
                .insert(Timestamp(time(row)), value)
                .unwrap();
            if row % 7 == 0 {
                let mut coarse = tx.series_with(COARSE, &seconds).unwrap();
                coarse
                    .insert_values(Timestamp(time(row)), &[value.into()])
                    .unwrap();
            }
        }
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        for name in ZONES {
            let zone = Zone::named(name).unwrap();
            let rules = TimeZone::get(name).unwrap();
            let dates: Vec<Date> = dates_of(&rules);
            for (grid, begin) in units() {
                let grid = grid.in_zone(zone.clone());
                for (series, step) in [(ALL, 1), (COARSE, 7)] {
                    let mut expected: BTreeMap<Date, (u64, f64)> = BTreeMap::new();
                    for row in (0..ROWS).step_by(step) {
                        let all = expected.entry(begin(dates[row as usize])).or_default();
                        all.0 += 1;
                        all.1 += (row % 1000) as f64;
                    }
                    let series = snap.series(series).unwrap().unwrap();
                    let found = series.query(..).windows(&grid, "value").unwrap();
                    assert_eq!(found.len(), expected.len(), "{name} {grid:?}");
                    let unit = series.info().schema.unit;
                    for (window, (date, (count, sum))) in found.iter().zip(&expected) {
                        let all = (window.aggregate.count(), window.aggregate.sum());
                        assert_eq!(all, (*count, *sum), "{name} {date} {grid:?}");
                        let start = match unit {
                            Unit::Seconds => i128::from(window.start) * i128::from(SECOND),
                            _ => window.start.into(),
                        };
                        let start = jiff::Timestamp::from_nanosecond(start).unwrap();
                        // It shows the date, or a later one where that was skipped.
                        let shown = rules.to_datetime(start).date();
                        assert!(shown >= *date, "{name} {shown} {date}");
                        let before = start.checked_sub(jiff::Span::new().nanoseconds(1)).unwrap();
                        assert!(rules.to_datetime(before).date() < *date, "{name} {date}");
                    }
                    for pair in found.windows(2) {
                        assert!(pair[0].last < pair[1].start, "{name}");
                    }
                }
            }
        }
    }
}

/// A part of the rows, groups of series and filled gaps have the same windows.
#[test]
fn groups_and_gaps_follow_the_calendar() {
    let db = memory(1);
    let mut tx = db.begin_write().unwrap();
    for (name, day, value) in [(M_A, 1, 1.0), (M_A, 4, 4.0), (M_B, 4, 8.0)] {
        let text = format!("2024-11-0{day}T12:00:00Z");
        tx.series(name).unwrap().insert(&text[..], value).unwrap();
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let grid = Grid::days(1).in_zone(Zone::named("America/New_York").unwrap());
    let all = snap.select("m").unwrap();
    let windows = all.query(..).windows(&grid, "value").unwrap();
    let filled = GroupWindow::filled(&windows, .., &grid, Figure::Sum, Fill::Linear).unwrap();
    let filled: Vec<(String, Option<f64>)> = filled
        .map(|(start, value)| (start.to_string(), value))
        .collect();
    // Clocks were set back on November 3.
    let expected = [
        ("2024-11-01T04:00:00Z", 1.0),
        ("2024-11-02T04:00:00Z", 1.0 + 11.0 / 3.0),
        ("2024-11-03T04:00:00Z", 1.0 + 22.0 / 3.0),
        ("2024-11-04T05:00:00Z", 12.0),
    ];
    assert_eq!(filled.len(), expected.len());
    for ((start, value), (expected_start, expected)) in filled.iter().zip(expected) {
        assert_eq!(start, expected_start);
        assert!((value.unwrap() - expected).abs() < 1e-12, "{value:?}");
    }
    let series = snap.series(M_A).unwrap().unwrap();
    let latest = series
        .nearest(Timestamp(i64::MAX), Direction::Backward)
        .unwrap();
    assert!(latest.is_some());
    let part = series
        .query("2024-11-04T12:00:00Z"..)
        .windows(&grid, "value")
        .unwrap();
    assert_eq!(Unit::Nanos.text(part[0].start), "2024-11-04T05:00:00Z");
}

/// The windows of a series as pandas prints them: start, count, sum.
fn lines(db: &Database, grid: &Grid) -> String {
    let snap = db.begin_read().unwrap();
    let series = snap.series(ALL).unwrap().unwrap();
    let windows = series.query(..).windows(grid, "value").unwrap();
    let line = |window: &tidalite::Window| {
        let (count, sum) = (window.aggregate.count(), window.aggregate.sum());
        format!("{} {count} {sum}\n", window.start)
    };
    windows.iter().map(line).collect()
}

/// Equal to `resample` of pandas, of which `calendar_pandas.txt` has the checksums. Where Python with pandas is at hand,
/// it is asked again (`calendar_pandas.py`).
#[test]
fn windows_equal_those_of_pandas() {
    let db = memory(1);
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series(ALL).unwrap();
    for row in 0..ROWS {
        series
            .insert(Timestamp(time(row)), (row % 1000) as f64)
            .unwrap();
    }
    tx.commit().unwrap();
    let mut found = String::new();
    for name in ZONES {
        let zone = Zone::named(name).unwrap();
        for (rule, grid) in [
            ("D", Grid::days(1)),
            ("W-MON", Grid::weeks(1)),
            ("MS", Grid::months(1)),
            ("QS", Grid::quarters(1)),
            ("YS", Grid::years(1)),
        ] {
            // pandas 3.1 counts an hour of two days in Samoa (2010-09-26, 2011-12-31) to the days before them.
            if (name, rule) == ("Pacific/Apia", "D") {
                continue;
            }
            let lines = lines(&db, &grid.in_zone(zone.clone()));
            let sum = lines.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
            found.push_str(&format!(
                "{name} {rule} {} {sum:016x}\n",
                lines.lines().count()
            ));
        }
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let stored = std::fs::read_to_string(folder.join("calendar_pandas.txt")).unwrap();
    for (found, stored) in found.lines().zip(stored.lines()) {
        assert_eq!(found, stored);
    }
    assert_eq!(found.lines().count(), stored.lines().count());
    let python = std::env::var_os("TIDALITE_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = std::process::Command::new(python);
    match command.arg(folder.join("calendar_pandas.py")).output() {
        Ok(ran) if ran.status.success() => assert_eq!(String::from_utf8_lossy(&ran.stdout), stored),
        _ => println!("pandas: absent"),
    }
}

#[test]
fn windows_of_nothing_and_at_the_ends_of_time() {
    let db = memory(1);
    let mut tx = db.begin_write().unwrap();
    let schema = Schema::new(Unit::Seconds, [("value", ColumnType::F64)]);
    let mut series = tx.series_with("ends", &schema).unwrap();
    for time in [i64::MIN, -400_000_000_000, 0, 253_402_300_799, i64::MAX] {
        series
            .insert_values(tidalite::Steps(time), &[1.0.into()])
            .unwrap();
    }
    let series = series.view().unwrap();
    for grid in [Grid::days(1), Grid::months(1), Grid::years(100)] {
        let grid = grid.in_zone(Zone::named("Pacific/Apia").unwrap());
        let windows = series.query(..).windows(&grid, "value").unwrap();
        let rows: u64 = windows.iter().map(|window| window.aggregate.count()).sum();
        assert_eq!(rows, 5);
        assert_eq!(
            (windows[0].start, windows[windows.len() - 1].last),
            (i64::MIN, i64::MAX)
        );
    }
    for wrong in [
        Grid::days(0),
        Grid::weeks(-1),
        Grid::months(0),
        Grid::years(i64::MIN),
    ] {
        let error = series.query(..).windows(&wrong, "value").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema, "{wrong:?}");
    }
    // Windows longer than the calendar.
    let windows = series
        .query(..)
        .windows(Grid::years(i64::MAX), "value")
        .unwrap();
    assert_eq!(windows.len(), 2);
}
