//! Downsampling: stored windows against windows of a copy whose rows are all kept.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;
use tidalite::query::Interpolation;
use tidalite::retention::{Budget, Downsample, Maintained, Retention};
use tidalite::storage::MemoryStorage;
use tidalite::{
    Column, ColumnType, Database, ErrorKind, Figure, Grid, Options, Schema, Timestamp, Unit, Value,
    Zone,
};
use tidalite_testkit::rng::Rng;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

const HOURLY: [Figure; 13] = [
    Figure::Count,
    Figure::Sum,
    Figure::Mean,
    Figure::Stddev,
    Figure::Min,
    Figure::Max,
    Figure::First,
    Figure::Last,
    Figure::Percentile(95.0),
    Figure::Distinct,
    Figure::Increase,
    Figure::Integral(Interpolation::Linear),
    Figure::TimeMean(Interpolation::Previous),
];

fn memory() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn rule(grid: Grid, suffix: &str, figures: &[Figure]) -> Downsample {
    Downsample {
        grid,
        figures: figures.to_vec(),
        suffix: suffix.to_owned(),
    }
}

fn policy(pattern: &str, days: u64, rule: Downsample) -> Retention {
    Retention {
        pattern: pattern.to_owned(),
        keep: Some(Duration::from_secs(days * 86_400)),
        downsample: Some(rule),
        ..Retention::default()
    }
}

fn maintain(db: &Database, now: i64, time: Duration) -> Maintained {
    let budget = Budget {
        now: Some(Timestamp(now)),
        time,
        ..Budget::default()
    };
    db.maintain(&budget).unwrap()
}

const LONG: Duration = Duration::from_secs(1000);

/// Fills a series that is downsampled and a copy that is not, with gaps and nulls, over some days.
fn fill(db: &Database, rng: &mut Rng, schema: &Schema, days: i64) {
    let mut rows = Vec::new();
    let mut time = 0;
    let mut counter = 0_i64;
    while time < days * DAY {
        counter = if rng.one_in(500) {
            0
        } else {
            counter + rng.between(0, 9)
        };
        let null = rng.one_in(20);
        rows.push((time, (!null).then_some(counter)));
        time += match rng.below(300) {
            0 => rng.between(3_600, 100_000) * SECOND,
            _ => rng.between(1, 900) * SECOND,
        };
    }
    let mut tx = db.begin_write().unwrap();
    for name in ["m{a=\"1\"}", "copy{a=\"1\"}"] {
        let mut series = tx.series_with(name, schema).unwrap();
        for &(time, value) in &rows {
            let value = match (value, schema.columns[0].ty) {
                (None, _) => Value::Null,
                (Some(value), ColumnType::I64) => Value::from(value),
                (Some(value), _) => Value::from(value as f64 / 4.0),
            };
            series.insert_values(Timestamp(time), &[value]).unwrap();
        }
    }
    tx.commit().unwrap();
}

#[track_caller]
fn expect_near(found: &[Option<f64>], expected: &[Option<f64>], context: &str) {
    assert_eq!(found.len(), expected.len());
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        let near = match (found, expected) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * (1.0 + b.abs()),
            (a, b) => a == b,
        };
        assert!(
            near,
            "{context}, figure {place}: {found:?}, expected {expected:?}"
        );
    }
}

/// Compares the history of the series, in windows, to windows of the copy.
#[track_caller]
fn compare(db: &Database, grid: &Grid, column: &str, figures: &[Figure], context: &str) {
    let snap = db.begin_read().unwrap();
    let history = snap.history("m{a=\"1\"}").unwrap().unwrap();
    let found = history.windows(.., grid, column, figures).unwrap();
    let copy = snap.series("copy{a=\"1\"}").unwrap().unwrap();
    let expected = copy
        .query(..)
        .figures(figures)
        .windows(grid, column)
        .unwrap();
    assert_eq!(found.len(), expected.len(), "{context}");
    // Hours without rows have no stored window, and an integral over them is not known.
    let hours = copy.query(..).windows(Grid::hours(1), column).unwrap();
    let integral = figures
        .iter()
        .position(|figure| matches!(figure, Figure::Integral(_)));
    let whole = expected.len() - 1;
    for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!((found.start, found.last), (expected.start, expected.last));
        let border = history.border().unwrap_or(i64::MIN);
        let own = hours
            .iter()
            .filter(|hour| (found.start..=found.last).contains(&hour.start));
        let (stored, rows): (Vec<_>, Vec<_>) = own.partition(|hour| hour.start < border);
        // Rows answer for the time from the border on.
        let mut spans: Vec<_> = stored.iter().map(|hour| (hour.start, hour.last)).collect();
        spans.extend((!rows.is_empty()).then_some((border.max(found.start), found.last)));
        let gaps = spans.windows(2).any(|pair| pair[1].0 != pair[0].1 + 1)
            || place > 0 && spans[0].0 != found.start
            || place < whole && spans[spans.len() - 1].1 != found.last;
        let mut expected = expected.clone();
        let mut found = found.clone();
        if let Some(integral) = integral.filter(|_| gaps) {
            assert_eq!(found.aggregate[integral], None);
            (found.aggregate[integral], expected.aggregate[integral]) = (None, None);
        }
        let context = format!("{context}, window from {}", found.start);
        expect_near(&found.aggregate, &expected.aggregate, &context);
    }
}

/// The figures that can be combined from figures of narrower windows.
fn of_parts() -> Vec<Figure> {
    let of_parts = |figure: &Figure| {
        !matches!(
            figure,
            Figure::Percentile(_) | Figure::Distinct | Figure::TimeMean(_)
        )
    };
    let mut figures: Vec<Figure> = HOURLY.into_iter().filter(of_parts).collect();
    figures.push(Figure::Spread);
    figures
}

#[test]
fn histories_equal_series_whose_rows_are_kept() {
    let seed = 20_261_128;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for round in 0..8 {
        let (ty, unit) = match round % 4 {
            0 => (ColumnType::F64, Unit::Nanos),
            1 => (ColumnType::I64, Unit::Seconds),
            2 => (ColumnType::F64, Unit::Millis),
            _ => (ColumnType::I64, Unit::Micros),
        };
        let column = *rng.pick(&["value", "speed"]);
        let schema = Schema::new(unit, []).with(Column::nullable(column, ty));
        let db = memory();
        fill(&db, &mut rng, &schema, 40);
        let mut tx = db.begin_write().unwrap();
        let hourly = policy("m", 10, rule(Grid::hours(1), "1h", &HOURLY));
        tx.set_retention("hourly", &hourly).unwrap();
        if round >= 4 {
            // Windows of two widths are made at once.
            let figures = [Figure::Count, Figure::Mean, Figure::Median];
            let daily = policy("m{a=*}", 12, rule(Grid::days(1), "1d", &figures));
            tx.set_retention("daily", &daily).unwrap();
        }
        tx.commit().unwrap();
        // Time goes on in steps, and a budget of one commit each.
        let mut now = 20 * DAY;
        while now < 45 * DAY {
            now += rng.between(1, 3 * DAY);
            let done = maintain(&db, now, Duration::from_nanos(1));
            let context = format!("round {round}, now {now}");
            assert_eq!(done.rows > 0, done.windows > 0, "{context}");
            compare(&db, &Grid::hours(1), column, &HOURLY, &context);
            compare(&db, &Grid::hours(6), column, &of_parts(), &context);
            compare(&db, &Grid::days(1), column, &of_parts(), &context);
        }
        while maintain(&db, 45 * DAY, LONG).rows > 0 {}
        let snap = db.begin_read().unwrap();
        let left = snap.series("m{a=\"1\"}").unwrap().unwrap();
        let (first, _) = left.span().unwrap();
        assert!(first < left.query(..).windows(Grid::days(1), column).unwrap()[0].last);
        if round >= 4 {
            let daily = snap.series("m.1d{a=\"1\"}").unwrap().unwrap();
            let copy = snap.series("copy{a=\"1\"}").unwrap().unwrap();
            let figures = [Figure::Count, Figure::Mean, Figure::Median];
            let expected = copy
                .query(..)
                .figures(figures)
                .windows(Grid::days(1), column)
                .unwrap();
            let mut rows = Vec::new();
            daily
                .query(..)
                .for_each(|_, words| rows.push(words.to_vec()))
                .unwrap();
            assert!(rows.len() > 20);
            for (row, expected) in rows.iter().zip(&expected) {
                let columns = &daily.info().schema.columns;
                let value = |c: usize| columns[c].f64(row[c]);
                expect_near(
                    &[value(0), value(1), value(2)],
                    &expected.aggregate,
                    "daily",
                );
            }
        }
        drop(snap);
        assert!(db.check().unwrap().is_clean());
    }
}

#[test]
fn days_of_a_zone_and_large_series_are_replaced_in_steps() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let berlin = Zone::named("+01:00").unwrap();
    let grid = Grid::days(1).in_zone(berlin);
    let figures = [Figure::Count, Figure::Mean];
    tx.set_retention("days", &policy("", 1, rule(grid.clone(), "1d", &figures)))
        .unwrap();
    let rows = 2_500_000_i64;
    let times: Vec<i64> = (0..rows).map(|second| second * SECOND).collect();
    let flags = vec![0; times.len()];
    let values: Vec<u64> = (0..rows).map(|second| (second as f64).to_bits()).collect();
    tx.series("m")
        .unwrap()
        .append_rows(&times, &[&flags, &values])
        .unwrap();
    tx.commit().unwrap();
    let preview = |now: i64| {
        let budget = Budget {
            now: Some(Timestamp(now)),
            ..Budget::default()
        };
        db.preview_maintenance(&budget).unwrap().rows
    };
    let now = rows * SECOND;
    let expected = preview(now);
    let mut commits = 0;
    let mut removed = 0;
    loop {
        let done = maintain(&db, now, Duration::from_nanos(1));
        commits += done.commits;
        removed += done.rows;
        assert!(done.rows <= 1 << 20);
        // No row is counted twice or lost.
        let snap = db.begin_read().unwrap();
        let history = snap.history("m").unwrap().unwrap();
        let days = history.windows(.., &grid, "value", &figures).unwrap();
        let count: f64 = days.iter().filter_map(|day| day.aggregate[0]).sum();
        assert_eq!(count, rows as f64);
        assert_eq!(days[0].aggregate, [Some(82_800.0), Some(41_399.5)]);
        if !done.more {
            break;
        }
    }
    // The last row before the border stays.
    assert_eq!(removed + 1, expected);
    assert_eq!(commits, 3);
    assert_eq!(preview(now), 0);
    // The windows themselves are not sources, although the pattern selects all series.
    let snap = db.begin_read().unwrap();
    assert!(snap.series("m.1d.1d").unwrap().is_none());
    assert_eq!(
        snap.series("m.1d")
            .unwrap()
            .unwrap()
            .info()
            .schema
            .columns
            .len(),
        2
    );
}

#[test]
fn late_rows_are_added_to_their_windows() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let figures = [
        Figure::Count,
        Figure::Mean,
        Figure::Max,
        Figure::Median,
        Figure::Sum,
    ];
    tx.set_retention("h", &policy("m", 1, rule(Grid::hours(1), "1h", &figures)))
        .unwrap();
    for minute in 0..3 * 1440_i64 {
        tx.series("m")
            .unwrap()
            .insert(Timestamp(minute * 60 * SECOND), 1.0)
            .unwrap();
    }
    tx.commit().unwrap();
    assert_eq!(maintain(&db, 3 * DAY, LONG).windows, 48);
    // Before the last replaced row, between it and the border, and in a window of its own.
    let mut tx = db.begin_write().unwrap();
    let mut m = tx.series("m").unwrap();
    m.insert(Timestamp(30 * SECOND), 61.0).unwrap();
    m.insert(Timestamp(2 * DAY - 30 * SECOND), 3.0).unwrap();
    m.insert(Timestamp(-DAY), 9.0).unwrap();
    tx.commit().unwrap();
    for _ in 0..2 {
        maintain(&db, 3 * DAY, LONG);
        let snap = db.begin_read().unwrap();
        let history = snap.history("m").unwrap().unwrap();
        let hours = history
            .windows(.., &Grid::hours(1), "value", &figures)
            .unwrap();
        assert_eq!(hours.len(), 73);
        let row = |at: usize| hours[at].aggregate.clone();
        assert_eq!(row(0), [1.0, 9.0, 9.0, 9.0, 9.0].map(Some));
        assert_eq!(row(1), [61.0, 121.0 / 61.0, 61.0, 1.0, 121.0].map(Some));
        let found = row(48);
        let mean = 63.0 / 61.0;
        expect_near(
            &found,
            &[61.0, mean, 3.0, 1.0, 63.0].map(Some),
            "last window",
        );
        assert_eq!(row(49)[0], Some(60.0));
    }
    assert_eq!(maintain(&db, 3 * DAY, LONG).rows, 0);
}

#[test]
fn figures_that_do_not_follow_are_refused() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let figures = [Figure::Mean, Figure::Median];
    tx.set_retention("h", &policy("m", 1, rule(Grid::hours(1), "1h", &figures)))
        .unwrap();
    for minute in 0..3 * 1440_i64 {
        tx.series("m")
            .unwrap()
            .insert(Timestamp(minute * 60 * SECOND), 1.0)
            .unwrap();
    }
    tx.commit().unwrap();
    maintain(&db, 3 * DAY, LONG);
    let snap = db.begin_read().unwrap();
    let history = snap.history("m").unwrap().unwrap();
    let ask = |grid: Grid, figure| history.windows(.., &grid, "value", &[figure]);
    assert!(ask(Grid::hours(1), Figure::Median).is_ok());
    for (grid, figure, text) in [
        (Grid::days(1), Figure::Median, "median does not follow"),
        // The count is missing.
        (
            Grid::days(1),
            Figure::Mean,
            "mean does not follow from the stored figures (mean, median)",
        ),
        (Grid::minutes(15), Figure::Mean, "cannot be divided"),
    ] {
        let error = ask(grid, figure).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema);
        assert!(error.to_string().contains(text), "{error}");
    }
    // Behind the border all figures are there.
    let days = history.windows("1970-01-03".., &Grid::days(1), "value", &[Figure::Stddev]);
    assert_eq!(days.unwrap()[0].aggregate, [Some(0.0)]);
    assert!(snap.history("nothing").unwrap().is_none());
}

#[test]
fn rules_are_checked_and_kept() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let good = rule(Grid::hours(1), "1h", &[Figure::Mean]);
    let set = |tx: &mut tidalite::WriteTxn, rule: Downsample| {
        tx.set_retention("p", &policy("m", 1, rule))
            .map_err(|error| error.to_string())
    };
    for (rule, text) in [
        (
            Downsample {
                figures: Vec::new(),
                ..good.clone()
            },
            "1 to 16",
        ),
        (
            Downsample {
                suffix: String::new(),
                ..good.clone()
            },
            "suffix",
        ),
        (
            Downsample {
                suffix: "a.b".to_owned(),
                ..good.clone()
            },
            "suffix",
        ),
        (
            Downsample {
                figures: vec![Figure::Mean, Figure::Mean],
                ..good.clone()
            },
            "twice",
        ),
        (
            Downsample {
                figures: vec![Figure::Percentile(200.0)],
                ..good.clone()
            },
            "no figure",
        ),
        (
            Downsample {
                grid: Grid::days(1).in_zone(Zone::named("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()),
                ..good.clone()
            },
            "no name",
        ),
    ] {
        let error = set(&mut tx, rule).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
    let without_keep = Retention {
        bytes: Some(1000),
        downsample: Some(good.clone()),
        ..Retention::default()
    };
    let error = tx.set_retention("p", &without_keep).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidName);
    let grids = [
        Grid::minutes(15),
        Grid::weeks(2),
        Grid::quarters(1),
        Grid::days(3).in_zone(Zone::named("-03:30").unwrap()),
        Grid::years(1).origin(Timestamp::parse("2013-04-01").unwrap()),
    ];
    for grid in grids {
        let figures = [
            Figure::Percentile(99.5),
            Figure::Integral(Interpolation::Previous),
        ];
        let kept = policy("m{a!=\"x\"}", 3, rule(grid, "w", &figures));
        tx.set_retention("p", &kept).unwrap();
        tx.commit().unwrap();
        let stored = db.begin_read().unwrap().retentions().unwrap();
        assert_eq!(stored, [("p".to_owned(), kept)]);
        tx = db.begin_write().unwrap();
    }
    // Windows without common ends.
    tx.remove_retention("p").unwrap();
    for (name, zone) in [("a", "+01:00"), ("b", "-01:30")] {
        let grid = Grid::days(1).in_zone(Zone::named(zone).unwrap());
        tx.set_retention(name, &policy("m", 1, rule(grid, name, &[Figure::Mean])))
            .unwrap();
    }
    for hour in 0..2000 * 24_i64 {
        tx.series("m")
            .unwrap()
            .insert(Timestamp(hour * 3600 * SECOND), 1.0)
            .unwrap();
    }
    tx.commit().unwrap();
    let budget = Budget {
        now: Some(Timestamp(2000 * DAY)),
        ..Budget::default()
    };
    let error = db.maintain(&budget).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.to_string().contains("no common ends"), "{error}");
}

#[test]
fn stored_windows_are_not_cut_and_days_come_from_days() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let hours = [Figure::Count, Figure::Median];
    tx.set_retention("h", &policy("m", 1, rule(Grid::hours(1), "1h", &hours)))
        .unwrap();
    let days = [Figure::Count, Figure::Percentile(50.0), Figure::Distinct];
    tx.set_retention("d", &policy("m", 1, rule(Grid::days(1), "1d", &days)))
        .unwrap();
    for minute in 0..5 * 1440_i64 {
        let time = Timestamp(minute * 60 * SECOND);
        tx.series("m").unwrap().insert(time, minute as f64).unwrap();
    }
    // A series of texts that the pattern of another policy selects stays as it is.
    tx.set_retention(
        "all",
        &policy("text*", 1, rule(Grid::hours(1), "1h", &hours)),
    )
    .unwrap();
    let texts = Schema::new(Unit::Seconds, [("t", ColumnType::String)]);
    tx.series_with("text", &texts)
        .unwrap()
        .insert_values(Timestamp(0), &[Value::from("kept")])
        .unwrap();
    tx.commit().unwrap();
    maintain(&db, 5 * DAY, LONG);
    let snap = db.begin_read().unwrap();
    assert_eq!(
        snap.series("text")
            .unwrap()
            .unwrap()
            .query(..)
            .count()
            .unwrap(),
        1
    );
    let history = snap.history("m").unwrap().unwrap();
    let figures = [Figure::Median, Figure::Distinct];
    let found = history
        .windows(.., &Grid::days(1), "value", &figures)
        .unwrap();
    assert_eq!(found.len(), 5);
    assert_eq!(found[1].aggregate, [Some(1440.0 + 719.5), Some(1440.0)]);
    // Hours are there as well, and a median of two hours is refused.
    let hour = history
        .windows(.., &Grid::hours(1), "value", &[Figure::Median])
        .unwrap();
    assert_eq!(hour[3].aggregate, [Some(209.5)]);
    assert!(
        history
            .windows(.., &Grid::hours(2), "value", &[Figure::Median])
            .is_err()
    );
    // An interval that cuts a stored hour.
    let cut = "1970-01-02T03:30".."1970-01-02T06:00";
    let error = history
        .windows(cut, &Grid::hours(1), "value", &[Figure::Count])
        .unwrap_err();
    assert!(error.to_string().contains("cannot be cut"), "{error}");
    let second = |text: &str| Timestamp::parse(text).unwrap().0;
    let (from, to) = (second("1970-01-02T03:30"), second("1970-01-02T06:20"));
    let uncut = history.uncut((from, to)).unwrap();
    assert_eq!(
        uncut,
        (second("1970-01-02T04:00"), second("1970-01-02T06:00") - 1)
    );
    let (from, to) = (Timestamp(uncut.0), Timestamp(uncut.1));
    let hours = history
        .windows(from..=to, &Grid::hours(1), "value", &[Figure::Count])
        .unwrap();
    assert_eq!(hours.len(), 2);
}

/// A window with more rows than one commit replaces, behind a border; then a longer time to keep, and late rows.
#[test]
fn borders_only_move_forward() {
    let db = memory();
    let figures = [Figure::Count, Figure::Sum];
    let keep = |days: u64| {
        let mut tx = db.begin_write().unwrap();
        let hourly = policy("m", days, rule(Grid::hours(12), "12h", &figures));
        tx.set_retention("h", &hourly).unwrap();
        tx.commit().unwrap();
    };
    keep(1);
    let step = DAY / 2 / 1_100_000;
    let rows = 4 * 1_100_000_i64;
    let times: Vec<i64> = (0..rows).map(|row| row * step).collect();
    let flags = vec![0; times.len()];
    let ones = vec![1.0_f64.to_bits(); times.len()];
    let mut tx = db.begin_write().unwrap();
    let mut m = tx.series("m").unwrap();
    m.append_rows(&times, &[&flags, &ones]).unwrap();
    tx.commit().unwrap();
    let now = times[times.len() - 1] + DAY;
    let mut late = 0;
    let expect_all = |late: i64| {
        let snap = db.begin_read().unwrap();
        let history = snap.history("m").unwrap().unwrap();
        let windows = history
            .windows(.., &Grid::hours(12), "value", &figures)
            .unwrap();
        for place in 0..2 {
            let sum: f64 = windows
                .iter()
                .filter_map(|window| window.aggregate[place])
                .sum();
            assert_eq!(sum, (rows + late) as f64);
        }
    };
    let mut calls = 0;
    while maintain(&db, now, Duration::from_nanos(1)).more {
        expect_all(late);
        calls += 1;
        assert!(calls < 10, "each call replaces a window");
    }
    let border = |db: &Database| {
        let snap = db.begin_read().unwrap();
        snap.history("m").unwrap().unwrap().border().unwrap()
    };
    let first = border(&db);
    for days in [2, 1] {
        keep(days);
        let mut tx = db.begin_write().unwrap();
        for time in [DAY / 4 + late, first - 7 - late] {
            tx.series("m")
                .unwrap()
                .insert(Timestamp(time), 1.0)
                .unwrap();
        }
        tx.commit().unwrap();
        late += 2;
        for _ in 0..2 {
            maintain(&db, now, LONG);
            expect_all(late);
        }
        assert_eq!(border(&db), first);
    }
    assert_eq!(maintain(&db, now, LONG).rows, 0);
}
