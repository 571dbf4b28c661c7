//! Buffered tables: the calls, transactions, and what maintenance does with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tidalite::maintenance::Change;
use tidalite::{Database, ErrorKind, ReadTxn, TableLayout};
use tidalite_testkit::rng::Rng;

fn folder(name: &str) -> std::path::PathBuf {
    tidalite_testkit::watch();
    let folder =
        std::env::temp_dir().join(format!("tidalite-buffered-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn content(db: &Database) -> BTreeMap<u64, String> {
    let snap = db.begin_read().unwrap();
    let table = snap.buffered_table::<u64, str>("t").unwrap().unwrap();
    let ascending: Vec<_> = table.range(..).unwrap().collect::<Result<_, _>>().unwrap();
    let mut descending: Vec<_> = table
        .range_reversed(..)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    descending.reverse();
    assert_eq!(ascending, descending);
    assert_eq!(table.count().unwrap(), ascending.len() as u64);
    assert_eq!(table.first().unwrap().as_ref(), ascending.first());
    assert_eq!(table.last().unwrap().as_ref(), ascending.last());
    ascending.into_iter().collect()
}

#[test]
fn random_writes_are_kept_through_commits_and_maintenance() {
    let folder = folder("random");
    let path = folder.join("a.tdl");
    let rng = &mut Rng::new(11);
    let mut model = BTreeMap::new();
    let db = Database::open(&path).unwrap();
    for round in 0..30 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.buffered_table::<u64, str>("t").unwrap();
        for _ in 0..3000 {
            let key = rng.below(40_000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if rng.one_in(6) {
                table.remove(&key).unwrap();
                model.remove(&key);
                assert!(!table.contains(&key).unwrap());
            } else {
                let value = format!("value {}", rng.below(1000));
                table.put(&key, &value).unwrap();
                assert_eq!(table.get(&key).unwrap().as_ref(), Some(&value));
                model.insert(key, value);
            }
        }
        if round % 10 == 9 {
            table.compact().unwrap();
            assert_eq!(table.view().unwrap().stat().unwrap().runs, 0);
        }
        tx.commit().unwrap();
    }
    assert_eq!(content(&db), model);
    let report = db.check().unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let copy = folder.join("copy.tdl");
    db.copy().to(&copy).unwrap();
    assert_eq!(content(&Database::open(&copy).unwrap()), model);
    drop(db);
    assert_eq!(content(&Database::open(&path).unwrap()), model);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_transaction_sees_its_entries_and_undoes_them() {
    let folder = folder("undo");
    let db = Database::open(folder.join("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.buffered_table::<u64, str>("t")
        .unwrap()
        .put(&1, "one")
        .unwrap();
    let savepoint = tx.savepoint().unwrap();
    let mut table = tx.buffered_table::<u64, str>("t").unwrap();
    table.put(&2, "two").unwrap();
    table.remove(&1).unwrap();
    assert_eq!(table.view().unwrap().count().unwrap(), 1);
    tx.rollback_to(&savepoint).unwrap();
    let refused = tx.table("t").map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongType);
    assert!(refused.to_string().contains("buffered_table"), "{refused}");
    let refused = tx.buffered_table::<u64, u64>("t").map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongType);
    let refused = tx.hash_table::<u64, str>("t").map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongType);
    let mut table = tx.buffered_table::<u64, str>("t").unwrap();
    let long = "x".repeat((16 << 20) + 1);
    assert_eq!(table.put(&3, &long).unwrap_err().kind(), ErrorKind::Limit);
    tx.commit().unwrap();
    assert_eq!(content(&db), BTreeMap::from([(1, "one".to_owned())]));
    let snap = db.begin_read().unwrap();
    let types = snap.table_types("t").unwrap().unwrap();
    assert_eq!(types.layout(), TableLayout::Buffered);
    assert!(snap.buffered_table::<u64, str>("none").unwrap().is_none());
    let mut tx = db.begin_write().unwrap();
    tx.buffered_table::<u64, str>("t").unwrap().clear().unwrap();
    tx.commit().unwrap();
    assert!(content(&db).is_empty());
    drop((snap, db));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn differences_between_versions_are_those_of_the_entries() {
    let folder = folder("diff");
    let db = Database::open(folder.join("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.buffered_table::<u64, str>("t").unwrap();
    table.extend((0..1000).map(|n| (n, "old"))).unwrap();
    table.compact().unwrap();
    tx.commit().unwrap();
    let base = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.buffered_table::<u64, str>("t").unwrap();
    table.put(&5, "new").unwrap();
    table.put(&6, "old").unwrap();
    table.remove(&7).unwrap();
    table.put(&2000, "new").unwrap();
    tx.commit().unwrap();
    for compact in [false, true] {
        if compact {
            let mut tx = db.begin_write().unwrap();
            tx.buffered_table::<u64, str>("t")
                .unwrap()
                .compact()
                .unwrap();
            tx.commit().unwrap();
        }
        let now = db.begin_read().unwrap();
        let mut found = Vec::new();
        now.diff(&base, &mut |change| {
            found.push(match change {
                Change::Inserted { key, .. } => ("inserted", key.to_vec()),
                Change::Changed { key, .. } => ("changed", key.to_vec()),
                Change::Removed { key, .. } => ("removed", key.to_vec()),
                _ => ("other", Vec::new()),
            });
            Ok(())
        })
        .unwrap();
        let key = |n: u64| n.to_be_bytes().to_vec();
        let expected = [
            ("changed", key(5)),
            ("removed", key(7)),
            ("inserted", key(2000)),
        ];
        assert_eq!(found, expected);
    }
    drop((base, db));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A program that knows the types of a buffered table only by name changes and copies it as bytes.
#[test]
fn bytes_of_any_buffered_table_are_read_and_written() {
    let folder = folder("raw");
    let db = Database::open(folder.join("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    assert!(tx.raw_buffered_table("t").unwrap().is_none());
    let mut table = tx
        .create_raw_buffered_table("t", ("u64", "String"))
        .unwrap();
    table.put(&1u64.to_be_bytes(), b"one").unwrap();
    let taken = tx.create_raw_buffered_table("t", ("u64", "String"));
    assert_eq!(
        taken.map(drop).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    let mut table = tx.buffered_table::<u64, str>("t").unwrap();
    table.put(&2, "two").unwrap();
    tx.table("plain").unwrap().put(b"a", b"1").unwrap();
    let refused = tx.raw_buffered_table("plain").map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongType);
    tx.commit().unwrap();

    let mut tx = db.begin_write().unwrap();
    let mut table = tx.raw_buffered_table("t").unwrap().unwrap();
    let two = 2u64.to_be_bytes();
    assert_eq!(table.get(&two).unwrap().as_deref(), Some(&b"two"[..]));
    table.remove(&two).unwrap();
    tx.commit().unwrap();
    assert_eq!(content(&db), BTreeMap::from([(1, "one".to_owned())]));
    assert!(db.check().unwrap().findings.is_empty());
    drop(db);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The rows of a hash table or a buffered table belong together: no call changes one of them alone, also while entries
/// wait to be stored.
#[test]
fn rows_of_other_layouts_cannot_be_opened_for_changes() {
    let folder = folder("layouts");
    let db = Database::open(folder.join("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.buffered_table::<u64, str>("t")
        .unwrap()
        .put(&1, "one")
        .unwrap();
    tx.hash_table::<u64, str>("h")
        .unwrap()
        .set(&1, "one")
        .unwrap();
    for is_open in [true, false] {
        if !is_open {
            tx.commit().unwrap();
            tx = db.begin_write().unwrap();
        }
        for (name, opens_it) in [("t", "buffered_table"), ("h", "hash_table")] {
            for refused in [
                tx.raw_table(name).map(drop),
                tx.table_if_exists(name).map(drop),
                tx.typed_table::<u64, str>(name).map(drop),
                tx.retype_table::<u64, str>(name).map(drop),
                tx.raw_set_table(name).map(drop),
                tx.typed_set_table::<u64, str>(name).map(drop),
                tx.view_set_table(name).map(drop),
            ] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::WrongType);
                assert!(refused.to_string().contains(opens_it), "{refused}");
            }
        }
    }
    drop(tx);
    assert_eq!(content(&db), BTreeMap::from([(1, "one".to_owned())]));
    assert!(db.check().unwrap().is_clean());
    drop(db);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_unchanged_buffered_table_is_not_read_to_find_differences() {
    let folder = folder("unchanged");
    let db = Database::open(folder.join("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.buffered_table::<u64, str>("t").unwrap();
    table.extend((0..20_000).map(|n| (n, "old"))).unwrap();
    tx.commit().unwrap();
    let base = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("other").unwrap().put(b"k", b"v").unwrap();
    tx.commit().unwrap();
    let now = db.begin_read().unwrap();
    let pages = |snap: &ReadTxn| snap.counters().pages_read.load(Ordering::Relaxed);
    let before = pages(&now) + pages(&base);
    let mut changes = 0;
    now.diff(&base, &mut |_| {
        changes += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(changes, 2, "a table, and a pair in it");
    let read = pages(&now) + pages(&base) - before;
    assert!(read < 20, "{read} pages");
    drop((now, base, db));
    std::fs::remove_dir_all(folder).unwrap();
}
