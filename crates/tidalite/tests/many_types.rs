//! Groups, merges, joins, scans both ways and candles over columns of every type, with retention in the mix, compared
//! with brute force over plain rows.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::aged;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::query::{CandleSize, Join};
use tidalite::storage::MemoryStorage;
use tidalite::{
    Aggregate, Column, ColumnType, Database, Decimal, Grid, Options, Schema, Selection, Steps,
    Timestamp, Unit, Value,
};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

const MILLI: i64 = 1_000_000;
/// The times of rows are below this number of milliseconds.
const TIMES: i64 = 6_000;

type Rows = BTreeMap<i64, Vec<Value>>;

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// Columns of every type, some of which are nullable.
fn columns() -> Vec<Column> {
    vec![
        Column::nullable("float", ColumnType::F64),
        Column::new("single", ColumnType::F32),
        Column::nullable("signed", ColumnType::I64),
        Column::new("unsigned", ColumnType::U64),
        Column::nullable("price", ColumnType::Decimal(2)),
        Column::nullable("open", ColumnType::Bool),
        Column::nullable("text", ColumnType::String),
        Column::new("raw", ColumnType::Bytes),
        Column::nullable("unit", ColumnType::Guid),
    ]
}

fn a_value(rng: &mut Rng, column: &Column) -> Value {
    if column.nullable && rng.one_in(6) {
        return Value::Null;
    }
    match column.ty {
        ColumnType::F64 if rng.one_in(90) => Value::F64(f64::NAN),
        ColumnType::F64 => Value::F64(rng.between(-200, 200) as f64 / 4.0),
        ColumnType::F32 => (rng.between(-999, 999) as f32 / 10.0).into(),
        ColumnType::I64 => Value::I64(rng.between(-1_000, 1_000)),
        ColumnType::U64 => Value::U64(rng.below(300)),
        ColumnType::Decimal(scale) => Value::Decimal(Decimal {
            units: rng.between(-10_000, 10_000),
            scale,
        }),
        ColumnType::Bool => Value::Bool(rng.one_in(2)),
        ColumnType::String if rng.one_in(40) => Value::String("a long text ".repeat(90)),
        ColumnType::String => Value::String(format!("state {}", rng.below(9))),
        ColumnType::Bytes => Value::Bytes(rng.u64().to_le_bytes()[..rng.index(9)].to_vec()),
        ColumnType::Guid => Value::Guid(u128::from(rng.below(50)).to_be_bytes()),
        other => unreachable!("{other:?}"),
    }
}

/// The value as a float for brute force; `None` if it is not a number.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::F64(x) => Some(*x),
        Value::I64(x) => Some(*x as f64),
        Value::U64(x) => Some(*x as f64),
        Value::Bool(x) => Some(f64::from(u8::from(*x))),
        Value::Decimal(x) => Some(x.to_f64()),
        _ => None,
    }
}

struct Plain {
    name: String,
    site: &'static str,
    unit: Unit,
    columns: Vec<Column>,
    /// The rows of the series, by time in nanoseconds.
    rows: Rows,
}

/// Makes the model of a series. The order of the columns is random, because a group must find them by name.
fn plain(rng: &mut Rng, i: usize) -> Plain {
    let mut columns = columns();
    let turn = rng.index(columns.len());
    columns.rotate_left(turn);
    let site = ["north", "south"][rng.index(2)];
    Plain {
        name: format!(r#"m{{n="{i}",site="{site}"}}"#),
        site,
        unit: *rng.pick(&[Unit::Nanos, Unit::Micros, Unit::Millis]),
        columns,
        rows: Rows::new(),
    }
}

impl Plain {
    fn raw(&self, nanos: i64) -> i64 {
        nanos / self.unit.nanos()
    }

    fn schema(&self) -> Schema {
        let columns = self.columns.iter().cloned();
        columns.fold(Schema::new(self.unit, []), Schema::with)
    }

    fn column(&self, name: &str) -> usize {
        let mut columns = self.columns.iter();
        columns.position(|column| column.name == name).unwrap()
    }

    /// Times and values of the column with this name in an interval.
    fn told(&self, name: &str, (from, to): (i64, i64)) -> Vec<(i64, Option<f64>)> {
        let c = self.column(name);
        let rows = self.rows.range(from..to.max(from));
        rows.map(|(&time, row)| (time, number(&row[c]))).collect()
    }
}

/// Creates a few series with rows in leaves and in the delta; some rows are late, overwritten, deleted, or removed by
/// retention.
fn world(rng: &mut Rng) -> (Database, Vec<Plain>) {
    let options = Options::new().page_size(1024);
    let storage = Monitor::new(Arc::new(MemoryStorage::new()));
    let db = options.open_storage(storage).unwrap();
    let count = rng.index(4) + 1;
    let mut series: Vec<Plain> = (0..count).map(|i| plain(rng, i)).collect();
    for round in 0..rng.between(2, 5) {
        let mut tx = db.begin_write().unwrap();
        for own in &mut series {
            let mut writer = tx.series_with(&own.name, &own.schema()).unwrap();
            let most = if round == 0 { 2_600 } else { 60 };
            let start = rng.between(0, TIMES / 2);
            for i in 0..rng.between(1, most) {
                let late = round > 0 && rng.one_in(2);
                let time = if late {
                    rng.between(0, TIMES)
                } else {
                    start + i
                } * MILLI;
                let row: Vec<Value> = own.columns.iter().map(|c| a_value(rng, c)).collect();
                writer.insert_values(Steps(own.raw(time)), &row).unwrap();
                own.rows.insert(time, row);
            }
            if rng.one_in(3) {
                let from = rng.between(0, TIMES) * MILLI;
                let to = from + rng.between(0, 400) * MILLI;
                writer
                    .delete(Steps(own.raw(from))..Steps(own.raw(to)))
                    .unwrap();
                own.rows.retain(|&time, _| time < from || time >= to);
            }
        }
        tx.commit().unwrap();
        if rng.one_in(2) {
            let site = *rng.pick(&["north", "south"]);
            let keep = rng.between(TIMES / 2, TIMES) * MILLI;
            let now = rng.between(TIMES / 2, 3 * TIMES / 2) * MILLI;
            let cut = aged::cut(&db, &format!(r#"m{{site="{site}"}}"#), now, keep);
            let mut removed = 0;
            for own in series.iter_mut().filter(|own| own.site == site) {
                let before = own.rows.len();
                own.rows.retain(|&time, _| time >= now - keep);
                removed += before - own.rows.len();
            }
            assert_eq!(cut, removed as u64);
        }
    }
    (db, series)
}

/// Compares an aggregate with brute force. `rows` are in ascending order of time; rows of one time are in the order of
/// the series.
fn assert_figures(found: &Aggregate, rows: &[(i64, Option<f64>)], what: &str) {
    let values = || {
        rows.iter()
            .filter_map(|&(time, value)| Some((value?, time)))
    };
    let plain = || values().filter(|value| !value.0.is_nan());
    let counts = [
        values().count(),
        rows.len() - values().count(),
        values().count() - plain().count(),
    ];
    let told = [found.count(), found.null_count(), found.nan_count()];
    assert_eq!(told, counts.map(|count| count as u64), "{what}: counts");
    let sum: f64 = plain().map(|value| value.0).sum();
    assert!(
        (found.sum() - sum).abs() < 1e-6,
        "{what}: {} {sum}",
        found.sum()
    );
    let least = plain().min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let most = plain().max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    assert_eq!(
        (found.min(), found.max()),
        (least, most),
        "{what}: extremes"
    );
    let times = rows.iter().map(|row| row.0);
    let span = times.clone().min().zip(times.max());
    assert_eq!(found.times(), span, "{what}: times");
    let end = |row: Option<&(i64, Option<f64>)>| row.and_then(|row| row.1.map(f64::to_bits));
    let ends = (end(rows.first()), end(rows.last()));
    let told = (found.first(), found.last());
    assert_eq!(
        (told.0.map(f64::to_bits), told.1.map(f64::to_bits)),
        ends,
        "{what}: ends"
    );
}

/// Checks statistics and windows of each numeric column, over all series and over the series of each site.
fn groups(rng: &mut Rng, chosen: &Selection<'_>, series: &[Plain], times: (i64, i64)) {
    let (width, origin) = (rng.between(1, 900) * MILLI, rng.between(-500, 500) * MILLI);
    let grid = Grid::nanos(width).origin(Timestamp(origin));
    let interval = Timestamp(times.0)..Timestamp(times.1);
    for name in ["float", "single", "signed", "unsigned", "price", "open"] {
        for group in chosen.query(interval.clone()).group_by(["site"]) {
            let site = &group.tags()[0].1;
            let own = series.iter().filter(|own| own.site == site);
            let mut rows: Vec<_> = own.flat_map(|own| own.told(name, times)).collect();
            // The sort is stable: rows of one time keep the order of the series.
            rows.sort_by_key(|row| row.0);
            let what = format!("{name} of {site} in {times:?}");
            let whole = group.aggregate(name).unwrap().unwrap();
            assert_figures(&whole, &rows, &what);
            let window = |time: i64| (time - origin).div_euclid(width);
            let mut parts = rows.chunk_by(|a, b| window(a.0) == window(b.0));
            for found in group.windows(&grid, name).unwrap() {
                let rows = parts.next().unwrap();
                assert_eq!(found.start.0, origin + window(rows[0].0) * width, "{what}");
                assert_figures(&found.aggregate, rows, &what);
            }
            assert!(parts.next().is_none(), "{what}: a window is missing");
        }
    }
}

fn assert_row(chosen: &Selection<'_>, i: usize, words: &[u64], expected: &[Value]) {
    assert_eq!(words.len(), expected.len());
    for (c, (&word, expected)) in words.iter().zip(expected).enumerate() {
        let found = chosen.series().unwrap()[i].value(c, word).unwrap();
        assert!(
            same(&found, expected),
            "column {c} of {i}: {found:?}, {expected:?}"
        );
    }
}

fn merged(chosen: &Selection<'_>, series: &[Plain], (from, to): (i64, i64)) {
    let rows = |i: usize| {
        series[i]
            .rows
            .range(from..to.max(from))
            .map(move |row| (*row.0, i, row.1))
    };
    let mut expected: Vec<_> = (0..series.len()).flat_map(rows).collect();
    expected.sort_by_key(|row| (row.0, row.1));
    let mut found = chosen.query(Timestamp(from)..Timestamp(to)).rows().unwrap();
    for (time, i, row) in expected {
        let merged = found.next().unwrap().unwrap();
        assert_eq!((merged.time.0, merged.series), (time, i));
        assert_row(chosen, i, merged.words, row);
    }
    assert!(found.next().unwrap().is_none());
}

fn joined(rng: &mut Rng, chosen: &Selection<'_>, series: &[Plain], (from, to): (i64, i64)) {
    let tolerance = *rng.pick(&[0, 20 * MILLI, i64::MAX]);
    for join in [Join::Inner, Join::Outer, Join::AsOf { tolerance }] {
        let told = match join {
            Join::AsOf { .. } => &series[..1],
            Join::Inner | Join::Outer => series,
        };
        let times = told
            .iter()
            .flat_map(|own| own.rows.range(from..to.max(from)));
        let mut times: Vec<i64> = times.map(|row| *row.0).collect();
        times.sort_unstable();
        times.dedup();
        let mut found = chosen
            .query(Timestamp(from)..Timestamp(to))
            .join(join)
            .unwrap();
        for time in times {
            let at = |own: &Plain| {
                let row = match join {
                    Join::AsOf { tolerance } => {
                        let row = own.rows.range(..=time).next_back();
                        row.filter(|row| time - row.0 <= tolerance)
                    }
                    Join::Inner | Join::Outer => own.rows.get_key_value(&time),
                };
                row.map(|(&at, row)| (at, row.clone()))
            };
            let row: Vec<_> = series.iter().map(at).collect();
            if join == Join::Inner && !row.iter().all(Option::is_some) {
                continue;
            }
            let side_by_side = found.next().unwrap().unwrap();
            assert_eq!(side_by_side.time.0, time, "{join:?}");
            for (i, expected) in row.iter().enumerate() {
                let at = side_by_side.time_of(i).map(|at| at.0);
                assert_eq!(at, expected.as_ref().map(|row| row.0), "{join:?}");
                match (side_by_side.words(i), expected) {
                    (Some(words), Some((_, row))) => assert_row(chosen, i, words, row),
                    (words, expected) => assert_eq!(words.is_some(), expected.is_some()),
                }
            }
        }
        assert!(found.next().unwrap().is_none(), "{join:?}");
    }
}

/// Checks one series: all of its columns read backwards, and its candles.
fn alone(rng: &mut Rng, chosen: &Selection<'_>, i: usize, own: &Plain, times: (i64, i64)) {
    let range = chosen.series().unwrap()[i].query(Steps(own.raw(times.0))..Steps(own.raw(times.1)));
    let rows: Vec<_> = own.rows.range(times.0..times.1.max(times.0)).collect();
    let mut at = rows.len();
    let told = range.clone().reverse().for_each_vector(|vector| {
        for row in (0..vector.times().len()).rev() {
            at -= 1;
            assert_eq!(vector.times()[row], own.raw(*rows[at].0));
            let words: Vec<u64> = (0..own.columns.len())
                .map(|c| vector.words(c)[row])
                .collect();
            assert_row(chosen, i, &words, rows[at].1);
        }
    });
    assert_eq!((told.unwrap(), at), (rows.len() as u64, 0));
    let size = match rng.one_in(2) {
        true => CandleSize::Level(rng.below(3) as u8),
        false => CandleSize::Width(rng.below(1_000_000_000)),
    };
    for (c, column) in own.columns.iter().enumerate() {
        if column.ty.is_text() {
            continue;
        }
        let raw = |row: &(i64, Option<f64>)| (own.raw(row.0), row.1);
        let told: Vec<_> = own.told(&column.name, times).iter().map(raw).collect();
        let mut rest = &told[..];
        for candle in range.candles(size, c).unwrap() {
            let held = rest.partition_point(|row| row.0 <= candle.last_time);
            let what = format!("{size:?} of {}", column.name);
            let ends = (candle.first_time, candle.last_time);
            assert_eq!((rest[0].0, rest[held - 1].0), ends, "{what}");
            assert_figures(&candle.aggregate, &rest[..held], &what);
            rest = &rest[held..];
        }
        assert!(rest.is_empty(), "rows in no candle of {size:?}");
    }
}

#[test]
fn groups_merges_joins_and_candles_of_every_type_equal_brute_force() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let (db, series) = world(&mut rng);
        let snap = db.begin_read().unwrap();
        let chosen = snap.select("m").unwrap();
        assert_eq!(chosen.len(), series.len());
        for _ in 0..3 {
            let from = rng.between(-100, TIMES) * MILLI;
            let times = (from, from + rng.between(-10, TIMES) * MILLI);
            groups(&mut rng, &chosen, &series, times);
            merged(&chosen, &series, times);
            joined(&mut rng, &chosen, &series, times);
            for (i, own) in series.iter().enumerate() {
                alone(&mut rng, &chosen, i, own, times);
            }
        }
        let latest = chosen.latest().unwrap();
        for (i, (row, own)) in latest.iter().zip(&series).enumerate() {
            let newest = own.rows.last_key_value();
            let told = row.as_ref().map(|row| row.time);
            assert_eq!(told, newest.map(|newest| own.raw(*newest.0)));
            if let (Some(row), Some((_, expected))) = (row, newest) {
                assert_row(&chosen, i, &row.words, expected);
            }
        }
    }
}
