//! A transaction in which an operation failed half-way refuses every further call; only a rollback to a savepoint
//! repairs it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite::monitor::LongReaderAction;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Error, ErrorKind, Options, Steps, Tuning, WriteTxn};
use tidalite_testkit::SimDisk;

fn is_broken<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(ref error) if error.kind() == ErrorKind::Broken)
}

fn append(tx: &mut WriteTxn, from: i64, rows: i64) {
    for time in from..from + rows {
        let mut series = tx.series("wind").unwrap();
        series.insert_point(Steps(time), 0, time as f64).unwrap();
    }
}

/// Opens a database whose delta has runs, so that a transaction must read the delta's record from the disk before it
/// changes a series.
fn with_runs(disk: &Arc<SimDisk>) -> Database {
    let db = Options::new().open_storage(disk.clone()).unwrap();
    for step in 0..40 {
        let mut tx = db.begin_write().unwrap();
        for series in 0..20 {
            let mut series = tx.series(&format!("s{series}")).unwrap();
            for time in 0..20 {
                series
                    .insert_point(Steps(time * 100 + step), 0, 1.0)
                    .unwrap();
            }
        }
        tx.commit().unwrap();
    }
    db
}

/// A value that panics when its bytes are read.
struct Panics;

impl AsRef<[u8]> for Panics {
    fn as_ref(&self) -> &[u8] {
        std::panic::panic_any("as it was meant")
    }
}

fn panics(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
}

#[test]
fn tables_of_a_broken_transaction_refuse_reads() {
    tidalite_testkit::watch();
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"k", b"v").unwrap();
    tx.table("t").unwrap().nested(b"n").put(b"k", b"v").unwrap();
    tx.set_table("m").unwrap().put(b"k", b"v").unwrap();
    let point = tx.savepoint().unwrap();

    let mut table = tx.table("t").unwrap();
    assert!(table.view().is_ok() && table.try_view().is_ok());
    panics(|| drop(table.reserve(b"new", 8, |_| std::panic::panic_any("as it was meant"))));
    assert!(is_broken(table.get(b"k")));
    assert!(is_broken(table.view()) && is_broken(table.try_view()));
    let mut nested = table.nested(b"n");
    assert!(is_broken(nested.get(b"k")) && is_broken(nested.view()));
    assert!(is_broken(nested.cursor_mut().first()));
    let typed = nested.typed::<String, String>();
    assert!(is_broken(typed.get(&"k".into())) && is_broken(typed.view()));
    assert!(is_broken(tx.view_table("t")) && is_broken(tx.view_set_table("m")));
    assert!(is_broken(tx.is_set_table("t")));
    assert!(is_broken(tx.set_table_if_exists("m")));

    tx.rollback_to(&point).unwrap();
    let mut pairs = tx.set_table("m").unwrap();
    assert!(pairs.view().is_ok());
    // `put_many` reads the bytes of the values before it changes anything, so its panic does not break the transaction.
    // `extend` reads them in between, so its panic does.
    panics(|| drop(pairs.put_many(b"k", &[Panics])));
    assert_eq!(pairs.view().unwrap().count(), 1);
    panics(|| drop(pairs.extend([(b"k", Panics)])));
    assert!(is_broken(pairs.view()));
    assert!(is_broken(pairs.cursor_mut().first()));
    let typed = pairs.typed::<String, String>();
    assert!(is_broken(typed.view()));

    tx.rollback_to(&point).unwrap();
    assert_eq!(tx.table("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
    assert_eq!(tx.set_table("m").unwrap().view().unwrap().count(), 1);
}

#[test]
fn a_table_that_cannot_be_read_is_not_an_empty_one() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let db = Options::new().open_storage(disk.clone()).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().nested(b"n").put(b"k", b"v").unwrap();
    tx.table("t").unwrap().put(b"value", b"").unwrap();
    tx.commit().unwrap();
    drop(db);
    let db = Options::new().open_storage(disk.clone()).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    disk.kill();
    assert!(table.nested(b"n").view().is_err());
    disk.set_fault(None);
    assert_eq!(table.nested(b"n").view().unwrap().count(), 1);
    assert_eq!(table.nested(b"none").view().unwrap().count(), 0);
    assert!(table.nested(b"none").try_view().unwrap().is_none());
    // Opening a nested table under a key that holds a value is an error, not an empty table.
    assert!(table.nested(b"value").view().is_err());
}

#[test]
fn a_way_back_that_fails_leaves_the_transaction_broken() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let db = with_runs(&disk);
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"k", b"before").unwrap();
    let point = tx.savepoint().unwrap();
    append(&mut tx, 0, 10);
    tx.table("t").unwrap().put(b"k", b"after").unwrap();
    disk.kill();
    assert!(tx.rollback_to(&point).is_err());
    disk.set_fault(None);
    assert!(is_broken(tx.table("t").map(drop)));
    assert!(is_broken(tx.savepoint()));
    // The failed rollback did not use up the savepoint.
    tx.rollback_to(&point).unwrap();
    // A nested transaction that fails also rolls back at its end, and that rollback can fail in the same way.
    let nested = tx.nested(|tx| {
        append(tx, 0, 10);
        disk.kill();
        Err::<(), _>(tx.series("").err().unwrap())
    });
    disk.set_fault(None);
    assert!(nested.is_err() && is_broken(tx.savepoint()));
    tx.rollback_to(&point).unwrap();
    append(&mut tx, 20, 10);
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    assert_eq!(table.get(b"k").unwrap().unwrap(), b"before");
    assert_eq!(snap.series("wind").unwrap().unwrap().count().unwrap(), 10);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_panic_while_rows_are_handed_over_breaks_the_transaction() {
    tidalite_testkit::watch();
    let armed = Arc::new(AtomicBool::new(false));
    let panics = armed.clone();
    let db = Options::new()
        .tuning(
            Tuning::new()
                .write_buffer_bytes(200_000)
                .growth_bytes(64 << 10, 64 << 10)
                .on_long_reader(1, move |_| {
                    if panics.load(Ordering::SeqCst) {
                        std::panic::panic_any("as it was meant");
                    }
                    LongReaderAction::GiveUp
                }),
        )
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    append(&mut tx, 0, 50_000);
    tx.table("t").unwrap().put(b"k", &[1; 100_000]).unwrap();
    tx.commit().unwrap();
    let held = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"k", &[2; 100_000]).unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    armed.store(true, Ordering::SeqCst);
    let caught = catch_unwind(AssertUnwindSafe(|| append(&mut tx, 50_000, 2_000_000)));
    armed.store(false, Ordering::SeqCst);
    assert!(caught.is_err(), "the file grows");
    assert!(is_broken(tx.commit()));
    drop(held);
    assert!(db.check().unwrap().is_clean());
}
