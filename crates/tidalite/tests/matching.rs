//! Filtered rows, windows and joins of filtered rows, and rows by index are compared with brute force over plain rows.
//! Counters show which reads were skipped.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::aged;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite::query::Join;
use tidalite::storage::MemoryStorage;
use tidalite::{
    Aggregate, Column, ColumnType, Database, Decimal, Direction, MergePolicy, Options, Schema,
    Selection, Series, Steps, Timestamp, Unit, Value,
};
use tidalite_testkit::rng::Rng;

/// A row of three columns: floats that rise with time, integers or null, and tenths.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plain {
    rising: f64,
    whole: Option<i64>,
    tenths: i64,
}

impl Plain {
    fn value(&self, column: usize) -> Option<f64> {
        match column {
            0 => Some(self.rising),
            1 => self.whole.map(|whole| whole as f64),
            _ => Some(self.tenths as f64 / 10.0),
        }
    }
}

/// The expected rows, by time in nanoseconds; several rows of a time are in the order of arrival.
type Rows = BTreeMap<i64, Vec<Plain>>;

/// A filter: a range of values of one of the columns, in tenths.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    column: usize,
    low: i64,
    high: i64,
}

impl Wanted {
    fn any(rng: &mut Rng) -> Self {
        let (column, reach) = *rng.pick(&[(0, 6500), (1, 400), (2, 400)]);
        let low = rng.between(-reach / 8, reach);
        let width = *rng.pick(&[0, 5, reach / 10, reach, 10 * reach]);
        let high = low + rng.between(-1, width + 1);
        Self { column, low, high }
    }

    fn values(self) -> RangeInclusive<f64> {
        let bound = |tenths: i64| tenths as f64 / 10.0;
        bound(self.low)..=bound(self.high)
    }

    fn holds(self, row: &Plain) -> bool {
        let value = row.value(self.column);
        value.is_some_and(|value| {
            self.low as f64 / 10.0 <= value && value <= self.high as f64 / 10.0
        })
    }
}

fn unit_of(place: usize) -> Unit {
    [Unit::Nanos, Unit::Micros][place % 2]
}

fn fill(db: &Database, place: usize, rng: &mut Rng) -> Rows {
    let schema = Schema::new(unit_of(place), [("rising", ColumnType::F64)])
        .with(Column::nullable("whole", ColumnType::I64))
        .with(Column::new("tenths", ColumnType::Decimal(1)));
    let keeps = rng.one_in(2);
    let merge = [MergePolicy::Replace, MergePolicy::KeepAll][usize::from(keeps)];
    let odd = rng.one_in(2);
    let mut rows = Rows::new();
    for round in 0..rng.between(1, 4) {
        let mut tx = db.begin_write().unwrap();
        let name = format!("s{place}");
        let mut series = tx
            .open_series(&name)
            .schema(&schema)
            .merge(merge)
            .open()
            .unwrap();
        let start = rng.between(0, 3000);
        for i in 0..rng.between(1, if round == 0 { 6000 } else { 400 }) {
            let raw = match rng.one_in(7) {
                true => rng.between(0, 6000),
                false => start + i / if keeps { 2 } else { 1 },
            };
            let row = Plain {
                rising: match odd && rng.one_in(300) {
                    true => *rng.pick(&[f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY]),
                    false => raw as f64 / 10.0,
                },
                whole: (!odd || !rng.one_in(200)).then(|| raw / 200 + rng.between(0, 3)),
                tenths: rng.between(0, 400),
            };
            let tenths = Decimal {
                units: row.tenths,
                scale: 1,
            };
            let values: [Value; 3] = [row.rising.into(), row.whole.into(), tenths.into()];
            series.insert_values(Steps(raw), &values).unwrap();
            let same = rows.entry(raw * unit_of(place).nanos()).or_default();
            if !keeps {
                same.clear();
            }
            same.push(row);
        }
        if rng.one_in(3) {
            let (from, to) = (rng.between(0, 3000), rng.between(3000, 3500));
            series.delete(Steps(from)..Steps(to)).unwrap();
            let nanos = unit_of(place).nanos();
            rows.retain(|&time, _| time < from * nanos || time >= to * nanos);
        }
        tx.commit().unwrap();
        if rng.one_in(4) {
            let nanos = unit_of(place).nanos();
            let (now, keep) = (rng.between(2000, 6000), rng.between(1000, 5000));
            let cut = aged::cut(db, &format!("s{place}"), now * nanos, keep * nanos);
            let before: usize = rows.values().map(Vec::len).sum();
            rows.retain(|&time, _| time >= (now - keep) * nanos);
            let left: usize = rows.values().map(Vec::len).sum();
            assert_eq!(cut, (before - left) as u64, "rows that a policy cuts");
        }
    }
    rows
}

fn memory() -> Database {
    tidalite_testkit::watch();
    let options = Options::new().page_size(1024);
    options
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn assert_same(found: &Aggregate, rows: &[(i64, Plain)], column: usize, what: &str) {
    let values = rows
        .iter()
        .filter_map(|(time, row)| Some((*time, row.value(column)?)));
    let values: Vec<(i64, f64)> = values.collect();
    assert_eq!(found.count(), values.len() as u64, "{what}: count");
    let times = rows.iter().map(|row| row.0);
    assert_eq!(
        found.times(),
        times.clone().min().zip(times.max()),
        "{what}: times"
    );
    let numbers = || values.iter().filter(|value| !value.1.is_nan());
    let extreme = |sign: f64| {
        let best = numbers()
            .map(|row| sign * row.1)
            .fold(f64::INFINITY, f64::min);
        let first = numbers().find(|row| sign * row.1 == best);
        first.map(|first| (sign * best + 0.0, first.0))
    };
    let plus = |found: Option<(f64, i64)>| found.map(|(value, time)| (value + 0.0, time));
    assert_eq!(plus(found.min()), extreme(1.0), "{what}: min");
    assert_eq!(plus(found.max()), extreme(-1.0), "{what}: max");
    if numbers().all(|row| row.1.is_finite()) {
        let sum: f64 = numbers().map(|row| row.1).sum();
        assert!((found.sum() - sum).abs() < 1e-6, "{what}: sum");
    }
    let end =
        |row: Option<&(i64, Plain)>| row.and_then(|row| row.1.value(column)).map(f64::to_bits);
    assert_eq!(
        found.first().map(f64::to_bits),
        end(rows.first()),
        "{what}: first"
    );
    assert_eq!(
        found.last().map(f64::to_bits),
        end(rows.last()),
        "{what}: last"
    );
}

/// Runs the queries of a random interval with random filters.
fn ask(rng: &mut Rng, series: &Series<'_>, plain: &Rows, nanos: i64) {
    let (from, to) = (rng.between(-10, 3000), rng.between(0, 6100));
    let wanted: Vec<Wanted> = (0..rng.between(0, 3)).map(|_| Wanted::any(rng)).collect();
    let what = format!("{wanted:?} in {from}..{to}");
    let inside = plain
        .iter()
        .filter(|(time, _)| (from..to).contains(&(*time / nanos)));
    let all = inside.flat_map(|(time, rows)| rows.iter().map(|row| (*time / nanos, *row)));
    let matching = |row: &(i64, Plain)| wanted.iter().all(|wanted| wanted.holds(&row.1));
    let expected: Vec<(i64, Plain)> = all.filter(matching).collect();
    let mut found = series.query(Steps(from)..Steps(to));
    for wanted in &wanted {
        found = found.filter(wanted.column, wanted.values());
    }
    assert_eq!(found.count().unwrap(), expected.len() as u64, "{what}");
    let column = rng.index(3);
    assert_same(&found.aggregate(column).unwrap(), &expected, column, &what);
    let (width, origin) = (rng.between(1, 2000), rng.between(-50, 50));
    let windows = found
        .windows((Steps(width), Steps(origin)), column)
        .unwrap();
    let window = |time: i64| (time - origin).div_euclid(width);
    let mut parts = expected.chunk_by(|a, b| window(a.0) == window(b.0));
    for found in &windows {
        let rows = parts.next().unwrap();
        assert_eq!(found.start, origin + window(rows[0].0) * width, "{what}");
        assert_same(&found.aggregate, rows, column, &what);
    }
    assert!(parts.next().is_none(), "{what}: a window is missing");
    let columns = [
        [0, 1, 2].to_vec(),
        [2, 0].to_vec(),
        [1].to_vec(),
        Vec::new(),
    ];
    let columns = rng.pick(&columns);
    let null = series.info().schema.columns[1].null().unwrap();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut parts = Vec::new();
        let asked = match direction {
            Direction::Forward => found.clone(),
            Direction::Backward => found.clone().reverse(),
        };
        let mut one_by_one = Vec::new();
        let count = asked.for_each(|time, words| one_by_one.push((time, words.to_vec())));
        assert_eq!(count.unwrap(), expected.len() as u64, "{what}");
        let rows = asked.columns(columns).for_each_vector(|vector| {
            let row = |row: usize| {
                let words = columns.iter().map(|&column| vector.words(column)[row]);
                (vector.times()[row], words.collect::<Vec<_>>())
            };
            parts.push((0..vector.times().len()).map(row).collect::<Vec<_>>());
        });
        if direction == Direction::Backward {
            parts.reverse();
        }
        let words = |row: &Plain| {
            let whole = row.whole.map_or(null, |whole| whole as u64);
            let all = [row.rising.to_bits(), whole, row.tenths as u64];
            columns
                .iter()
                .map(|&column| all[column])
                .collect::<Vec<_>>()
        };
        let whole = |row: &Plain| {
            let whole = row.whole.map_or(null, |whole| whole as u64);
            vec![row.rising.to_bits(), whole, row.tenths as u64]
        };
        let mut all: Vec<_> = expected.iter().map(|row| (row.0, whole(&row.1))).collect();
        if direction == Direction::Backward {
            all.reverse();
        }
        assert_eq!(one_by_one, all, "{what}");
        let expected: Vec<_> = expected.iter().map(|row| (row.0, words(&row.1))).collect();
        assert_eq!(parts.concat(), expected, "{what}");
        assert_eq!(rows.unwrap(), expected.len() as u64);
    }
}

fn join(rng: &mut Rng, chosen: &Selection<'_>, plain: &[Rows]) {
    let (from, to) = (rng.between(-10, 3000) * 500, rng.between(0, 6100) * 1000);
    let as_of = Join::AsOf {
        tolerance: *rng.pick(&[0, 700, 90_000, i64::MAX]),
    };
    let wanted: Vec<(usize, Wanted)> = (0..rng.index(4))
        .map(|_| (rng.index(plain.len()), Wanted::any(rng)))
        .collect();
    for join in [Join::Inner, Join::Outer, as_of] {
        let what = format!("{join:?} of {wanted:?} in {from}..{to}");
        let told: Vec<usize> = match join {
            Join::AsOf { .. } => vec![0],
            Join::Inner | Join::Outer => (0..plain.len()).collect(),
        };
        let times = told
            .iter()
            .flat_map(|&i| plain[i].range(from..to.max(from)));
        let mut times: Vec<i64> = times.map(|row| *row.0).collect();
        times.sort_unstable();
        times.dedup();
        let mut expected = Vec::new();
        for time in times {
            let at = |rows: &Rows| {
                let (at, same) = match join {
                    Join::AsOf { tolerance } => {
                        let row = rows.range(..=time).next_back()?;
                        (time - row.0 <= tolerance).then_some(row)?
                    }
                    Join::Inner | Join::Outer => rows.get_key_value(&time)?,
                };
                Some((*at, *same.last()?))
            };
            let row: Vec<Option<(i64, Plain)>> = plain.iter().map(at).collect();
            let wants = |(place, wanted): &(usize, Wanted)| {
                row[*place].is_some_and(|row| wanted.holds(&row.1))
            };
            if (join != Join::Inner || row.iter().all(Option::is_some)) && wanted.iter().all(wants)
            {
                let cells = row
                    .iter()
                    .map(|cell| cell.map(|(at, row)| (at, row.tenths as u64)));
                expected.push((time, cells.collect::<Vec<_>>()));
            }
        }
        let mut query = chosen.query(Timestamp(from)..Timestamp(to));
        for (place, wanted) in &wanted {
            query = query.filter_series(*place, wanted.column, wanted.values());
        }
        let mut rows = query.join(join).unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let cell = |i: usize| Some((row.time_of(i)?.0, row.words(i)?[2]));
            found.push((row.time.0, (0..plain.len()).map(cell).collect::<Vec<_>>()));
        }
        assert!(
            found == expected,
            "{what}: {} rows, expected {}",
            found.len(),
            expected.len()
        );
    }
}

#[test]
fn rows_that_match_their_windows_and_joins_equal_brute_force() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = memory();
        let count = rng.index(3) + 1;
        let plain: Vec<Rows> = (0..count).map(|i| fill(&db, i, &mut rng)).collect();
        let snap = db.begin_read().unwrap();
        let names = (0..count).map(|i| format!("s{i}"));
        let series = names.map(|name| snap.series(&name).unwrap().unwrap());
        let chosen = Selection::of(series.collect());
        for _ in 0..6 {
            for (i, series) in chosen.series().unwrap().iter().enumerate() {
                ask(&mut rng, series, &plain[i], unit_of(i).nanos());
                number(&mut rng, series, &plain[i], unit_of(i).nanos());
            }
            join(&mut rng, &chosen, &plain);
        }
        let wrong = chosen.series().unwrap()[0].query(..).filter(3, ..);
        assert!(wrong.count().is_err() && wrong.for_each_vector(|_| ()).is_err());
        let all = chosen.query(..);
        let wrong = all.clone().filter_series(0, 3, ..);
        assert!(wrong.join(Join::Outer).is_err() && wrong.rows().is_err());
        assert!(all.filter_series(count, 0, ..).join(Join::Outer).is_err());
    }
}

/// Reads rows by their index, and moves from there to the neighbouring rows.
fn number(rng: &mut Rng, series: &Series<'_>, plain: &Rows, nanos: i64) {
    let all = plain
        .iter()
        .flat_map(|(time, rows)| rows.iter().map(|row| (*time / nanos, *row)));
    let all: Vec<(i64, u64)> = all.map(|(time, row)| (time, row.tenths as u64)).collect();
    let told = |row: Option<tidalite::Row>| row.map(|row| (row.time, row.words[2]));
    let mut cursor = series.cursor();
    for _ in 0..4 {
        let n = rng.index(all.len() + 2);
        assert_eq!(told(cursor.nth(n as u64).unwrap()), all.get(n).copied());
        if rng.one_in(2) {
            assert_eq!(told(cursor.next().unwrap()), all.get(n + 1).copied());
        } else if n <= all.len() && n > 0 {
            assert_eq!(told(cursor.previous().unwrap()), all.get(n - 1).copied());
        }
    }
    assert_eq!(cursor.nth(u64::MAX).unwrap(), None);
}

/// If the extremes of a vector show that all of its rows match a filter, or that none does, the vector is not decoded.
#[test]
fn vectors_decided_by_extremes_are_not_decoded() {
    let db = memory();
    let schema = Schema::new(Unit::Nanos, [("value", ColumnType::I64)]);
    let mut tx = db.begin_write().unwrap();
    for name in ["rising", "other"] {
        let mut series = tx.series_with(name, &schema).unwrap();
        for time in 0..1_000_000_i64 {
            // The values are not exactly linear, because a line would need no decoding at all.
            let value = time + (time * 7919) % 100;
            series.insert_row(Steps(time), &[value as u64]).unwrap();
        }
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let decoded = || snap.counters().vectors_decoded.load(Ordering::Relaxed);
    let [rising, other] = ["rising", "other"].map(|name| snap.series(name).unwrap().unwrap());

    let before = decoded();
    let upper = rising.query(..).filter(0, 500_000.0..);
    let count = upper.count().unwrap();
    assert!((499_900..500_100).contains(&count), "{count}");
    assert!(
        decoded() - before <= 2,
        "{} of 977 vectors to count",
        decoded() - before
    );
    let before = decoded();
    assert_eq!(upper.aggregate(0).unwrap().count(), count);
    assert_eq!(
        upper.windows(Steps(i64::MAX), 0).unwrap()[0]
            .aggregate
            .count(),
        count
    );
    assert!(decoded() - before <= 4, "{} to sum up", decoded() - before);

    let before = decoded();
    let few = 700_000.0..=700_009.0;
    let both = Selection::of(vec![other, rising]);
    for join in [Join::Inner, Join::Outer] {
        let mut rows = both
            .query(..)
            .filter_series(1, 0, few.clone())
            .join(join)
            .unwrap();
        let mut found = 0;
        while let Some(row) = rows.next().unwrap() {
            assert_eq!(row.words(0), row.words(1));
            found += 1;
        }
        assert!(found > 0);
    }
    // A join reads the few matching vectors and the first vector of the other series.
    assert!(decoded() - before <= 12, "{} to join", decoded() - before);

    let before = decoded();
    let mut cursor = both.series().unwrap()[0].cursor();
    assert_eq!(
        cursor.nth(987_654).unwrap().map(|row| row.time),
        Some(987_654)
    );
    assert!(
        decoded() - before <= 3,
        "{} to find a row by its number",
        decoded() - before
    );
}
