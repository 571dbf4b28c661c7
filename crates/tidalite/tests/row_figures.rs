//! Figures that are computed from rows, against plain computations over all rows.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::query::Interpolation;
use tidalite::storage::MemoryStorage;
use tidalite::{
    Column, ColumnType, Database, Decimal, ErrorKind, Figure, Grid, MergePolicy, Options, Schema,
    Steps, Timestamp, Unit, Value,
};
use tidalite_testkit::rng::Rng;

const LINEAR: Interpolation = Interpolation::Linear;
const PREVIOUS: Interpolation = Interpolation::Previous;

const ALL: [Figure; 15] = [
    Figure::Median,
    Figure::Percentile(0.0),
    Figure::Percentile(95.0),
    Figure::Percentile(100.0),
    Figure::Distinct,
    Figure::Mode,
    Figure::TimeMean(PREVIOUS),
    Figure::TimeMean(LINEAR),
    Figure::Integral(PREVIOUS),
    Figure::Integral(LINEAR),
    Figure::Delta,
    Figure::Increase,
    Figure::Rate,
    Figure::Spread,
    Figure::Count,
];

fn memory(threads: usize) -> Database {
    tidalite_testkit::watch();
    Options::new()
        .scan_threads(threads)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

/// A row of the model: its time, and its value if it has one (neither null nor NaN).
type ModelRow = (i64, Option<f64>);

fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let rank = percent / 100.0 * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[rank.floor() as usize], values[rank.ceil() as usize]);
    let part = rank - rank.floor();
    Some(if low == high {
        low
    } else {
        low * (1.0 - part) + high * part
    })
}

/// The figures of the rows in `from ..= to`, by looking at every pair of rows.
fn model(rows: &[ModelRow], (from, to): (i64, i64), seconds: f64) -> Vec<Option<f64>> {
    let all: Vec<(i64, f64)> = rows
        .iter()
        .filter_map(|&(time, value)| Some((time, value?)))
        .collect();
    let own: Vec<f64> = all
        .iter()
        .filter(|(time, _)| (from..=to).contains(time))
        .map(|(_, value)| *value)
        .collect();
    let mut counts: BTreeMap<u64, (usize, f64)> = BTreeMap::new();
    for value in &own {
        // Adding 0 turns -0 into 0.
        let (count, _) = counts
            .entry((value + 0.0).to_bits())
            .or_insert((0, value + 0.0));
        *count += 1;
    }
    let most = counts.values().map(|(count, _)| *count).max();
    let leaders = counts.values().filter(|(count, _)| Some(*count) == most);
    let mode = leaders.map(|(_, value)| *value).min_by(f64::total_cmp);
    let mut areas = [0.0; 2];
    let mut time = 0.0;
    let (mut increase, mut pairs) = (0.0, Vec::new());
    for pair in all.windows(2) {
        let ((a, va), (b, vb)) = (pair[0], pair[1]);
        let (low, high) = (a.max(from), b.min(to.saturating_add(1)));
        if low < high {
            let at = |t: i64| va + (vb - va) * ((t - a) as f64 / (b - a) as f64);
            let width = (high - low) as f64 * seconds;
            areas[0] += va * width;
            areas[1] += f64::midpoint(at(low), at(high)) * width;
            time += width;
        }
        if (from..=to).contains(&b) {
            increase += if vb < va { vb } else { vb - va };
            pairs.push(pair);
        }
    }
    let ends = pairs.first().zip(pairs.last());
    let ends = ends.map(|(first, last)| (first[0], last[1]));
    let defined = |value: f64| (time > 0.0).then_some(value);
    let least = own.iter().copied().min_by(f64::total_cmp);
    let most = own.iter().copied().max_by(f64::total_cmp);
    vec![
        percentile(&own, 50.0),
        percentile(&own, 0.0),
        percentile(&own, 95.0),
        percentile(&own, 100.0),
        Some(counts.len() as f64),
        mode,
        defined(areas[0] / time),
        defined(areas[1] / time),
        defined(areas[0]),
        defined(areas[1]),
        ends.map(|(first, last)| last.1 - first.1),
        ends.map(|_| increase),
        ends.filter(|(first, last)| first.0 < last.0)
            .map(|(first, last)| increase / ((last.0 - first.0) as f64 * seconds)),
        least.zip(most).map(|(least, most)| most - least),
    ]
}

#[track_caller]
fn expect_near(found: &[Option<f64>], expected: &[Option<f64>], context: &str) {
    for ((found, expected), figure) in found.iter().zip(expected).zip(ALL) {
        let near = match (found, expected) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * (1.0 + b.abs()) || a == b,
            (a, b) => a == b,
        };
        assert!(
            near,
            "{context}: {figure:?} is {found:?}, expected {expected:?}"
        );
    }
}

struct Case {
    db: Database,
    unit: Unit,
    ty: ColumnType,
    rows: Vec<ModelRow>,
}

/// A series with gaps, several rows of a time, nulls, NaN, and a counter that restarts.
fn case(rng: &mut Rng) -> Case {
    let ty = *rng.pick(&[
        ColumnType::F64,
        ColumnType::I64,
        ColumnType::Decimal(2),
        ColumnType::U64,
    ]);
    let unit = *rng.pick(&[Unit::Seconds, Unit::Millis, Unit::Nanos]);
    let nullable = rng.one_in(2);
    let column = match nullable {
        true => Column::nullable("v", ty),
        false => Column::new("v", ty),
    };
    let schema = Schema::new(unit, []).with(column);
    let db = memory(*rng.pick(&[1, 4]));
    let count = *rng.pick(&[0, 1, 2, 50, 3_000, 12_000]);
    let mut rows = Vec::new();
    let mut time = rng.between(-1000, 1000);
    let mut counter = 100_i64;
    let mut tx = db.begin_write().unwrap();
    let opener = tx.open_series("s");
    let mut series = opener
        .schema(&schema)
        .merge(MergePolicy::KeepAll)
        .open()
        .unwrap();
    for _ in 0..count {
        time += match rng.below(40) {
            0 => rng.between(0, 5_000),
            1..=3 => 0,
            _ => rng.between(1, 20),
        };
        counter = match rng.below(50) {
            0 => rng.between(0, 10),
            _ => counter + rng.between(0, 5),
        };
        let (stored, value) = match ty {
            _ if nullable && rng.one_in(8) => (Value::Null, None),
            ColumnType::F64 if rng.one_in(10) => (Value::from(f64::NAN), None),
            ColumnType::F64 if rng.one_in(50) => (Value::from(-0.0), Some(-0.0)),
            ColumnType::F64 => (
                Value::from(counter as f64 / 8.0),
                Some(counter as f64 / 8.0),
            ),
            ColumnType::U64 => (Value::from(counter as u64), Some(counter as f64)),
            ColumnType::I64 => (Value::from(counter - 100), Some((counter - 100) as f64)),
            _ => {
                let decimal = Decimal {
                    units: counter,
                    scale: 2,
                };
                (Value::from(decimal), Some(counter as f64 / 100.0))
            }
        };
        series.insert_values(Steps(time), &[stored]).unwrap();
        rows.push((time, value));
    }
    tx.commit().unwrap();
    Case { db, unit, ty, rows }
}

#[test]
fn figures_equal_those_of_a_plain_computation() {
    let seed = 20_261_128;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for round in 0..60 {
        let Case { db, unit, ty, rows } = case(&mut rng);
        let snap = db.begin_read().unwrap();
        let series = snap.series("s").unwrap().unwrap();
        let seconds = unit.nanos() as f64 / 1e9;
        let (first, last) = match (rows.first(), rows.last()) {
            (Some(first), Some(last)) => (first.0, last.0),
            _ => (0, 0),
        };
        for _ in 0..6 {
            let (from, to) = match rng.below(4) {
                0 => (i64::MIN, i64::MAX),
                1 => (first, last),
                _ => {
                    let (a, b) = (rng.between(first, last + 1), rng.between(first, last + 1));
                    (a.min(b), a.max(b))
                }
            };
            // A filter leaves rows out as if they were not there.
            let most = rng.one_in(3).then(|| rng.between(0, 200) as f64);
            let passes = |value: Option<f64>| match most {
                Some(most) => value.is_some_and(|value| value <= most),
                None => true,
            };
            let rows: Vec<ModelRow> = rows
                .iter()
                .copied()
                .filter(|(_, value)| passes(*value))
                .collect();
            let mut query = series.query(Steps(from)..=Steps(to)).figures(ALL);
            if let Some(most) = most {
                query = query.filter("v", ..=most);
            }
            let context = format!("round {round}, {ty:?}, {from} to {to}, filter {most:?}");
            let whole = query.aggregate("v").unwrap();
            let there = rows.iter().any(|(time, _)| (from..=to).contains(time));
            if there {
                expect_near(&whole[..14], &model(&rows, (from, to), seconds), &context);
            } else {
                assert_eq!(whole[..4], [None; 4], "{context}");
                assert_eq!(whole[4], Some(0.0), "{context}");
            }
            let width = *rng.pick(&[1, 7, 100, 1_000, 50_000]);
            let windows = query.windows((Steps(width), Steps(3)), "v").unwrap();
            let mut expected: BTreeSet<i64> = BTreeSet::new();
            for &(time, _) in &rows {
                if (from..=to).contains(&time) {
                    expected.insert((time - 3).div_euclid(width) * width + 3);
                }
            }
            let starts: Vec<i64> = windows
                .iter()
                .map(|window| window.start.max(from))
                .collect();
            let expected: Vec<i64> = expected.into_iter().map(|start| start.max(from)).collect();
            assert_eq!(starts, expected, "{context}");
            // The model looks at all rows for each window.
            let step = (windows.len() / 50).max(1);
            for window in windows.iter().step_by(step) {
                let of = (window.start.max(from), window.last.min(to));
                let context = format!("{context}, width {width}, window {of:?}");
                expect_near(
                    &window.aggregate[..14],
                    &model(&rows, of, seconds),
                    &context,
                );
            }
            let mut streamed = Vec::new();
            let each = query.clone().columns(["v"]);
            let windows_again = (Steps(width), Steps(3));
            each.for_each_window(windows_again, |_, window| streamed.push(window.aggregate))
                .unwrap();
            let collected: Vec<_> = windows.iter().map(|window| window.aggregate).collect();
            assert_eq!(streamed, collected, "{context}");
        }
    }
}

/// Groups: percentiles of all rows together, sums of changes and integrals, in series of different units.
#[test]
fn figures_of_groups_combine_those_of_the_series() {
    let db = memory(2);
    let mut tx = db.begin_write().unwrap();
    for (host, unit) in [("a", Unit::Seconds), ("b", Unit::Millis)] {
        let schema = Schema::new(unit, [("v", ColumnType::F64)]);
        let mut series = tx
            .series_with(&format!("n{{host=\"{host}\"}}"), &schema)
            .unwrap();
        for minute in 0..180_i64 {
            let value = if host == "a" { minute as f64 } else { 1000.0 };
            let time = Timestamp(minute * 60_000_000_000);
            series.insert_values(time, &[value.into()]).unwrap();
        }
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let all = snap.select("n").unwrap();
    let figures = [
        Figure::Median,
        Figure::Distinct,
        Figure::Mode,
        Figure::Increase,
        Figure::Rate,
        Figure::Integral(PREVIOUS),
        Figure::TimeMean(LINEAR),
    ];
    let hours = all
        .query(..)
        .figures(figures)
        .windows(&Grid::hours(1), "v")
        .unwrap();
    let integral = (60..120).sum::<i64>() as f64 * 60.0 + 1000.0 * 3600.0;
    let expected = [
        Some(f64::midpoint(119.0, 1000.0)),
        Some(61.0),
        Some(1000.0),
        Some(60.0),
        Some(1.0 / 60.0),
        Some(integral),
        Some(f64::midpoint(90.0, 1000.0)),
    ];
    let found = hours[1].aggregate;
    for (found, expected) in found.iter().zip(expected) {
        let (found, expected) = (found.unwrap(), expected.unwrap());
        assert!(
            (found - expected).abs() < 1e-9 * expected,
            "{found} {expected}"
        );
    }
    let total = all
        .query(..)
        .figures(Figure::Increase)
        .aggregate("v")
        .unwrap();
    let sum: f64 = hours.iter().map(|hour| hour.aggregate[3].unwrap()).sum();
    assert_eq!(total, Some(Some(179.0)));
    assert_eq!(sum, 179.0);
    let top = all.query(..).top(1, "v", Figure::Median).unwrap();
    assert_eq!(top, [(1, 1000.0)]);
}

#[test]
fn values_between_rows() {
    let mut rng = Rng::new(7);
    for _ in 0..40 {
        let Case { db, unit, rows, .. } = case(&mut rng);
        let snap = db.begin_read().unwrap();
        let series = snap.series("s").unwrap().unwrap();
        let there: Vec<(i64, f64)> = rows
            .iter()
            .filter_map(|&(time, value)| Some((time, value?)))
            .collect();
        for _ in 0..20 {
            let t = rng.between(-1500, rows.last().map_or(0, |row| row.0) + 500);
            let before = there.iter().rev().find(|row| row.0 <= t);
            let after = there.iter().find(|row| row.0 >= t);
            let held = series.value_at(Steps(t), "v", PREVIOUS).unwrap();
            assert_eq!(held, before.map(|row| row.1));
            let expected = before.zip(after).map(|(a, b)| match a.0 == t {
                true => a.1,
                false => a.1 + (b.1 - a.1) * (t - a.0) as f64 / (b.0 - a.0) as f64,
            });
            let found = series.value_at(Steps(t), "v", LINEAR).unwrap();
            assert_eq!(found.is_some(), expected.is_some(), "{t} {unit:?}");
            let off = found.unwrap_or(0.0) - expected.unwrap_or(0.0);
            assert!(off.abs() < 1e-9, "{t}: {found:?} {expected:?}");
        }
    }
    // A time between two steps of the unit.
    let db = memory(1);
    let mut tx = db.begin_write().unwrap();
    let schema = Schema::new(Unit::Seconds, [("v", ColumnType::F64)]);
    let mut series = tx.series_with("s", &schema).unwrap();
    for (time, value) in [(10, 0.0), (11, 4.0)] {
        series.insert_values(Steps(time), &[value.into()]).unwrap();
    }
    let series = series.view().unwrap();
    let quarter = Timestamp(10_250_000_000);
    assert_eq!(series.value_at(quarter, "v", LINEAR).unwrap(), Some(1.0));
    assert_eq!(series.value_at(quarter, "v", PREVIOUS).unwrap(), Some(0.0));
}

#[test]
fn texts_have_distinct_values_only() {
    let db = memory(1);
    let mut tx = db.begin_write().unwrap();
    let schema = Schema::new(Unit::Seconds, []).with(Column::nullable("t", ColumnType::String));
    // Series of one group, with texts that are in the dictionary and long ones that are not.
    for (name, from) in [("log{h=\"a\"}", 0), ("log{h=\"b\"}", 5)] {
        let mut series = tx.series_with(name, &schema).unwrap();
        for row in 0..500_i64 {
            let text = format!(
                "{}{}",
                row % 10 + from,
                "x".repeat((row % 10) as usize * 400)
            );
            let value = if row % 11 == 0 {
                Value::Null
            } else {
                Value::from(text.as_str())
            };
            series.insert_values(Steps(row), &[value]).unwrap();
        }
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let all = snap.select("log").unwrap();
    let distinct = all.query(..).figures(Figure::Distinct);
    assert_eq!(distinct.aggregate("t").unwrap(), Some(Some(20.0)));
    let a = snap.series("log{h=\"a\"}").unwrap().unwrap();
    let windows = a
        .query(..)
        .figures(Figure::Distinct)
        .windows(Steps(5), "t")
        .unwrap();
    assert_eq!(windows[1].aggregate, Some(5.0));
    for figure in [
        Figure::Mode,
        Figure::Median,
        Figure::Delta,
        Figure::TimeMean(LINEAR),
    ] {
        let error = a.query(..).figures(figure).aggregate("t").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema, "{figure:?}");
    }
    let error = a.value_at(Steps(1), "t", LINEAR).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
}

#[test]
fn percentages_are_checked() {
    let db = memory(1);
    let mut tx = db.begin_write().unwrap();
    tx.series("s").unwrap().insert(Steps(0), 1.0).unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series("s").unwrap().unwrap();
    for percent in [-0.1, 100.1, f64::NAN] {
        let query = series
            .query(..)
            .figures([Figure::Count, Figure::Percentile(percent)]);
        let error = query.aggregate("value").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{percent}");
        assert!(error.to_string().contains("0 to 100"), "{error}");
        assert!(query.windows(Steps(1), "value").is_err());
    }
}

/// Equal to pandas and DuckDB, whose results are in `row_figures_oracles.txt`. Where Python has both, they are asked again
/// (`row_figures_oracles.py`).
#[test]
fn figures_equal_those_of_pandas_and_duckdb() {
    let db = memory(1);
    let mut tx = db.begin_write().unwrap();
    let columns = [("value", ColumnType::F64), ("counter", ColumnType::I64)];
    let mut series = tx
        .series_with("s", &Schema::new(Unit::Seconds, columns))
        .unwrap();
    for i in 0..20_000_i64 {
        let time = Steps(1_700_000_000 + i * 37 + i * i % 23);
        let value = (i * 7919 % 1000) as f64 / 8.0;
        series
            .insert_values(time, &[value.into(), (i * 5 % 3001).into()])
            .unwrap();
    }
    let series = series.view().unwrap();
    let hours = |column: &str, figures: &[Figure]| {
        let query = series.query(..).figures(figures);
        query.windows(Grid::hours(1), column).unwrap()
    };
    let of_value = [
        Figure::Median,
        Figure::Percentile(95.0),
        Figure::Distinct,
        Figure::Mode,
        Figure::Spread,
        Figure::Integral(LINEAR),
        Figure::TimeMean(PREVIOUS),
    ];
    let values = hours("value", &of_value);
    let changes = hours("counter", &[Figure::Delta, Figure::Increase]);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let stored = std::fs::read_to_string(folder.join("row_figures_oracles.txt")).unwrap();
    assert_eq!(stored.lines().count(), values.len());
    for ((line, value), change) in stored.lines().zip(&values).zip(&changes) {
        let expected: Vec<f64> = line.split(' ').map(|cell| cell.parse().unwrap()).collect();
        let (value, change) = (&value.aggregate, &change.aggregate);
        let found = [&value[..5], &change[..], &value[5..]].concat();
        for (found, expected) in found.iter().zip(&expected[1..]) {
            let found = found.unwrap();
            assert!((found - expected).abs() < 1e-6, "{line}: {found}");
        }
    }
    let python = std::env::var_os("TIDALITE_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = std::process::Command::new(python);
    match command.arg(folder.join("row_figures_oracles.py")).output() {
        Ok(ran) if ran.status.success() => assert_eq!(String::from_utf8_lossy(&ran.stdout), stored),
        _ => println!("oracles: absent"),
    }
}
