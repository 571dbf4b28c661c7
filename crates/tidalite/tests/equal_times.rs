//! Inserts of rows whose time already has a row: each merge policy is compared with a sorted map, wherever the rows are
//! stored.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{
    Database, Error, ErrorKind, MergePolicy, Options, Series, SeriesMut, Steps, Tuning,
};
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<i64, [u64; 2]>;

const TIMES: i64 = 9_000;

fn open(storage: &Arc<MemoryStorage>, rng: &mut Rng) -> Database {
    tidalite_testkit::watch();
    let write_buffer = *rng.pick(&[1 << 12, 1 << 16, 1 << 22]);
    let options = Options::new()
        .page_size(4096)
        .tuning(Tuning::new().write_buffer_bytes(write_buffer));
    let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(storage);
    options.open_storage(storage).expect("it opens")
}

/// Inserts a row into the model as the merge policy says; returns false if the policy refuses the row.
fn insert(model: &mut Model, merge: MergePolicy, time: i64, row: [u64; 2]) -> bool {
    match merge {
        MergePolicy::Error if model.contains_key(&time) => return false,
        MergePolicy::KeepFirst => {
            model.entry(time).or_insert(row);
        }
        _ => {
            model.insert(time, row);
        }
    }
    true
}

fn refused(error: &Error, label: &str) -> bool {
    error.kind() == ErrorKind::AlreadyExists && error.series() == Some(label)
}

fn equal(series: &Series<'_>, model: &Model, rng: &mut Rng, seed: u64) {
    assert_eq!(
        series.count().expect("count"),
        model.len() as u64,
        "seed {seed}"
    );
    let mut rows = Vec::new();
    let put = |time: i64, words: &[u64]| rows.push((time, [words[0], words[1]]));
    series.query(..).for_each(put).expect("scan");
    let expected: Vec<_> = model.iter().map(|(&time, &row)| (time, row)).collect();
    assert_eq!(rows, expected, "seed {seed}");
    let latest = series.latest().expect("latest").map(|row| row.time);
    assert_eq!(latest, model.keys().next_back().copied(), "seed {seed}");
    let from = rng.between(0, TIMES);
    let to = from + rng.between(0, 2000);
    let inside = model.range(from..to);
    let sum: f64 = inside.clone().map(|(_, row)| f64::from_bits(row[1])).sum();
    let whole = series
        .query(Steps(from)..Steps(to))
        .aggregate(1)
        .expect("aggregate");
    assert_eq!(whole.count(), inside.count() as u64, "seed {seed}");
    assert_eq!(whole.sum(), sum, "seed {seed}");
}

fn one_row(series: &mut SeriesMut<'_>, model: &mut Model, merge: MergePolicy, rng: &mut Rng) {
    let newest = model.keys().next_back().copied().unwrap_or(0);
    let time = match rng.below(4) {
        0 => rng.between(0, TIMES),
        1 => newest,
        _ => newest + rng.between(1, 3),
    };
    let row = [rng.below(9), (rng.below(1000) as f64).to_bits()];
    let label = series.info().label();
    let done = series.insert_point(Steps(time), row[0] as i64, f64::from_bits(row[1]));
    match (insert(model, merge, time, row), done) {
        (true, Ok(())) => {}
        (false, Err(error)) => assert!(refused(&error, &label), "{error}"),
        (expected, found) => panic!("row at {time}: {expected}, {found:?}"),
    }
}

fn many_rows(series: &mut SeriesMut<'_>, model: &mut Model, merge: MergePolicy, rng: &mut Rng) {
    let newest = model.keys().next_back().copied().unwrap_or(0);
    let count = rng.between(1, 2500);
    let scattered = rng.one_in(2);
    let mut times: Vec<i64> = (0..count)
        .map(|i| match scattered {
            true => rng.between(0, TIMES),
            false => newest + 1 + i,
        })
        .collect();
    if merge == MergePolicy::Error && scattered && rng.one_in(2) {
        // Makes a batch that the policy accepts: only times without a row, each of them once.
        times.sort_unstable();
        times.dedup();
        times.retain(|time| !model.contains_key(time));
        for i in (1..times.len()).rev() {
            times.swap(i, rng.index(i + 1));
        }
    }
    let flags: Vec<u64> = times.iter().map(|_| rng.below(9)).collect();
    let values: Vec<u64> = times
        .iter()
        .map(|_| (rng.below(1000) as f64).to_bits())
        .collect();
    let label = series.info().label();
    let done = series.append_rows(&times, &[&flags, &values]);
    let mut next = model.clone();
    let fits = (0..times.len()).all(|i| insert(&mut next, merge, times[i], [flags[i], values[i]]));
    match (fits, done) {
        (true, Ok(())) => *model = next,
        (false, Err(error)) => assert!(refused(&error, &label), "{error}"),
        (expected, found) => panic!("{} rows: {expected}, {found:?}", times.len()),
    }
}

fn run(merge: MergePolicy, seed: u64) {
    let mut rng = Rng::new(seed);
    let storage = Arc::new(MemoryStorage::new());
    let mut db = open(&storage, &mut rng);
    let name = "a";
    let mut model = Model::new();
    for _ in 0..30 {
        let mut tx = db.begin_write().expect("it is done");
        let mut series = tx
            .open_series(name)
            .merge(merge)
            .open()
            .expect("it is done");
        let mut next = model.clone();
        for _ in 0..rng.below(5) {
            match rng.below(8) {
                0 => {
                    let from = rng.between(0, TIMES);
                    let to = from + rng.between(0, 900);
                    let before = next.len();
                    next.retain(|&time, _| time < from || time >= to);
                    let removed = series.delete(Steps(from)..Steps(to)).expect("it is done");
                    assert_eq!(removed as usize, before - next.len(), "seed {seed}");
                }
                1 => equal(&series.view().expect("it is done"), &next, &mut rng, seed),
                2..=3 => many_rows(&mut series, &mut next, merge, &mut rng),
                _ => {
                    for _ in 0..rng.below(60) {
                        one_row(&mut series, &mut next, merge, &mut rng);
                    }
                }
            }
        }
        if rng.one_in(4) {
            let savepoint = tx.savepoint().expect("it is done");
            let mut series = tx.series(name).expect("it is done");
            let mut undone = next.clone();
            many_rows(&mut series, &mut undone, merge, &mut rng);
            one_row(&mut series, &mut undone, merge, &mut rng);
            tx.rollback_to(&savepoint).expect("it is done");
            let mut series = tx.series(name).expect("it is done");
            one_row(&mut series, &mut next, merge, &mut rng);
        }
        if !rng.one_in(6) {
            tx.commit().expect("it is done");
            model = next;
        }
        if rng.one_in(5) {
            drop(db);
            db = open(&storage, &mut rng);
        }
        let snap = db.begin_read().expect("it is done");
        if let Some(series) = snap.series(name).expect("it is done") {
            equal(&series, &model, &mut rng, seed);
        }
    }
    let report = db.check().expect("it is done");
    assert!(report.is_clean(), "seed {seed}: {:?}", report.problems);
}

#[test]
fn every_policy_equals_a_sorted_map() {
    // `KeepAll` and `KeepDistinct` need a different model: tests/keep_all.rs and tests/keep_distinct.rs test them.
    for merge in [
        MergePolicy::Replace,
        MergePolicy::KeepFirst,
        MergePolicy::Error,
    ] {
        for seed in 0..8 {
            run(merge, seed);
        }
    }
}

#[test]
fn a_refused_row_leaves_the_transaction_as_it_was() {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let db = Options::new().open_storage(storage).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx
        .open_series("a")
        .merge(MergePolicy::Error)
        .open()
        .unwrap();
    series.insert(Steps(5), 1.0).unwrap();
    let error = series.insert(Steps(5), 2.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "series a already has a row at 5, and its merge policy refuses another: skip the row, delete the existing one, or set another policy"
    );
    // A batch is stored as a whole or not at all, even if it conflicts with itself.
    let (flags, values) = ([0u64; 3], [0u64; 3]);
    for times in [[6, 7, 5], [6, 7, 6]] {
        let error = series.append_rows(&times, &[&flags, &values]).unwrap_err();
        assert!(refused(&error, "a"), "{error}");
    }
    assert_eq!(series.view().unwrap().count().unwrap(), 1);
    // Times whose rows were deleted may be used again; with another policy the newest row wins.
    assert_eq!(series.delete(Steps(5)..Steps(6)).unwrap(), 1);
    series.insert(Steps(5), 3.0).unwrap();
    series.set_merge(MergePolicy::Replace).unwrap();
    series.insert(Steps(5), 4.0).unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series("a").unwrap().unwrap();
    assert_eq!(series.latest().unwrap().unwrap().f64(1), 4.0);
    assert_eq!(series.info().merge, MergePolicy::Replace);
    let mut tx = db.begin_write().unwrap();
    let asked = tx.open_series("a").merge(MergePolicy::Error).open();
    assert!(matches!(asked.err(), Some(ref error) if error.kind() == ErrorKind::Schema));
}

#[test]
fn annotations_are_compared_and_set_and_go_with_their_series() {
    tidalite_testkit::watch();
    let dir = std::env::temp_dir().join(format!("tidalite-annotations-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (path, copied) = (dir.join("a.tdl"), dir.join("copy.tdl"));
    let rescued = dir.join("saved.tdl");
    let db = Database::open(&path).unwrap();
    let mut tx = db.begin_write().unwrap();
    for name in ["a", "b"] {
        let mut series = tx
            .open_series(name)
            .merge(MergePolicy::KeepFirst)
            .open()
            .unwrap();
        series.insert(Steps(1), 1.0).unwrap();
        series.annotate("unit", "m/s").unwrap();
        series.annotate("site", "north").unwrap();
    }
    let mut series = tx.series("a").unwrap();
    assert!(
        !series
            .compare_annotation("unit", None, Some("km/h"))
            .unwrap()
    );
    assert!(
        !series
            .compare_annotation("unit", Some("mph"), Some("km/h"))
            .unwrap()
    );
    assert!(
        series
            .compare_annotation("unit", Some("m/s"), Some("km/h"))
            .unwrap()
    );
    assert!(
        series
            .compare_annotation("site", Some("north"), None)
            .unwrap()
    );
    assert!(series.annotate("", "x").is_err());
    // Key and text of an annotation may be as long as the limit, but not one byte longer.
    let (key, text) = ("k".repeat(64), "x".repeat(4096));
    series.annotate(&key, &text).unwrap();
    assert_eq!(series.annotation(&key).unwrap(), Some(text.clone()));
    assert!(series.remove_annotation(&key).unwrap());
    assert!(series.annotate(&format!("{key}k"), "x").is_err());
    assert!(series.annotate("k", &format!("{text}x")).is_err());
    tx.commit().unwrap();
    // A transaction that is rolled back changes nothing.
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("a").unwrap();
    assert!(series.remove_annotation("unit").unwrap());
    assert_eq!(series.annotation("unit").unwrap(), None);
    drop(tx);
    let annotations = |db: &Database, name: &str| {
        let snap = db.begin_read().unwrap();
        let series = snap.series(name).unwrap().unwrap();
        assert_eq!(series.info().merge, MergePolicy::KeepFirst);
        series.annotations().unwrap()
    };
    let word = |key: &str, text: &str| (key.to_owned(), text.to_owned());
    assert_eq!(annotations(&db, "a"), [word("unit", "km/h")]);
    db.begin_read().unwrap().copy().to(&copied).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.remove_series("b").unwrap();
    tx.commit().unwrap();
    assert!(db.check().unwrap().is_clean());
    drop(db);
    let copy = Database::open(&copied).unwrap();
    assert_eq!(annotations(&copy, "a"), [word("unit", "km/h")]);
    assert_eq!(
        annotations(&copy, "b"),
        [word("site", "north"), word("unit", "m/s")]
    );
    drop(copy);
    tidalite::maintenance::Salvage::of(&path)
        .to(&rescued)
        .unwrap();
    let saved = Database::open(&rescued).unwrap();
    assert_eq!(annotations(&saved, "a"), [word("unit", "km/h")]);
    assert!(saved.check().unwrap().is_clean());
    drop(saved);
    std::fs::remove_dir_all(dir).unwrap();
}
