//! Snapshots that are cloned, renewed, parked, evicted and listed, over tables and series.

use crate::common::{Content, Folder, assert_clean, in_memory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidalite::monitor::{LongReaderAction, ReaderKind};
use tidalite::{Database, Durability, Error, ErrorKind, Options, ReadTxn, Steps, Tuning};

fn content_of(snap: &ReadTxn) -> Content {
    crate::common::content_of(snap).unwrap()
}

/// Makes a commit that rewrites a table and adds rows to a series.
fn commit(db: &Database, round: u64) {
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("state").unwrap();
    for key in 0..400u64 {
        let value = [round as u8; 100];
        table.put(&key.to_be_bytes(), &value).unwrap();
    }
    let mut series = tx.series("level").unwrap();
    for i in 0..200 {
        let at = (round * 200 + i) as i64;
        series.insert_point(Steps(at), 0, at as f64).unwrap();
    }
    tx.commit().unwrap();
}

fn is_evicted<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(ref error) if error.kind() == ErrorKind::Evicted)
}

#[test]
fn clones_renewals_and_the_listing() {
    let folder = Folder::new("readers");
    let path = folder.file("plant.tdl");
    let (a, b) = (
        Database::open(&path).unwrap(),
        Database::open(&path).unwrap(),
    );
    commit(&a, 0);
    let mut snap = b.begin_read().unwrap();
    let clone = snap.clone();
    let before = content_of(&clone);
    commit(&a, 1);
    commit(&b, 2);
    let evictable = b.begin_read_evictable().unwrap();
    let readers = a.readers().unwrap();
    let mut found: Vec<_> = readers
        .iter()
        .map(|r| (r.kind, r.lag_txns, r.own))
        .collect();
    // Readers are listed by slot, and the slots that a thread gets depend on earlier readers, so the list is sorted
    // first.
    found.sort_by_key(|&(_, lag, _)| std::cmp::Reverse(lag));
    assert_eq!(
        found,
        [
            (ReaderKind::Read, 2, false),
            (ReaderKind::Evictable, 0, false)
        ]
    );
    assert_eq!(content_of(&snap), before);
    snap.renew().unwrap();
    assert_eq!(content_of(&snap), content_of(&evictable));
    assert_eq!(content_of(&snap), content_of(&a.begin_read().unwrap()));
    assert_eq!(content_of(&clone), before);
    assert!(evictable.is_evictable() && !snap.is_evictable());
    let tx = a.begin_write().unwrap();
    assert_eq!(b.writer().unwrap().process, std::process::id());
    let busy = b.begin_write_within(Duration::from_millis(20));
    assert!(matches!(busy.err(), Some(ref error) if error.kind() == ErrorKind::Locked));
    drop(tx);
    drop((snap, clone, evictable));
    assert!(a.readers().unwrap().is_empty() && b.writer().is_none());
    assert_clean(&a);
}

#[test]
fn an_evictable_snapshot_is_consistent_until_evicted() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let options = Options::new().tuning(
        Tuning::new()
            .growth_bytes(16 << 10, 64 << 10)
            .on_long_reader(64 << 10, move |long_reader| {
                assert!(long_reader.reader.retained_bytes >= 64 << 10);
                count.fetch_add(1, Ordering::Relaxed);
                LongReaderAction::Evict
            }),
    );
    let db = in_memory(&options);
    commit(&db, 0);
    let snap = db.begin_read_evictable().unwrap();
    let before = content_of(&snap);
    let parked = db.begin_read().unwrap().park();
    let comes_back = db.begin_read().unwrap().park();
    assert_eq!(content_of(&comes_back.unpark().unwrap()), before);
    let mut round = 0;
    let table = loop {
        match snap.table("state") {
            Ok(table) => assert!(table.is_some()),
            Err(error) => break Err::<(), _>(error),
        }
        round += 1;
        commit(&db, round);
        assert!(round < 200, "never taken away");
    };
    assert!(asked.load(Ordering::Relaxed) > 0 && is_evicted(table));
    assert!(is_evicted(snap.series("level")));
    while db
        .readers()
        .unwrap()
        .iter()
        .any(|r| r.kind == ReaderKind::Parked)
    {
        round += 1;
        commit(&db, round);
    }
    let snap = parked.unpark_or_renew().unwrap();
    assert_eq!(content_of(&snap), content_of(&db.begin_read().unwrap()));
    assert_clean(&db);
}

/// `amend` begins a transaction if the snapshot is still the newest version, and otherwise returns `None`.
#[test]
fn a_snapshot_is_amended_only_while_it_is_the_newest() {
    let folder = Folder::new("amend");
    let path = folder.file("plant.tdl");
    let (a, b) = (
        Database::open(&path).unwrap(),
        Database::open(&path).unwrap(),
    );
    commit(&a, 1);
    let snap = a.begin_read().unwrap();
    drop(a.amend(&snap).unwrap().expect("it is the newest"));
    let mut tx = a.amend(&snap).unwrap().expect("nothing was written");
    tx.table("state").unwrap().put(b"amended", b"1").unwrap();
    tx.commit().unwrap();
    assert!(a.amend(&snap).unwrap().is_none(), "its own commit is newer");
    assert_eq!(snap.table("state").unwrap().unwrap().count(), 400);

    // Another handle commits, as another process would: a snapshot older than this commit is refused, a newer one is
    // not.
    let snap = a.begin_read().unwrap();
    commit(&b, 2);
    assert!(a.amend(&snap).unwrap().is_none(), "another's is newer");
    let snap = a.begin_read().unwrap();
    assert!(a.amend(&snap).unwrap().is_some());

    // A commit that waits for its sync is newer than the snapshot although it is not visible yet, and so is a commit
    // that only this process sees.
    let mut tx = a.begin_write().unwrap();
    tx.table("state").unwrap().put(b"late", b"1").unwrap();
    let ticket = tx.commit_ticket(Durability::Durable).unwrap();
    let snap = a.begin_read().unwrap();
    let seen = snap.table("state").unwrap().unwrap();
    let sees = seen.get(b"late").unwrap().is_some();
    assert_eq!(a.amend(&snap).unwrap().is_some(), sees);
    ticket.wait().unwrap();
    let snap = a.begin_read().unwrap();
    let mut tx = a.amend(&snap).unwrap().expect("it is durable");
    tx.table("state").unwrap().put(b"none", b"1").unwrap();
    tx.commit_with(Durability::None).unwrap();
    assert!(a.amend(&snap).unwrap().is_none());
    let snap = a.begin_read().unwrap();
    assert!(a.amend(&snap).unwrap().is_some());

    // A snapshot of another file is refused.
    let other = Database::open(folder.file("other.tdl")).unwrap();
    let mut tx = other.begin_write().unwrap();
    tx.table("other").unwrap().put(b"a", b"1").unwrap();
    tx.commit().unwrap();
    while other.begin_read().unwrap().txn() < snap.txn() {
        commit(&other, 1);
    }
    assert!(other.amend(&snap).unwrap().is_none());
}

/// Several threads commit and then read: each reads its own commit, and the writer lock is free afterwards.
#[test]
fn a_commit_goes_on_as_a_reader_of_itself() {
    let folder = Folder::new("commit-and-read");
    let db = Database::open(folder.file("plant.tdl")).unwrap();
    let kinds = [Durability::Durable, Durability::Lazy, Durability::None];
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..60u8 {
                    let mut tx = db.begin_write().unwrap();
                    tx.table("last")
                        .unwrap()
                        .put(b"", &[thread, round])
                        .unwrap();
                    let kind = kinds[usize::from(round) % kinds.len()];
                    let (commit, snap) = tx.commit_and_read(kind).unwrap();
                    let last = snap.table("last").unwrap().unwrap();
                    assert_eq!(
                        last.get(b"").unwrap().as_deref(),
                        Some(&[thread, round][..])
                    );
                    assert_eq!(snap.txn(), commit.txn);
                }
            });
        }
    });
    assert!(db.try_begin_write().unwrap().is_some());
}
