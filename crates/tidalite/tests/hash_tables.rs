//! Hash tables: the calls, transactions, several kinds of keys, and what maintenance does with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite::hash_table::{HashTableOptions, History, KeyForm};
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Durability, ErrorKind, Options, TableLayout};
use tidalite_testkit::rng::{Rng, mix};

fn memory() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("tidalite-hash-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn guid(n: u64) -> [u8; 16] {
    let mut guid = [0; 16];
    guid[..8].copy_from_slice(&mix(n).to_be_bytes());
    guid[8..].copy_from_slice(&mix(n ^ 0x5555).to_be_bytes());
    guid
}

/// `Duplicates_Set_and_Get` of RaptorDB: 100 duplicates of 1,000 GUIDs.
#[test]
fn duplicates_are_set_and_got() {
    let db = memory();
    let options = HashTableOptions::new().duplicates(true);
    for round in 0..10 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx
            .hash_table_with::<[u8; 16], u64>("guids", &options)
            .unwrap();
        for value in round * 10..round * 10 + 10 {
            for n in 0..1000 {
                table.set(&guid(n), &(n << 32 | value)).unwrap();
            }
        }
        tx.commit().unwrap();
    }
    let snap = db.begin_read().unwrap();
    let table = snap.hash_table::<[u8; 16], u64>("guids").unwrap().unwrap();
    assert_eq!(table.count().unwrap(), 1000);
    assert_eq!(table.count_records().unwrap(), 100_000);
    for n in 0..1000 {
        let records = table.duplicates(&guid(n)).unwrap();
        assert_eq!(records.len(), 100);
        for (value, number) in records.iter().enumerate() {
            let record = table.record(number).unwrap().unwrap();
            assert_eq!(record.key, guid(n));
            assert_eq!(record.value, Some(n << 32 | value as u64));
        }
        assert_eq!(table.get(&guid(n)).unwrap(), Some(n << 32 | 99));
    }
}

/// `Enumerate` of RaptorDB: from a GUID that exists, and from one that does not.
#[test]
fn keys_are_enumerated_from_a_key() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.hash_table::<[u8; 16], ()>("guids").unwrap();
    let mut all: Vec<[u8; 16]> = (0..20_001).map(guid).collect();
    for guid in &all {
        table.set(guid, &()).unwrap();
    }
    all.sort_unstable();
    let view = table.view().unwrap();
    for from in [
        all[0],
        all[777],
        all[20_000],
        guid(99_999),
        [0; 16],
        [255; 16],
    ] {
        let keys: Vec<[u8; 16]> = view
            .range(from..)
            .unwrap()
            .map(|item| item.unwrap().0)
            .collect();
        let at = all.partition_point(|key| *key < from);
        assert_eq!(keys, all[at..]);
    }
    let found = view.records_in(all[5]..=all[9]).unwrap();
    assert_eq!(found.len(), 5);
    let and = found.clone() & view.records_in(all[8]..).unwrap();
    assert_eq!(and.len(), 2);
}

/// `One_Million_Set_Shutdown_Get` of RaptorDB, smaller: set, close, open, get.
#[test]
fn keys_are_found_after_reopening() {
    tidalite_testkit::watch();
    let folder = folder("reopen");
    let path = folder.join("a.tdl");
    let count = 30_000;
    {
        let db = Database::open(&path).unwrap();
        for batch in 0..3 {
            let mut tx = db.begin_write().unwrap();
            let mut table = tx.hash_table::<[u8; 16], str>("guids").unwrap();
            for n in batch * count / 3..(batch + 1) * count / 3 {
                table.set(&guid(n), &format!("value {n}")).unwrap();
            }
            tx.commit().unwrap();
        }
    }
    let db = Database::open(&path).unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.hash_table::<[u8; 16], str>("guids").unwrap().unwrap();
    assert_eq!(table.count().unwrap(), count);
    let keys: Vec<[u8; 16]> = (0..count + 100).map(guid).collect();
    for (n, value) in table.get_many(&keys).unwrap().into_iter().enumerate() {
        let expected = ((n as u64) < count).then(|| format!("value {n}"));
        assert_eq!(value, expected);
        if n % 100 == 0 {
            assert_eq!(table.get(&keys[n]).unwrap(), expected);
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// `RemoveKeyTest` of RaptorDB: a removed key stays removed between openings, and can be set again.
#[test]
fn removed_keys_stay_removed() {
    tidalite_testkit::watch();
    let folder = folder("remove");
    let path = folder.join("a.tdl");
    {
        let db = Database::open(&path).unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<str, str>("t").unwrap();
        for n in 0..500 {
            table.set(&format!("key {n}"), "value").unwrap();
        }
        assert!(table.remove("key 5").unwrap());
        assert!(!table.remove("key 5").unwrap());
        assert_eq!(table.get("key 5").unwrap(), None);
        tx.commit().unwrap();
    }
    for round in 0..3 {
        let db = Database::open(&path).unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<str, str>("t").unwrap();
        assert_eq!(table.get("key 5").unwrap(), None);
        assert_eq!(table.get("key 6").unwrap().as_deref(), Some("value"));
        assert_eq!(table.view().unwrap().count().unwrap(), 499);
        match round {
            0 => table.compact().unwrap(),
            1 => table.rebuild().unwrap(),
            _ => {
                table.set("key 5", "again").unwrap();
                assert_eq!(table.get("key 5").unwrap().as_deref(), Some("again"));
            }
        }
        tx.commit().unwrap();
        assert!(db.check().unwrap().findings.is_empty());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// `StringKeyTest` and `RaptorDBString_test`: short keys, and keys of a kilobyte that the index holds as hashes, without
/// regard to case.
#[test]
fn short_and_long_texts_are_keys() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let mut short = tx.hash_table::<str, u64>("short").unwrap();
    for n in 0..3000 {
        short
            .set(&format!("{n}{}", "x".repeat(n as usize % 245)), &n)
            .unwrap();
    }
    assert_eq!(
        short.get(&format!("{}{}", 244, "x".repeat(244))).unwrap(),
        Some(244)
    );
    let refused = short.set(&"y".repeat(300), &1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    for (name, form) in [("long", KeyForm::Hashed), ("compact", KeyForm::Compact)] {
        let options = HashTableOptions::new().key_form(form).fold_case(true);
        let mut long = tx.hash_table_with::<str, u64>(name, &options).unwrap();
        let path = |n: u64| format!("/Data/{}/{n}.CSV", "Folder/".repeat(140));
        for n in 0..2000 {
            long.set(&path(n), &n).unwrap();
        }
        let view = long.view().unwrap();
        for n in 0..2000 {
            assert_eq!(view.get(&path(n).to_lowercase()).unwrap(), Some(n));
            assert_eq!(view.get(&path(n).to_uppercase()).unwrap(), Some(n));
        }
        let record = view.record(7).unwrap().unwrap();
        assert_eq!(record.key, path(7), "the key is kept as it was given");
        let refused = view.range("a".."b").map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WrongType);
        assert_eq!(view.range(..).unwrap().count(), 2000);
    }
}

/// `Multithread_test` of RaptorDB: two writers beside a reader, which sees each commit whole.
#[test]
fn writers_and_a_reader_work_at_the_same_time() {
    tidalite_testkit::watch();
    let folder = folder("threads");
    let db = Database::open(folder.join("a.tdl")).unwrap();
    let (batches, of_batch) = (40, 250u64);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                for batch in 0..batches {
                    let mut tx = db.begin_write().unwrap();
                    let mut table = tx.hash_table::<[u8; 16], u64>("guids").unwrap();
                    for n in 0..of_batch {
                        let n = writer << 40 | (batch * of_batch + n);
                        table.set(&guid(n), &n).unwrap();
                    }
                    tx.commit_with(Durability::Lazy).unwrap();
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let (db, done) = (&db, &done);
        scope.spawn(move || {
            let rng = &mut Rng::new(7);
            loop {
                let is_last = done.load(Ordering::SeqCst) == 2;
                let snap = db.begin_read().unwrap();
                if let Some(table) = snap.hash_table::<[u8; 16], u64>("guids").unwrap() {
                    // A batch is there with all its keys or with none.
                    let (writer, batch) = (rng.below(2), rng.below(batches));
                    let keys: Vec<[u8; 16]> = (0..of_batch)
                        .map(|n| guid(writer << 40 | (batch * of_batch + n)))
                        .collect();
                    let found = table.get_many(&keys).unwrap();
                    let there = found.iter().filter(|value| value.is_some()).count();
                    assert!(there == 0 || there == keys.len(), "{there} keys of a batch");
                    assert_eq!(table.count().unwrap() % of_batch, 0);
                }
                if is_last {
                    break;
                }
            }
        });
    });
    let snap = db.begin_read().unwrap();
    let table = snap.hash_table::<[u8; 16], u64>("guids").unwrap().unwrap();
    assert_eq!(table.count().unwrap(), 2 * batches * of_batch);
    drop((snap, db));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_transaction_sees_its_records_and_undoes_them() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    tx.hash_table::<str, i64>("stock")
        .unwrap()
        .set("bolt", &5)
        .unwrap();
    let savepoint = tx.savepoint().unwrap();
    let mut stock = tx.hash_table::<str, i64>("stock").unwrap();
    stock.set("bolt", &6).unwrap();
    stock.set("nut", &1).unwrap();
    assert_eq!(stock.insert("nut", &2).unwrap(), None);
    assert_eq!(stock.insert("nail", &9).unwrap(), Some(3));
    assert_eq!(stock.get("bolt").unwrap(), Some(6));
    let reader = tx.reader().unwrap();
    let seen = reader.hash_table::<str, i64>("stock").unwrap().unwrap();
    assert_eq!(seen.get("nail").unwrap(), Some(9));
    drop(seen);
    tx.rollback_to(&savepoint).unwrap();
    let stock = tx.hash_table::<str, i64>("stock").unwrap();
    assert_eq!(stock.get("bolt").unwrap(), Some(5));
    assert_eq!(stock.get("nut").unwrap(), None);
    let refused = tx.nested(|tx| {
        tx.hash_table::<str, i64>("stock")?.set("nut", &3)?;
        Err::<(), _>(tidalite::Error::from(std::io::Error::other("no")))
    });
    assert!(refused.is_err());
    tx.rename_table("stock", "store").unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let store = snap.hash_table::<str, i64>("store").unwrap().unwrap();
    assert_eq!(
        (store.get("bolt").unwrap(), store.count().unwrap()),
        (Some(5), 1)
    );
    assert!(snap.hash_table::<str, i64>("stock").unwrap().is_none());
    let mut tx = db.begin_write().unwrap();
    let mut store = tx.hash_table::<str, i64>("store").unwrap();
    store.set("pin", &1).unwrap();
    store.clear().unwrap();
    assert_eq!(store.view().unwrap().count().unwrap(), 0);
    assert!(store.view().unwrap().is_empty().unwrap());
    assert!(tx.drop_table("store").unwrap());
    tx.commit().unwrap();
    assert!(db.begin_read().unwrap().tables().unwrap().is_empty());
}

/// Removing a series begins the series of a transaction anew, but not its hash tables.
#[test]
fn records_in_memory_outlive_the_removal_of_a_series() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    tx.series("wind").unwrap();
    let mut stock = tx.hash_table::<str, i64>("stock").unwrap();
    assert_eq!(stock.set("bolt", &5).unwrap(), 0);
    assert!(tx.remove_series("wind").unwrap());
    let mut stock = tx.hash_table::<str, i64>("stock").unwrap();
    assert_eq!(stock.get("bolt").unwrap(), Some(5));
    assert_eq!(stock.set("nut", &1).unwrap(), 1);
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let stock = snap.hash_table::<str, i64>("stock").unwrap().unwrap();
    assert_eq!(stock.get("bolt").unwrap(), Some(5));
    assert_eq!(stock.count().unwrap(), 2);
}

#[test]
fn counters_count() {
    let db = memory();
    for _ in 0..5 {
        let mut tx = db.begin_write().unwrap();
        let mut hits = tx.hash_table::<str, u32>("hits").unwrap();
        for n in 0..1000 {
            hits.increment(&format!("page {}", n % 7), &1).unwrap();
        }
        tx.commit().unwrap();
    }
    let mut tx = db.begin_write().unwrap();
    let mut hits = tx.hash_table::<str, u32>("hits").unwrap();
    assert_eq!(hits.get("page 3").unwrap(), Some(5 * 143));
    let refused = hits.decrement("none", &1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    assert_eq!(hits.get("none").unwrap(), None);
    let mut means = tx.hash_table::<u64, f64>("means").unwrap();
    assert_eq!(means.increment(&1, &0.5).unwrap(), 0.5);
    assert_eq!(means.decrement(&1, &2.0).unwrap(), -1.5);
}

#[test]
fn tables_of_other_kinds_and_types_are_refused() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    tx.hash_table::<str, u64>("hash")
        .unwrap()
        .set("a", &1)
        .unwrap();
    tx.table("plain").unwrap().put(b"a", b"1").unwrap();
    tx.set_table("sets").unwrap().put(b"a", b"1").unwrap();
    let kind = |result: tidalite::Result<()>| result.unwrap_err();
    for error in [
        kind(tx.table("hash").map(drop)),
        kind(tx.typed_table::<str, u64>("hash").map(drop)),
        kind(tx.retype_table::<str, u64>("hash").map(drop)),
        kind(tx.view_table("hash").map(drop)),
        kind(tx.set_table("hash").map(drop)),
        kind(tx.hash_table::<str, u32>("hash").map(drop)),
        kind(tx.hash_table::<[u8], [u8]>("plain").map(drop)),
        kind(tx.hash_table::<[u8], [u8]>("sets").map(drop)),
    ] {
        assert_eq!(error.kind(), ErrorKind::WrongType, "{error}");
    }
    let other = HashTableOptions::new().duplicates(true);
    let refused = tx
        .hash_table_with::<str, u64>("hash", &other)
        .map(drop)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongType);
    let odd = HashTableOptions::new()
        .duplicates(true)
        .history(History::All);
    let refused = tx
        .hash_table_with::<str, u64>("odd", &odd)
        .map(drop)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert_eq!(tx.tables().unwrap(), ["hash", "plain", "sets"]);
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    assert!(snap.table("hash").is_err());
    let types = snap.table_types("hash").unwrap().unwrap();
    assert_eq!(types.layout(), TableLayout::Hash);
    assert_eq!(types.to_string(), "hash table of String -> u64");
    let bytes = snap.hash_table::<[u8], [u8]>("hash").unwrap().unwrap();
    assert_eq!(
        bytes.get(b"a\0\0").unwrap(),
        Some(1u64.to_be_bytes().to_vec())
    );
    assert!(snap.raw_table("hash").unwrap().is_some());
}

/// A program that does not know the types of a hash table changes its bytes, and copies it row by row.
#[test]
fn bytes_and_rows_of_any_hash_table_are_read_and_written() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let options = HashTableOptions::new().history(History::Last(3));
    let mut table = tx.hash_table_with::<str, u64>("hash", &options).unwrap();
    table.set("a", &1).unwrap();
    let mut raw = tx.raw_hash_table("hash").unwrap().unwrap();
    raw.set(b"a\0\0", &2u64.to_be_bytes()).unwrap();
    assert!(tx.raw_hash_table("none").unwrap().is_none());
    tx.table("plain").unwrap().put(b"a", b"1").unwrap();
    let refused = tx.raw_hash_table("plain").map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongType);
    tx.commit().unwrap();

    let snap = db.begin_read().unwrap();
    let stored = snap.hash_table::<str, u64>("hash").unwrap().unwrap();
    assert_eq!(stored.options().history, History::Last(3));
    let mut tx = db.begin_write().unwrap();
    let taken = tx.create_raw_table("plain", TableLayout::Hash, ("String", "u64"));
    assert_eq!(
        taken.map(drop).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    let mut to = tx
        .create_raw_table("copy", TableLayout::Hash, ("String", "u64"))
        .unwrap();
    let rows = snap.raw_table("hash").unwrap().unwrap();
    let mut cursor = rows.cursor();
    while cursor.next().unwrap() {
        let Some(below) = cursor.nested().unwrap() else {
            to.put(cursor.key(), &cursor.value().unwrap()).unwrap();
            continue;
        };
        let mut to = to.nested(cursor.key());
        to.make().unwrap();
        for pair in below.range(..).unwrap() {
            let (key, value) = pair.unwrap();
            to.put(&key, &value).unwrap();
        }
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let copy = snap.hash_table::<str, u64>("copy").unwrap().unwrap();
    assert_eq!(copy.history("a").unwrap(), stored.history("a").unwrap());
    assert_eq!(copy.get("a").unwrap(), Some(2));
    assert!(db.check().unwrap().findings.is_empty());
}

/// A rebuilt index gives the same answers, and replaced records give their space back.
#[test]
fn compaction_and_rebuilding_keep_all_answers() {
    tidalite_testkit::watch();
    let folder = folder("rebuild");
    let path = folder.join("a.tdl");
    let db = Database::open(&path).unwrap();
    let options = HashTableOptions::new().history(History::Last(1));
    let rng = &mut Rng::new(3);
    let mut model: HashMap<u64, u64> = HashMap::new();
    for _ in 0..40 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table_with::<u64, u64>("t", &options).unwrap();
        for _ in 0..2000 {
            let (key, value) = (rng.below(3000), rng.u64());
            if rng.one_in(10) {
                assert_eq!(table.remove(&key).unwrap(), model.remove(&key).is_some());
            } else {
                table.set(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        tx.commit().unwrap();
    }
    let answers = |db: &Database| {
        let snap = db.begin_read().unwrap();
        let table = snap.hash_table::<u64, u64>("t").unwrap().unwrap();
        let items: BTreeMap<u64, Vec<u64>> = table
            .range(..)
            .unwrap()
            .map(|item| item.map(|(key, records)| (key, records.iter().collect())))
            .collect::<Result<_, _>>()
            .unwrap();
        for key in 0..3000 {
            assert_eq!(table.get(&key).unwrap(), model.get(&key).copied());
            assert!(table.history(&key).unwrap().len() <= 2);
        }
        assert_eq!(table.count().unwrap(), model.len() as u64);
        items
    };
    let before = answers(&db);
    for step in 0..3 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<u64, u64>("t").unwrap();
        match step {
            1 => table.compact().unwrap(),
            _ => table.rebuild().unwrap(),
        }
        tx.commit().unwrap();
        assert_eq!(answers(&db), before);
        let report = db.check().unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
    let snap = db.begin_read().unwrap();
    let stat = snap
        .hash_table::<u64, u64>("t")
        .unwrap()
        .unwrap()
        .stat()
        .unwrap();
    assert!(stat.records < 3 * 3000, "{stat:?}");
    drop(snap);
    let copy = folder.join("copy.tdl");
    db.copy().to(&copy).unwrap();
    assert_eq!(answers(&Database::open(&copy).unwrap()), before);
    drop(db);
    std::fs::remove_dir_all(folder).unwrap();
}
