//! Cached gets compared with plain gets.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite::monitor::Counters;
use tidalite::storage::MemoryStorage;
use tidalite::table::{Cached, CachedGet};
use tidalite::{Database, Durability, Options, ReadTxn, Table, WriteTxn};
use tidalite_testkit::rng::Rng;

const KEYS: u64 = 3000;

fn small_pages() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .page_size(512)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// A random value; one in twenty is too long to be stored in the leaf.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.one_in(20) { 900 } else { rng.index(30) };
    vec![rng.below(256) as u8; len]
}

fn put_many(tx: &mut WriteTxn, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let key = key(rng.below(KEYS));
        if rng.one_in(5) {
            tx.table("t").unwrap().remove(&key).unwrap();
        } else {
            tx.table("t").unwrap().put(&key, &value(rng)).unwrap();
        }
    }
}

/// Runs each get and checks the result; returns the number of results that came from the cache.
fn ask(gets: &mut [CachedGet], table: &Table<'_>) -> usize {
    let mut remembered = 0;
    for get in gets {
        let expected = table.get(get.key()).unwrap();
        assert_eq!(get.get(table).unwrap(), expected.as_deref());
        remembered += usize::from(get.cached() != Cached::Searched);
        // A get searches again only if the first one searched as well.
        let first = get.cached();
        assert_eq!(get.get(table).unwrap(), expected.as_deref());
        assert!(get.cached() != Cached::Searched || first == Cached::Searched);
    }
    remembered
}

#[test]
fn remembered_answers_hold_in_every_version() {
    let db = small_pages();
    let mut rng = Rng::new(21);
    let mut gets: Vec<CachedGet> = (0..60)
        .map(|_| CachedGet::new(&key(rng.below(KEYS + 200))))
        .collect();
    let mut held: Vec<ReadTxn> = Vec::new();
    let mut remembered = 0;
    for round in 0..120u64 {
        let mut tx = db.begin_write().unwrap();
        let most = [3, 40, 1, 400][round as usize % 4];
        put_many(&mut tx, &mut rng, most);
        // The gets see the transaction's own changes. They see no changes that were undone or rolled back.
        ask(&mut gets, &tx.table("t").unwrap().view().unwrap());
        let point = tx.savepoint().unwrap();
        put_many(&mut tx, &mut rng, most);
        ask(&mut gets, &tx.table("t").unwrap().view().unwrap());
        if rng.one_in(2) {
            let before = tx.reader().unwrap();
            put_many(&mut tx, &mut rng, 5);
            ask(&mut gets, &before.table("t").unwrap().unwrap());
            ask(&mut gets, &tx.table("t").unwrap().view().unwrap());
        }
        if rng.one_in(2) {
            tx.rollback_to(&point).unwrap();
            ask(&mut gets, &tx.table("t").unwrap().view().unwrap());
        }
        if rng.one_in(4) {
            drop(tx);
        } else {
            let durabilities = [Durability::Durable, Durability::Lazy, Durability::None];
            tx.commit_with(durabilities[rng.index(3)]).unwrap();
        }
        held.push(db.begin_read().unwrap());
        if held.len() > 4 {
            held.swap_remove(rng.index(4));
        }
        for snap in &held {
            if let Some(table) = snap.table("t").unwrap() {
                remembered += ask(&mut gets, &table);
            }
        }
    }
    // The cache was useful even though several versions were read in turn.
    assert!(remembered > 5000, "{remembered}");
}

fn reads(snap: &ReadTxn) -> impl Fn() -> u64 {
    let counters: &Counters = snap.counters();
    move || counters.pages_read.load(Ordering::Relaxed)
}

#[test]
fn unchanged_tables_are_not_read_again() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let rows = (0..KEYS).map(|i| (key(i), [7; 20]));
    tx.table("t").unwrap().extend(rows).unwrap();
    let levels = u64::from(
        tx.table("t")
            .unwrap()
            .view()
            .unwrap()
            .shape()
            .unwrap()
            .depth,
    );
    tx.commit().unwrap();
    assert!(levels > 2);
    let mut get = CachedGet::new(&key(5));
    let mut ask = |expected: (Cached, u64)| {
        let snap = db.begin_read().unwrap();
        let table = snap.table("t").unwrap().unwrap();
        let read = reads(&snap);
        let before = read();
        assert_eq!(get.get(&table).unwrap(), Some(&[7; 20][..]));
        assert_eq!((get.cached(), read() - before), expected);
    };
    ask((Cached::Searched, levels));
    ask((Cached::Hit, 0));
    for (changed, expected) in [
        // Each row says where a change is made, how the cached get then finds its result, and how many pages it reads:
        // a change in another table leaves a hit; at the far end of the table, one page must be read to confirm the
        // result; in the same leaf, the search is repeated.
        (("u", 5), (Cached::Hit, 0)),
        (("t", KEYS - 1), (Cached::Confirmed, 1)),
        (("t", 6), (Cached::Searched, levels)),
    ] {
        let mut tx = db.begin_write().unwrap();
        let (table, of) = changed;
        tx.table(table).unwrap().put(&key(of), b"new").unwrap();
        tx.commit().unwrap();
        ask(expected);
        ask((Cached::Hit, 0));
    }
}

#[test]
fn one_get_answers_for_the_table_that_it_is_given() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    for (name, filled) in [("a", 500), ("b", 300), ("c", 0)] {
        let mut table = tx.table(name).unwrap();
        let rows = (0..filled).map(|i| (key(i), name));
        table.extend(rows).unwrap();
        for (topic, filled) in [("small", 2), ("large", 400)] {
            let mut below = table.nested(topic.as_bytes());
            let value = format!("{name}/{topic}");
            let rows = (0..filled).map(|i| (key(i), &value));
            below.extend(rows).unwrap();
        }
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let mut get = CachedGet::new(&key(1));
    let mut rng = Rng::new(2);
    for _ in 0..300 {
        let name = ["a", "b", "c"][rng.index(3)];
        let table = snap.table(name).unwrap().unwrap();
        let topic = ["", "small", "large"][rng.index(3)];
        let (asked, expected) = match topic {
            "" => (table, (name != "c").then(|| name.to_owned())),
            _ => (
                table.nested(topic.as_bytes()).unwrap().unwrap(),
                Some(format!("{name}/{topic}")),
            ),
        };
        for again in [false, true] {
            let found = get.get(&asked).unwrap();
            assert_eq!(found, expected.as_ref().map(String::as_bytes));
            if again {
                assert_eq!(get.cached() == Cached::Hit, topic != "small");
            }
        }
    }
    // A nested table has no value, and the cached result stays.
    let table = snap.table("a").unwrap().unwrap();
    let mut topic = CachedGet::new(b"large");
    assert!(topic.get(&table).is_err() && topic.get(&table).is_err());
    let empty = table.nested(b"large").unwrap().unwrap();
    assert_eq!(topic.get(&empty).unwrap(), None);
}

/// The cache compares page pointers. Pages that may still change have null pointers, and so has the root of an empty
/// table, so a cached path must not survive a table that was cleared, rolled back or dropped.
#[test]
fn dropped_tables_leave_the_cache() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let empty = tx.savepoint().unwrap();
    let mut get = CachedGet::new(b"k");
    let put = |tx: &mut WriteTxn, get: &mut CachedGet| {
        tx.table("t").unwrap().put(b"k", b"v").unwrap();
        let table = tx.table("t").unwrap();
        assert_eq!(get.get(&table.view().unwrap()).unwrap(), Some(&b"v"[..]));
    };
    put(&mut tx, &mut get);
    tx.table("t").unwrap().clear().unwrap();
    assert_eq!(
        get.get(&tx.table("t").unwrap().view().unwrap()).unwrap(),
        None
    );
    // The table is created, then the transaction rolls back to a savepoint before that.
    put(&mut tx, &mut get);
    tx.rollback_to(&empty).unwrap();
    assert_eq!(
        get.get(&tx.table("t").unwrap().view().unwrap()).unwrap(),
        None
    );
    // The get is used with a nested table that does not exist.
    put(&mut tx, &mut get);
    let mut table = tx.table("t").unwrap();
    assert_eq!(
        get.get(&table.nested(b"below").view().unwrap()).unwrap(),
        None
    );
    tx.rollback_to(&empty).unwrap();
    drop(tx.table("t").unwrap());
    tx.commit().unwrap();
    // The table is created in a transaction that is dropped.
    let mut tx = db.begin_write().unwrap();
    put(&mut tx, &mut get);
    drop(tx);
    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    assert_eq!(get.get(&table).unwrap(), None);
}
