//! Tables as their users see them: modes of writing, tables of sets, nested tables, names, savepoints.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::monitor::LongReaderAction;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Durability, Error, ErrorKind, Options, Steps, Tuning, WriteTxn};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

fn small_pages() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .page_size(512)
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap()
}

#[test]
fn each_write_call_keeps_its_contract() {
    for path in [&[][..], &["in"], &["in", "one", "more"]] {
        each_way_of_writing(path);
    }
}

/// Tests each way of writing in a table, or in the table nested at `path`.
fn each_way_of_writing(path: &[&str]) {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut t = tx.table("t").unwrap();
    let mut t = t.nested_at(path);
    assert!(!t.update(b"a", b"0").unwrap() && t.get(b"a").unwrap().is_none());
    assert!(t.insert(b"a", b"1").unwrap() && !t.insert(b"a", b"2").unwrap());
    assert!(t.update(b"a", b"3").unwrap());
    assert_eq!(t.replace(b"a", b"4").unwrap(), Some(b"3".to_vec()));
    assert_eq!(t.replace(b"b", b"5").unwrap(), None);
    assert!(!t.compare_and_set(b"a", Some(b"3"), Some(b"6")).unwrap());
    assert!(t.compare_and_set(b"a", Some(b"4"), Some(b"6")).unwrap());
    assert!(!t.compare_and_set(b"a", None, Some(b"7")).unwrap());
    assert!(t.compare_and_set(b"c", None, Some(b"8")).unwrap());
    assert!(!t.remove_if(b"c", b"9").unwrap() && t.remove_if(b"c", b"8").unwrap());
    assert_eq!(t.take(b"b").unwrap(), Some(b"5".to_vec()));
    assert_eq!(t.take(b"b").unwrap(), None);
    let refused = t.append(b"a", b"");
    assert!(
        matches!(refused, Err(ref error) if error.kind() == ErrorKind::OutOfOrder),
        "{refused:?}"
    );
    t.append(b"x", b"last").unwrap();
    assert!(
        t.reserve(b"y", 3, |bytes| bytes.copy_from_slice(b"abd"))
            .unwrap()
    );
    assert!(
        !t.reserve(b"y", 3, |bytes| bytes.copy_from_slice(b"abc"))
            .unwrap()
    );
    assert!(t.put(b"", b"1").unwrap() && !t.put(b"", b"").unwrap());
    assert!(
        t.cursor_mut().put(b"gone", b"").unwrap() && !t.cursor_mut().put(b"gone", b"").unwrap()
    );
    assert!(t.remove(b"gone").unwrap());
    assert!(t.is_dirty(b"a").unwrap());
    assert_eq!(
        (t.take_sequence(5).unwrap(), t.take_sequence(1).unwrap()),
        (0, 5)
    );
    assert_eq!(
        t.view().unwrap().count_range(&b"a"[..]..&b"y"[..]).unwrap(),
        2
    );
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let t = snap.table("t").unwrap().unwrap();
    let t = t.nested_at(path).unwrap().unwrap();
    assert_eq!((t.count(), t.sequence()), (4, 6));
    let many = t.get_many(&[&b"y"[..], b"nothing", b"", b"a"]).unwrap();
    let many: Vec<Option<&[u8]>> = many.iter().map(|value| value.as_deref()).collect();
    assert_eq!(many, [Some(&b"abc"[..]), None, Some(b""), Some(b"6")]);
    assert_eq!(t.split(.., 2).unwrap(), [b"x".to_vec()]);

    let mut tx = db.begin_write().unwrap();
    let mut t = tx.table("t").unwrap();
    t.put(b"elsewhere", b"").unwrap();
    let mut t = t.nested_at(path);
    assert!(t.is_dirty(b"a").unwrap(), "the only page");
    t.extend((0..100u8).map(|i| ([b'z', i], [i; 20]))).unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut t = tx.table("t").unwrap();
    let mut t = t.nested_at(path);
    assert!(!t.is_dirty(b"a").unwrap() && !t.is_dirty(&[b'z', 99]).unwrap());
    t.put(b"a", b"7").unwrap();
    assert!(t.is_dirty(b"a").unwrap() && !t.is_dirty(&[b'z', 99]).unwrap());
    t.clear().unwrap();
    assert_eq!(
        (t.view().unwrap().count(), t.take_sequence(1).unwrap()),
        (0, 6)
    );
    let used_up = t.take_sequence(u64::MAX);
    assert!(
        matches!(used_up, Err(ref error) if error.kind() == ErrorKind::Limit),
        "{used_up:?}"
    );
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let t = snap.table("t").unwrap().unwrap();
    let t = t.nested_at(path).unwrap().unwrap();
    assert_eq!((t.count(), t.sequence()), (0, 7));
}

#[test]
fn a_nested_table_that_is_not_there_is_dirty_where_it_would_begin() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let keys = |i: u8| ([i], [i; 20]);
    tx.table("t").unwrap().extend((0..100).map(keys)).unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut t = tx.table("t").unwrap();
    t.put(&[0], b"new").unwrap();
    assert!(t.nested_at(&[[0, 1], [7, 7]]).is_dirty(b"k").unwrap());
    assert!(!t.nested_at(&[[98, 1], [7, 7]]).is_dirty(b"k").unwrap());
    assert!(t.nested(&[3]).is_dirty(b"k").is_err(), "a value is there");
    assert!(!t.put(&[3], b"and the transaction goes on").unwrap());
}

#[test]
fn reading_tables_creates_and_changes_none() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    tx.table("old").unwrap().put(b"k", b"old").unwrap();
    tx.set_table("pairs").unwrap().put(b"k", b"1").unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    for name in ["none", "", &"x".repeat(300)] {
        assert!(tx.view_table(name).unwrap().is_none());
        assert!(tx.view_set_table(name).unwrap().is_none());
        assert!(tx.is_set_table(name).unwrap().is_none());
    }
    assert!(tx.set_table_if_exists("none").unwrap().is_none());
    tx.table("new").unwrap().put(b"k", b"new").unwrap();
    tx.set_table_if_exists("pairs")
        .unwrap()
        .unwrap()
        .put(b"k", b"2")
        .unwrap();
    // Views several tables at the same time; some are open in the transaction and some are not.
    let (old, new) = (tx.view_table("old").unwrap(), tx.view_table("new").unwrap());
    let pairs = tx.view_set_table("pairs").unwrap().unwrap();
    assert_eq!(old.unwrap().get(b"k").unwrap().unwrap(), b"old");
    assert_eq!(new.unwrap().get(b"k").unwrap().unwrap(), b"new");
    assert_eq!(pairs.count_of(b"k").unwrap(), 2);
    assert_eq!(tx.is_set_table("pairs").unwrap(), Some(true));
    assert_eq!(tx.is_set_table("new").unwrap(), Some(false));
    for refused in [
        tx.view_table("pairs").map(drop),
        tx.view_set_table("old").map(drop),
        tx.view_set_table("new").map(drop),
        tx.set_table_if_exists("old").map(drop),
    ] {
        let kind = matches!(refused, Err(ref error) if error.kind() == ErrorKind::WrongType);
        assert!(kind, "{refused:?}");
    }
    assert!(tx.drop_table("old").unwrap());
    assert!(tx.rename_table("new", "newer").unwrap());
    assert!(tx.view_table("old").unwrap().is_none() && tx.view_table("new").unwrap().is_none());
    assert_eq!(tx.view_table("newer").unwrap().unwrap().count(), 1);
    assert_eq!(tx.tables().unwrap(), ["newer", "pairs"]);
}

#[test]
fn write_calls_on_sets_keep_their_contracts() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut t = tx.set_table("m").unwrap();
    assert!(!t.update(b"k", b"1").unwrap() && t.insert(b"k", b"1").unwrap());
    assert!(t.update(b"k", b"2").unwrap());
    assert!(t.put(b"k", b"3").unwrap() && !t.put(b"k", b"3").unwrap());
    for refused in [t.update(b"k", b"4").map(drop), t.take(b"k").map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("2 values"), "{error}");
    }
    assert!(t.replace(b"k", b"2", b"5").unwrap() && !t.replace(b"k", b"2", b"6").unwrap());
    let kind = |done: Result<(), Error>| done.unwrap_err().kind();
    assert_eq!(kind(t.append(b"k", b"4")), ErrorKind::OutOfOrder);
    assert_eq!(kind(t.append_value(b"k", b"5")), ErrorKind::OutOfOrder);
    t.append_value(b"k", b"6").unwrap();
    t.append(b"l", b"").unwrap();
    assert_eq!(
        t.view().unwrap().get(b"k").unwrap(),
        Some((b"3".to_vec(), 3))
    );
    for number in 0..500u32 {
        t.put(b"many", &number.to_be_bytes()).unwrap();
    }
    tx.commit().unwrap();
    let wrong = db.begin_write().unwrap().table("m").map(drop);
    let wrong = wrong.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::WrongType);
    assert!(wrong.to_string().contains("set_table"), "{wrong}");
    let snap = db.begin_read().unwrap();
    assert!(matches!(snap.table("m"), Err(ref error) if error.kind() == ErrorKind::WrongType));
    let t = snap.set_table("m").unwrap().unwrap();
    assert_eq!(
        (t.count(), t.count_keys(), t.count_of(b"many").unwrap()),
        (504, 3, 500)
    );
    let mut cursor = t.cursor();
    assert!(cursor.seek_value_ge(b"many", &77u32.to_be_bytes()).unwrap());
    assert_eq!(
        cursor.next_values(3).unwrap().last(),
        Some(&80u32.to_be_bytes().to_vec())
    );
    assert!(cursor.previous_key().unwrap() && cursor.key() == b"l" && cursor.value().is_empty());
}

#[test]
fn tables_in_tables_come_back_after_reopening_and_in_a_copy() {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new().page_size(512);
    let db = options.open_storage(storage.clone()).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut topics = tx.table("topics").unwrap();
    for (path, last) in [("a/b/c", "4"), ("a/b/1", "4"), ("a/b/1", "5"), ("a/x", "4")] {
        let path: Vec<&str> = path.split('/').collect();
        topics
            .nested_at(&path)
            .put(last.as_bytes(), path.concat().as_bytes())
            .unwrap();
    }
    let mut large = topics.nested(b"large");
    large
        .extend((0..2000u32).map(|i| (i.to_be_bytes(), [7; 9])))
        .unwrap();
    assert_eq!(
        large
            .remove_range(10u32.to_be_bytes()..1990u32.to_be_bytes())
            .unwrap(),
        1980
    );
    let value_there = topics.nested_at(&["a", "x", "4"]).put(b"k", b"v");
    let same = |error: &Error| error.kind() == ErrorKind::WrongType;
    assert!(value_there.as_ref().is_err_and(same), "{value_there:?}");
    tx.set_table("m").unwrap().put(b"k", b"v").unwrap();
    tx.commit().unwrap();
    drop(db);

    let db = options.open_storage(storage).unwrap();
    let dir = std::env::temp_dir().join(format!("tidalite-tables-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    db.copy().to(dir.join("copy.tdl")).unwrap();
    for db in [db, Database::open(dir.join("copy.tdl")).unwrap()] {
        let snap = db.begin_read().unwrap();
        let topics = snap.table("topics").unwrap().unwrap();
        // Looks up "4" in every table below a/b, as the pattern a/b/+/4 does.
        let below = topics.nested_at(&["a", "b"]).unwrap().unwrap();
        let mut found = Vec::new();
        let mut cursor = below.cursor();
        while cursor.next().unwrap() {
            let table = below.nested(cursor.key()).unwrap().unwrap();
            found.extend(table.get(b"4").unwrap());
        }
        assert_eq!(found, [b"ab1".to_vec(), b"abc".to_vec()]);
        assert_eq!(topics.nested(b"large").unwrap().unwrap().count(), 20);
        assert!(topics.nested(b"none").unwrap().is_none());
        assert_eq!(snap.set_table("m").unwrap().unwrap().count(), 1);
        drop(cursor);
        let report = db.check().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// When dirty pages exceed the memory limit, leaves of the outer table are written before the nested tables in them are
/// sealed. The roots of these nested tables must still be right.
#[test]
fn more_nested_tables_than_fit_memory_are_one_transaction() {
    tidalite_testkit::watch();
    let db = Options::new()
        .page_size(512)
        .tuning(Tuning::new().dirty_bytes(64 * 512))
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut t = tx.table("t").unwrap();
    let key = |i: u32| i.wrapping_mul(0x9e37_79b9).to_be_bytes();
    for i in 0..200 {
        let mut nested = t.nested(&key(i));
        for j in 0..30 {
            nested.put(&[j], &key(i)).unwrap();
        }
    }
    tx.commit().unwrap();
    let read = db.begin_read().unwrap();
    let table = read.table("t").unwrap().unwrap();
    for i in 0..200 {
        let nested = table.nested(&key(i)).unwrap().unwrap();
        assert_eq!(nested.get(&[29]).unwrap().as_deref(), Some(&key(i)[..]));
    }
    let problems = db.check().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
}

/// Consecutive `put` calls use an append cursor. Savepoints, rollbacks, removals and readers must reset it, or rows
/// would be lost.
#[test]
fn ascending_rows_and_savepoints_do_not_disturb_each_other() {
    let mut rng = Rng::new(23);
    for _ in 0..30 {
        let db = small_pages();
        let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        let mut n = 0u32;
        for _ in 0..3 {
            let mut tx = db.begin_write().unwrap();
            let mut kept = Vec::new();
            for _ in 0..rng.below(400) {
                let mut t = tx.table("t").unwrap();
                n += 1 + rng.below(2) as u32;
                let (key, value) = (n.to_be_bytes().to_vec(), vec![n as u8; rng.index(40)]);
                match rng.below(40) {
                    0 => kept.push((tx.savepoint().unwrap(), model.clone())),
                    1 => {
                        if let Some((savepoint, then)) = kept.pop() {
                            tx.rollback_to(&savepoint).unwrap();
                            model = then;
                        }
                    }
                    2 => {
                        let gone = model.pop_first().map(|(key, _)| key);
                        t.remove(&gone.unwrap_or_default()).unwrap();
                    }
                    3 => {
                        let last = model.pop_last().map(|(key, _)| key);
                        t.remove(&last.unwrap_or_default()).unwrap();
                    }
                    4 => drop(tx.reader().unwrap()),
                    choice if choice % 2 == 0 => {
                        t.append(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                    _ => {
                        t.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
            }
            tx.commit().unwrap();
            let read = db.begin_read().unwrap();
            let mut rows = BTreeMap::new();
            if let Some(table) = read.table("t").unwrap() {
                let mut cursor = table.cursor();
                while cursor.next().unwrap() {
                    rows.insert(cursor.key().to_vec(), cursor.value().unwrap());
                }
            }
            let expected = model
                .iter()
                .map(|(key, value)| (key.to_vec(), value.clone()));
            assert_eq!(rows, expected.collect());
        }
        let problems = db.check().unwrap().problems;
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn names_change_with_the_transaction() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    for name in ["a", "b", "c"] {
        tx.table(name)
            .unwrap()
            .put(b"name", name.as_bytes())
            .unwrap();
    }
    assert!(tx.table_if_exists("d").unwrap().is_none());
    assert_eq!(tx.tables().unwrap(), ["a", "b", "c"]);
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    assert!(tx.drop_table("a").unwrap() && !tx.drop_table("a").unwrap());
    let refused = tx.rename_table("b", "c").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    assert!(tx.rename_table("b", "a").unwrap() && !tx.rename_table("b", "x").unwrap());
    tx.table("b").unwrap().put(b"name", b"new").unwrap();
    assert_eq!(tx.tables().unwrap(), ["a", "b", "c"]);
    assert_eq!(
        tx.table("a").unwrap().get(b"name").unwrap(),
        Some(b"b".to_vec())
    );
    drop(tx);
    let name_of = |table: &str| {
        let snap = db.begin_read().unwrap();
        snap.table(table)
            .unwrap()
            .unwrap()
            .get(b"name")
            .unwrap()
            .unwrap()
    };
    assert_eq!(name_of("a"), b"a");
    let mut tx = db.begin_write().unwrap();
    tx.rename_table("a", "z").unwrap();
    tx.drop_table("b").unwrap();
    let (_, mut tx) = tx.checkpoint(Durability::Durable).unwrap();
    tx.rename_table("z", "b").unwrap();
    tx.commit().unwrap();
    assert_eq!((name_of("b"), name_of("c")), (b"a".to_vec(), b"c".to_vec()));
    assert_eq!(db.begin_read().unwrap().tables().unwrap(), ["b", "c"]);
    assert!(db.check().unwrap().problems.is_empty());
}

/// A rolled-back writer that created a table, or an evicted reader that opened one, leaves nothing behind in the caches
/// of tables.
#[test]
fn tables_outlive_readers_and_writers_that_are_given_up() {
    tidalite_testkit::watch();
    let db = Options::new()
        .page_size(512)
        .tuning(
            Tuning::new()
                .log_bytes(0)
                .growth_bytes(16 << 10, 16 << 10)
                .on_long_reader(0, |_| LongReaderAction::Evict),
        )
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .unwrap();
    let put = |value: u8| {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        table.put(b"newest", &[value]).unwrap();
        for key in 0..200 {
            table.put(&[value, key], &[value; 200]).unwrap();
        }
        tx.commit().unwrap();
    };
    let newest = |snap: &tidalite::ReadTxn| {
        let table = snap.table("t").unwrap().unwrap();
        table.get(b"newest").unwrap().unwrap()[0]
    };
    let early = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"x", b"never").unwrap();
    drop(tx);
    assert!(db.begin_read().unwrap().table("t").unwrap().is_none());
    put(0);
    assert!(early.table("t").unwrap().is_none());
    drop(early);
    let mut value = 0;
    for _ in 0..10 {
        let reader = db.begin_read_evictable().unwrap();
        assert_eq!(newest(&reader), value);
        // The reader is evicted when the file would otherwise have to grow.
        let lost = (0..20).find_map(|_| {
            value += 1;
            put(value);
            let read = reader
                .table("t")
                .and_then(|table| table.unwrap().get(b"newest"));
            (read.err()?.kind() == ErrorKind::Evicted).then_some(())
        });
        assert!(lost.is_some());
        drop(reader);
        assert_eq!(newest(&db.begin_read().unwrap()), value);
    }
}

type Model = (BTreeMap<Vec<u8>, Vec<u8>>, BTreeMap<i64, f64>);

fn state(tx: &mut WriteTxn) -> Model {
    let mut pairs = BTreeMap::new();
    let table = tx.table("t").unwrap();
    table
        .view()
        .unwrap()
        .for_each(|key, value| {
            pairs.insert(key.to_vec(), value.to_vec());
        })
        .unwrap();
    let mut rows = BTreeMap::new();
    let mut series = tx.series("s").unwrap();
    let all = series.view().unwrap();
    all.query(..)
        .for_each(|time, words| {
            rows.insert(time, f64::from_bits(words[1]));
        })
        .unwrap();
    (pairs, rows)
}

fn change(rng: &mut Rng, tx: &mut WriteTxn, model: &mut Model) {
    for _ in 0..rng.index(60) {
        let key = vec![b'k', rng.below(60) as u8];
        let value = vec![rng.below(256) as u8; rng.index(300)];
        if rng.one_in(3) {
            tx.table("t").unwrap().remove(&key).unwrap();
            model.0.remove(&key);
        } else {
            tx.table("t").unwrap().put(&key, &value).unwrap();
            model.0.insert(key, value);
        }
        let (time, value) = (rng.below(2000) as i64, rng.below(100) as f64);
        tx.series("s").unwrap().insert(Steps(time), value).unwrap();
        model.1.insert(time, value);
    }
}

#[test]
fn savepoints_take_tables_and_series_back() {
    for seed in 0..12 {
        eprintln!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = small_pages();
        let mut model = Model::default();
        for _ in 0..6 {
            let mut tx = db.begin_write().unwrap();
            let mut marks = Vec::new();
            for _ in 0..rng.index(8) {
                change(&mut rng, &mut tx, &mut model);
                match rng.below(4) {
                    0 => marks.push((tx.savepoint().unwrap(), model.clone())),
                    1 if !marks.is_empty() => {
                        marks.truncate(1 + rng.index(marks.len()));
                        let (savepoint, then) = marks.last().unwrap();
                        tx.rollback_to(savepoint).unwrap();
                        model = then.clone();
                    }
                    2 => {
                        let keep = rng.one_in(2);
                        let mut inner = model.clone();
                        let done = tx.nested(|tx| {
                            change(&mut rng, tx, &mut inner);
                            if keep {
                                return Ok(());
                            }
                            Err(Error::from(std::io::Error::other("undone")))
                        });
                        assert_eq!(done.is_ok(), keep);
                        if keep {
                            model = inner;
                        }
                    }
                    _ => {}
                }
                assert_eq!(state(&mut tx), model);
            }
            drop(marks);
            tx.commit().unwrap();
            let mut tx = db.begin_write().unwrap();
            assert_eq!(state(&mut tx), model);
        }
        assert!(db.check().unwrap().problems.is_empty());
    }
}

/// A caught panic in a nested transaction undoes that transaction. A caught panic in the middle of a change breaks the
/// whole transaction, which cannot be committed any more.
#[test]
fn a_half_done_call_is_undone_or_never_committed_after_a_panic() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"before", b"1").unwrap();
    tx.series("s").unwrap().insert(Steps(1), 1.0).unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        tx.nested(|tx| {
            tx.table("t")?.put(b"inside", b"2")?;
            tx.series("s")?.insert(Steps(2), 2.0)?;
            tx.drop_table("t")?;
            panic!("in a nested transaction");
            #[expect(unreachable_code, reason = "the type of the result")]
            Ok::<(), Error>(())
        })
    }));
    assert!(caught.is_err());
    let (pairs, rows) = state(&mut tx);
    assert_eq!(pairs.keys().collect::<Vec<_>>(), [b"before"]);
    assert_eq!(rows.into_iter().collect::<Vec<_>>(), [(1, 1.0)]);
    // An iterator of rows that panics after the rows of the first page.
    let rows = |i: u32| {
        assert!(i < 200, "in the middle of a change");
        (i.to_be_bytes(), [7; 30])
    };
    let point = tx.savepoint().unwrap();
    let half = |tx: &mut WriteTxn| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            drop(tx.table("t").map(|mut t| t.extend((0..300).map(rows))));
        }));
        assert!(caught.is_err());
        let refused = tx.table("t").map(drop);
        assert!(matches!(refused, Err(ref error) if error.kind() == ErrorKind::Broken));
    };
    half(&mut tx);
    tx.rollback_to(&point).unwrap();
    assert_eq!(state(&mut tx).0.len(), 1);
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    half(&mut tx);
    assert!(matches!(tx.commit(), Err(ref error) if error.kind() == ErrorKind::Broken));
    let mut tx = db.begin_write().unwrap();
    assert_eq!(state(&mut tx).0.len(), 1);
    drop(tx);
    assert!(db.check().unwrap().problems.is_empty());
}

/// An error of the caller's own type rolls the nested transaction back and is returned unchanged.
#[test]
fn a_nested_transaction_is_undone_by_an_error_of_the_caller() {
    #[derive(Debug)]
    enum Refused {
        Overdrawn(i64),
        Database(ErrorKind),
    }
    impl From<Error> for Refused {
        fn from(error: Error) -> Self {
            Self::Database(error.kind())
        }
    }
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    tx.table("accounts").unwrap().put(b"a", b"10").unwrap();
    let mut withdraw = |amount: i64, name: &str| {
        tx.nested(|tx| {
            tx.table(name)?
                .put(b"a", (10 - amount).to_string().as_bytes())?;
            tx.series("withdrawn")?
                .insert(Steps(amount), amount as f64)?;
            match amount > 10 {
                true => Err(Refused::Overdrawn(amount)),
                false => Ok(amount),
            }
        })
    };
    assert!(matches!(
        withdraw(11, "accounts"),
        Err(Refused::Overdrawn(11))
    ));
    assert!(matches!(
        withdraw(1, ""),
        Err(Refused::Database(ErrorKind::InvalidName))
    ));
    assert!(matches!(withdraw(3, "accounts"), Ok(3)));
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.table("accounts").unwrap().unwrap();
    assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"7"[..]));
    assert_eq!(
        snap.series("withdrawn").unwrap().unwrap().count().unwrap(),
        1
    );
}
