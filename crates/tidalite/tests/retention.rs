//! Retention: a policy removes the rows that it should, and no other rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidalite::retention::{Budget, Maintained, Retention};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{ColumnType, Database, Durability, Options, Schema, Steps, Timestamp, Tuning, Unit};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

const SECOND: i64 = 1_000_000_000;

fn memory(options: &Options) -> Database {
    tidalite_testkit::watch();
    options
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .expect("a fresh file")
}

fn keep(pattern: &str, seconds: u64) -> Retention {
    Retention {
        pattern: pattern.to_owned(),
        keep: Some(Duration::from_secs(seconds)),
        ..Retention::default()
    }
}

fn times(db: &Database, name: &str) -> Vec<i64> {
    let snap = db.begin_read().expect("a snapshot");
    let series = snap.series(name).expect("a name").expect("a series");
    let mut times = Vec::new();
    series
        .query(..)
        .for_each(|time, _| times.push(time))
        .expect("rows");
    times
}

/// A policy whose pattern is the printed name of a series applies to this series only: a quoted `*` is part of a name,
/// not a glob.
#[test]
fn a_policy_with_a_printed_name_touches_this_series_only() {
    let db = memory(&Options::new().page_size(1024));
    let names = ["\"a*b\"", "aXb", r#""a*"{k="1"}"#, "\"a?b\""];
    let mut tx = db.begin_write().unwrap();
    for name in names {
        let mut series = tx.series(name).unwrap();
        for t in 0..10 {
            series.insert(Steps(t * SECOND), 1.0).unwrap();
        }
    }
    tx.set_retention("exact", &keep(names[0], 5)).unwrap();
    tx.set_retention("tags", &keep(names[2], 2)).unwrap();
    tx.commit().unwrap();
    let budget = Budget {
        now: Some(Timestamp(9 * SECOND)),
        ..Budget::default()
    };
    assert_eq!(db.maintain(&budget).unwrap().series, 2);
    let left = names.map(|name| times(&db, name).len());
    assert_eq!(left, [6, 10, 3, 10]);
}

#[test]
fn age_cuts_each_series_in_its_own_unit_wherever_its_rows_are() {
    let db = memory(&Options::new().page_size(1024));
    let seconds = Schema::new(Unit::Seconds, [("v", ColumnType::I64)]);
    let ticks = Schema::new(Unit::Ticks, [("v", ColumnType::I64)]);
    let zero = Unit::Ticks.steps_to_1970();
    // There are 5000 rows that fill leaves, then rows before and after them that stay in the delta.
    for (from, to) in [(1000, 6000), (400, 410), (6000, 6010)] {
        let mut tx = db.begin_write().unwrap();
        for t in from..to {
            tx.series_with("short.s", &seconds)
                .unwrap()
                .insert_row(Steps(t), &[1])
                .unwrap();
            let raw = zero + t * 10_000_000;
            tx.series_with("short.ticks", &ticks)
                .unwrap()
                .insert_row(Steps(raw), &[1])
                .unwrap();
            tx.series("long")
                .unwrap()
                .insert(Steps(t * SECOND), 1.0)
                .unwrap();
        }
        tx.commit().unwrap();
    }
    let mut tx = db.begin_write().unwrap();
    tx.set_retention("b", &keep("", 5605)).unwrap();
    tx.set_retention("a", &keep("short.*", 2000)).unwrap();
    tx.commit().unwrap();
    let before = db.begin_read().unwrap();
    let now = Timestamp(6010 * SECOND);
    // The budget allows one series per commit. A call whose budget has no time left does nothing and reports that work
    // is left.
    let budget = Budget {
        time: Duration::from_secs(60),
        series: 1,
        now: Some(now),
        ..Budget::default()
    };
    let none = Budget {
        time: Duration::ZERO,
        ..budget
    };
    let nothing = db.maintain(&none).unwrap();
    assert_eq!(
        nothing,
        Maintained {
            more: true,
            ..Maintained::default()
        }
    );
    let done = db.maintain(&budget).unwrap();
    assert_eq!(
        (done.series, done.rows, done.commits, done.more),
        (3, 2 * (10 + 3010) + 5, 3, false)
    );
    assert_eq!(times(&db, "short.s"), (4010..6010).collect::<Vec<_>>());
    let raw: Vec<i64> = (4010..6010).map(|t| zero + t * 10_000_000).collect();
    assert_eq!(times(&db, "short.ticks"), raw);
    let long: Vec<i64> = (405..410).chain(1000..6010).map(|t| t * SECOND).collect();
    assert_eq!(times(&db, "long"), long);
    let old = before.series("short.s").unwrap().unwrap();
    assert_eq!(old.count().unwrap(), 5020, "a snapshot keeps what it saw");
    assert_eq!(db.maintain(&budget).unwrap(), Maintained::default());
    assert!(db.check().unwrap().is_clean());

    let policies = db.begin_read().unwrap().retentions().unwrap();
    let names: Vec<&str> = policies.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["a", "b"]);
    let mut tx = db.begin_write().unwrap();
    assert!(tx.remove_retention("a").unwrap());
    assert!(!tx.remove_retention("a").unwrap());
    tx.commit().unwrap();
    let copy = std::env::temp_dir().join(format!("tidalite-retention-{}.tdl", std::process::id()));
    let _ = std::fs::remove_file(&copy);
    db.copy().to(&copy).unwrap();
    let copied = Database::open(&copy).unwrap();
    let policies = copied.begin_read().unwrap().retentions().unwrap();
    assert_eq!(policies, [("b".to_owned(), keep("", 5605))]);
    drop(copied);
    std::fs::remove_file(&copy).unwrap();
    let _ = std::fs::remove_file(copy.with_extension("tdl-lock"));
}

#[test]
fn policies_that_cannot_be_are_refused() {
    let db = memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    let nothing = Retention::default();
    let zero = Retention {
        keep: Some(Duration::ZERO),
        ..nothing.clone()
    };
    let none = Retention {
        bytes: Some(0),
        ..nothing.clone()
    };
    for policy in [&nothing, &zero, &none, &keep("a{", 1)] {
        assert!(tx.set_retention("a", policy).is_err(), "{policy:?}");
    }
    let most = tidalite::limits::RETENTION_NAME_BYTES_MAX;
    assert!(tx.set_retention(&"n".repeat(most), &keep("", 1)).is_ok());
    assert!(
        tx.set_retention(&"n".repeat(most + 1), &keep("", 1))
            .is_err()
    );
    assert!(tx.set_retention("", &keep("", 1)).is_err());
    let most = tidalite::limits::RETENTION_PATTERN_BYTES_MAX;
    assert!(tx.set_retention("p", &keep(&"p".repeat(most), 1)).is_ok());
    assert!(
        tx.set_retention("p", &keep(&"p".repeat(most + 1), 1))
            .is_err()
    );
    tx.commit().unwrap();
    assert_eq!(db.begin_read().unwrap().retentions().unwrap().len(), 2);
}

/// Rows of random values arrive without end under a cap for the whole file. After each call of `maintain` the bytes in
/// use are within the cap, and the file is only slightly longer.
#[test]
fn a_cap_for_the_file_holds_whenever_it_is_kept_to() {
    tidalite_testkit::watch();
    let cap = 24u64 << 20;
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new().tuning(Tuning::new().growth_bytes(1 << 18, 1 << 19));
    let db = options.open_storage(storage).unwrap();
    let mut tx = db.begin_write().unwrap();
    let policy = Retention {
        bytes: Some(cap),
        ..Retention::default()
    };
    tx.set_retention("cap", &policy).unwrap();
    tx.commit().unwrap();
    let mut rng = Rng::new(11);
    let mut full_since = None;
    let (mut t, mut most) = (0, 0);
    for round in 0..160 {
        let mut tx = db.begin_write().unwrap();
        for series in 0..20 {
            let mut writer = tx.series(&format!("hard.{series}")).unwrap();
            for row in 0..2048 {
                writer.insert(Steps(t + row * SECOND), rng.f64()).unwrap();
            }
        }
        t += 2048 * SECOND;
        tx.commit().unwrap();
        let done = db.maintain(&Budget {
            time: Duration::from_secs(60),
            ..Budget::default()
        });
        let done = done.unwrap();
        if done.rows > 0 {
            full_since.get_or_insert(round);
        }
        let stat = db.stat().unwrap();
        let used = (stat.pages_total - stat.pages_free - stat.pages_pending) * 4096;
        assert!(used <= cap, "round {round}: {used} bytes in use");
        most = most.max(stat.file_bytes);
    }
    let full_since = full_since.unwrap();
    assert!(
        full_since < 100,
        "the cap was reached in round {full_since}"
    );
    // The file may also have free pages: the reserve, space grown in advance, and holes that the next rows do not fill.
    println!("{most} bytes at most under a cap of {cap}");
    let beside = (1 << 20) + (1 << 18);
    assert!(
        most <= cap + beside + cap / 10,
        "{most} bytes under a cap of {cap}"
    );
    let stat = db.stat().unwrap();
    assert!(
        stat.leaf_bytes > cap / 2,
        "{} bytes of leaves are left",
        stat.leaf_bytes
    );
    // Each series has kept its newest rows, without a gap.
    for series in 0..20 {
        let times = times(&db, &format!("hard.{series}"));
        assert_eq!(times.last(), Some(&(t - SECOND)));
        assert!(times.is_sorted_by(|a, b| b - a == SECOND));
    }
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_small_cap_for_the_file_leaves_rows() {
    tidalite_testkit::watch();
    for cap in [1u64 << 20, 3 << 19, 2 << 20, 4 << 20] {
        let storage = Arc::new(MemoryStorage::new());
        let db = Options::new().open_storage(storage).unwrap();
        let mut rng = Rng::new(cap);
        let rows = 700_000;
        let mut tx = db.begin_write().unwrap();
        let mut writer = tx.series("hard").unwrap();
        for row in 0..rows {
            writer.insert(Steps(row * SECOND), rng.f64()).unwrap();
        }
        tx.commit().unwrap();
        // Small durable commits are made, so that the file gets a redo log.
        for n in 0..20u8 {
            let mut tx = db.begin_write().unwrap();
            tx.table("config").unwrap().put(b"n", &[n]).unwrap();
            tx.commit().unwrap();
        }
        let mut tx = db.begin_write().unwrap();
        let policy = Retention {
            bytes: Some(cap),
            ..Retention::default()
        };
        tx.set_retention("cap", &policy).unwrap();
        tx.commit().unwrap();
        let budget = Budget {
            time: Duration::from_secs(60),
            ..Budget::default()
        };
        assert!(db.stat().unwrap().log_pages > 0);
        db.maintain(&budget).unwrap();
        let stat = db.stat().unwrap();
        let used = (stat.pages_total - stat.pages_free - stat.pages_pending) * 4096;
        // The redo log took up a quarter of the cap; shortening the file has removed it.
        assert_eq!(stat.log_pages, 0);
        assert!(
            stat.leaf_bytes > cap / 2 && used <= cap,
            "{} bytes of leaves and {used} in use under a cap of {cap}",
            stat.leaf_bytes
        );
        assert_eq!(times(&db, "hard").last(), Some(&((rows - 1) * SECOND)));
    }
}

#[test]
fn a_background_thread_applies_policies_until_close() {
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new().maintain_every(Duration::from_millis(5), Budget::default());
    let watched = Monitor::new(Arc::clone(&storage) as Arc<dyn Storage>);
    let db = options.open_storage(watched).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.set_retention("short", &keep("", 3600)).unwrap();
    let now = Timestamp::now().0;
    tx.series("load")
        .unwrap()
        .insert(Steps(now - 7200 * SECOND), 1.0)
        .unwrap();
    tx.series("load").unwrap().insert(Steps(now), 2.0).unwrap();
    tx.commit().unwrap();
    let began = std::time::Instant::now();
    while times(&db, "load").len() > 1 {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "nothing was removed"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(times(&db, "load"), [now]);
    assert!(db.take_maintenance_error().is_none());
    // The thread may be waiting for the writer lock that this transaction holds; closing must not deadlock with it.
    let held = db.begin_write().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    drop(db);
    drop(held);
    assert_eq!(Arc::strong_count(&storage), 1, "the thread is gone");
}

/// A maintenance round that leaves work is followed by the next one at once, not after the interval.
#[test]
fn rounds_follow_each_other_while_there_is_work() {
    const SERIES: u64 = 40;
    let every = Duration::from_secs(2);
    // Each round commits once, for one series.
    let budget = Budget {
        time: Duration::from_nanos(1),
        series: 1,
        ..Budget::default()
    };
    let db = Options::new()
        .maintain_every(every, budget)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let now = Timestamp::now().0;
    let mut tx = db.begin_write().unwrap();
    tx.set_retention("short", &keep("", 3600)).unwrap();
    for number in 0..SERIES {
        let mut series = tx.series(&format!("load.{number}")).unwrap();
        series.insert(Steps(now - 7200 * SECOND), 1.0).unwrap();
        series.insert(Steps(now), 2.0).unwrap();
    }
    tx.commit().unwrap();
    let began = std::time::Instant::now();
    while (0..SERIES).any(|number| times(&db, &format!("load.{number}")).len() > 1) {
        let waited = began.elapsed();
        assert!(waited < every * 15, "{waited:?} for {SERIES} rounds");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(db.take_maintenance_error().is_none());
}

/// Three threads that begin the next transaction at once never leave the writer lock free. The maintenance thread must
/// still get its turn, and the cap must hold.
#[test]
fn writers_without_end_do_not_keep_the_thread_out() {
    const WRITERS: u64 = 3;
    const ROWS_A_COMMIT: i64 = 2_000;
    const COMMITS: u64 = 2_400;
    const CAP: u64 = 8 << 20;
    tidalite_testkit::watch();
    let options = Options::new().maintain_every(Duration::from_millis(5), Budget::default());
    let db = options
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let policy = Retention {
        bytes: Some(CAP),
        ..Retention::default()
    };
    tx.set_retention("cap", &policy).unwrap();
    tx.commit().unwrap();
    let done = AtomicU64::new(0);
    let write = |writer: u64| {
        let mut rng = Rng::new(writer);
        let mut time = 0;
        while done.fetch_add(1, Ordering::Relaxed) < COMMITS {
            let mut tx = db.begin_write().unwrap();
            let mut series = tx.series(&format!("hard.{writer}")).unwrap();
            for _ in 0..ROWS_A_COMMIT {
                series.insert(Steps(time * SECOND), rng.f64()).unwrap();
                time += 1;
            }
            tx.commit_with(Durability::Lazy).unwrap();
        }
    };
    let mut most = 0;
    std::thread::scope(|threads| {
        let write = &write;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| threads.spawn(move || write(writer)))
            .collect();
        while !writers
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            // `stat` never waits for the writers, so it can be called meanwhile.
            most = most.max(db.stat().unwrap().leaf_bytes);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let written = COMMITS * ROWS_A_COMMIT.unsigned_abs() * 8;
    println!("{most} bytes of leaves at most, of {written} written");
    assert!(db.take_maintenance_error().is_none());
    // The writers get further between two turns on a busy machine; beside this cap that is little.
    assert!(most < 2 * CAP + CAP / 2, "{most} bytes of leaves");
}

/// Examining the series may take longer than the budget's time. Each call must still make progress, or maintenance
/// would never finish.
#[test]
fn a_budget_that_is_too_short_gets_on_with_every_call() {
    let db = memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    for n in 0..20 {
        let mut series = tx.series(&format!("s{n}")).unwrap();
        for t in 0..100 {
            series.insert(Steps(t * SECOND), 1.0).unwrap();
        }
    }
    tx.set_retention("a", &keep("", 50)).unwrap();
    tx.commit().unwrap();
    let budget = Budget {
        time: Duration::from_nanos(1),
        series: 3,
        now: Some(Timestamp(99 * SECOND)),
        ..Budget::default()
    };
    let mut commits = Vec::new();
    loop {
        let done = db.maintain(&budget).unwrap();
        commits.push(done.commits);
        assert!(commits.len() < 10, "{commits:?}");
        if !done.more {
            break;
        }
    }
    assert_eq!(commits.iter().sum::<u64>(), 7, "{commits:?}");
    let snap = db.begin_read().unwrap();
    for n in 0..20 {
        let series = snap.series(&format!("s{n}")).unwrap().unwrap();
        assert_eq!(series.span(), Some((49 * SECOND, 99 * SECOND)));
    }
}
