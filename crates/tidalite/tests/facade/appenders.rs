//! Several threads append rows to one transaction, and helper threads encode rows: the stored rows are the same as with
//! a single thread.

use crate::common::in_memory;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use tidalite::storage::MemoryStorage;
use tidalite::{
    Appender, Column, ColumnType, Database, Error, ErrorKind, Options, Schema, SeriesId, Steps,
    Tuning, Unit, Value,
};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<u64, BTreeMap<i64, Vec<u64>>>;

const THREADS: usize = 3;
/// Number of series owned by each thread; one more is shared by all, and one has texts.
const OWN: usize = 20;

fn schema(n: usize) -> Schema {
    match n % 3 {
        0 => Schema::point(),
        1 => Schema::new(Unit::Nanos, [("level", ColumnType::I64)]),
        _ => Schema::new(
            Unit::Nanos,
            [("a", ColumnType::F64), ("b", ColumnType::U64)],
        )
        .with(Column::nullable("c", ColumnType::F64)),
    }
}

fn words(n: usize, rng: &mut Rng) -> Vec<u64> {
    let level = rng.below(1000);
    match n % 3 {
        0 => vec![0, (level as f64 / 10.0).to_bits()],
        1 => vec![level],
        _ => vec![(level as f64).to_bits(), level, 1.5f64.to_bits()],
    }
}

/// The rows that one thread appends, in order: series, time and words of each row.
type Job = Vec<(SeriesId, i64, Vec<u64>)>;

/// Index of the `own`-th series of a thread: with `apart` the series of a thread have consecutive ids, otherwise the
/// series of the threads alternate.
fn place(apart: bool, thread: usize, own: usize) -> usize {
    match apart {
        true => thread * OWN + own,
        false => own * THREADS + thread,
    }
}

fn jobs(ids: &[SeriesId], shared: Option<SeriesId>, from: i64, rng: &mut Rng) -> Vec<Job> {
    (0..THREADS)
        .map(|thread| {
            let mut job = Job::new();
            let mut times = [from; OWN];
            for _ in 0..rng.below(60) {
                // Rows of alternating series, or many rows of one series; some rows are late, some have equal times.
                let (first, count, rounds) = match rng.below(3) {
                    0 => (0, OWN, rng.below(400)),
                    1 => (rng.index(OWN), 1, rng.below(5000)),
                    _ => (rng.index(OWN / 2), OWN / 2, 1),
                };
                for _ in 0..rounds {
                    for (own, at) in times.iter_mut().enumerate().skip(first).take(count) {
                        let n = place(shared.is_none(), thread, own);
                        *at += rng.between(0, 3);
                        let late = if rng.one_in(200) {
                            rng.between(0, 9000)
                        } else {
                            0
                        };
                        job.push((ids[n], *at - late, words(n, rng)));
                    }
                }
                let Some(shared) = shared else {
                    continue;
                };
                for _ in 0..rng.below(300) {
                    // Threads use different times, because the order of the threads is not defined.
                    let time = rng.below(100_000) as i64 * THREADS as i64 + thread as i64;
                    job.push((shared, time, words(0, rng)));
                }
            }
            job
        })
        .collect()
}

fn work(appender: &mut Appender<'_>, job: &Job) -> tidalite::Result<()> {
    for (id, time, words) in job {
        let mut series = appender.series_by_id(*id)?;
        match words.as_slice() {
            [flags, value] if time % 2 == 0 => {
                series.insert_point(Steps(*time), *flags as i64, f64::from_bits(*value))?;
            }
            [a, b, c] if time % 5 == 0 => series.append_rows(&[*time], &[&[*a], &[*b], &[*c]])?,
            words => series.insert_row(Steps(*time), words)?,
        }
    }
    Ok(())
}

fn compare(db: &Database, model: &Model, seed: u64) {
    let snap = db.begin_read().unwrap();
    for (&id, rows) in model {
        let series = snap.series_by_id(SeriesId(id)).unwrap().unwrap();
        let mut found = BTreeMap::new();
        let all = series.query(..);
        all.for_each(|time, words| {
            found.insert(time, words.to_vec());
        })
        .unwrap();
        assert!(found == *rows, "series {id} of seed {seed}");
        assert_eq!(series.count().unwrap(), rows.len() as u64);
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "seed {seed}: {report:?}");
}

#[test]
fn rows_of_several_threads_equal_rows_of_one() {
    for seed in 0..10 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let options = Options::new()
            .tuning(
                Tuning::new().write_buffer_bytes([200 << 10, 4 << 20, 64 << 20][seed as usize % 3]),
            )
            .flush_threads(seed as usize % 4);
        let db = options
            .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
            .unwrap();
        let mut model = Model::new();
        let (mut ids, mut shared) = (Vec::new(), SeriesId(0));
        for round in 0..4 {
            let mut txn = db.begin_write().unwrap();
            if round == 0 {
                for n in 0..OWN * THREADS {
                    let name = format!("own{n}");
                    ids.push(txn.series_with(&name, &schema(n)).unwrap().id());
                }
                shared = txn.series("shared").unwrap().id();
            }
            // Rows that the transaction itself inserts before the appenders begin; rows of the appenders replace them.
            for (n, id) in ids.iter().enumerate() {
                for time in 0..rng.below(40) as i64 {
                    let words = words(n, &mut rng);
                    txn.series_by_id(*id)
                        .unwrap()
                        .insert_row(Steps(time * 50), &words)
                        .unwrap();
                    model.entry(id.0).or_default().insert(time * 50, words);
                }
            }
            if rng.one_in(2) {
                txn.series("own3").unwrap().view().unwrap();
            }
            // Without a shared series no series gets rows from two threads, so each thread encodes all of its rows
            // itself.
            let everybodys = (seed % 2 == 0).then_some(shared);
            let jobs = jobs(&ids, everybodys, round * 4000, &mut rng);
            for job in &jobs {
                for (id, time, words) in job {
                    model.entry(id.0).or_default().insert(*time, words.clone());
                }
            }
            std::thread::scope(|scope| {
                for (job, mut appender) in jobs.iter().zip(txn.appenders(THREADS).unwrap()) {
                    scope.spawn(move || {
                        work(&mut appender, job).unwrap();
                        if job.len() % 2 == 0 {
                            appender.finish().unwrap();
                        }
                    });
                }
            });
            // The transaction sees the rows of all appenders, and continues.
            let own = &ids[rng.index(ids.len())];
            let rows = model.entry(own.0).or_default();
            let mut series = txn.series_by_id(*own).unwrap();
            assert_eq!(series.view().unwrap().count().unwrap(), rows.len() as u64);
            let last = words(own.0 as usize, &mut rng);
            if series.info().schema.columns.len() == last.len() {
                series.insert_row(Steps(7), &last).unwrap();
                rows.insert(7, last);
            }
            if round == 2 {
                drop(txn);
                break;
            }
            txn.commit().unwrap();
            compare(&db, &model, seed);
        }
    }
}

/// A single thread stores the same rows with and without helper threads, in as many bytes.
#[test]
fn a_transaction_that_is_helped_stores_the_same() {
    let mut pages = Vec::new();
    for threads in [0, 1, 3] {
        let options = Options::new()
            .tuning(Tuning::new().write_buffer_bytes(3 << 20))
            .flush_threads(threads);
        let db = options
            .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
            .unwrap();
        let (mut model, mut rng) = (Model::new(), Rng::new(77));
        for round in 0..3 {
            let mut txn = db.begin_write().unwrap();
            for n in 0..60 {
                txn.series_with(&format!("s{n}"), &schema(n)).unwrap();
            }
            for i in 0..6000 {
                for n in 0..60 {
                    let words = words(n, &mut rng);
                    let late = if rng.one_in(3000) { 2000 } else { 0 };
                    let time = round * 60_000 + i * 10 - late;
                    let mut series = txn.series(&format!("s{n}")).unwrap();
                    series.insert_row(Steps(time), &words).unwrap();
                    model.entry(series.id().0).or_default().insert(time, words);
                }
            }
            txn.commit().unwrap();
        }
        compare(&db, &model, 77);
        pages.push(db.check().unwrap().leaves);
    }
    println!("{pages:?} leaves");
    assert!(pages.iter().all(|&leaves| leaves == pages[0]), "{pages:?}");
}

#[test]
fn texts_and_values_go_through_an_appender_too() {
    let db = in_memory(&Options::new());
    let mut txn = db.begin_write().unwrap();
    let schema = Schema::new(Unit::Seconds, [("state", ColumnType::String)])
        .with(Column::nullable("load", ColumnType::F64));
    let plain = Schema::new(Unit::Seconds, [("on", ColumnType::Bool)]);
    std::thread::scope(|scope| {
        for (n, mut appender) in txn.appenders(2).unwrap().into_iter().enumerate() {
            let (schema, plain) = (&schema, &plain);
            scope.spawn(move || {
                let mut series = appender.series_with(&format!("t{n}"), schema).unwrap();
                for time in 0..500_i64 {
                    let state = if time % 2 == 0 { "runs" } else { "stands" };
                    let values = [Value::from(state), Value::Null];
                    series.insert_values(Steps(time), &values).unwrap();
                }
                let mut series = appender.series_with("both", plain).unwrap();
                series
                    .insert_values(Steps(n as i64), &[true.into()])
                    .unwrap();
                assert!(series.insert_values(Steps(1), &[]).is_err());
                assert!(series.insert(Steps(1), 0.5).is_err());
                assert!(series.insert_row(Steps(1), &[1, 2]).is_err());
                assert!(series.append_rows(&[1], &[]).is_err());
                assert!(appender.series_by_id(SeriesId(999)).is_err());
            });
        }
    });
    txn.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series("t1").unwrap().unwrap();
    let row = series.at(Steps(499)).unwrap().unwrap();
    assert_eq!(series.values(&row).unwrap()[0], Value::from("stands"));
    assert_eq!(snap.series("both").unwrap().unwrap().count().unwrap(), 2);
}

/// If one thread fails, the others stop with an error instead of waiting, and the commit is refused.
#[test]
fn a_failing_appender_fails_the_transaction() {
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new()
        .tuning(Tuning::new().write_buffer_bytes(1 << 20))
        .file_bytes(0, 3 << 20);
    let db = options.open_storage(storage).unwrap();
    let mut txn = db.begin_write().unwrap();
    let mut failed = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = txn
            .appenders(3)
            .unwrap()
            .into_iter()
            .enumerate()
            .map(|(n, mut appender)| {
                scope.spawn(move || {
                    let mut rng = Rng::new(n as u64);
                    for time in 0..2_000_000_i64 {
                        let mut series = appender.series(&format!("s{n}"))?;
                        series.insert_point(Steps(time), 0, f64::from_bits(rng.u64() >> 2))?;
                    }
                    appender.finish()
                })
            })
            .collect();
        for thread in threads {
            failed.push(thread.join().unwrap().unwrap_err());
        }
    });
    let full = |error: &Error| error.kind() == ErrorKind::Full;
    let told = |error: &Error| error.kind() == ErrorKind::Broken;
    assert!(failed.iter().any(full), "{failed:?}");
    assert!(
        failed.iter().all(|error| full(error) || told(error)),
        "{failed:?}"
    );
    assert!(told(&txn.commit().unwrap_err()));
    let mut txn = db.begin_write().unwrap();
    txn.series("after").unwrap().insert(Steps(1), 1.0).unwrap();
    txn.commit().unwrap();
    assert!(db.begin_read().unwrap().series("s0").unwrap().is_none());
}

#[test]
fn a_panic_a_forgotten_appender_and_a_drop_commit_nothing() {
    let db = in_memory(&Options::new());
    let fill = |appender: &mut Appender<'_>| {
        for time in 0..5000 {
            appender
                .series("s")
                .unwrap()
                .insert_point(Steps(time), 0, 1.0)
                .unwrap();
        }
    };
    // Case: a panic in a thread other than the transaction's.
    let mut txn = db.begin_write().unwrap();
    let thread = std::thread::scope(|scope| {
        let mut appender = txn.appenders(1).unwrap().pop().unwrap();
        let thread = scope.spawn(move || {
            fill(&mut appender);
            std::panic::panic_any("as it was meant");
        });
        thread.join()
    });
    assert!(thread.is_err());
    let error = txn.commit().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    // Case: a panic in the thread that owns the transaction.
    let mut txn = db.begin_write().unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut appenders = txn.appenders(2).unwrap();
        fill(&mut appenders[1]);
        std::panic::panic_any("as it was meant");
    }));
    assert!(caught.is_err() && txn.commit().is_err());
    let mut txn = db.begin_write().unwrap();
    let mut appenders = txn.appenders(2).unwrap();
    fill(&mut appenders[0]);
    std::mem::forget(appenders.pop());
    drop(appenders);
    let error = txn.commit().unwrap_err();
    assert!(error.to_string().contains("1 appender"), "{error}");
    let mut txn = db.begin_write().unwrap();
    for mut appender in txn.appenders(2).unwrap() {
        fill(&mut appender);
    }
    assert!(txn.appenders(0).unwrap().is_empty());
    drop(txn);
    assert!(db.begin_read().unwrap().series("s").unwrap().is_none());
    // Case: two appenders, one after the other in one thread; the later rows win.
    let mut txn = db.begin_write().unwrap();
    for value in [1.0, 2.0] {
        let mut appender = txn.appenders(1).unwrap().pop().unwrap();
        for time in 0..3000 {
            appender
                .series("s")
                .unwrap()
                .insert_point(Steps(time), 0, value)
                .unwrap();
        }
    }
    txn.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series("s").unwrap().unwrap();
    let sum = series.query(..).aggregate(1).unwrap().sum();
    assert_eq!(sum, 6000.0);
}

/// Number of runs and rows in the delta after three threads have appended these numbers of rows, each to series of its
/// own, with `apart` not interleaved with the other threads' series. Before this, the tail page held one row.
fn delta_of(apart: bool, counts: &[i64]) -> (u64, u64) {
    let db = in_memory(&Options::new().tuning(Tuning::new().write_buffer_bytes(3 << 20)));
    let mut txn = db.begin_write().unwrap();
    txn.series("first").unwrap().insert(Steps(1), 1.0).unwrap();
    let ids: Vec<_> = (0..THREADS * counts.len())
        .map(|n| txn.series(&format!("s{n}")).unwrap().id())
        .collect();
    txn.commit().unwrap();
    let mut txn = db.begin_write().unwrap();
    std::thread::scope(|scope| {
        // Each thread waits until all have appended, so that their appenders overlap.
        let opened = Arc::new(Barrier::new(THREADS));
        for (thread, mut appender) in txn.appenders(THREADS).unwrap().into_iter().enumerate() {
            let (opened, ids) = (Arc::clone(&opened), &ids);
            scope.spawn(move || {
                for (own, count) in counts.iter().enumerate() {
                    let n = match apart {
                        true => thread * counts.len() + own,
                        false => own * THREADS + thread,
                    };
                    let mut series = appender.series_by_id(ids[n]).unwrap();
                    for time in 0..*count {
                        series.insert_point(Steps(time), 0, 1.0).unwrap();
                    }
                }
                opened.wait();
                appender.finish().unwrap();
            });
        }
    });
    txn.commit().unwrap();
    let stat = db.stat().unwrap();
    let rows = 1 + THREADS as i64 * counts.iter().sum::<i64>();
    assert_eq!(stat.rows(), rows as u64);
    assert!(db.check().unwrap().is_clean());
    (stat.runs, stat.delta_rows)
}

#[test]
fn threads_of_disjoint_series_encode_runs() {
    // If the series are apart, the threads encode blocks: the tail page becomes a run of its own, and the blocks form a
    // second one. If they are interleaved, the rows are buffered and the run made of them absorbs the tail page.
    assert_eq!(delta_of(true, &[450; OWN]), (2, 27_001));
    assert_eq!(delta_of(false, &[450; OWN]), (1, 27_001));
    // The few rows that do not fill a leaf fit into the tail page, so there is no run.
    let mut counts = [1000; 30];
    counts[17] = 10;
    assert_eq!(delta_of(true, &counts), (0, 31));
}
