//! Several tables of one transaction are changed in turn and read while others change.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ErrorKind, Options};
use tidalite_testkit::rng::Rng;

fn memory() -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    Options::new().page_size(512).open_storage(storage).unwrap()
}

/// A table and an index of it, changed in turn, agree with maps.
#[test]
fn tables_changed_in_turn_agree_with_maps() {
    for seed in 0..6 {
        println!("seed {seed}");
        let (db, mut rng) = (memory(), Rng::new(seed));
        let mut model: BTreeMap<u32, u8> = BTreeMap::new();
        for _ in 0..4 {
            let mut tx = db.begin_write().unwrap();
            let tables = tx.share();
            let table = tables.typed_table::<u32, u8>("table").unwrap();
            let index = tables.typed_set_table::<u8, u32>("index").unwrap();
            for _ in 0..300 {
                let (key, value) = (rng.below(400) as u32, rng.below(9) as u8);
                if rng.one_in(4) {
                    let old = model.remove(&key);
                    assert_eq!(table.get(&key).unwrap(), old);
                    assert_eq!(table.remove(&key).unwrap(), old.is_some());
                    assert_eq!(
                        old.is_some(),
                        old.is_some_and(|old| index.remove(&old, &key).unwrap())
                    );
                } else {
                    let old = table.replace(&key, &value).unwrap();
                    assert_eq!(old, model.insert(key, value));
                    if let Some(old) = old {
                        assert!(index.remove(&old, &key).unwrap());
                    }
                    assert!(index.put(&value, &key).unwrap());
                }
            }
            for value in 0..9 {
                let keys = model
                    .iter()
                    .filter(|(_, own)| **own == value)
                    .map(|(key, _)| *key);
                assert_eq!(index.values(&value).unwrap(), keys.collect::<Vec<_>>());
            }
            tx.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        let table = snap.typed_table::<u32, u8>("table").unwrap().unwrap();
        assert!(table.iter().map(Result::unwrap).eq(model));
    }
}

#[test]
fn entries_are_read_while_tables_change() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let tables = tx.share();
    let (from, to) = (
        tables.typed_table::<u32, u32>("from").unwrap(),
        tables.typed_table::<u32, u32>("to").unwrap(),
    );
    from.with(|from| from.extend((0..1000).map(|n| (n, n))))
        .unwrap();
    // Each entry that the iteration returns moves to another table. The iteration returns entries that are put ahead of
    // its position, but not those behind it.
    let mut met = BTreeSet::new();
    for entry in from.entries(100..) {
        let (key, value) = entry.unwrap();
        assert!(met.insert(key) && key == value);
        assert!(from.remove(&key).unwrap() && to.put(&key, &value).unwrap());
        if key == 500 {
            from.put(&5000, &5000).unwrap();
            from.put(&101, &101).unwrap();
        }
    }
    let expected: BTreeSet<u32> = (100..1000).chain([5000]).collect();
    assert_eq!(met, expected);
    assert!(to.entries(..).map(|entry| entry.unwrap().0).eq(expected));
    let rest: Vec<u32> = from.entries(..).map(|entry| entry.unwrap().0).collect();
    assert!(rest.iter().copied().eq((0..100).chain([101])));

    // Every kind of bound is tested, on the border of a batch of 64 and next to it.
    for (start, end) in [(0, 64), (10, 74), (10, 73), (10, 75), (0, 0), (99, 10)] {
        let count =
            |range: (Bound<u32>, Bound<u32>)| from.entries(range).map(Result::unwrap).count();
        let keys = || rest.iter().filter(|key| **key >= start);
        let within = keys().filter(|key| **key < end).count();
        assert_eq!(
            count((Bound::Included(start), Bound::Excluded(end))),
            within
        );
        let within = keys().filter(|key| **key <= end).count();
        assert_eq!(
            count((Bound::Included(start), Bound::Included(end))),
            within
        );
        let within = keys().filter(|key| **key > start && **key <= end).count();
        assert_eq!(
            count((Bound::Excluded(start), Bound::Included(end))),
            within
        );
    }
}

#[test]
fn refused_uses_of_shared_tables_change_nothing() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let tables = tx.share();
    let (one, other) = (tables.table("one").unwrap(), tables.table("other").unwrap());
    other.put(b"k", b"v").unwrap();
    let inner = one.with(|_| other.put(b"k", b"w"));
    assert!(
        matches!(inner, Err(ref error) if error.kind() == ErrorKind::Unsupported),
        "{inner:?}"
    );
    assert_eq!(other.get(b"k").unwrap(), Some(b"v".to_vec()));
    let sets = tables.set_table("one").map(drop).unwrap_err();
    assert_eq!(sets.kind(), ErrorKind::WrongType);

    // An error type of the caller passes through; the library's errors convert to it.
    let own = |error: Result<(), Own>| error.unwrap_err();
    let ended = own(one.with(|one| match one.put(b"d", b"4")? {
        true => Err(Own::Ended),
        false => Ok(()),
    }));
    assert!(matches!(ended, Own::Ended), "{ended:?}");
    assert_eq!(one.get(b"d").unwrap(), Some(b"4".to_vec()));
    assert!(one.remove(b"d").unwrap());
    let refused = own(one.with(|_| Ok(other.put(b"k", b"w").map(drop)?)));
    assert!(
        matches!(&refused, Own::Database(error) if error.kind() == ErrorKind::Unsupported),
        "{refused:?}"
    );

    // A nested table where a value is expected ends the iteration with an error, but only after the entries before it.
    one.with(|one| {
        one.extend([("a", "1"), ("c", "3")])?;
        one.nested(b"b").put(b"x", b"y").map(drop)
    })
    .unwrap();
    let mut entries = one.entries(..);
    assert_eq!(
        entries.next().unwrap().unwrap(),
        (b"a".to_vec(), b"1".to_vec())
    );
    let nested = entries.next().unwrap().unwrap_err();
    assert_eq!(nested.kind(), ErrorKind::WrongType);
    assert!(entries.next().is_none() && entries.next().is_none());
}

/// An error type of the calling program.
#[derive(Debug)]
enum Own {
    Ended,
    Database(tidalite::Error),
}

impl From<tidalite::Error> for Own {
    fn from(error: tidalite::Error) -> Self {
        Self::Database(error)
    }
}
