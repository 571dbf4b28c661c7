//! Leaves in cold form, through the public API; and the errors of a build without the feature `cold`.

use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "cold")]
use tidalite::maintenance::Salvage;
use tidalite::retention::{Budget, Retention};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{Database, Options, Steps, Timestamp};
#[cfg(feature = "cold")]
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

const SECOND: i64 = 1_000_000_000;
const ROWS: i64 = 40_000;

/// Creates two series with values near five random walks with two decimals at irregular times, and one series of
/// constant steps.
fn filled(storage: Arc<dyn Storage>) -> Database {
    tidalite_testkit::watch();
    let db = Options::new().open_storage(storage).expect("a fresh file");
    let mut rng = Rng::new(3);
    let mut tx = db.begin_write().expect("a transaction");
    for name in ["walk.a", "walk.b", "steps"] {
        let mut walk = 0i64;
        for i in 0..ROWS {
            walk += rng.below(7) as i64 * rng.below(7) as i64 - 9;
            let jitter = match name {
                "steps" => 0,
                _ => rng.below(30_000) as i64 * rng.below(30_000) as i64 / 1000,
            };
            let mut series = tx.series(name).expect("a series");
            let value = (walk + 100_000 * rng.below(5) as i64) as f64 / 100.0;
            series
                .insert(Steps(i * SECOND + jitter), value)
                .expect("a row");
        }
    }
    tx.commit().expect("a commit");
    db
}

fn rows(db: &Database) -> Vec<(i64, u64)> {
    let snap = db.begin_read().expect("a snapshot");
    let mut rows = Vec::new();
    for name in ["walk.a", "walk.b", "steps"] {
        let series = snap.series(name).expect("a name").expect("a series");
        let all = series.query(..);
        all.for_each(|time, words| rows.push((time, words[1])))
            .expect("rows");
    }
    rows
}

fn leaf_bytes(db: &Database) -> u64 {
    db.stat().expect("figures").leaf_bytes
}

fn at(seconds: i64) -> Budget {
    Budget {
        now: Some(Timestamp(seconds * SECOND)),
        time: Duration::from_secs(600),
        ..Budget::default()
    }
}

/// `rewrite_cold` with `rows_max` zero still rewrites one leaf, and afterwards the tree agrees with its record in the
/// catalog. Otherwise a loop that calls it until nothing is left would never end.
#[test]
#[cfg(feature = "cold")]
fn no_rows_left_still_makes_a_leaf_cold() {
    tidalite_testkit::watch();
    let db = Options::new()
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("a").unwrap();
    for i in 0..400_000_i64 {
        let value = f64::from((i as u32).wrapping_mul(2_654_435_761) >> 20);
        series
            .insert_point(Steps(i * 1000 + i % 7), 0, value)
            .unwrap();
    }
    tx.commit().unwrap();
    for _ in 0..4 {
        let mut tx = db.begin_write().unwrap();
        tx.series("a").unwrap().rewrite_cold(i64::MAX, 0).unwrap();
        tx.commit().unwrap();
        let report = db.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
    let snap = db.begin_read().unwrap();
    let count = snap.series("a").unwrap().unwrap().count().unwrap();
    assert_eq!(count, 400_000);
}

#[test]
#[cfg(feature = "cold")]
fn old_rows_become_cold_and_keep_their_values() {
    let storage = Arc::new(MemoryStorage::new());
    let db = filled(Arc::clone(&storage) as Arc<dyn Storage>);
    let (before, bytes) = (rows(&db), leaf_bytes(&db));
    let pin = db.begin_read().unwrap();

    // First way: a call that names series and an end time.
    let half = Timestamp(ROWS / 2 * SECOND);
    let done = db.rewrite_cold("walk*", half, &at(0)).unwrap();
    assert_eq!(done.series, 2);
    assert!(done.rows > 20_000 && done.rows <= ROWS as u64, "{done:?}");
    assert!(
        done.bytes_after < done.bytes_before && !done.more,
        "{done:?}"
    );
    assert_eq!(rows(&db), before);
    let again = db.rewrite_cold("walk*", half, &at(0)).unwrap();
    assert_eq!((again.rows, again.commits), (0, 0));

    // Second way: a retention policy, once the rows are old enough.
    let policy = Retention {
        cold: Some(Duration::from_secs(100)),
        ..Retention::default()
    };
    let mut tx = db.begin_write().unwrap();
    tx.set_retention("old", &policy).unwrap();
    tx.commit().unwrap();
    assert_eq!(db.begin_read().unwrap().retentions().unwrap()[0].1, policy);
    let done = db.maintain(&at(ROWS / 2)).unwrap();
    assert_eq!((done.rows, done.more), (0, false));
    let done = db.maintain(&at(2 * ROWS)).unwrap();
    assert!(done.cold.rows > 60_000, "{done:?}");
    assert_eq!(db.maintain(&at(2 * ROWS)).unwrap().cold.rows, 0);
    assert_eq!(rows(&db), before);
    let cold = leaf_bytes(&db);
    println!("{bytes} bytes of leaves hot, {cold} cold");
    assert!(cold < bytes, "{bytes} bytes hot, {cold} cold");
    // Measured: 2.842 bytes per row in cold form, and 4.148 in the ordinary form.
    let written = 3 * ROWS as u64;
    assert!(cold * 100 < written * 290, "{bytes} bytes hot, {cold} cold");
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");

    // With no time left nothing is done, and the result reports that.
    let mut tx = db.begin_write().unwrap();
    let late = (0..2000).map(|i| (i * SECOND + 77, 0.5));
    let mut series = tx.series("walk.a").unwrap();
    late.for_each(|(time, value)| series.insert(Steps(time), value).unwrap());
    tx.commit().unwrap();
    let none = Budget {
        time: Duration::ZERO,
        ..at(2 * ROWS)
    };
    assert!(db.maintain(&none).unwrap().more);
    // Third way: in steps, in the caller's own transaction.
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("walk.a").unwrap();
    let mut steps = 0;
    while series.rewrite_cold(i64::MAX, 1).unwrap().more {
        steps += 1;
    }
    assert_eq!(series.view().unwrap().count().unwrap(), ROWS as u64 + 2000);
    drop(tx);
    println!("{steps} more steps");

    // Cold leaves survive a delete, a compaction, a copy and a salvage.
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("walk.a").unwrap();
    series.delete(..Steps(1000 * SECOND)).unwrap();
    tx.commit().unwrap();
    drop(pin);
    while !db.compact(1 << 20).unwrap().done {}
    assert!(db.check().unwrap().is_clean());
    let expected = rows(&db);
    let snap = db.begin_read().unwrap();
    let path = std::env::temp_dir().join(format!("tidalite-cold-{}.tdl", std::process::id()));
    snap.copy().to(&path).unwrap();
    drop(snap);
    let copy = Options::new().open(&path).unwrap();
    assert_eq!(rows(&copy), expected);
    drop(copy);
    std::fs::remove_file(&path).unwrap();
    let _ = std::fs::remove_file(path.with_extension("tdl-lock"));
    drop(db);
    let saved = Options::new()
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let report = Salvage::of_storage(storage).to_database(&saved).unwrap();
    println!("{} rows saved", report.rows());
    assert_eq!(rows(&saved), expected);
}

/// Without any policy, maintenance rewrites leaves of more than thirty days where that saves a tenth, and does not read
/// the others again.
#[test]
#[cfg(feature = "cold")]
fn old_rows_become_cold_by_default_where_that_saves_a_tenth() {
    let db = filled(Arc::new(MemoryStorage::new()));
    let mut rng = Rng::new(4);
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("noise").unwrap();
    for i in 0..ROWS {
        series.insert(Steps(i * SECOND), rng.f64()).unwrap();
    }
    tx.commit().unwrap();
    let before = rows(&db);
    let day = 86_400;
    let young = db.maintain(&at(30 * day)).unwrap();
    assert_eq!(young.cold.rows, 0);
    let never = Budget {
        cold: None,
        ..at(40 * day)
    };
    assert_eq!(db.maintain(&never).unwrap().cold.rows, 0);
    let done = db.maintain(&at(40 * day)).unwrap().cold;
    println!("{done:?}");
    assert!(done.rows > 60_000 && !done.more, "{done:?}");
    // The rows of "noise" do not become smaller.
    assert!(done.rows <= 3 * ROWS as u64, "{done:?}");
    assert!(
        done.bytes_after <= done.bytes_before - done.bytes_before / 10,
        "{done:?}"
    );
    let again = db.maintain(&at(40 * day)).unwrap().cold;
    assert_eq!((again.rows, again.commits, again.more), (0, 0, false));
    assert_eq!(rows(&db), before);
    assert!(db.check().unwrap().is_clean());

    // A policy counts for its series instead of the default.
    let policy = Retention {
        cold: Some(Duration::from_secs(100 * 86_400)),
        ..Retention::default()
    };
    let mut tx = db.begin_write().unwrap();
    tx.set_retention("late", &policy).unwrap();
    let mut series = tx.series("walk.c").unwrap();
    for i in 0..ROWS {
        let value = (rng.below(5) * 100_000 + rng.below(1000)) as f64;
        series.insert(Steps(i * SECOND), value).unwrap();
    }
    tx.commit().unwrap();
    assert_eq!(db.maintain(&at(90 * day)).unwrap().cold.rows, 0);
    assert!(db.maintain(&at(101 * day)).unwrap().cold.rows > 20_000);
}

#[test]
#[cfg(not(feature = "cold"))]
fn a_build_without_the_feature_names_it() {
    let db = filled(Arc::new(MemoryStorage::new()));
    let before = (rows(&db), leaf_bytes(&db));
    let error = db
        .rewrite_cold("", Timestamp(i64::MAX), &at(0))
        .expect_err("no feature");
    assert!(error.to_string().contains("the feature `cold`"), "{error}");
    // Any build stores a policy; only a build with the feature applies it.
    let mut tx = db.begin_write().unwrap();
    let policy = Retention {
        keep: Some(Duration::from_secs(1_000_000)),
        cold: Some(Duration::from_secs(100)),
        ..Retention::default()
    };
    tx.set_retention("old", &policy).unwrap();
    tx.commit().unwrap();
    assert!(db.maintain(&at(2 * ROWS)).is_err());
    assert_eq!((rows(&db), leaf_bytes(&db)), before);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_call_without_time_goes_on_where_the_last_one_ended() {
    tidalite_testkit::watch();
    // More series than are examined at once; the last has old rows.
    const SERIES: i64 = 10_000;
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    for number in 0..SERIES {
        tx.series(&format!("s{number:05}")).unwrap();
    }
    let mut last = tx.series(&format!("s{:05}", SERIES - 1)).unwrap();
    for time in 0..40_000 {
        let jump = (time * 7919 % 1009) as f64;
        last.insert(Timestamp(time * 1_000_000_000), jump * jump)
            .unwrap();
    }
    tx.commit().unwrap();
    let day = 86_400_000_000_000;
    let budget = Budget {
        now: Some(Timestamp(400 * day)),
        time: Duration::from_nanos(1),
        ..Budget::default()
    };
    let mut calls = 0;
    let mut rows = 0;
    loop {
        let done = db.maintain(&budget).unwrap();
        calls += 1;
        rows += done.cold.rows;
        assert_eq!(done.more, done.cold.more);
        if !done.more {
            break;
        }
        assert!(calls < 100, "it ends");
    }
    assert!(calls >= 3, "{calls} calls");
    assert!(rows > 30_000, "{rows} rows");
    assert!(
        !db.maintain(&Budget {
            time: Duration::MAX,
            ..budget
        })
        .unwrap()
        .more
    );
}
