//! Frequent or heavy items, compared with exact counting.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::functions::{Frequent, SpaceSaving};
use tidalite::storage::MemoryStorage;
use tidalite::{Column, ColumnType, ErrorKind, Options, Schema, Steps, Unit, Value};
use tidalite_testkit::rng::Rng;

/// A random item: few items occur often, many rarely.
fn skewed(rng: &mut Rng, items: i64) -> i64 {
    let reach = rng.between(1, items);
    let reach = rng.between(1, reach);
    rng.between(0, reach)
}

/// Checks the error bounds that the summary guarantees for any stream.
fn assert_kept(told: &SpaceSaving<i64>, truth: &BTreeMap<i64, f64>, exact_sum: bool) {
    let total: f64 = truth.values().sum();
    assert_eq!(told.total(), total);
    let bound = total / told.capacity() as f64;
    assert!(told.error_max() <= bound);
    let top = told.top(usize::MAX);
    assert!(top.len() <= told.capacity());
    assert!(top.is_sorted_by(|a, b| a.weight >= b.weight));
    for one in &top {
        let weight = truth[&one.item];
        assert!(one.at_least() <= weight && weight <= one.weight, "{one:?}");
        assert!(one.error <= told.error_max());
    }
    let sum: f64 = top.iter().map(|one| one.weight).sum();
    assert!(sum <= total && (!exact_sum || sum == total));
    let missing = |item: &i64| top.iter().all(|one| one.item != *item);
    for (item, &weight) in truth {
        assert!(!missing(item) || weight <= told.error_max(), "{item}");
    }
    for portion in [0.01, 0.05, 0.3] {
        let heavier = told.heavier_than(portion);
        for (item, weight) in truth {
            let told_of = heavier.iter().any(|one| one.item == *item);
            let owed = portion * told.capacity() as f64 >= 1.0 && *weight > portion * total;
            assert!(told_of || !owed, "{item} is missing above {portion}");
        }
    }
}

#[test]
fn space_saving_keeps_its_error_bound_under_merges() {
    for seed in 0..200 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let items = rng.between(1, 400);
        let mut all: Option<(SpaceSaving<i64>, BTreeMap<i64, f64>)> = None;
        for _ in 0..rng.between(1, 5) {
            let mut told = SpaceSaving::new(rng.below(120) as usize);
            let mut truth = BTreeMap::new();
            let shift = rng.between(0, 3) * 50;
            for _ in 0..rng.below(3000) {
                let (item, weight) = (skewed(&mut rng, items) + shift, rng.between(1, 9) as f64);
                told.add(item, weight).unwrap();
                *truth.entry(item).or_default() += weight;
            }
            told.add(-1, 0.0).unwrap();
            told.add(-1, f64::NAN).unwrap();
            told.add(-1, f64::INFINITY).unwrap();
            assert_kept(&told, &truth, true);
            let Some((whole, sums)) = &mut all else {
                all = Some((told, truth));
                continue;
            };
            whole.merge(&told).unwrap();
            for (item, weight) in truth {
                *sums.entry(item).or_default() += weight;
            }
            assert_kept(whole, sums, false);
            // A merged summary accepts further items, as any summary does.
            for _ in 0..rng.below(500) {
                let item = skewed(&mut rng, items);
                whole.add(item, 1.0).unwrap();
                *sums.entry(item).or_default() += 1.0;
            }
            assert_kept(whole, sums, false);
        }
    }
}

#[test]
fn values_of_a_column_are_counted_wherever_they_are() {
    for seed in 0..6 {
        println!("seed {seed}");
        tidalite_testkit::watch();
        let mut rng = Rng::new(seed);
        let storage = Arc::new(MemoryStorage::new());
        let db = Options::new().open_storage(storage).unwrap();
        let schema = Schema::new(Unit::Nanos, [("bytes", ColumnType::F64)])
            .with(Column::nullable("client", ColumnType::String))
            .with(Column::new("code", ColumnType::I64));
        let mut rows = BTreeMap::new();
        for _ in 0..3 {
            let mut tx = db.begin_write().unwrap();
            let mut log = tx.series_with("log", &schema).unwrap();
            for _ in 0..rng.between(1, 2000) {
                let time = rng.between(0, 5000);
                // Short texts are in the dictionary and have one number each; each occurrence of a long text has its
                // own number.
                let long = "x".repeat(if rng.one_in(3) { 200 } else { 0 });
                let client = format!("{}{long}", skewed(&mut rng, 40));
                let client = (!rng.one_in(9)).then_some(client);
                let bytes = *rng.pick(&[1.0, 2.5, 7.0, -3.0, 0.0, -0.0, f64::NAN, f64::INFINITY]);
                let code = skewed(&mut rng, 30);
                let values = [bytes.into(), client.clone().into(), code.into()];
                log.insert_values(Steps(time), &values).unwrap();
                rows.insert(time, (bytes, client, code));
            }
            tx.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        let log = snap.series("log").unwrap().unwrap();
        let (from, to) = (rng.between(0, 2000), rng.between(2000, 5000));
        let range = log.query(Steps(from)..Steps(to));
        let rows = || rows.range(from..to).map(|(_, row)| row);

        let mut codes: BTreeMap<i64, f64> = BTreeMap::new();
        rows().for_each(|row| *codes.entry(row.2).or_default() += 1.0);
        let exact = |found: Vec<Frequent<Value>>| -> BTreeMap<String, f64> {
            assert!(found.iter().all(|one| one.error == 0.0));
            found
                .into_iter()
                .map(|one| (one.item.to_string(), one.weight))
                .collect()
        };
        let named = codes
            .iter()
            .map(|(code, &weight)| (code.to_string(), weight));
        assert_eq!(
            exact(range.frequent_items(2, 100).unwrap()),
            named.collect()
        );
        let few = range.frequent_items(2, 5).unwrap();
        assert!(few.len() <= 5);
        let bound = codes.values().sum::<f64>() / 5.0;
        for one in &few {
            let Value::I64(code) = one.item else {
                panic!("{one:?}")
            };
            assert!(one.at_least() <= codes[&code] && codes[&code] <= one.weight);
            assert!(one.error <= bound);
        }

        let mut clients: BTreeMap<String, f64> = BTreeMap::new();
        let mut heavy: BTreeMap<String, f64> = BTreeMap::new();
        let mut bytes: BTreeMap<String, f64> = BTreeMap::new();
        for (weight, client, _) in rows() {
            let one = if *weight == 0.0 { 0.0 } else { *weight };
            *bytes.entry(one.to_string()).or_default() += 1.0;
            let Some(client) = client else { continue };
            *clients.entry(client.clone()).or_default() += 1.0;
            if *weight > 0.0 && weight.is_finite() {
                *heavy.entry(client.clone()).or_default() += weight;
            }
        }
        assert_eq!(exact(range.frequent_items(1, 200).unwrap()), clients);
        assert_eq!(exact(range.heavy_hitters(1, 0, 200).unwrap()), heavy);
        assert_eq!(exact(range.frequent_items(0, 20).unwrap()), bytes);
        assert_eq!(
            range.frequent_items(1, 3).unwrap(),
            range.frequent_items(1, 3).unwrap()
        );
        assert!(range.frequent_items(3, 5).is_err());
        assert!(range.heavy_hitters(1, 3, 5).is_err());
        assert!(range.heavy_hitters(0, 1, 5).is_err());
        assert!(
            log.query(Steps(5)..Steps(5))
                .frequent_items(1, 0)
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn weights_beyond_every_number_are_refused() {
    let mut told = SpaceSaving::new(2);
    told.add(1, f64::MAX).unwrap();
    for item in [1, 2, 3] {
        let refused = told.add(item, f64::MAX);
        assert!(
            matches!(refused, Err(ref error) if error.kind() == ErrorKind::InvalidInput),
            "{refused:?}"
        );
    }
    let refused = told.merge(&told.clone());
    assert!(
        matches!(refused, Err(ref error) if error.kind() == ErrorKind::InvalidInput),
        "{refused:?}"
    );
    assert_eq!((told.total(), told.top(9).len()), (f64::MAX, 1));
    told.add(2, 1.0).unwrap();
    assert_eq!(told.top(1)[0].weight, f64::MAX);

    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let columns = [("client", ColumnType::String), ("bytes", ColumnType::F64)];
    let mut log = tx
        .series_with("log", &Schema::new(Unit::Seconds, columns))
        .unwrap();
    for time in 0..3 {
        log.insert_values(Steps(time), &["one".into(), Value::F64(f64::MAX)])
            .unwrap();
    }
    let log = log.view().unwrap();
    let refused = log.query(..).heavy_hitters(0, 1, 10);
    assert!(
        matches!(refused, Err(ref error) if error.kind() == ErrorKind::InvalidInput),
        "{refused:?}"
    );
    let refused = log.query(..).heavy_hitters(1, 1, 10);
    assert!(
        matches!(refused, Err(ref error) if error.kind() == ErrorKind::InvalidInput),
        "{refused:?}"
    );
    assert_eq!(log.query(..).frequent_items(1, 10).unwrap()[0].weight, 3.0);
}
