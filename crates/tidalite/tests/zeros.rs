//! The two zeros and NaN: filters match them correctly, extremes are right, and no vector with a match is skipped.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::ops::Bound;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Column, ColumnType, Database, Options, Schema, Steps, Unit, Value};
use tidalite_testkit::rng::Rng;

/// Runs of thousands of rows, each with few different values, so that the extremes of leaves and vectors are often one
/// of the zeros. Late rows are inserted between them.
fn values(rng: &mut Rng) -> Vec<Option<f64>> {
    let sets: [&[Option<f64>]; 9] = [
        &[Some(-0.0)],
        &[Some(0.0)],
        &[Some(0.0), Some(-0.0)],
        &[Some(f64::NAN)],
        &[Some(f64::NAN), Some(-0.0), None],
        &[Some(-0.0), Some(-5e-324), Some(-1.0)],
        &[Some(0.0), Some(5e-324), Some(1.0)],
        &[None],
        &[
            Some(f64::NEG_INFINITY),
            Some(f64::INFINITY),
            Some(-f64::NAN),
            Some(-0.0),
        ],
    ];
    let mut values = Vec::new();
    for _ in 0..20 {
        let set = sets[rng.index(sets.len())];
        let rows = 500 + rng.index(2500);
        values.extend((0..rows).map(|_| set[rng.index(set.len())]));
    }
    values
}

fn stored(ty: ColumnType, rng: &mut Rng) -> (Database, Vec<Option<f64>>) {
    tidalite_testkit::watch();
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let narrow = |value: f64| match ty {
        ColumnType::F32 => f64::from(value as f32),
        _ => value,
    };
    let mut values: Vec<Option<f64>> = values(rng);
    values
        .iter_mut()
        .for_each(|value| *value = value.map(narrow));
    let schema = Schema {
        unit: Unit::Nanos,
        columns: vec![Column::nullable("x", ty)],
    };
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_with("s", &schema).unwrap();
    let value = |value: Option<f64>| match (value, ty) {
        (None, _) => Value::Null,
        (Some(x), ColumnType::F32) => Value::from(x as f32),
        (Some(x), _) => Value::F64(x),
    };
    for (time, &x) in values.iter().enumerate() {
        series
            .insert_values(Steps(time as i64), &[value(x)])
            .unwrap();
    }
    tx.commit().unwrap();
    // Adds late rows, which go to the delta.
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_with("s", &schema).unwrap();
    for _ in 0..50 {
        let time = rng.index(values.len());
        let x = [Some(0.0), Some(-0.0), Some(f64::NAN), None][rng.index(4)];
        values[time] = x;
        series
            .insert_values(Steps(time as i64), &[value(x)])
            .unwrap();
    }
    tx.commit().unwrap();
    (db, values)
}

#[test]
fn a_filter_matches_as_numbers_compare_and_loses_no_row() {
    for (seed, ty) in [ColumnType::F64, ColumnType::F32, ColumnType::F64]
        .into_iter()
        .enumerate()
    {
        let mut rng = Rng::new(seed as u64);
        let (db, values) = stored(ty, &mut rng);
        let snap = db.begin_read().unwrap();
        let series = snap.series("s").unwrap().unwrap();
        let ends = [
            -1.0,
            -5e-324,
            -0.0,
            0.0,
            5e-324,
            1.0,
            f64::NEG_INFINITY,
            f64::INFINITY,
            f64::NAN,
        ];
        let bounds: Vec<Bound<f64>> = ends
            .into_iter()
            .flat_map(|end| [Bound::Included(end), Bound::Excluded(end)])
            .chain([Bound::Unbounded])
            .collect();
        for low in &bounds {
            for high in &bounds {
                let matches = |x: &Option<f64>| {
                    x.is_some_and(|x| {
                        let above = match *low {
                            Bound::Included(low) => x >= low,
                            Bound::Excluded(low) => x > low,
                            Bound::Unbounded => !x.is_nan(),
                        };
                        above
                            && match *high {
                                Bound::Included(high) => x <= high,
                                Bound::Excluded(high) => x < high,
                                Bound::Unbounded => !x.is_nan(),
                            }
                    })
                };
                let expected: Vec<i64> = (0..values.len())
                    .filter(|&time| matches(&values[time]))
                    .map(|time| time as i64)
                    .collect();
                let mut found: Vec<i64> = Vec::new();
                let take = |vector: &tidalite::Vector<'_>| found.extend(vector.times());
                let matching = series.query(..).filter(0, (*low, *high));
                let vectors = matching.clone().columns::<usize>([]);
                vectors.for_each_vector(take).unwrap();
                // These calls use statistics where the extremes of a vector show that all rows match, or that none
                // does.
                assert_eq!(matching.count().unwrap(), expected.len() as u64);
                let count = matching.aggregate(0).unwrap().count();
                assert_eq!(count, expected.len() as u64);
                assert!(found == expected, "{ty:?}, {low:?} to {high:?}");
            }
        }
    }
}

#[test]
fn extremes_are_the_same_whatever_the_order_and_a_filter_finds_them() {
    let mut rng = Rng::new(9);
    let (db, values) = stored(ColumnType::F64, &mut rng);
    let snap = db.begin_read().unwrap();
    let series = snap.series("s").unwrap().unwrap();
    for _ in 0..300 {
        let from = rng.index(values.len());
        let to = (from + 1 + rng.index(4000)).min(values.len());
        let range = series.query(Steps(from as i64)..Steps(to as i64));
        let aggregate = range.aggregate(0).unwrap();
        let numbers = (from..to).filter_map(|time| Some((values[time]?, time as i64)));
        let numbers: Vec<(f64, i64)> = numbers.filter(|(x, _)| !x.is_nan()).collect();
        // -0.0 lies just before 0.0, and of equal values the first one counts.
        let least = numbers
            .iter()
            .copied()
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let greatest = numbers
            .iter()
            .copied()
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let bits = |found: Option<(f64, i64)>| found.map(|(x, time)| (x.to_bits(), time));
        assert_eq!(bits(aggregate.min()), bits(least));
        assert_eq!(bits(aggregate.max()), bits(greatest));
        for (bound, time) in [aggregate.min(), aggregate.max()].into_iter().flatten() {
            let mut found: Vec<i64> = Vec::new();
            let take = |vector: &tidalite::Vector<'_>| found.extend(vector.times());
            let matching = range.clone().filter(0, bound..=bound);
            let count = matching.columns::<usize>([]).for_each_vector(take).unwrap();
            assert!(found.contains(&time), "{bound} at {time}");
            // A filter for a value finds all rows that are equal as numbers, including the other zero.
            let equal = numbers.iter().filter(|(x, _)| *x == bound).count();
            assert_eq!(count, equal as u64);
        }
    }
}
