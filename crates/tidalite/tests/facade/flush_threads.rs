//! Rows of series that get one row each in turn are encoded in helper threads, in parallel with the thread that inserts
//! them (`Options::flush_threads`). Whatever happens meanwhile, the stored rows are the same as with a single thread.

use crate::common::in_memory;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ErrorKind, MergePolicy, Options, SeriesId, Steps, Tuning, WriteTxn};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

/// Number of series: so many that all have whole vectors when a flush is due.
const SERIES: usize = 256;
const ROUNDS: i64 = 1024;
/// Name of a series that keeps all rows of a time; its rows are the last element of the model.
const KEPT: &str = "kept";

/// Values by time and place among the rows of one time, which is 0 but for the last series.
type Model = Vec<BTreeMap<(i64, usize), f64>>;

fn open(threads: usize, write_buffer_bytes: usize) -> Database {
    let options = Options::new()
        .flush_threads(threads)
        .tuning(Tuning::new().write_buffer_bytes(write_buffer_bytes));
    options
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap()
}

fn series(txn: &mut WriteTxn) -> Vec<SeriesId> {
    (0..SERIES)
        .map(|i| txn.series(&format!("s{i}")).unwrap().id())
        .collect()
}

/// Inserts a row into every series, for each round.
fn feed(txn: &mut WriteTxn, ids: &[SeriesId], rounds: std::ops::Range<i64>, model: &mut Model) {
    for round in rounds {
        for (i, &id) in ids.iter().enumerate() {
            let value = ((round * 37 + i as i64 * 11) % 1000) as f64 / 10.0;
            let mut series = txn.series_by_id(id).unwrap();
            series.insert_point(Steps(round * 10), 0, value).unwrap();
            model[i].insert((round * 10, 0), value);
        }
        if model.len() > SERIES {
            keep(txn, round * 10, round as f64, model);
        }
    }
}

/// Adds a row to the series that keeps all rows of a time.
fn keep(txn: &mut WriteTxn, time: i64, value: f64, model: &mut Model) {
    let mut kept = txn.series(KEPT).unwrap();
    kept.insert(Steps(time), value).unwrap();
    let rows = &mut model[SERIES];
    let place = rows.range((time, 0)..=(time, usize::MAX)).count();
    rows.insert((time, place), value);
}

fn compare(db: &Database, model: &Model, what: &str) {
    let snap = db.begin_read().unwrap();
    for (i, rows) in model.iter().enumerate() {
        let mut found = BTreeMap::new();
        let name = if i < SERIES {
            format!("s{i}")
        } else {
            KEPT.to_owned()
        };
        let series = snap.series(&name).unwrap().unwrap();
        let each = |time, words: &[u64]| {
            let place = found.range((time, 0)..=(time, usize::MAX)).count();
            found.insert((time, place), f64::from_bits(words[1]));
        };
        series.query(..).for_each(each).unwrap();
        assert!(found == *rows, "series {i}: {what}");
        assert_eq!(series.count().unwrap(), rows.len() as u64, "{what}");
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{what}: {report:?}");
}

/// Makes another kind of change right after rows were handed to the helper threads, when most of their work is still to
/// be done.
fn disturb(txn: &mut WriteTxn, ids: &[SeriesId], model: &mut Model, rng: &mut Rng, now: i64) {
    let i = rng.index(SERIES);
    let id = ids[i];
    match rng.below(10) {
        0 => {
            let rows = model[i].len() as u64;
            let mut own = txn.series_by_id(id).unwrap();
            assert_eq!(own.view().unwrap().count().unwrap(), rows);
        }
        1 => {
            let (from, to) = ((now - 900) * 10, (now - rng.between(0, 800)) * 10);
            let mut own = txn.series_by_id(id).unwrap();
            let gone = own.delete(Steps(from)..=Steps(to)).unwrap();
            let before = model[i].len();
            model[i].retain(|(time, _), _| !(from..=to).contains(time));
            assert_eq!(gone, (before - model[i].len()) as u64);
        }
        2 => {
            // Overwrites rows that helper threads are encoding, and inserts a row between them.
            for time in [(now - 500) * 10, (now - 500) * 10 + 3, 5] {
                let mut own = txn.series_by_id(id).unwrap();
                own.insert_point(Steps(time), 0, 0.25).unwrap();
                model[i].insert((time, 0), 0.25);
            }
        }
        3 => {
            let savepoint = txn.savepoint().unwrap();
            let mut lost = model.clone();
            feed(txn, ids, now..now + 40, &mut lost);
            txn.rollback_to(&savepoint).unwrap();
        }
        4 => {
            // The rollback undoes more than one flush, and the last one is still in progress.
            let savepoint = txn.savepoint().unwrap();
            let mut lost = model.clone();
            feed(txn, ids, now..now + 2 * ROUNDS + 10, &mut lost);
            txn.rollback_to(&savepoint).unwrap();
        }
        5 => {
            let mut appender = txn.appenders(1).unwrap().pop().unwrap();
            for time in 0..50 {
                let mut own = appender.series_by_id(id).unwrap();
                own.insert_point(Steps((now + time) * 10 + 1), 0, 0.5)
                    .unwrap();
                model[i].insert(((now + time) * 10 + 1, 0), 0.5);
            }
            appender.finish().unwrap();
        }
        6 => {
            let times: Vec<i64> = (0..3000).map(|time| (now + time) * 10 + 2).collect();
            let (flags, values) = (vec![0; 3000], vec![1.5f64.to_bits(); 3000]);
            let mut own = txn.series_by_id(id).unwrap();
            own.append_rows(&times, &[&flags, &values]).unwrap();
            model[i].extend(times.iter().map(|&time| ((time, 0), 1.5)));
        }
        7 => {
            let mut table = txn.table("t").unwrap();
            table.put(b"k", &now.to_le_bytes()).unwrap();
        }
        8 => {
            // Rows at the times of rows that helper threads are encoding, between them, and behind them.
            for (time, value) in [
                ((now - 1) * 10, 0.5),
                ((now - 1) * 10, 1.5),
                ((now - 500) * 10 + 3, 2.5),
                ((now - 300) * 10, 3.5),
                (now * 10 + 5, 4.5),
            ] {
                keep(txn, time, value, model);
            }
        }
        _ => {
            let mut other = txn.series("other").unwrap();
            other.insert(Steps(now), 1.0).unwrap();
        }
    }
}

#[test]
fn calls_during_background_encoding_give_the_rows_of_one_thread() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        // Three sizes of the write buffer: at the end of a step the buffer then holds more than one flush, part of one,
        // or little.
        let budget = [64 << 20, 9 << 20, 3 << 20][seed as usize % 3];
        let db = open(1 + seed as usize % 3, budget);
        let mut model = vec![BTreeMap::new(); SERIES + 1];
        let mut now = 0;
        for round in 0..2 {
            let before = model.clone();
            let mut txn = db.begin_write().unwrap();
            let mut ids = series(&mut txn);
            if round == 0 {
                let policy = *rng.pick(&[MergePolicy::KeepDistinct, MergePolicy::KeepAll]);
                txn.open_series(KEPT).merge(policy).open().unwrap();
            }
            for _ in 0..3 {
                let rounds = rng.between(1, 40) + if rng.one_in(4) { 300 } else { ROUNDS };
                feed(&mut txn, &ids, now..now + rounds, &mut model);
                now += rounds;
                disturb(&mut txn, &ids, &mut model, &mut rng, now);
                ids = series(&mut txn);
            }
            if seed % 4 == 3 && round == 1 {
                // The transaction is dropped while the helper threads are at work.
                feed(&mut txn, &ids, now..now + ROUNDS + 3, &mut model);
                drop(txn);
                model = before;
            } else {
                txn.commit().unwrap();
            }
            compare(&db, &model, &format!("seed {seed}, round {round}"));
        }
    }
}

#[test]
fn a_series_that_keeps_the_rows_of_a_time_is_opened_while_rows_are_sealed() {
    for policy in [MergePolicy::KeepDistinct, MergePolicy::KeepAll] {
        let db = open(1, 64 << 20);
        let mut model = vec![BTreeMap::new(); SERIES + 1];
        let mut txn = db.begin_write().unwrap();
        let ids = series(&mut txn);
        txn.open_series(KEPT).merge(policy).open().unwrap();
        txn.commit().unwrap();
        // The slots of the series that get rows are kept from the previous transaction. The series with a policy is
        // opened while helper threads encode the rows of the others.
        let mut txn = db.begin_write().unwrap();
        feed(&mut txn, &ids, 0..ROUNDS + 5, &mut model);
        keep(&mut txn, 5 * 10, 0.5, &mut model);
        keep(&mut txn, 1, 2.0, &mut model);
        txn.commit().unwrap();
        compare(&db, &model, policy.name());
    }
}

#[test]
fn the_leaves_are_those_of_one_thread() {
    let mut stored = Vec::new();
    for threads in [0, 1, 2] {
        let db = open(threads, 64 << 20);
        let mut model = vec![BTreeMap::new(); SERIES];
        for turn in 0..2 {
            let mut txn = db.begin_write().unwrap();
            let ids = series(&mut txn);
            let rounds = turn * 5000..turn * 5000 + 2 * ROUNDS + 700;
            feed(&mut txn, &ids, rounds, &mut model);
            txn.commit().unwrap();
        }
        compare(&db, &model, &format!("{threads} threads"));
        let snap = db.begin_read().unwrap();
        let bytes = (0..SERIES).map(|i| {
            let series = snap.series(&format!("s{i}")).unwrap().unwrap();
            series.stored_bytes()
        });
        stored.push((bytes.collect::<Vec<u64>>(), db.check().unwrap().leaves));
    }
    assert_eq!(stored[0], stored[1]);
    assert_eq!(stored[0], stored[2]);
}

#[test]
fn a_full_disk_while_rows_are_sealed_fails_the_transaction() {
    let options = Options::new()
        .flush_threads(2)
        .tuning(Tuning::new().write_buffer_bytes(32 << 20))
        .file_bytes(0, 2 << 20);
    let db = in_memory(&options);
    let mut txn = db.begin_write().unwrap();
    let ids = series(&mut txn);
    let mut rng = Rng::new(1);
    let mut fill = || {
        for time in 0..4 * ROUNDS {
            for &id in &ids {
                let value = f64::from_bits(rng.u64() >> 2);
                txn.series_by_id(id)?.insert_point(Steps(time), 0, value)?;
            }
        }
        txn.series_by_id(ids[0])?.view().map(|_| ())
    };
    let error = fill().unwrap_err();
    let full = error.kind() == ErrorKind::Full;
    assert!(full, "{error}");
    let error = txn.commit().unwrap_err();
    assert!(error.kind() == ErrorKind::Broken, "{error}");
    let mut txn = db.begin_write().unwrap();
    txn.series("after").unwrap().insert(Steps(1), 1.0).unwrap();
    txn.commit().unwrap();
    assert!(db.check().unwrap().is_clean());
}
