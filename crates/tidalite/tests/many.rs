//! Queries of many series at once, and special queries of one series, compared with brute force over plain rows.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::aged;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::query::{CandleSize, Fill, GroupWindow, Join};
use tidalite::storage::MemoryStorage;
use tidalite::{
    Aggregate, ColumnType, Database, Direction, ErrorKind, Figure, Grid, Options, Schema, Steps,
    Timestamp, Unit,
};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

const SECOND: i64 = 1_000_000_000;
const UNITS: [Unit; 4] = [Unit::Nanos, Unit::Millis, Unit::Seconds, Unit::Ticks];

/// The expected content of a series; its rows map nanoseconds to values.
struct Plain {
    host: String,
    site: String,
    unit: Unit,
    rows: BTreeMap<i64, f64>,
}

struct World {
    db: Database,
    series: Vec<Plain>,
}

/// Creates series in different units. Times are whole seconds and, if the unit allows it, half seconds. Some rows are
/// in leaves, some in the delta, and some are deleted again.
fn world(rng: &mut Rng) -> World {
    let options = Options::new().page_size(1024);
    let db = options
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .expect("a fresh file");
    let mut series = Vec::new();
    for i in 0..rng.between(1, 7) {
        series.push(Plain {
            host: format!("h{}", i % 4),
            site: ["north", "south"][rng.index(2)].to_owned(),
            unit: *rng.pick(&UNITS),
            rows: BTreeMap::new(),
        });
    }
    for round in 0..rng.between(1, 6) {
        let mut tx = db.begin_write().expect("the only writer");
        for (i, plain) in series.iter_mut().enumerate() {
            let name = format!(
                r#"load{{host="{}",n="{i}",site="{}"}}"#,
                plain.host, plain.site
            );
            let schema = Schema::new(plain.unit, [("value", ColumnType::F64)]);
            let mut writer = tx.series_with(&name, &schema).expect("a series");
            let rows = if round == 0 { 3000 } else { 40 };
            for _ in 0..rng.below(rows) {
                let half = plain.unit != Unit::Seconds && rng.one_in(3);
                let t = rng.between(-2000, 4000) * SECOND + i64::from(half) * SECOND / 2;
                let value = rng.between(-50, 50) as f64 / 4.0;
                let raw = Timestamp(t).in_raw(plain.unit);
                writer
                    .insert_row(Steps(raw), &[value.to_bits()])
                    .expect("a row");
                plain.rows.insert(t, value);
            }
            if rng.one_in(3) {
                let from = rng.between(-2000, 4000);
                let to = from + rng.between(0, 300);
                let raw = |s: i64| Timestamp(s * SECOND).in_raw(plain.unit);
                writer
                    .delete(Steps(raw(from))..Steps(raw(to)))
                    .expect("a delete");
                plain
                    .rows
                    .retain(|&t, _| t < from * SECOND || t >= to * SECOND);
            }
        }
        tx.commit().expect("a commit");
        if rng.one_in(4) {
            let site = *rng.pick(&["north", "south"]);
            let (now, keep) = (rng.between(0, 4000), rng.between(500, 3000));
            let pattern = format!(r#"load{{site="{site}"}}"#);
            let cut = aged::cut(&db, &pattern, now * SECOND, keep * SECOND);
            let mut removed = 0;
            for plain in series.iter_mut().filter(|plain| plain.site == site) {
                let before = plain.rows.len();
                plain.rows.retain(|&t, _| t >= (now - keep) * SECOND);
                removed += before - plain.rows.len();
            }
            assert_eq!(cut, removed as u64, "rows that a policy cuts");
        }
    }
    World { db, series }
}

/// Compares an aggregate with brute force. `rows` are in the order of the selection, series by series.
fn assert_near(found: &Aggregate, rows: &[(i64, f64)], what: &str) {
    assert_eq!(found.count(), rows.len() as u64, "{what}: count");
    let sum: f64 = rows.iter().map(|row| row.1).sum();
    assert!((found.sum() - sum).abs() < 1e-6, "{what}: sum");
    let times = rows.iter().map(|row| row.0);
    assert_eq!(
        found.times(),
        times.clone().min().zip(times.max()),
        "{what}: times"
    );
    let extreme = |sign: f64| {
        let best = rows
            .iter()
            .map(|row| sign * row.1)
            .fold(f64::INFINITY, f64::min);
        rows.iter()
            .filter(|row| sign * row.1 == best)
            .map(|row| row.0)
            .min()
            .map(|t| (sign * best, t))
    };
    assert_eq!(found.min(), extreme(1.0), "{what}: min");
    assert_eq!(found.max(), extreme(-1.0), "{what}: max");
    // Among rows of one time, the rows of the selection's first series come first, as in the merged rows.
    let at = |t: i64| rows.iter().filter(move |row| row.0 == t).map(|row| row.1);
    let (first, last) = found.times().unzip();
    assert_eq!(
        found.first(),
        first.and_then(|t| at(t).next()),
        "{what}: first"
    );
    assert_eq!(
        found.last(),
        last.and_then(|t| at(t).next_back()),
        "{what}: last"
    );
}

#[test]
fn groups_windows_merges_and_joins_equal_brute_force() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let world = world(&mut rng);
        let snap = world.db.begin_read().unwrap();
        let chosen = snap.select("load").unwrap();
        assert_eq!(chosen.len(), world.series.len());
        for _ in 0..4 {
            let from = rng.between(-2500, 4500) * SECOND + rng.between(-2, 2);
            let to = match rng.one_in(4) {
                true => from + rng.between(1, SECOND),
                false => from + rng.between(-10, 3000) * SECOND,
            };
            windows(&mut rng, &world, &chosen, from, to);
            merged(&world, &chosen, from, to);
            joined(&mut rng, &world, &chosen, from, to);
        }
        let latest = chosen.latest().unwrap();
        for ((plain, series), row) in world
            .series
            .iter()
            .zip(chosen.series().unwrap())
            .zip(latest)
        {
            let found = row.map(|row| (plain.unit.timestamp(row.time).unwrap().0, row.f64(0)));
            let expected = plain.rows.last_key_value().map(|(t, v)| (*t, *v));
            assert_eq!(found, expected);
            pieces(&mut rng, plain, series);
        }
    }
}

fn between(plain: &Plain, from: i64, to: i64) -> Vec<(i64, f64)> {
    if from >= to {
        return Vec::new();
    }
    plain.rows.range(from..to).map(|(t, v)| (*t, *v)).collect()
}

/// Windows of equal width.
#[derive(Clone, Copy)]
struct Even {
    width: i64,
    origin: i64,
}

impl Even {
    fn grid(self) -> Grid {
        Grid::nanos(self.width).origin(Timestamp(self.origin))
    }
}

fn windows(rng: &mut Rng, world: &World, chosen: &tidalite::Selection<'_>, from: i64, to: i64) {
    let even = Even {
        width: rng.between(1, 900) * SECOND,
        origin: rng.between(-5000, 5000) * SECOND,
    };
    let grid = even.grid();
    let times = Timestamp(from)..Timestamp(to);
    let query = chosen.query(times.clone());
    let tags = [&["site"][..], &["host"], &["host", "site"], &[]];
    let tags = *rng.pick(&tags);
    let mut seen = 0;
    for group in query.clone().group_by(tags) {
        let mut rows = Vec::new();
        for plain in &world.series {
            let own = [("host", &plain.host), ("site", &plain.site)];
            let belongs = group
                .tags()
                .iter()
                .all(|(key, value)| own.iter().any(|(k, v)| k == key && *v == value));
            if belongs {
                rows.extend(between(plain, from, to));
                seen += 1;
            }
        }
        let whole = group.aggregate("value").unwrap().unwrap();
        assert_near(&whole, &rows, "aggregate");
        let mut expected: BTreeMap<i64, Vec<(i64, f64)>> = BTreeMap::new();
        for (t, v) in rows {
            let k = (t - even.origin).div_euclid(even.width);
            expected.entry(k).or_default().push((t, v));
        }
        let found = group.windows(&grid, "value").unwrap();
        let starts: Vec<i64> = found.iter().map(|window| window.start.0).collect();
        let start = |k: &i64| even.origin + k * even.width;
        assert_eq!(starts, expected.keys().map(start).collect::<Vec<_>>());
        for (window, rows) in found.iter().zip(expected.values()) {
            assert_near(&window.aggregate, rows, "window");
        }
        filled(&found, &times, even);
        figures(&group, &grid, &whole, &found);
    }
    assert_eq!(seen, world.series.len(), "each series in one group");
    rows_beside(rng, world, chosen, &times, &grid);
    let all = query.without(["host", "n"]);
    let sites: BTreeSet<&str> = world.series.iter().map(|plain| &plain.site[..]).collect();
    assert_eq!(all.len(), sites.len(), "a group a site");
}

/// Checks that each cell of a row of windows equals the window of a query of that metric alone.
fn rows_beside(
    rng: &mut Rng,
    world: &World,
    chosen: &tidalite::Selection<'_>,
    times: &std::ops::Range<Timestamp>,
    grid: &Grid,
) {
    assert_eq!(chosen.metrics(), ["load"]);
    // One metric is requested twice, with a metric that does not exist between the two.
    for group in chosen.query(times.clone()).group_by(["site"]) {
        let asked = [("load", "value"), ("none", "value"), ("load", "value")];
        let rows = group.window_rows(grid, &asked).unwrap();
        let windows = group.windows(grid, "value").unwrap();
        assert_eq!(rows.len(), windows.len());
        for (row, window) in rows.iter().zip(&windows) {
            assert_eq!(row.start, window.start);
            let one = Some(window.aggregate.clone());
            assert_eq!(row.cells, [one.clone(), None, one]);
        }
        let means = group.clone().figures(Figure::Mean);
        let rows = means.window_rows(grid, &asked[..1]).unwrap();
        let means = means.windows(grid, "value").unwrap();
        for (row, mean) in rows.iter().zip(&means) {
            assert_eq!(row.cells, [Some(mean.aggregate)]);
        }
    }
    let wrong = chosen.query(..).window_rows(grid, &[("load", "no")]);
    assert!(wrong.is_err());
    // A pattern with a list of values, or with a set of tags, selects the same series as single patterns together.
    let sites = ["north", "south"];
    let site = *rng.pick(&sites);
    let count = |keep: &dyn Fn(&Plain) -> bool| world.series.iter().filter(|one| keep(one)).count();
    for (pattern, expected) in [
        (
            r#"load{site=["north","south"]}"#.to_owned(),
            world.series.len(),
        ),
        (
            format!(r#"load{{site="{site}",host=["h0","h2"]}}"#),
            count(&|one| one.site == site && ["h0", "h2"].contains(&&one.host[..])),
        ),
        (
            format!(r#"{{site="{site}"}}{{host="h1"}}"#),
            count(&|one| one.site == site || one.host == "h1"),
        ),
    ] {
        let found = world.db.begin_read().unwrap().list(&pattern).unwrap();
        assert_eq!(found.len(), expected, "{pattern}");
    }
    let names = world.db.begin_read().unwrap().names("load").unwrap();
    for (site, series) in &names.tags["site"] {
        assert_eq!(*series as usize, count(&|one| one.site == *site));
    }
    for (unit, series) in &names.units {
        assert_eq!(*series as usize, count(&|one| one.unit == *unit));
    }
    assert_eq!(
        names.units.values().sum::<u64>() as usize,
        world.series.len()
    );
    // Completion returns exactly the tag values with this prefix.
    for prefix in ["", "h", "h1", "h2x", "n", "north", "s", "t"] {
        for (key, own) in [("host", true), ("site", false)] {
            let value = |one: &Plain| match own {
                true => one.host.clone(),
                false => one.site.clone(),
            };
            let values: BTreeSet<String> = world.series.iter().map(value).collect();
            let expected: Vec<(String, u64)> = values
                .into_iter()
                .filter(|own| own.starts_with(prefix))
                .map(|own| {
                    let series = count(&|one| value(one) == own) as u64;
                    (own, series)
                })
                .collect();
            let found: Vec<(String, u64)> =
                tidalite::query::Names::beginning(&names.tags[key], prefix)
                    .map(|(value, series)| (value.to_owned(), *series))
                    .collect();
            assert_eq!(found, expected, "{key} {prefix:?}");
        }
    }
    for (prefix, series) in [("lo", world.series.len() as u64), ("los", 0), ("oad", 0)] {
        let begun = tidalite::query::Names::beginning(&names.metrics, prefix);
        let told: u64 = begun.map(|(_, series)| series).sum();
        assert_eq!(told, series, "{prefix}");
    }
    // Selects by a prefix or another glob of the metric, also together with a tag.
    for (pattern, expected) in [
        ("lo*", world.series.len()),
        ("l?ad", world.series.len()),
        ("*oad", world.series.len()),
        ("los*", 0),
        ("oad*", 0),
        (r#"lo*{site="north"}"#, count(&|one| one.site == "north")),
        (r#"lo*{host="h1"}"#, count(&|one| one.host == "h1")),
    ] {
        let found = world.db.begin_read().unwrap().list(pattern).unwrap();
        assert_eq!(found.len(), expected, "{pattern}");
    }
}

/// A row of windows has a cell for every metric, even if only one of the metrics has rows in the window. The expected
/// rows are written by hand.
#[test]
fn a_row_has_a_cell_for_every_metric() {
    let db = Options::new()
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    for (name, minute, value) in [
        (r#"cpu{host="a"}"#, 1, 2.0),
        (r#"cpu{host="a"}"#, 3, 4.0),
        (r#"cpu{host="b"}"#, 61, 8.0),
        (r#"memory{host="a"}"#, 130, 16.0),
        (r#"memory{host="a"}"#, 2, 32.0),
    ] {
        let mut series = tx.series(name).unwrap();
        series
            .insert(Timestamp(minute * 60 * SECOND), value)
            .unwrap();
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let all = snap.select("").unwrap();
    assert_eq!(all.metrics(), ["cpu", "memory"]);
    let asked = [("memory", "value"), ("cpu", "value")];
    let rows_of =
        |group: &tidalite::query::SelectionQuery<'_, '_>| -> Vec<(i64, Vec<Option<f64>>)> {
            let sums = group.clone().figures(Figure::Sum);
            let rows = sums.window_rows(&Grid::hours(1), &asked).unwrap();
            let rows = rows.into_iter();
            rows.map(|row| {
                let cells = row.cells.into_iter().map(Option::flatten);
                (row.start.0 / (3600 * SECOND), cells.collect())
            })
            .collect()
        };
    let hosts = all.query(..).group_by(["host"]);
    let a = [
        (0, vec![Some(32.0), Some(6.0)]),
        (2, vec![Some(16.0), None]),
    ];
    assert_eq!(rows_of(&hosts[0]), a);
    assert_eq!(rows_of(&hosts[1]), [(1, vec![None, Some(8.0)])]);
    let both = [a[0].clone(), (1, vec![None, Some(8.0)]), a[1].clone()];
    assert_eq!(rows_of(&all.query(..)), both);
}

/// Checks that queries of a group for selected figures return the same values as whole aggregates, bit by bit.
fn figures(
    group: &tidalite::query::SelectionQuery<'_, '_>,
    grid: &Grid,
    whole: &Aggregate,
    windows: &[GroupWindow],
) {
    let bits = |value: Option<f64>| value.map(f64::to_bits);
    for wanted in [
        [Figure::Mean, Figure::Count],
        [Figure::Min, Figure::Max],
        [Figure::First, Figure::Last],
        [Figure::Stddev, Figure::Sum],
    ] {
        let of = |all: &Aggregate| wanted.map(|one| bits(one.of(all)));
        let some = group.clone().figures(wanted);
        let found = some.aggregate("value").unwrap().unwrap();
        assert_eq!(found.map(bits), of(whole), "{wanted:?}");
        let found = some.windows(grid, "value").unwrap();
        assert_eq!(found.len(), windows.len());
        for (found, window) in found.iter().zip(windows) {
            assert_eq!(found.start, window.start);
            let own = found.aggregate.map(bits);
            assert_eq!(own, of(&window.aggregate), "{wanted:?}");
        }
    }
}

fn filled(found: &[GroupWindow], times: &std::ops::Range<Timestamp>, even: Even) {
    let grid = &even.grid();
    let value = |t: i64| {
        let at = found.iter().find(|window| window.start.0 == t);
        at.and_then(|window| window.aggregate.mean())
    };
    let first = (times.start.0 - even.origin).div_euclid(even.width);
    let last = (times.end.0 - 1 - even.origin).div_euclid(even.width);
    let starts: Vec<i64> = (first..=last)
        .map(|k| even.origin + k * even.width)
        .collect();
    let fills = [
        Fill::None,
        Fill::Null,
        Fill::Previous,
        Fill::Linear,
        Fill::Value(7.0),
    ];
    for fill in fills {
        let all = GroupWindow::filled(found, times.clone(), grid, Figure::Mean, fill).unwrap();
        let all: Vec<(Timestamp, Option<f64>)> = all.collect();
        let known = |t: i64| value(t).map(|v| (t, v));
        let expected: Vec<(Timestamp, Option<f64>)> = starts
            .iter()
            .filter_map(|&t| {
                let before = starts
                    .iter()
                    .rev()
                    .filter(|&&s| s < t)
                    .find_map(|&s| known(s));
                let behind = starts.iter().filter(|&&s| s > t).find_map(|&s| known(s));
                let gap = match fill {
                    Fill::None => return value(t).map(|v| (Timestamp(t), Some(v))),
                    Fill::Null => None,
                    Fill::Previous => before.map(|(_, v)| v),
                    Fill::Value(v) => Some(v),
                    Fill::Linear => before.zip(behind).map(|((s, a), (e, b))| {
                        let part = ((t - s) / even.width) as f64 / ((e - s) / even.width) as f64;
                        a + (b - a) * part
                    }),
                };
                Some((Timestamp(t), value(t).or(gap)))
            })
            .collect();
        assert_eq!(all, expected, "{fill:?}");
    }
}

fn merged(world: &World, chosen: &tidalite::Selection<'_>, from: i64, to: i64) {
    let mut expected: Vec<(i64, usize, f64)> = Vec::new();
    for (i, plain) in world.series.iter().enumerate() {
        let own = between(plain, from, to);
        expected.extend(own.into_iter().map(|(t, v)| (t, i, v)));
    }
    expected.sort_by_key(|row| (row.0, row.1));
    let mut rows = chosen.query(Timestamp(from)..Timestamp(to)).rows().unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        found.push((row.time.0, row.series, f64::from_bits(row.words[0])));
    }
    assert_eq!(found, expected);
    let mut rows = chosen
        .query(Timestamp(from)..Timestamp(to))
        .reverse()
        .rows()
        .unwrap();
    expected.reverse();
    found.clear();
    while let Some(row) = rows.next().unwrap() {
        found.push((row.time.0, row.series, f64::from_bits(row.words[0])));
    }
    assert_eq!(found, expected, "backward");
    // Reads only the rows with values in a range, in reverse order.
    let query = chosen.query(Timestamp(from)..Timestamp(to));
    let mut rows = query.filter("value", -3.0..3.0).reverse().rows().unwrap();
    expected.retain(|row| (-3.0..3.0).contains(&row.2));
    found.clear();
    while let Some(row) = rows.next().unwrap() {
        found.push((row.time.0, row.series, f64::from_bits(row.words[0])));
    }
    assert_eq!(found, expected, "filtered");
}

fn joined(rng: &mut Rng, world: &World, chosen: &tidalite::Selection<'_>, from: i64, to: i64) {
    let tolerance = rng.between(0, 50) * SECOND;
    let tolerance = if rng.one_in(4) { i64::MAX } else { tolerance };
    for join in [Join::Inner, Join::Outer, Join::AsOf { tolerance }] {
        let own: Vec<Vec<(i64, f64)>> = world
            .series
            .iter()
            .map(|plain| between(plain, from, to))
            .collect();
        let mut times: BTreeSet<i64> = own.iter().flatten().map(|row| row.0).collect();
        if matches!(join, Join::AsOf { .. }) {
            times = own[0].iter().map(|row| row.0).collect();
        }
        let mut expected = Vec::new();
        for t in times {
            let at = |plain: &Plain| match join {
                Join::AsOf { tolerance } => {
                    let (at, value) = plain.rows.range(..=t).next_back()?;
                    (t - at <= tolerance).then_some((*at, *value))
                }
                Join::Inner | Join::Outer => plain.rows.get(&t).map(|value| (t, *value)),
            };
            let row: Vec<Option<(i64, f64)>> = world.series.iter().map(at).collect();
            if join != Join::Inner || row.iter().all(Option::is_some) {
                expected.push((t, row));
            }
        }
        let times = Timestamp(from)..Timestamp(to);
        let forward = chosen.query(times.clone()).join(join).unwrap();
        assert_eq!(told(forward, world.series.len()), expected, "{join:?}");
        let backward = chosen.query(times).reverse().join(join).unwrap();
        expected.reverse();
        let found = told(backward, world.series.len());
        assert_eq!(found, expected, "{join:?} backward");
    }
}

type Cells = Vec<Option<(i64, f64)>>;

fn told(mut rows: tidalite::query::Joined<'_>, series: usize) -> Vec<(i64, Cells)> {
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let cell = |i: usize| {
            let value = f64::from_bits(row.words(i)?[0]);
            Some((row.time_of(i)?.0, value))
        };
        let cells = (0..series).map(cell).collect();
        found.push((row.time.0, cells));
    }
    found
}

/// Checks candles, filters and the nearest row of one series.
fn pieces(rng: &mut Rng, plain: &Plain, series: &tidalite::Series<'_>) {
    let raw = |t: i64| Timestamp(t).in_raw(plain.unit);
    let candles = series.query(..).candles(CandleSize::Level(0), 0).unwrap();
    let rows: u64 = candles.iter().map(|candle| candle.aggregate.count()).sum();
    assert_eq!(rows, plain.rows.len() as u64);
    assert!(candles.is_sorted_by(|a, b| a.last_time < b.first_time));

    let (low, high) = (
        rng.between(-60, 60) as f64 / 4.0,
        rng.between(-60, 60) as f64 / 4.0,
    );
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = Vec::new();
        let take = |vector: &tidalite::Vector<'_>| {
            let part: Vec<i64> = vector.times().to_vec();
            found.push(part);
        };
        let query = series.query(..).filter(0, low..high);
        let query = match direction {
            Direction::Forward => query,
            Direction::Backward => query.reverse(),
        };
        query.columns::<usize>([]).for_each_vector(take).unwrap();
        if direction == Direction::Backward {
            found.reverse();
        }
        let expected: Vec<i64> = plain
            .rows
            .iter()
            .filter(|(_, v)| low <= **v && **v < high)
            .map(|(t, _)| raw(*t))
            .collect();
        assert_eq!(found.concat(), expected);
    }
    for _ in 0..5 {
        let t = rng.between(-2500, 4500) * SECOND;
        let time = |row: Option<tidalite::Row>| row.map(|row| row.time);
        let found = time(series.nearest(Steps(raw(t)), Direction::Forward).unwrap());
        assert_eq!(found, plain.rows.range(t..).next().map(|row| raw(*row.0)));
        let found = time(series.nearest(Steps(raw(t)), Direction::Backward).unwrap());
        assert_eq!(
            found,
            plain.rows.range(..t).next_back().map(|row| raw(*row.0))
        );
        let found = time(series.at(Steps(raw(t))).unwrap());
        assert_eq!(found, plain.rows.get(&t).map(|_| raw(t)));
    }
    // Searches at random times, most of which lie between two steps of the unit.
    for _ in 0..10 {
        let near = [0, 1, -1, SECOND / 2, rng.between(0, SECOND)];
        let t = rng.between(-2500, 4500) * SECOND + *rng.pick(&near);
        let end = t + rng.between(1, 3 * SECOND);
        let (from, to) = (Timestamp(t), Timestamp(end));
        let time = |row: Option<tidalite::Row>| row.map(|row| row.time);
        let known = |row: Option<(&i64, &f64)>| row.map(|(t, _)| raw(*t));
        let found = time(series.nearest(from, Direction::Forward).unwrap());
        assert_eq!(found, known(plain.rows.range(t..).next()));
        let found = time(series.nearest(from, Direction::Backward).unwrap());
        assert_eq!(found, known(plain.rows.range(..t).next_back()));
        let found = time(series.at(from).unwrap());
        assert_eq!(found, known(plain.rows.get_key_value(&t)));
        let found = time(series.cursor().search(from).unwrap());
        assert_eq!(found, known(plain.rows.range(..=t).next_back()));
        let found = series.query(from..to).count().unwrap();
        assert_eq!(found, plain.rows.range(t..end).count() as u64);
        let found = series.query(from..).count().unwrap();
        assert_eq!(found, plain.rows.range(t..).count() as u64);
    }
}

trait InRaw {
    fn in_raw(self, unit: Unit) -> i64;
}

impl InRaw for Timestamp {
    fn in_raw(self, unit: Unit) -> i64 {
        self.0 / unit.nanos() + unit.steps_to_1970()
    }
}

#[test]
fn times_outside_one_clock_are_a_typed_error() {
    let options = Options::new();
    let db = options
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let ticks = Schema::new(Unit::Ticks, [("value", ColumnType::F64)]);
    let words = [1.0f64.to_bits()];
    let mut old = tx.series_with(r#"load{host="a"}"#, &ticks).unwrap();
    old.insert_row(Steps(0), &words).unwrap();
    let whole = Schema::new(Unit::Seconds, [("value", ColumnType::I64)]);
    let mut other = tx.series_with(r#"load{host="b"}"#, &whole).unwrap();
    other.insert_row(Steps(0), &words).unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let chosen = snap.select("load").unwrap();
    let both = chosen.query(..);
    let grid = Grid::hours(1);
    assert!(matches!(both.aggregate("value"), Err(ref error) if error.kind() == ErrorKind::Schema));
    assert!(matches!(both.aggregate("speed"), Err(ref error) if error.kind() == ErrorKind::Schema));
    let groups = both.group_by(["host"]);
    let (year_one, seconds) = (&groups[0], &groups[1]);
    let told = year_one.windows(&grid, "value");
    assert!(matches!(told, Err(ref error) if error.kind() == ErrorKind::InvalidInput));
    let later = &chosen.query(Timestamp(0)..).group_by(["host"])[0];
    assert_eq!(later.windows(&grid, "value").unwrap(), []);
    let finer = seconds.windows(&Grid::nanos(SECOND / 2), "value");
    assert!(matches!(finer, Err(ref error) if error.kind() == ErrorKind::Schema));
    assert!(
        snap.select("nothing")
            .unwrap()
            .query(..)
            .aggregate("value")
            .unwrap()
            .is_none()
    );
}

/// Squares of values from 1e154 on exceed the range of floats, yet standard deviations must be right, wherever the rows
/// are stored and however their statistics are combined.
#[test]
fn deviations_of_large_values_are_those_of_small_ones_times_their_scale() {
    tidalite_testkit::watch();
    let db = Options::new()
        .page_size(1024)
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let unit = 2f64.powi(660);
    let value = |time: i64| (time * 7919 % 1000) as f64 / 8.0 - 20.0;
    for (name, unit) in [("small", 1.0), ("large", unit)] {
        for part in [0, 1] {
            let mut tx = db.begin_write().unwrap();
            for host in ["a", "b"] {
                let name = format!("{name}{{host=\"{host}\"}}");
                let mut series = tx.series(&name).unwrap();
                // In the first part rows go to leaves; in the second part late rows go to the delta.
                for time in (0..20_000i64).filter(|time| (time % 331 == 5) == (part == 1)) {
                    series.insert(Steps(time), value(time) * unit).unwrap();
                }
            }
            tx.commit().unwrap();
        }
    }
    let near = |found: Option<f64>, expected: Option<f64>| {
        let (found, expected) = (found.unwrap(), expected.unwrap() * unit);
        assert!(
            (found / expected - 1.0).abs() < 1e-12,
            "{found}, {expected}"
        );
    };
    let snap = db.begin_read().unwrap();
    let (small, large) = (snap.select("small").unwrap(), snap.select("large").unwrap());
    for i in [0, 1] {
        let (small, large) = (&small.series().unwrap()[i], &large.series().unwrap()[i]);
        for times in [0..20_000, 777..19_001, 4..7] {
            let stddev = |series: &tidalite::Series<'_>| {
                let range = series.query(Steps(times.start)..Steps(times.end));
                let whole = range.aggregate(1).unwrap().stddev();
                let alone = range.clone().figures(Figure::Stddev).aggregate(1).unwrap();
                assert_eq!(whole.map(f64::to_bits), alone.map(f64::to_bits));
                let windows = range
                    .figures([Figure::Stddev])
                    .windows((Steps(1500), Steps(3)), 1)
                    .unwrap();
                let windows = windows.into_iter().map(|window| window.aggregate[0]);
                windows.chain([whole]).collect::<Vec<_>>()
            };
            let pairs = stddev(large).into_iter().zip(stddev(small));
            pairs.for_each(|(large, small)| near(large, small));
        }
    }
    let of = |selection: &tidalite::Selection<'_>| {
        let group = selection.query(..);
        let windows = group.windows(&Grid::nanos(4096), "value").unwrap();
        let whole = group.aggregate("value").unwrap().unwrap();
        let windows = windows.into_iter().map(|window| window.aggregate.stddev());
        windows.chain([whole.stddev()]).collect::<Vec<_>>()
    };
    for (large, small) in of(&large).into_iter().zip(of(&small)) {
        near(large, small);
    }
    assert!(db.check().unwrap().findings.is_empty());
}

#[test]
fn windows_without_a_width_are_refused() {
    for width in [0, -1, i64::MIN] {
        for grid in [Grid::nanos(width), Grid::days(width), Grid::months(width)] {
            let times = Timestamp(0)..Timestamp(10);
            let filled = GroupWindow::filled(&[], times, &grid, Figure::Mean, Fill::Null);
            let kind = filled.err().map(|error| error.kind());
            assert_eq!(kind, Some(ErrorKind::Schema), "{grid:?}");
        }
    }
}

/// Filling a part of the windows gives the same values as filling all of them, because gaps at the edges use the
/// windows outside the part.
#[test]
fn a_part_of_the_windows_is_filled_with_what_is_in_it() {
    tidalite_testkit::watch();
    let db = Options::new()
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    for (time, value) in [(0, 1.0), (10, 2.0), (40, 5.0), (50, 6.0), (90, 8.0)] {
        tx.series("a").unwrap().insert(Steps(time), value).unwrap();
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let selection = snap.select("a").unwrap();
    let (group, grid) = (selection.query(..), Grid::nanos(10));
    let windows = group.windows(&grid, "value").unwrap();
    let filled = |times: std::ops::Range<i64>, fill| {
        let times = Timestamp(times.start)..Timestamp(times.end);
        let filled = GroupWindow::filled(&windows, times, &grid, Figure::Mean, fill).unwrap();
        filled
            .map(|(start, value)| (start.0, value))
            .collect::<Vec<_>>()
    };
    let some = |values: &[(i64, f64)]| {
        values
            .iter()
            .map(|&(t, x)| (t, Some(x)))
            .collect::<Vec<_>>()
    };
    assert_eq!(filled(20..50, Fill::None), some(&[(40, 5.0)]));
    assert_eq!(filled(20..40, Fill::Null), [(20, None), (30, None)]);
    assert_eq!(
        filled(20..50, Fill::Previous),
        some(&[(20, 2.0), (30, 2.0), (40, 5.0)])
    );
    assert_eq!(
        filled(25..70, Fill::Linear),
        some(&[(20, 3.0), (30, 4.0), (40, 5.0), (50, 6.0), (60, 6.5)])
    );
    assert_eq!(
        filled(-20..1, Fill::Previous),
        [(-20, None), (-10, None), (0, Some(1.0))]
    );
    assert_eq!(
        filled(95..115, Fill::Linear),
        [(90, Some(8.0)), (100, None), (110, None)]
    );
}
