//! Compares segments of three points, in which every insert soon reaches a boundary, with a `BTreeMap`.

use std::collections::BTreeMap;

use super::segment::Point as _;
use super::*;
use crate::os::TempDir;
use crate::records::Reading;

const MAP_BYTES: usize = 64 << 20;

type Model = BTreeMap<i64, f64>;

fn reading(time: i64, value: f64) -> Reading {
    Reading {
        time,
        flags: 0,
        value,
    }
}

fn guid(n: u8) -> Guid {
    Guid([n; 16])
}

fn next(state: &mut u64) -> u64 {
    crate::records::splitmix(state)
}

/// Compares all cursor operations with the model.
fn compare(cursor: &mut SeriesCursor<'_, Reading>, model: &Model, seed: u64) {
    let mut seen = Vec::new();
    let count = cursor.for_each(|p| seen.push((p.time, p.value))).unwrap();
    let want: Vec<_> = model.iter().map(|(t, v)| (*t, *v)).collect();
    assert_eq!(seen, want, "seed {seed}");
    assert_eq!(count, want.len());

    assert_eq!(cursor.first().unwrap(), !want.is_empty());
    let mut stepped = Vec::new();
    while let Some(p) = cursor.current() {
        stepped.push((p.time, p.value));
        if !cursor.next().unwrap() {
            break;
        }
    }
    assert_eq!(stepped, want, "seed {seed}: forward");
    assert_eq!(cursor.last().unwrap(), !want.is_empty());
    let mut back = Vec::new();
    while let Some(p) = cursor.current() {
        back.push((p.time, p.value));
        if !cursor.previous().unwrap() {
            break;
        }
    }
    back.reverse();
    assert_eq!(back, want, "seed {seed}: backward");

    for time in -2..45 {
        let floor = model.range(..=time).next_back().map(|(t, _)| *t);
        let at = floor.or_else(|| model.keys().next().copied());
        let found = cursor.search(time).unwrap();
        assert_eq!(
            cursor.current().map(|p| p.time()),
            at,
            "seed {seed}: search {time}"
        );
        let expected = match at {
            None => Found::Empty,
            Some(t) if t == time => Found::Equal,
            Some(t) if t < time => Found::Less,
            Some(_) => Found::Greater,
        };
        assert_eq!(found, expected, "seed {seed}: search {time}");
        let start = at.unwrap_or(0);
        let mut times = Vec::new();
        cursor.for_each_from(time, |p| times.push(p.time)).unwrap();
        assert!(
            times.iter().eq(model.range(start..).map(|(t, _)| t)),
            "seed {seed}: from {time}"
        );
        times.clear();
        let end = start + 7;
        cursor
            .for_each_between(time, end, |p| times.push(p.time))
            .unwrap();
        assert!(
            times.iter().eq(model.range(start..end).map(|(t, _)| t)),
            "seed {seed}: between {time} and {end}"
        );
    }
}

#[test]
fn inserts_anywhere_like_a_map() {
    for seed in 0..60 {
        let dir = TempDir::new("lmdb-model").unwrap();
        let engine = Engine::<Reading, 3>::open(dir.path(), MAP_BYTES).unwrap();
        let mut state = seed;
        let mut models = [Model::new(), Model::new(), Model::new()];
        for _ in 0..1 + next(&mut state) % 4 {
            let mut txn = engine.begin_write().unwrap();
            for _ in 0..next(&mut state) % 40 {
                let which = (next(&mut state) % 3) as usize;
                let time = (next(&mut state) % 40) as i64;
                let value = (next(&mut state) % 1000) as f64;
                txn.change_timeseries(guid(which as u8));
                txn.insert(&reading(time, value)).unwrap();
                models[which].insert(time, value);
                if next(&mut state).is_multiple_of(8) {
                    compare(&mut txn.read_current().unwrap(), &models[which], seed);
                }
            }
            txn.commit().unwrap();
        }
        let txn = engine.begin_read().unwrap();
        for (which, model) in models.iter().enumerate() {
            let mut cursor = txn.open_timeseries(guid(which as u8)).unwrap();
            compare(&mut cursor, model, seed);
            full_but_the_last(&mut cursor, seed);
        }
    }
}

fn full_but_the_last(cursor: &mut SeriesCursor<'_, Reading>, seed: u64) {
    let mut sizes = Vec::new();
    cursor
        .for_each_segment(|points| sizes.push(points.len()))
        .unwrap();
    if let Some((last, full)) = sizes.split_last() {
        assert!((1..=3).contains(last), "seed {seed}: {sizes:?}");
        assert!(full.iter().all(|len| *len == 3), "seed {seed}: {sizes:?}");
    }
}

#[test]
fn ascending_descending_and_interleaved() {
    let orders: [&dyn Fn(i64) -> i64; 3] = [&|i| i, &|i| 39 - i, &|i| (i * 17) % 40];
    for order in orders {
        let dir = TempDir::new("lmdb-orders").unwrap();
        let engine = Engine::<Reading, 3>::open(dir.path(), MAP_BYTES).unwrap();
        let mut txn = engine.begin_write().unwrap();
        txn.change_timeseries(guid(9));
        let mut model = Model::new();
        for time in (0..40).map(order) {
            txn.insert(&reading(time, time as f64)).unwrap();
            model.insert(time, time as f64);
        }
        compare(&mut txn.read_current().unwrap(), &model, 0);
        txn.commit().unwrap();
        let txn = engine.begin_read().unwrap();
        compare(&mut txn.open_timeseries(guid(9)).unwrap(), &model, 0);
    }
}

#[test]
fn a_dropped_transaction_leaves_nothing_and_a_reopened_engine_has_the_rest() {
    let dir = TempDir::new("lmdb-drop").unwrap();
    {
        let engine = Engine::<Reading, 3>::open(dir.path(), MAP_BYTES).unwrap();
        let mut txn = engine.begin_write().unwrap();
        txn.change_timeseries(guid(1));
        (0..10).for_each(|t| txn.insert(&reading(t, 1.0)).unwrap());
        txn.commit().unwrap();
        let mut txn = engine.begin_write().unwrap();
        txn.change_timeseries(guid(1));
        (0..50).for_each(|t| txn.insert(&reading(t, 2.0)).unwrap());
        drop(txn);
    }
    let engine = Engine::<Reading, 3>::open(dir.path(), MAP_BYTES).unwrap();
    let txn = engine.begin_read().unwrap();
    let model: Model = (0..10).map(|t| (t, 1.0)).collect();
    compare(&mut txn.open_timeseries(guid(1)).unwrap(), &model, 0);
}

#[test]
fn segments_of_the_articles_size_are_trimmed_at_the_end() {
    let dir = TempDir::new("lmdb-trim").unwrap();
    let engine = Engine::<Reading, SEGMENT_POINTS>::open(dir.path(), MAP_BYTES).unwrap();
    let mut txn = engine.begin_write().unwrap();
    txn.change_timeseries(guid(1));
    (0..20_000).for_each(|t| txn.insert(&reading(t, t as f64)).unwrap());
    // Inserts out of order within the last segment: one overwrites a point, and two go between existing points.
    txn.insert(&reading(19_000, -1.0)).unwrap();
    txn.insert(&reading(20_005, 1.0)).unwrap();
    txn.insert(&reading(20_003, 1.0)).unwrap();
    txn.commit().unwrap();
    let txn = engine.begin_read().unwrap();
    let mut cursor = txn.open_timeseries::<Reading>(guid(1)).unwrap();
    let mut sizes = Vec::new();
    cursor
        .for_each_segment(|points| sizes.push(points.len()))
        .unwrap();
    assert_eq!(sizes, [8100, 8100, 3802]);
    assert_eq!(cursor.search(19_000).unwrap(), Found::Equal);
    assert_eq!(cursor.current().unwrap().value, -1.0);
    assert_eq!(cursor.search(20_004).unwrap(), Found::Less);
    assert_eq!(cursor.current().unwrap().time, 20_003);
}
