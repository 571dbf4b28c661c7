//! Typed tables: every call is compared with a map, bytes of another type are refused, and the ends and ranks of a
//! table are checked.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ErrorKind, Options, Table};
use tidalite_testkit::rng::Rng;

fn memory(options: &Options) -> Database {
    tidalite_testkit::watch();
    options
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

type Key = (String, i32);

fn key(rng: &mut Rng) -> Key {
    let word = ["", "a", "a\0", "ab", "b"][rng.index(5)];
    (word.to_owned(), rng.below(41) as i32 - 20)
}

fn agree(table: &Table<'_, Key, i64>, model: &BTreeMap<Key, i64>, rng: &mut Rng) {
    let (one, other) = (key(rng), key(rng));
    let owned = |pair: Option<(&Key, &i64)>| pair.map(|(key, value)| (key.clone(), *value));
    assert_eq!(table.count(), model.len() as u64);
    assert_eq!(table.is_empty(), model.is_empty());
    assert_eq!(table.get(&one).unwrap(), model.get(&one).copied());
    assert_eq!(table.contains(&one).unwrap(), model.contains_key(&one));
    let rank = model.range(..one.clone()).count() as u64;
    assert_eq!(table.rank(&one).unwrap(), rank);
    assert_eq!(
        table.floor(&one).unwrap(),
        owned(model.range(..=one.clone()).next_back())
    );
    assert_eq!(
        table.ceiling(&one).unwrap(),
        owned(model.range(one.clone()..).next())
    );
    assert_eq!(table.first().unwrap(), owned(model.first_key_value()));
    assert_eq!(table.last().unwrap(), owned(model.last_key_value()));
    let keys = [one.clone(), other.clone(), one.clone()];
    let values: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(table.get_many(&keys).unwrap(), values);

    let (from, to) = (one.clone().min(other.clone()), one.max(other));
    let within: Vec<_> = model.range(from.clone()..to.clone()).collect();
    let range = from.clone()..to.clone();
    let found: Vec<_> = table.range(range.clone()).unwrap().collect();
    let found: Vec<(Key, i64)> = found.into_iter().map(Result::unwrap).collect();
    assert!(
        found
            .iter()
            .map(|(key, value)| (key, value))
            .eq(within.iter().copied())
    );
    assert_eq!(
        table.count_range(range.clone()).unwrap(),
        within.len() as u64
    );
    let cuts = table.split(range, 4).unwrap();
    let mut ends = vec![from];
    ends.extend(cuts);
    ends.push(to);
    let parts = ends
        .windows(2)
        .map(|ends| model.range(ends[0].clone()..ends[1].clone()).count());
    let parts: Vec<usize> = parts.collect();
    assert_eq!(parts.iter().sum::<usize>(), within.len());
    let whole = within.len() >= 4;
    assert!(
        !whole || parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1,
        "{parts:?}"
    );
    let all: Vec<_> = table.iter().map(Result::unwrap).collect();
    assert!(all.iter().map(|(key, value)| (key, value)).eq(model));
}

#[test]
fn typed_tables_agree_with_a_map() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = memory(&Options::new().page_size([512, 4096][seed as usize % 2]));
        let mut model: BTreeMap<Key, i64> = BTreeMap::new();
        for _ in 0..6 {
            let mut tx = db.begin_write().unwrap();
            let mut table = tx.typed_table::<Key, i64>("t").unwrap();
            for _ in 0..120 {
                let (at, value) = (key(&mut rng), rng.below(9) as i64 - 4);
                let old = model.get(&at).copied();
                match rng.below(14) {
                    0..4 => {
                        table.put(&at, &value).unwrap();
                        model.insert(at, value);
                    }
                    4 => {
                        assert_eq!(table.insert(&at, &value).unwrap(), old.is_none());
                        model.entry(at).or_insert(value);
                    }
                    5 => {
                        assert_eq!(table.update(&at, &value).unwrap(), old.is_some());
                        model.entry(at).and_modify(|old| *old = value);
                    }
                    6 => assert_eq!(table.replace(&at, &value).unwrap(), model.insert(at, value)),
                    7 => assert_eq!(table.take(&at).unwrap(), model.remove(&at)),
                    8 => assert_eq!(table.remove(&at).unwrap(), model.remove(&at).is_some()),
                    9 => {
                        let expected = rng.one_in(2).then_some(value).or(old);
                        let new = rng.one_in(2).then_some(value + 1);
                        let done = table.compare_and_set(&at, expected.as_ref(), new.as_ref());
                        assert_eq!(done.unwrap(), expected == old);
                        match new.filter(|_| expected == old) {
                            Some(new) => drop(model.insert(at, new)),
                            None if expected == old => drop(model.remove(&at)),
                            None => {}
                        }
                    }
                    10 => {
                        assert_eq!(table.remove_if(&at, &value).unwrap(), old == Some(value));
                        if old == Some(value) {
                            model.remove(&at);
                        }
                    }
                    11 => {
                        let behind = model.last_key_value().is_none_or(|(last, _)| *last < at);
                        let done = table.append(&at, &value);
                        assert_eq!(done.is_ok(), behind);
                        assert!(
                            behind
                                || matches!(done, Err(ref error) if error.kind() == ErrorKind::OutOfOrder)
                        );
                        if behind {
                            model.insert(at, value);
                        }
                    }
                    12 if rng.one_in(2) => {
                        assert_eq!(table.pop_first().unwrap(), model.pop_first());
                        assert_eq!(table.pop_last().unwrap(), model.pop_last());
                    }
                    13 if rng.one_in(30) => {
                        table.clear().unwrap();
                        model.clear();
                    }
                    _ => {
                        let more: BTreeMap<Key, i64> = (0..5).map(|n| (key(&mut rng), n)).collect();
                        let new = more.keys().filter(|key| !model.contains_key(key)).count();
                        assert_eq!(table.extend(more.clone()).unwrap(), new as u64);
                        model.extend(more);
                    }
                }
                if rng.one_in(10) {
                    agree(&table.view().unwrap(), &model, &mut rng);
                }
            }
            tx.commit().unwrap();
            let snap = db.begin_read().unwrap();
            let table = snap.typed_table("t").unwrap().unwrap();
            agree(&table, &model, &mut rng);
        }
    }
}

/// Bytes that do not decode as the requested type are a wrong-type error. The file is sound, so no error may report
/// damage.
#[test]
fn bytes_of_another_type_are_a_wrong_type_and_no_damage() {
    #[track_caller]
    fn wrong<T>(done: tidalite::Result<T>, table: &str, part: &str, expected: &str) {
        let Err(error) = done else {
            panic!("bytes of another type were read");
        };
        let text = error.to_string();
        for word in ["damage", "corrupt", "salvage", "check"] {
            assert!(!text.contains(word), "{text}");
        }
        assert_eq!(error.kind(), ErrorKind::WrongType, "{text}");
        let (found, ty) = error.found_and_expected().unwrap();
        assert_eq!((error.table(), ty), (Some(table), expected));
        assert!(text.contains(&format!("a {part} of")), "{text}");
        assert!(found.starts_with("2 bytes, \"80\""), "{found}");
    }
    let db = memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    tx.table("config").unwrap().put(b"80", b"80").unwrap();
    tx.set_table("tags").unwrap().put(b"80", b"80").unwrap();
    tx.table("tree")
        .unwrap()
        .nested(b"n")
        .put(b"80", b"80")
        .unwrap();
    for n in 0..20 {
        tx.table(&format!("more {n}"))
            .unwrap()
            .put(b"80", b"80")
            .unwrap();
    }
    let mut table = tx.table("config").unwrap().typed::<[u8; 2], f64>();
    wrong(table.get(b"80"), "config", "value", "f64");
    wrong(table.pop_first(), "config", "value", "f64");
    wrong(table.pop_last(), "config", "value", "f64");
    assert_eq!(table.view().unwrap().count(), 1, "nothing was removed");
    wrong(
        table.view().unwrap().get_many(&[*b"80"]),
        "config",
        "value",
        "f64",
    );
    tx.commit().unwrap();

    let snap = db.begin_read().unwrap();
    let mut names: Vec<String> = (0..20).map(|n| format!("more {n}")).collect();
    names.push("config".to_owned());
    // There are more tables than a snapshot caches; each is opened twice, first from the catalog and then, if cached,
    // from the cache.
    for name in names.iter().chain(&names) {
        let table = snap.table(name).unwrap().unwrap();
        let table = table.typed::<i64, [u8; 2]>();
        wrong(table.first(), name, "key", "i64");
        wrong(
            table.iter().try_for_each(|entry| entry.map(drop)),
            name,
            "key",
            "i64",
        );
        wrong(table.range(..).unwrap().next().unwrap(), name, "key", "i64");
    }
    let bytes = snap.set_table("tags").unwrap().unwrap();
    let tags = bytes.clone().typed::<[u8; 2], f64>();
    wrong(tags.get(b"80"), "tags", "value", "f64");
    wrong(
        tags.values(b"80").unwrap().next().unwrap(),
        "tags",
        "value",
        "f64",
    );
    let tags = bytes.typed::<i16, [u8; 2]>();
    assert_eq!(tags.first().unwrap().unwrap().1, *b"80");
    let tree = snap.table("tree").unwrap().unwrap();
    let below = tree.nested(b"n").unwrap().unwrap();
    let below = below.typed::<[u8; 2], f64>();
    wrong(below.get(b"80"), "tree", "value", "f64");
    let mut cursor = tree.cursor();
    assert!(cursor.next().unwrap());
    let below = cursor.nested().unwrap().unwrap().typed::<[u8; 2], f64>();
    wrong(below.get(b"80"), "tree", "value", "f64");
}

#[test]
fn typed_pairs_are_appended_and_cleared() {
    let db = memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.set_table("t").unwrap().typed::<i32, String>();
    table.append(&-5, &"b".to_owned()).unwrap();
    table.append(&7, &"a".to_owned()).unwrap();
    let behind = table.append(&7, &String::new());
    assert!(matches!(behind, Err(ref error) if error.kind() == ErrorKind::OutOfOrder));
    table.append_value(&-5, &"c".to_owned()).unwrap();
    assert!(table.append_value(&-5, &"b".to_owned()).is_err());
    let pairs: Vec<_> = table
        .view()
        .unwrap()
        .range(..)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let expected = [(-5, "b"), (-5, "c"), (7, "a")].map(|(key, text)| (key, text.to_owned()));
    assert_eq!(pairs, expected);
    assert!(!table.view().unwrap().bytes().is_empty());
    table.clear().unwrap();
    assert!(table.view().unwrap().bytes().is_empty());
}

/// A cursor knows the rank of its entry however it got there, and an iterator over a range knows how many entries are
/// left, in small nested tables, too.
#[test]
fn cursors_know_their_rank_and_ranges_how_many_are_left() {
    let db = memory(&Options::new().page_size(512));
    let mut tx = db.begin_write().unwrap();
    let mut model = BTreeMap::new();
    let mut rng = Rng::new(5);
    for _ in 0..3000 {
        let key = (rng.below(1 << 20) as u32).to_be_bytes();
        tx.table("t").unwrap().put(&key, &key).unwrap();
        model.insert(key.to_vec(), ());
    }
    let keys: Vec<Vec<u8>> = model.into_keys().collect();
    let mut below = tx.table("t").unwrap();
    let mut below = below.nested(b"\xff");
    below.extend([("a", "1"), ("b", "2"), ("c", "3")]).unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    let mut cursor = table.cursor();
    assert_eq!(cursor.rank().unwrap(), None);
    for _ in 0..200 {
        let mut at = rng.index(keys.len());
        assert!(cursor.seek(&keys[at]).unwrap());
        for _ in 0..rng.index(60) {
            assert_eq!(cursor.rank().unwrap(), Some(at as u64));
            let forward = rng.one_in(2);
            if forward && at + 1 < keys.len() {
                assert!(cursor.next().unwrap());
                at += 1;
            } else if !forward && at > 0 {
                assert!(cursor.previous().unwrap());
                at -= 1;
            }
        }
        assert!(cursor.select(at as u64).unwrap());
        assert_eq!(
            (cursor.key(), cursor.rank().unwrap()),
            (&keys[at][..], Some(at as u64))
        );
    }
    assert!(!cursor.seek(b"\xff\xff").unwrap());
    assert_eq!(cursor.rank().unwrap(), None);

    let below = table.nested(b"\xff").unwrap().unwrap();
    let mut cursor = below.cursor();
    assert!(cursor.seek(b"c").unwrap());
    assert_eq!(cursor.rank().unwrap(), Some(2));
    assert!(cursor.previous().unwrap());
    assert_eq!(cursor.rank().unwrap(), Some(1));
    let (key, value) = below.last().unwrap().unwrap();
    assert_eq!((&key[..], &value[..]), (&b"c"[..], &b"3"[..]));
    let values: Vec<_> = below
        .iter()
        .rev()
        .map(|entry| entry.unwrap().1.to_vec())
        .collect();
    assert_eq!(values, [b"3", b"2", b"1"]);

    let mut range = table.range(keys[10].clone()..keys[15].clone()).unwrap();
    assert_eq!(range.size_hint(), (1, Some(5)));
    range.next().unwrap().unwrap();
    range.next_back().unwrap().unwrap();
    assert_eq!((range.left(), range.size_hint()), (3, (1, Some(3))));
    assert_eq!(range.by_ref().count(), 3);
    assert_eq!(
        (range.size_hint(), range.next().is_none()),
        ((0, Some(0)), true)
    );
    // The nested table causes an error, which ends the iteration.
    let mut all = table.iter();
    assert_eq!(all.left(), keys.len() as u64 + 1);
    assert!(all.next_back().unwrap().is_err());
    assert!(all.next_back().is_none() && all.next().is_none());
    assert_eq!(all.size_hint(), (0, Some(0)));
    assert!(table.last().is_err());
    assert_eq!(table.first().unwrap().unwrap().0, keys[0]);
    let none = keys[3].clone()..keys[2].clone();
    assert_eq!(table.range(none).unwrap().size_hint(), (0, Some(0)));
}
