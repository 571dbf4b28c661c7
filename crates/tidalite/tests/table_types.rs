//! The types stored with a table: which types may open it, and which operations keep the stored types.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::maintenance::Salvage;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{Database, ErrorKind, Options, ReadTxn, Result, Reversed, WriteTxn};

fn memory() -> (Arc<MemoryStorage>, Database) {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let db = Options::new().page_size(1024).open_storage(storage.clone());
    (storage, db.unwrap())
}

/// The stored and the requested types that the error of a refused opening names.
fn refused<T>(opened: Result<T>) -> (String, String) {
    let Err(error) = opened else { panic!("opened") };
    assert_eq!(error.kind(), ErrorKind::WrongType, "{error}");
    let (recorded, requested) = error.table_types().unwrap_or_else(|| panic!("{error}"));
    pair(recorded, requested)
}

fn pair(recorded: &str, requested: &str) -> (String, String) {
    (recorded.to_owned(), requested.to_owned())
}

#[test]
fn a_table_is_opened_only_with_its_own_types() {
    let (_, db) = memory();
    let mut tx = db.begin_write().unwrap();
    tx.typed_table::<u64, u64>("t")
        .unwrap()
        .put(&1, &2)
        .unwrap();
    let mut sets = tx.typed_set_table::<str, (i8, [u8; 2])>("s").unwrap();
    sets.put("k", &(1, [2, 3])).unwrap();
    for round in 0..2 {
        let other = tx.typed_table::<i64, u64>("t").map(drop);
        assert_eq!(refused(other), pair("u64 -> u64", "i64 -> u64"));
        let other = tx.typed_table::<u64, Option<u64>>("t").map(drop);
        assert_eq!(refused(other), pair("u64 -> u64", "u64 -> Option<u64>"));
        let other = tx.typed_table::<[u8], [u8]>("t").map(drop);
        assert_eq!(refused(other), pair("u64 -> u64", "plain bytes"));
        let bytes = tx.table("t").map(drop);
        assert_eq!(refused(bytes), pair("u64 -> u64", "plain bytes"));
        refused(tx.table_if_exists("t").map(drop));
        refused(tx.set_table("s").map(drop));
        refused(tx.set_table_if_exists("s").map(drop));
        let other = tx.typed_set_table::<str, (i8, [u8; 3])>("s").map(drop);
        let (own, wrong) = ("String -> (i8, [u8; 2])", "String -> (i8, [u8; 3])");
        assert_eq!(refused(other), pair(own, wrong));

        // `String` and `str` are stored as the same type.
        assert!(tx.typed_set_table::<String, (i8, [u8; 2])>("s").is_ok());
        assert_eq!(
            tx.typed_table::<u64, u64>("t").unwrap().get(&1).unwrap(),
            Some(2)
        );
        assert_eq!(tx.view_table("t").unwrap().unwrap().count(), 1);
        assert_eq!(tx.tables().unwrap(), ["s", "t"], "round {round}");
        tx.commit().unwrap();
        tx = db.begin_write().unwrap();
    }
    let snap = db.begin_read().unwrap();
    for _ in 0..2 {
        // The first lookup reads the catalog, the second one the cache.
        let other = snap.typed_table::<i64, u64>("t").map(drop);
        assert_eq!(refused(other), pair("u64 -> u64", "i64 -> u64"));
        refused(snap.typed_table::<[u8], [u8]>("t").map(drop));
        refused(snap.typed_set_table::<str, str>("s").map(drop));
        let table = snap.table("t").unwrap().unwrap();
        assert_eq!(
            table.get(&1u64.to_be_bytes()).unwrap(),
            Some(vec![0, 0, 0, 0, 0, 0, 0, 2])
        );
        assert_eq!(
            snap.typed_table::<u64, u64>("t")
                .unwrap()
                .unwrap()
                .get(&1)
                .unwrap(),
            Some(2)
        );
    }
    let reader = tx.reader().unwrap();
    refused(reader.typed_table::<i64, u64>("t").map(drop));
}

#[test]
fn a_table_of_bytes_gets_types_only_while_it_is_empty() {
    let (_, db) = memory();
    let mut tx = db.begin_write().unwrap();
    for name in ["full", "empty"] {
        tx.table(name)
            .unwrap()
            .put(b"12345678", b"12345678")
            .unwrap();
    }
    tx.table("empty").unwrap().clear().unwrap();
    tx.commit().unwrap();

    let snap = db.begin_read().unwrap();
    let full = snap.typed_table::<u64, u64>("full").map(drop);
    assert_eq!(refused(full), pair("plain bytes", "u64 -> u64"));
    assert!(
        snap.typed_table::<u64, u64>("empty")
            .unwrap()
            .unwrap()
            .is_empty()
    );
    let read = snap.table("full").unwrap().unwrap().typed::<u64, u64>();
    assert_eq!(
        read.get(&u64::from_be_bytes(*b"12345678")).unwrap(),
        Some(u64::from_be_bytes(*b"12345678"))
    );

    let mut tx = db.begin_write().unwrap();
    refused(tx.typed_table::<u64, u64>("full").map(drop));
    assert!(tx.typed_table::<[u8], [u8]>("full").is_ok());
    tx.typed_table::<u64, u64>("empty").unwrap();
    // A rollback restores the types, too.
    let before = tx.savepoint().unwrap();
    tx.retype_table::<i64, u64>("full").unwrap();
    assert_eq!(
        tx.table_types("full").unwrap().unwrap().to_string(),
        "i64 -> u64"
    );
    tx.rollback_to(&before).unwrap();
    assert_eq!(tx.table_types("full").unwrap(), None);
    tx.retype_table::<u64, u64>("full")
        .unwrap()
        .put(&1, &1)
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    for (name, count) in [("full", 2), ("empty", 0)] {
        assert_eq!(snap.table_types(name).unwrap().unwrap().key(), "u64");
        assert_eq!(
            snap.typed_table::<u64, u64>(name).unwrap().unwrap().count(),
            count
        );
    }
    let mut tx = db.begin_write().unwrap();
    tx.raw_table("full")
        .unwrap()
        .put(b"any bytes", b"")
        .unwrap();
    tx.retype_table::<[u8], [u8]>("full").unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    assert_eq!(tx.table("full").unwrap().view().unwrap().count(), 3);
}

/// Number of tables: more than the roots that fit into the meta record, so that the catalog is written in several ways.
const TABLES: u64 = 30;

fn change(tx: &mut WriteTxn, round: u64) {
    for n in 0..TABLES {
        let key = n * 1000 + round;
        let name = format!("t{n}");
        match n % 3 {
            0 => tx
                .typed_table::<u64, str>(&name)
                .unwrap()
                .put(&key, "value")
                .map(drop),
            1 => tx
                .typed_set_table::<Reversed<u64>, bool>(&name)
                .unwrap()
                .put(&Reversed(key), &true)
                .map(drop),
            _ => tx
                .table(&name)
                .unwrap()
                .put(&key.to_be_bytes(), b"value")
                .map(drop),
        }
        .unwrap();
    }
}

fn assert_types(snap: &ReadTxn) {
    assert_eq!(snap.tables().unwrap().len() as u64, TABLES);
    for n in 0..TABLES {
        let types = snap.table_types(&format!("t{n}")).unwrap();
        let types = types.map(|types| (types.key().to_owned(), types.value().to_owned()));
        let expected = match n % 3 {
            0 => Some(pair("u64", "String")),
            1 => Some(pair("Reversed<u64>", "bool")),
            _ => None,
        };
        assert_eq!(types, expected, "table {n}");
    }
}

fn opened(bytes: Vec<u8>) -> Database {
    let storage = MemoryStorage::from_image(bytes);
    Options::new().open_storage(Arc::new(storage)).unwrap()
}

#[test]
fn types_stay_with_a_table_wherever_it_goes() {
    let (storage, db) = memory();
    for round in 0..4 {
        let mut tx = db.begin_write().unwrap();
        change(&mut tx, round);
        if round == 2 {
            // Renames `t0` to another name and back.
            for (from, to) in [("t0", "u"), ("u", "t0"), ("t1", "v")] {
                assert!(tx.rename_table(from, to).unwrap());
            }
        }
        tx.commit().unwrap();
        if round == 2 {
            let mut tx = db.begin_write().unwrap();
            assert_eq!(tx.table_types("v").unwrap().unwrap().value(), "bool");
            assert!(tx.rename_table("v", "t1").unwrap());
            tx.commit().unwrap();
        }
        assert_types(&db.begin_read().unwrap());
    }
    db.compact(1 << 30).unwrap();
    assert_types(&db.begin_read().unwrap());
    assert!(db.check().unwrap().is_clean());

    let mut compact = Vec::new();
    db.copy().to_writer(&mut compact).unwrap();
    assert_types(&opened(compact).begin_read().unwrap());

    let mut image = vec![0; storage.len().unwrap() as usize];
    drop(db);
    storage.read_at(0, &mut image).unwrap();
    assert_types(&opened(image.clone()).begin_read().unwrap());
    let (_, saved) = memory();
    let damaged = Arc::new(MemoryStorage::from_image(image));
    let report = Salvage::of_storage(damaged).to_database(&saved).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_types(&saved.begin_read().unwrap());
}
