//! Appenders that run one after the other in one thread: later rows win, although appenders that have ended left
//! encoded blocks that are flushed later.

use crate::common::in_memory;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{
    Appender, ColumnType, Database, ErrorKind, MergePolicy, Options, Schema, SeriesId, Steps,
    Tuning, Unit, Value,
};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

/// Number of further series; with 400 rows each they have enough rows for encoded blocks.
const BESIDE: usize = 20;
/// Size of the transaction's write buffer; each of two appenders gets half of this.
const WRITE_BUFFER_BYTES: usize = 1 << 20;

/// Creates the series `s0` to `s20`.
fn open_all(db: &Database) -> Vec<SeriesId> {
    let mut txn = db.begin_write().unwrap();
    let ids = (0..=BESIDE).map(|n| txn.series(&format!("s{n}")).unwrap().id());
    let ids: Vec<_> = ids.collect();
    txn.commit().unwrap();
    ids
}

fn fill(appender: &mut Appender<'_>, ids: &[SeriesId], rows: i64, value: f64) {
    for id in ids {
        for time in 0..rows {
            let mut series = appender.series_by_id(*id).unwrap();
            series.insert_point(Steps(time), 0, value).unwrap();
        }
    }
}

fn values(db: &Database, id: SeriesId) -> Vec<f64> {
    let snap = db.begin_read().unwrap();
    let series = snap.series_by_id(id).unwrap().unwrap();
    let mut values = Vec::new();
    let all = series.query(..);
    all.for_each(|_, words| values.push(f64::from_bits(words[1])))
        .unwrap();
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
    values
}

#[test]
fn a_later_appender_counts_where_an_earlier_one_left_blocks() {
    for rows in [10, 400, 600, 1024, 5000] {
        for another in [false, true] {
            let db = in_memory(
                &Options::new().tuning(Tuning::new().write_buffer_bytes(WRITE_BUFFER_BYTES)),
            );
            let ids = open_all(&db);
            let other = db.begin_write().and_then(|mut txn| {
                let id = txn.series("other")?.id();
                txn.commit()?;
                Ok(id)
            });
            let other = other.unwrap();
            let mut txn = db.begin_write().unwrap();
            let mut appenders = txn.appenders(2 + usize::from(another)).unwrap();
            let mut alive = another.then(|| appenders.pop().unwrap());
            let (mut b, mut a) = (appenders.pop().unwrap(), appenders.pop().unwrap());
            drop(appenders);
            if let Some(alive) = &mut alive {
                fill(alive, &[other], 300, 3.0);
            }
            fill(&mut a, &ids, 400, 1.0);
            a.finish().unwrap();
            fill(&mut b, &ids[7..8], rows, 2.0);
            b.finish().unwrap();
            if let Some(alive) = &mut alive {
                // The appender opens a further series after other appenders have ended.
                fill(alive, &ids[9..10], 200, 4.0);
                fill(alive, &[other], 100, 5.0);
            }
            drop(alive);
            txn.commit().unwrap();
            if another {
                let late = [[4.0; 200], [1.0; 200]].concat();
                assert!(values(&db, ids[9]) == late, "{rows} rows came later");
                let own = [vec![5.0; 100], vec![3.0; 200]].concat();
                assert_eq!(values(&db, other), own);
            }
            let mut expected = vec![2.0; rows as usize];
            expected.resize(expected.len().max(400), 1.0);
            assert!(values(&db, ids[7]) == expected, "{rows} rows came later");
            assert_eq!(values(&db, ids[6]), [1.0; 400]);
            assert!(db.stat().unwrap().runs > 0, "there were blocks");
        }
    }
}

/// Random rows go to random series through appenders that end at random times. A series passes to another appender once
/// all appenders that had opened it have ended. One transaction that gets the rows in the same order must store the
/// same, under each merge policy.
#[test]
fn one_after_the_other_they_are_one_thread() {
    const SERIES: usize = 60;
    for seed in 0..24 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let options = Options::new()
            .tuning(
                Tuning::new()
                    .write_buffer_bytes([200 << 10, 600 << 10, 4 << 20][seed as usize % 3]),
            )
            .flush_threads(seed as usize / 3 % 3);
        let open = || {
            let storage = Monitor::new(Arc::new(MemoryStorage::new()));
            let db = options.clone().open_storage(storage).unwrap();
            let mut txn = db.begin_write().unwrap();
            for n in 0..SERIES {
                // Every fifth series has a policy that looks up existing rows.
                let merge = match n % 5 {
                    4 => MergePolicy::ALL[n / 5 % 5],
                    _ => MergePolicy::Replace,
                };
                let (name, schema) = (format!("s{n}"), Schema::point());
                txn.open_series(&name)
                    .schema(&schema)
                    .merge(merge)
                    .open()
                    .unwrap();
            }
            txn.commit().unwrap();
            db
        };
        let (db, plain) = (open(), open());
        for _ in 0..3 {
            let (mut txn, mut same) = (db.begin_write().unwrap(), plain.begin_write().unwrap());
            let ids: Vec<_> = (0..SERIES)
                .map(|n| txn.series(&format!("s{n}")).unwrap().id())
                .collect();
            let mut alive: Vec<_> = txn.appenders(4).unwrap().into_iter().enumerate().collect();
            let mut owner = [None; SERIES];
            while !alive.is_empty() {
                let at = rng.index(alive.len());
                if rng.one_in(6) {
                    let (n, appender) = alive.swap_remove(at);
                    appender.finish().unwrap();
                    owner
                        .iter_mut()
                        .filter(|owner| **owner == Some(n))
                        .for_each(|owner| *owner = None);
                    continue;
                }
                let (n, appender) = &mut alive[at];
                let first = rng.index(SERIES);
                let last = SERIES.min(first + 1 + rng.index(25));
                let rows = [1, 40, 300, 480, 1030][rng.index(5)];
                let step = rng.between(1, 3);
                let from = rng.between(0, 1000);
                for one in first..last {
                    if owner[one].is_some_and(|owner| owner != *n) {
                        continue;
                    }
                    owner[one] = Some(*n);
                    let mut ours = appender.series_by_id(ids[one]).unwrap();
                    let mut theirs = same.series_by_id(ids[one]).unwrap();
                    for row in 0..rows {
                        let (time, words) = (from + row * step, [0, rng.below(1 << 20)]);
                        let refused = ours.insert_row(Steps(time), &words).is_err();
                        let expected = theirs.insert_row(Steps(time), &words).is_err();
                        assert_eq!(refused, expected);
                    }
                }
            }
            drop(alive);
            txn.commit().unwrap();
            same.commit().unwrap();
            let (ours, theirs) = (db.begin_read().unwrap(), plain.begin_read().unwrap());
            for id in &ids {
                let rows = [&ours, &theirs].map(|snap| {
                    let mut rows = Vec::new();
                    let series = snap.series_by_id(*id).unwrap().unwrap();
                    let all = series.query(..);
                    all.for_each(|time, words| rows.push((time, words[1])))
                        .unwrap();
                    rows
                });
                assert!(rows[0] == rows[1], "{id} of seed {seed}");
            }
            let report = db.check().unwrap();
            assert!(report.is_clean(), "seed {seed}: {report:?}");
        }
    }
}

/// Rows with texts go through the transaction, and helper threads may still hold such rows when blocks are flushed.
/// These rows must be collected first, or they would be missing.
#[test]
fn lent_rows_return_before_blocks_are_added() {
    let options = Options::new()
        .tuning(Tuning::new().write_buffer_bytes(64 << 20))
        .flush_threads(1);
    let db = in_memory(&options);
    let ids = open_all(&db);
    let schema = Schema::new(Unit::Nanos, [("state", ColumnType::String)]);
    let mut txn = db.begin_write().unwrap();
    // These series have no texts and smaller ids, so their rows do not mix with texts before the blocks are flushed.
    let more: Vec<_> = (0..150)
        .map(|n| txn.series(&format!("more{n}")).unwrap().id())
        .collect();
    let texts: Vec<_> = (0..300)
        .map(|n| txn.series_with(&format!("t{n}"), &schema).unwrap().id())
        .collect();
    let mut appenders = txn.appenders(2).unwrap();
    let (mut b, mut a) = (appenders.pop().unwrap(), appenders.pop().unwrap());
    drop(appenders);
    fill(&mut a, &ids, 2000, 1.0);
    // All rows of the earlier series go to leaves. The rows of these series are enough for blocks.
    fill(&mut a, &more, 400, 1.0);
    a.finish().unwrap();
    for time in 0..1300_i64 {
        for id in &texts {
            let mut series = b.series_by_id(*id).unwrap();
            let state = if time % 7 == 0 { "stands" } else { "runs" };
            series
                .insert_values(Steps(time), &[Value::from(state)])
                .unwrap();
        }
    }
    fill(&mut b, &ids[5..6], 1024, 2.0);
    b.finish().unwrap();
    txn.commit().unwrap();
    assert_eq!(
        values(&db, ids[5]),
        [vec![2.0; 1024], vec![1.0; 976]].concat()
    );
    let snap = db.begin_read().unwrap();
    for id in texts {
        let series = snap.series_by_id(id).unwrap().unwrap();
        assert_eq!(series.count().unwrap(), 1300);
    }
}

/// A series whose rows all go to leaves needs no layout in the delta, so it can be written even if the file already has
/// the maximum number of layouts.
#[test]
fn the_layout_limit_counts_only_rows_in_the_delta() {
    let db =
        in_memory(&Options::new().tuning(Tuning::new().write_buffer_bytes(WRITE_BUFFER_BYTES)));
    let ids = open_all(&db);
    let kinds = [ColumnType::F64, ColumnType::I64, ColumnType::U64];
    let names = ["a", "b", "c", "d", "e", "f"];
    let schema = |n: usize| {
        let columns = names.iter().enumerate();
        let columns = columns.map(|(at, name)| (*name, kinds[n / 3usize.pow(at as u32) % 3]));
        Schema::new(Unit::Nanos, columns.collect::<Vec<_>>())
    };
    let mut txn = db.begin_write().unwrap();
    txn.series("s0").unwrap().insert(Steps(-1), 0.0).unwrap();
    for n in 0..255 {
        let mut series = txn.series_with(&format!("n{n}"), &schema(n)).unwrap();
        series.insert_row(Steps(1), &[1; 6]).unwrap();
    }
    txn.commit().unwrap();
    let mut txn = db.begin_write().unwrap();
    let mut a = txn.appenders(1).unwrap().pop().unwrap();
    fill(&mut a, &ids, 400, 1.0);
    let mut series = a.series_with("whole", &schema(500)).unwrap();
    for time in 0..1024 {
        series.insert_row(Steps(time), &[2; 6]).unwrap();
    }
    a.finish().unwrap();
    txn.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let whole = snap.series("whole").unwrap().unwrap();
    assert_eq!(whole.count().unwrap(), 1024);
    assert!(db.stat().unwrap().runs > 0, "there were blocks");
}

/// When the last appender ends, it flushes all blocks. If the disk is full then, that appender reports it, and nothing
/// is committed.
#[test]
fn a_full_disk_at_the_last_flush_is_reported() {
    tidalite_testkit::watch();
    let options = Options::new()
        .tuning(Tuning::new().write_buffer_bytes(8 << 20))
        .file_bytes(0, 1 << 20);
    let db = options
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut txn = db.begin_write().unwrap();
    let mut appenders = txn.appenders(2).unwrap();
    let (mut b, mut a) = (appenders.pop().unwrap(), appenders.pop().unwrap());
    drop(appenders);
    let mut rng = Rng::new(7);
    for (name, appender) in [("a", &mut a), ("b", &mut b)] {
        for n in 0..300 {
            let mut series = appender.series(&format!("{name}{n}")).unwrap();
            for time in 0..300 {
                let value = f64::from_bits(rng.u64() >> 2);
                series.insert_point(Steps(time), 0, value).unwrap();
            }
        }
    }
    a.finish().unwrap();
    let error = b.finish().unwrap_err();
    assert!(error.kind() == ErrorKind::Full, "{error}");
    let error = txn.commit().unwrap_err();
    assert!(error.kind() == ErrorKind::Broken, "{error}");
    let mut txn = db.begin_write().unwrap();
    txn.series("after").unwrap().insert(Steps(1), 1.0).unwrap();
    txn.commit().unwrap();
    assert!(db.begin_read().unwrap().series("a0").unwrap().is_none());
}
