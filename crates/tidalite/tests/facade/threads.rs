//! One writer and any number of readers, each in its own thread.

use crate::common::{Content, assert_clean, content_of, in_memory};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tidalite::{Database, Options, ReadTxn, Steps, WriteTxn};
use tidalite_testkit::rng::Rng;

const COMMITS: u64 = 300;
const READERS: u64 = 4;

#[test]
fn transactions_may_move_between_threads() {
    fn send<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    send::<WriteTxn>();
    shared::<ReadTxn>();
    shared::<Database>();
    let db = in_memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    for step in 0..5 {
        tx = thread::spawn(move || {
            tx.series("moved")
                .unwrap()
                .insert_point(Steps(step), 0, step as f64)
                .unwrap();
            tx.table("moved")
                .unwrap()
                .put(&[step as u8], b"here")
                .unwrap();
            tx
        })
        .join()
        .unwrap();
    }
    let committed = thread::spawn(move || tx.commit().unwrap()).join().unwrap();
    let snap = db.begin_read().unwrap();
    assert_eq!(snap.txn(), committed.txn);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                assert_eq!(snap.series("moved").unwrap().unwrap().count().unwrap(), 5);
                assert_eq!(snap.table("moved").unwrap().unwrap().count(), 5);
            });
        }
    });
}

/// Commits one more transaction of the writer in the test below.
fn write(db: &Database, rng: &mut Rng, content: &mut Content, newest: &Mutex<(u64, Content)>) {
    let mut tx = db.begin_write().unwrap();
    for _ in 0..rng.between(1, 4) {
        let name = format!("s{}", rng.below(3));
        let rows = content.series.entry(name.clone()).or_default();
        let mut series = tx.series(&name).unwrap();
        let from = rng.between(0, 4_000);
        if rng.one_in(6) {
            let gone = series.delete(Steps(from)..Steps(from + 500)).unwrap();
            let kept = rows.len() as u64 - gone;
            rows.retain(|&time, _| !(from..from + 500).contains(&time));
            assert_eq!(rows.len() as u64, kept);
        }
        for i in 0..rng.between(1, 300) {
            let word = rng.u64();
            series.insert_row(Steps(from + i), &[0, word]).unwrap();
            rows.insert(from + i, vec![0, word]);
        }
    }
    let key = rng.below(300).to_be_bytes().to_vec();
    let value = vec![rng.u64() as u8; rng.index(400)];
    tx.table("t").unwrap().put(&key, &value).unwrap();
    content
        .tables
        .entry("t".into())
        .or_default()
        .insert(key, value);
    let mut newest = newest.lock().unwrap();
    let committed = tx.commit().unwrap();
    *newest = (committed.txn.0, content.clone());
}

#[test]
fn snapshots_stay_as_they_were_while_a_writer_commits() {
    let db = in_memory(&Options::new());
    let newest = Mutex::new((db.begin_read().unwrap().txn().0, Content::default()));
    let done = AtomicBool::new(false);
    let looks = AtomicU64::new(0);
    thread::scope(|scope| {
        for reader in 0..READERS {
            let (db, newest, done, looks) = (&db, &newest, &done, &looks);
            scope.spawn(move || {
                let mut rng = Rng::new(reader);
                while !done.load(Ordering::Acquire) {
                    let (snap, (txn, expected)) = {
                        let newest = newest.lock().unwrap();
                        (db.begin_read().unwrap(), newest.clone())
                    };
                    assert_eq!(snap.txn().0, txn);
                    for _ in 0..=rng.below(3) {
                        assert_eq!(content_of(&snap).unwrap(), expected, "transaction {txn}");
                        looks.fetch_add(1, Ordering::Relaxed);
                        thread::yield_now();
                    }
                }
            });
        }
        let mut content = Content::default();
        let mut rng = Rng::new(99);
        for _ in 0..COMMITS {
            write(&db, &mut rng, &mut content, &newest);
            thread::yield_now();
        }
        done.store(true, Ordering::Release);
    });
    println!("{looks:?} looks at snapshots during {COMMITS} commits");
    assert_clean(&db);
}

#[test]
fn a_second_writer_waits_its_turn() {
    let db = in_memory(&Options::new());
    let first = db.begin_write().unwrap();
    assert!(db.try_begin_write().unwrap().is_none());
    let (waiting, begun) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let (told, tells) = mpsc::channel();
        for number in 0..4u64 {
            let (db, waiting, begun) = (&db, &waiting, &begun);
            let told = told.clone();
            scope.spawn(move || {
                waiting.fetch_add(1, Ordering::SeqCst);
                let mut tx = db.begin_write().unwrap();
                begun.lock().unwrap().push(number);
                tx.table("order")
                    .unwrap()
                    .put(&number.to_be_bytes(), b"")
                    .unwrap();
                if number % 2 == 0 {
                    tx.commit().unwrap();
                }
                told.send(number).unwrap();
            });
            while waiting.load(Ordering::SeqCst) <= number {
                thread::yield_now();
            }
            // The waiting thread has counted itself but may not be in the writer queue yet; a short pause lets it get
            // there.
            thread::sleep(Duration::from_millis(30));
        }
        assert!(
            begun.lock().unwrap().is_empty(),
            "nobody went before the first"
        );
        assert!(tells.try_recv().is_err());
        assert!(db.try_begin_write().unwrap().is_none());
        drop(first);
        for _ in 0..4 {
            tells.recv().unwrap();
        }
    });
    assert_eq!(
        *begun.lock().unwrap(),
        [0, 1, 2, 3],
        "first come, first served"
    );
    let snap = db.begin_read().unwrap();
    assert_eq!(
        snap.table("order").unwrap().unwrap().count(),
        2,
        "two were dropped"
    );
    assert!(db.try_begin_write().unwrap().is_some());
}

#[test]
fn a_writer_that_panics_is_rolled_back() {
    let db = in_memory(&Options::new());
    let panicked = thread::scope(|scope| {
        scope
            .spawn(|| {
                let mut tx = db.begin_write().unwrap();
                tx.table("lost").unwrap().put(b"k", b"v").unwrap();
                tx.series("lost")
                    .unwrap()
                    .insert_point(Steps(1), 0, 1.0)
                    .unwrap();
                std::panic::resume_unwind(Box::new(()));
            })
            .join()
            .is_err()
    });
    assert!(panicked);
    let mut tx = db.try_begin_write().unwrap().unwrap();
    tx.table("kept").unwrap().put(b"k", b"v").unwrap();
    tx.commit().unwrap();
    assert_eq!(db.begin_read().unwrap().tables().unwrap(), ["kept"]);
    assert_eq!(db.begin_read().unwrap().list("").unwrap(), []);
    assert_clean(&db);
}

#[test]
fn several_threads_read_uncommitted_rows() {
    let db = in_memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    tx.table("old").unwrap().put(b"k", b"before").unwrap();
    tx.series("wind")
        .unwrap()
        .insert_point(Steps(1), 0, 1.0)
        .unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    for i in 0..200u64 {
        let mut table = tx.table("new").unwrap();
        table.put(&i.to_be_bytes(), &vec![i as u8; 3000]).unwrap();
    }
    tx.table("old").unwrap().put(b"k", b"after").unwrap();
    tx.set_table("pairs").unwrap().put(b"a", b"1").unwrap();
    for t in 2..2000 {
        tx.series("wind")
            .unwrap()
            .insert_point(Steps(t), 0, t as f64)
            .unwrap();
    }
    let reader = tx.reader().unwrap();
    let read = || {
        let table = reader.table("new").unwrap().unwrap();
        assert_eq!(table.count(), 200);
        let mut seen = 0u64;
        let walked = table.for_each(|key, value| {
            assert_eq!((key, value[0]), (&seen.to_be_bytes()[..], seen as u8));
            seen += 1;
        });
        walked.unwrap();
        assert_eq!(seen, 200);
        let old = reader.table("old").unwrap().unwrap();
        assert_eq!(old.get(b"k").unwrap().unwrap(), b"after");
        assert_eq!(reader.set_table("pairs").unwrap().unwrap().count(), 1);
        let wind = reader.series("wind").unwrap().unwrap();
        assert_eq!(wind.count().unwrap(), 1999);
        assert!(reader.table("none").unwrap().is_none());
        assert!(reader.table("pairs").is_err());
    };
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| (0..20).for_each(|_| read()));
        }
        // The transaction continues while the threads read.
        for i in 0..200u64 {
            let mut table = tx.table("new").unwrap();
            table.put(&i.to_be_bytes(), b"changed").unwrap();
            let mut series = tx.series("wind").unwrap();
            series.insert_point(Steps(5000 + i as i64), 0, 0.0).unwrap();
        }
    });
    assert!(!reader.has_ended());
    tx.commit().unwrap();
    assert!(reader.has_ended());
    let ended = reader
        .table("new")
        .and_then(|table| table.unwrap().get(&[0; 8]));
    assert!(ended.is_err());
    assert_clean(&db);
}
