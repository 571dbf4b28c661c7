//! Hash tables: keys of several types, many duplicates, bitmaps of records, the records in order, and backups.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tidalite::hash_table::{HashTableOptions, History, KeyForm, RoaringTreemap};
use tidalite::maintenance::Restore;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ErrorKind, Options, Result, TableKey};
use tidalite_testkit::rng::Rng;

fn memory() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn folder(name: &str) -> std::path::PathBuf {
    let name = format!("tidalite-questions-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Sets keys in random order; they must be listed in their order, from each of them on.
fn keeps_order<K>(db: &Database, name: &str, mut keys: Vec<K>)
where
    K: TableKey<Owned = K> + PartialOrd + Clone + Debug + 'static,
{
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.hash_table::<K, u64>(name).unwrap();
    let rng = &mut Rng::new(11);
    for at in (1..keys.len()).rev() {
        keys.swap(at, rng.index(at + 1));
    }
    for (key, n) in keys.iter().zip(0..) {
        table.set(key, &n).unwrap();
    }
    let view = table.view().unwrap();
    for (key, n) in keys.iter().zip(0..) {
        assert_eq!(view.get(key).unwrap(), Some(n), "{name}: {key:?}");
    }
    keys.sort_by(|a, b| a.partial_cmp(b).unwrap());
    for at in [0, keys.len() / 2, keys.len() - 1] {
        let listed: Vec<K> = view
            .range(&keys[at]..)
            .unwrap()
            .map(|item| item.unwrap().0)
            .collect();
        assert_eq!(listed, keys[at..], "{name}");
    }
    tx.commit().unwrap();
}

#[test]
fn keys_of_several_types_keep_their_order() {
    let db = memory();
    let wide = [i64::MIN, -1_000_000, -1, 0, 1, 77, i64::MAX];
    keeps_order(&db, "i64", wide.to_vec());
    keeps_order(&db, "bool", vec![false, true]);
    keeps_order(&db, "u32", (0..500u32).map(|n| n * n * 31).collect());
    let floats = [f64::NEG_INFINITY, -1e300, -0.5, 0.0, 1e-300, 2.5, f64::MAX];
    keeps_order(&db, "f64", floats.to_vec());
    // A date as a tuple of year, month and day.
    let days = (0..400u16).map(|n| (1900 + n / 12, (n % 12) as u8 + 1, (n * 7 % 28) as u8 + 1));
    keeps_order(&db, "date", days.collect::<Vec<(u16, u8, u8)>>());
    let places = (0..300u16).map(|n| (n % 7, format!("place {n}")));
    keeps_order(&db, "tuple", places.collect::<Vec<(u16, String)>>());
    let guids =
        (0..300u64).map(|n| (u128::from(n) * 0x9e37_79b9_7f4a_7c15_1234_5678).to_be_bytes());
    keeps_order(&db, "guid", guids.collect::<Vec<[u8; 16]>>());
}

/// `Duplicate_Guid_Key` and `Dave_Killer_Test` of RaptorDB 1.8: 20,000 records of one GUID, and each key set again.
#[test]
fn a_key_has_twenty_thousand_records() {
    for form in [
        KeyForm::Whole { bytes_max: 16 },
        KeyForm::Hashed,
        KeyForm::Compact,
    ] {
        let db = memory();
        let options = HashTableOptions::new().duplicates(true).key_form(form);
        let (common, other) = ([7u8; 16], [8u8; 16]);
        for batch in 0..4 {
            let mut tx = db.begin_write().unwrap();
            let mut table = tx.hash_table_with::<[u8; 16], u64>("t", &options).unwrap();
            for n in 0..5000 {
                table.set(&common, &(batch * 5000 + n)).unwrap();
            }
            table.set(&other, &batch).unwrap();
            tx.commit().unwrap();
        }
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<[u8; 16], u64>("t").unwrap();
        let view = table.view().unwrap();
        let (first, runs) = (view.duplicates(&common).unwrap(), view.stat().unwrap().runs);
        let first = first.min().unwrap();
        assert!(table.remove_record(&common, first).unwrap());
        assert!(!table.remove_record(&common, first).unwrap());
        // Each call sees those before it, and none of them writes a run.
        for n in 0..1000 {
            let number = table.set(&common, &n).unwrap();
            assert_eq!(table.get(&common).unwrap(), Some(n));
            assert!(!table.remove_record(&other, number).unwrap());
            assert!(table.remove_record(&common, number).unwrap());
            assert_eq!(table.get(&common).unwrap(), Some(19_999));
            assert!(table.contains(&common).unwrap());
        }
        assert!(table.view().unwrap().stat().unwrap().runs <= runs + 1);
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let table = snap.hash_table::<[u8; 16], u64>("t").unwrap().unwrap();
        let records = table.duplicates(&common).unwrap();
        assert_eq!(records.len(), 19_999);
        for (number, value) in records.iter().zip(1..) {
            assert_eq!(table.record(number).unwrap().unwrap().value, Some(value));
        }
        assert_eq!(table.duplicates(&other).unwrap().len(), 4);
        assert_eq!(
            (table.count().unwrap(), table.count_records().unwrap()),
            (2, 20_003)
        );
    }
}

#[test]
fn bitmaps_of_ranges_are_combined() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let options = HashTableOptions::new().duplicates(true);
    let mut ages = tx.hash_table_with::<u8, str>("ages", &options).unwrap();
    for n in 0..10_000u32 {
        ages.set(&((n % 100) as u8), &format!("person {n}"))
            .unwrap();
    }
    let view = ages.view().unwrap();
    let (young, middle) = (
        view.records_in(..40).unwrap(),
        view.records_in(30..=59).unwrap(),
    );
    let numbers = |wanted: fn(u64) -> bool| -> RoaringTreemap {
        (0..10_000).filter(|n| wanted(n % 100)).collect()
    };
    assert_eq!(young, numbers(|age| age < 40));
    assert_eq!(&young & &middle, numbers(|age| (30..40).contains(&age)));
    assert_eq!(&young | &middle, numbers(|age| age < 60));
    assert_eq!(&young - &middle, numbers(|age| age < 30));
    assert_eq!(young.intersection_len(&middle), 1000);
    assert_eq!(view.duplicates(&77).unwrap(), numbers(|age| age == 77));
    assert!(view.records_in(200..).unwrap().is_empty());
}

/// `EnumerateStorageFile`, `FetchHistory` and `FetchVersion`: the records in the order in which they were written, and
/// the versions of a key.
#[test]
fn records_are_listed_in_the_order_of_writing() {
    let db = memory();
    let options = HashTableOptions::new().history(History::All);
    let mut expected = Vec::new();
    for n in 0..300u64 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table_with::<str, u64>("t", &options).unwrap();
        let key = format!("key {}", n % 10);
        if n % 13 == 12 {
            assert!(table.remove(&key).unwrap());
            expected.push((key, None));
        } else {
            assert_eq!(table.set(&key, &n).unwrap(), expected.len() as u64);
            expected.push((key, Some(n)));
        }
        tx.commit().unwrap();
    }
    let snap = db.begin_read().unwrap();
    let table = snap.hash_table::<str, u64>("t").unwrap().unwrap();
    let mut listed = Vec::new();
    table
        .each_record(100, |record| {
            assert_eq!(record.number, 100 + listed.len() as u64);
            listed.push((record.key, record.value));
            listed.len() < 150
        })
        .unwrap();
    assert_eq!(listed, expected[100..250]);
    let versions = table.history("key 3").unwrap();
    let of_key = (0..).zip(&expected).filter(|(_, (key, _))| key == "key 3");
    let mut of_key: Vec<(u64, Option<u64>)> = of_key.map(|(n, (_, value))| (n, *value)).collect();
    of_key.reverse();
    let versions: Vec<_> = versions.iter().map(|v| (v.number, v.value)).collect();
    assert_eq!(versions, of_key);
}

#[test]
fn increments_of_a_backup_restore_hash_tables() {
    tidalite_testkit::watch();
    let folder = folder("backup");
    let db = Database::open(folder.join("a.tdl")).unwrap();
    let rng = &mut Rng::new(5);
    let (mut model, mut chain) = (BTreeMap::new(), Vec::new());
    for round in 0..4u64 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<u64, u64>("t").unwrap();
        for _ in 0..3000 {
            let (key, value) = (rng.below(5000), rng.u64());
            table.set(&key, &value).unwrap();
            model.insert(key, value);
        }
        tx.commit().unwrap();
        db.pin(&round.to_string()).unwrap();
        let (name, base) = (round.to_string(), round.wrapping_sub(1).to_string());
        let mut out = Vec::new();
        let backup = db.backup().of(&name);
        let backup = if round > 0 {
            backup.since(&base)
        } else {
            backup
        };
        backup.to_writer(&mut out).unwrap();
        chain.push(out);
    }
    let path = folder.join("restored.tdl");
    Restore::from(chain.iter().map(|part| &part[..]))
        .to(&path)
        .unwrap();
    let restored = Database::open(&path).unwrap();
    let snap = restored.begin_read().unwrap();
    let table = snap.hash_table::<u64, u64>("t").unwrap().unwrap();
    assert_eq!(table.count().unwrap(), model.len() as u64);
    for key in 0..5000 {
        assert_eq!(table.get(&key).unwrap(), model.get(&key).copied());
    }
    assert!(restored.check().unwrap().findings.is_empty());
    drop(snap);
    drop((restored, db));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Keys of the greatest length that a table allows are set, one byte more is refused.
#[test]
fn lengths_of_keys_are_limits() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    for (name, most) in [("default", 255), ("short", 8), ("long", 1024)] {
        let options = match name {
            "default" => HashTableOptions::new(),
            _ => HashTableOptions::new().key_form(KeyForm::Whole { bytes_max: most }),
        };
        let mut table = tx.hash_table_with::<[u8], u64>(name, &options).unwrap();
        let key = vec![7; usize::from(most) + 1];
        table.set(&key[1..], &1).unwrap();
        assert_eq!(table.set(&key, &2).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(table.insert(&key, &2).unwrap_err().kind(), ErrorKind::Limit);
        let view = table.view().unwrap();
        assert_eq!(view.get(&key[1..]).unwrap(), Some(1));
        assert_eq!(view.get(&key).unwrap(), None);
        assert_eq!(view.count().unwrap(), 1);
    }
    for bytes_max in [0, 1025] {
        let options = HashTableOptions::new().key_form(KeyForm::Whole { bytes_max });
        let refused = tx.hash_table_with::<[u8], u64>("no", &options).map(drop);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

/// Values of bytes: set, read, fetched by number and as versions, also large ones.
#[test]
fn values_are_bytes() {
    let db = memory();
    let options = HashTableOptions::new().history(History::All);
    let values = [vec![], vec![0], vec![255; 300], vec![1; 200_000]];
    for value in &values {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table_with::<u64, [u8]>("t", &options).unwrap();
        table.set(&7, value).unwrap();
        assert_eq!(table.get(&7).unwrap().as_ref(), Some(value));
        tx.commit().unwrap();
    }
    let snap = db.begin_read().unwrap();
    let table = snap.hash_table::<u64, [u8]>("t").unwrap().unwrap();
    assert_eq!(table.get(&7).unwrap().as_ref(), values.last());
    assert!(table.contains(&7).unwrap());
    for (number, value) in (0..).zip(&values) {
        let record = table.record(number).unwrap().unwrap();
        assert_eq!(record.value.as_ref(), Some(value));
    }
    let versions = table.history(&7).unwrap().into_iter();
    let versions: Vec<Vec<u8>> = versions.filter_map(|version| version.value).collect();
    assert!(versions.iter().eq(values.iter().rev()));
}

/// Only keys that are texts can be equal without regard to case: those of other types would become other keys.
#[test]
fn only_texts_are_folded() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let options = HashTableOptions::new().fold_case(true);
    let refusal = |result: Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        error.to_string()
    };
    refusal(tx.hash_table_with::<u64, u64>("no", &options).map(drop));
    refusal(
        tx.hash_table_with::<[u8; 16], u64>("no", &options)
            .map(drop),
    );
    refusal(
        tx.hash_table_with::<(u16, String), u64>("no", &options)
            .map(drop),
    );
    assert!(tx.hash_table_if_exists::<u64, u64>("no").unwrap().is_none());
    let mut texts = tx.hash_table_with::<str, u64>("texts", &options).unwrap();
    texts.set("A", &1).unwrap();
    texts.set("a", &2).unwrap();
    assert_eq!(texts.get("A").unwrap(), Some(2));
    let text = refusal(texts.set("a\0b", &3).map(drop));
    assert!(text.contains("NUL"), "{text}");
    assert_eq!(texts.get("a\0b").unwrap(), None);
    let mut bytes = tx.hash_table_with::<[u8], u64>("bytes", &options).unwrap();
    bytes.set(b"A\0", &1).unwrap();
    assert_eq!(bytes.get(b"a\0").unwrap(), Some(1));
    refusal(bytes.set(b"\xff", &1).map(drop));
}

/// Two sets of options are the same if they have the same settings, and a table ignores the seed of later ones.
#[test]
fn seeds_do_not_tell_options_apart() {
    assert_eq!(HashTableOptions::new(), HashTableOptions::new());
    assert_ne!(
        HashTableOptions::new(),
        HashTableOptions::new().duplicates(true)
    );
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let hashed = HashTableOptions::new().key_form(KeyForm::Hashed);
    let table = tx
        .hash_table_with::<u64, u64>("t", &hashed.seed(1))
        .unwrap();
    assert_eq!(table.options().seed, 1);
    assert_eq!(HashTableOptions::from(table.options()), hashed);
    let table = tx
        .hash_table_with::<u64, u64>("t", &hashed.seed(2))
        .unwrap();
    assert_eq!(table.options().seed, 1);
}

/// A table without history gives the space of replaced and removed records back while it is written.
#[test]
fn space_is_given_back_while_a_table_is_written() {
    let db = Options::new()
        .tuning(tidalite::Tuning::new().run_bytes(1 << 14))
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    tidalite_testkit::watch();
    let rng = &mut Rng::new(17);
    let mut most = 0;
    for _ in 0..300 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<u64, u64>("t").unwrap();
        for _ in 0..200 {
            let key = rng.below(1000);
            match rng.one_in(10) {
                true => drop(table.remove(&key).unwrap()),
                false => drop(table.set(&key, &rng.u64()).unwrap()),
            }
        }
        let stat = table.view().unwrap().stat().unwrap();
        most = most.max(stat.records);
        tx.commit().unwrap();
    }
    assert!(most < 10_000, "{most} records of 60,000 at a time");
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.hash_table::<u64, u64>("t").unwrap();
    let before = table.view().unwrap().stat().unwrap();
    assert!(before.next_record > 50_000 && before.main_keys > 0 && before.main_bytes > 0);
    table.compact().unwrap();
    let stat = table.view().unwrap().stat().unwrap();
    let keys = table.view().unwrap().count().unwrap();
    assert_eq!((stat.records, stat.main_keys), (keys, keys));
    assert_eq!((stat.dead, stat.runs), (0, 0));
    assert_eq!((stat.run_entries, stat.run_bytes), (0, 0));
    assert_eq!(stat.next_record, before.next_record);
}

/// A range goes on undisturbed while another thread writes and commits.
#[test]
fn a_range_is_read_beside_a_writer() {
    let db = memory();
    let write = |round: u64| {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<u64, u64>("t").unwrap();
        for n in 0..3000 {
            table.set(&(n * 2 + round % 2), &round).unwrap();
        }
        for n in (0..3000).step_by(7) {
            table.remove(&(n * 2)).unwrap();
        }
        if round == 3 {
            table.compact().unwrap();
        }
        tx.commit().unwrap();
    };
    write(0);
    let snap = db.begin_read().unwrap();
    let table = snap.hash_table::<u64, u64>("t").unwrap().unwrap();
    let expected: Vec<u64> = (0..3000).filter(|n| n % 7 > 0).map(|n| n * 2).collect();
    let mut range = table.range(..).unwrap();
    let mut found = Vec::new();
    for round in 1..6 {
        found.extend(range.by_ref().take(400).map(|item| item.unwrap().0));
        std::thread::scope(|scope| {
            scope.spawn(|| write(round));
        });
    }
    found.extend(range.map(|item| item.unwrap().0));
    assert_eq!(found, expected);
}
