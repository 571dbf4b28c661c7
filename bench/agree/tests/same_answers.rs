//! The operations that LMDB and Tidalite share, the same seeded ones given to both: every answer is the same, and so is
//! the content after every commit.
//!
//! More: `TIDALITE_AGREE_SEEDS=200 cargo test --release --manifest-path bench/agree/Cargo.toml`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::ops::Bound;
use std::sync::Arc;
use tidalite::{Database, MemoryStorage, MultiCursor, Options, TableCursor, WriteTxn};
use tidalite_agree::lmdb::*;
use tidalite_testkit::rng::Rng;

type Pair = (Vec<u8>, Vec<u8>);

/// LMDB takes keys and duplicates of 1 to 511 bytes.
fn key(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(20) {
        0 => 400 + rng.index(112),
        1..4 => 1 + rng.index(60),
        _ => 1 + rng.index(4),
    };
    (0..len).map(|_| b'a' + rng.below(5) as u8).collect()
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(30) {
        0 => rng.index(9000),
        1..5 => rng.index(700),
        _ => rng.index(30),
    };
    vec![rng.below(256) as u8; len]
}

fn duplicate(rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(3) {
        return key(rng);
    }
    (rng.below(300) as u32).to_be_bytes().to_vec()
}

fn few(rng: &mut Rng) -> Vec<u8> {
    vec![b'k', rng.below(12) as u8]
}

fn at(cursor: &TableCursor<'_>) -> Option<Pair> {
    let there = cursor.is_at_entry();
    there.then(|| (cursor.key().to_vec(), cursor.value().unwrap()))
}

fn at_pair(cursor: &MultiCursor<'_>) -> Option<Pair> {
    let there = cursor.is_at_pair();
    there.then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

fn plain(ours: &mut WriteTxn, theirs: &mut Txn<'_>, rng: &mut Rng) {
    let (k, v) = (key(rng), value(rng));
    let mut t = ours.table("plain").unwrap();
    match rng.below(12) {
        0..4 => {
            let was = theirs.get(Which::Plain, &k).is_some();
            assert!(theirs.put(Which::Plain, &k, &v, 0));
            assert_eq!(t.put(&k, &v).unwrap(), !was);
        }
        4 => {
            let done = theirs.put(Which::Plain, &k, &v, MDB_NOOVERWRITE);
            assert_eq!(t.insert(&k, &v).unwrap(), done);
        }
        5 => {
            let done = theirs.put(Which::Plain, &k, &v, MDB_APPEND);
            assert_eq!(t.append(&k, &v).is_ok(), done);
        }
        6 => assert_eq!(t.remove(&k).unwrap(), theirs.del(Which::Plain, &k, None)),
        7 => assert_eq!(t.get(&k).unwrap(), theirs.get(Which::Plain, &k)),
        8 => {
            // A range is cut off here, taken out one by one there.
            let to = [&k[..], b"c"].concat();
            let mut removed = 0;
            let mut cursor = theirs.cursor(Which::Plain);
            while let Some((found, _)) = cursor.go(MDB_SET_RANGE, &k, &[]) {
                if found >= to {
                    break;
                }
                cursor.remove(false);
                removed += 1;
            }
            drop(cursor);
            let range = (Bound::Included(k), Bound::Excluded(to));
            assert_eq!(t.remove_range(range).unwrap(), removed);
        }
        9 => {
            // At a cursor: replace, remove.
            let mut edit = t.edit();
            let mut cursor = theirs.cursor(Which::Plain);
            let found = cursor.go(MDB_SET_RANGE, &k, &[]);
            assert_eq!(edit.seek_ge(&k).unwrap(), found.is_some());
            if let Some((there, old)) = found {
                if rng.one_in(2) {
                    cursor.replace(&there, &v);
                    assert_eq!(edit.replace(&v).unwrap(), Some(old));
                } else {
                    cursor.remove(false);
                    assert_eq!(edit.remove().unwrap(), Some(there));
                    // Behind a removed entry the next one is the one that followed.
                    let next = cursor.go(MDB_NEXT, &[], &[]);
                    assert_eq!(edit.next().unwrap(), next.is_some());
                    assert!(next.is_none_or(|next| edit.key() == next.0));
                }
            }
        }
        _ => {
            let view = t.view().unwrap();
            let mut cursor = view.cursor();
            let mut other = theirs.cursor(Which::Plain);
            let mut found = match rng.below(4) {
                0 => (cursor.first().unwrap(), other.go(MDB_FIRST, &[], &[])),
                1 => (cursor.last().unwrap(), other.go(MDB_LAST, &[], &[])),
                2 => (cursor.seek(&k).unwrap(), other.go(MDB_SET_KEY, &k, &[])),
                _ => (
                    cursor.seek_ge(&k).unwrap(),
                    other.go(MDB_SET_RANGE, &k, &[]),
                ),
            };
            for _ in 0..20 {
                assert_eq!(found.0, found.1.is_some());
                if !found.0 {
                    break;
                }
                assert!(at(&cursor) == found.1);
                found = if rng.one_in(2) {
                    (cursor.next().unwrap(), other.go(MDB_NEXT, &[], &[]))
                } else {
                    (cursor.previous().unwrap(), other.go(MDB_PREV, &[], &[]))
                };
            }
        }
    }
}

fn multi(ours: &mut WriteTxn, theirs: &mut Txn<'_>, rng: &mut Rng) {
    let (k, v) = (few(rng), duplicate(rng));
    let mut m = ours.multi_table("multi").unwrap();
    match rng.below(14) {
        0..5 => {
            let new = theirs.put(Which::Multi, &k, &v, MDB_NODUPDATA);
            assert_eq!(m.put(&k, &v).unwrap(), new);
        }
        5 => {
            let done = theirs.put(Which::Multi, &k, &v, MDB_APPENDDUP | MDB_NODUPDATA);
            assert_eq!(m.append_dup(&k, &v).is_ok(), done);
        }
        6 => assert_eq!(
            m.remove(&k, &v).unwrap(),
            theirs.del(Which::Multi, &k, Some(&v))
        ),
        7 if rng.one_in(6) => {
            let was = theirs.del(Which::Multi, &k, None);
            assert_eq!(m.remove_all(&k).unwrap() > 0, was);
        }
        8 => {
            let mut cursor = theirs.cursor(Which::Multi);
            let found = cursor.go(MDB_SET_KEY, &k, &[]);
            let expected = found.map(|(_, value)| (value, cursor.count()));
            assert_eq!(m.view().unwrap().get(&k).unwrap(), expected);
        }
        9 => {
            let mut edit = m.edit();
            let mut cursor = theirs.cursor(Which::Multi);
            let found = cursor.go(MDB_GET_BOTH_RANGE, &k, &v).map(|_| cursor.here());
            let there = edit.seek_ge(&k, &v).unwrap() && edit.key() == k;
            assert_eq!(there, found.is_some());
            if there {
                assert_eq!(found.flatten(), Some((k, edit.value().to_vec())));
                cursor.remove(false);
                assert!(edit.remove().unwrap());
            }
        }
        _ => {
            let view = m.view().unwrap();
            let mut cursor = view.cursor();
            let mut other = theirs.cursor(Which::Multi);
            let mut found = match rng.below(5) {
                0 => (cursor.first().unwrap(), other.go(MDB_FIRST, &[], &[])),
                1 => (cursor.last().unwrap(), other.go(MDB_LAST, &[], &[])),
                2 => (cursor.seek(&k, &v).unwrap(), other.go(MDB_GET_BOTH, &k, &v)),
                3 => (
                    cursor.seek_value_ge(&k, &v).unwrap(),
                    other.go(MDB_GET_BOTH_RANGE, &k, &v),
                ),
                _ => (
                    cursor.seek_key_ge(&k).unwrap(),
                    other.go(MDB_SET_RANGE, &k, &[]),
                ),
            };
            let both = |ours: bool, theirs: Option<Pair>| (ours, theirs);
            for _ in 0..30 {
                assert_eq!(found.0, found.1.is_some());
                if !found.0 {
                    break;
                }
                assert_eq!(at_pair(&cursor), other.here());
                assert_eq!(cursor.count(), other.count());
                let step = rng.below(8);
                let keep = cursor.clone();
                found = match step {
                    0 => both(cursor.next_pair().unwrap(), other.go(MDB_NEXT, &[], &[])),
                    1 => both(cursor.prev_pair().unwrap(), other.go(MDB_PREV, &[], &[])),
                    2 => both(cursor.next_dup().unwrap(), other.go(MDB_NEXT_DUP, &[], &[])),
                    3 => both(cursor.prev_dup().unwrap(), other.go(MDB_PREV_DUP, &[], &[])),
                    4 => both(
                        cursor.next_nodup().unwrap(),
                        other.go(MDB_NEXT_NODUP, &[], &[]),
                    ),
                    5 => both(
                        cursor.prev_nodup().unwrap(),
                        other.go(MDB_PREV_NODUP, &[], &[]),
                    ),
                    6 => both(
                        cursor.first_dup().unwrap(),
                        other.go(MDB_FIRST_DUP, &[], &[]),
                    ),
                    _ => both(cursor.last_dup().unwrap(), other.go(MDB_LAST_DUP, &[], &[])),
                };
                if (2..4).contains(&step) && !found.0 {
                    // No such value of this key: both say so, and ours stays.
                    assert!(found.1.is_none() && at_pair(&cursor) == at_pair(&keep));
                    break;
                }
            }
        }
    }
}

fn same_content(db: &Database, theirs: &Txn<'_>) {
    let snap = db.begin_read().unwrap();
    let table = snap.table("plain").unwrap().unwrap();
    assert_eq!(table.count(), theirs.count(Which::Plain));
    let mut cursor = theirs.cursor(Which::Plain);
    for row in table.range(..).unwrap() {
        let (key, value) = row.unwrap();
        let there = cursor.go(MDB_NEXT, &[], &[]).unwrap();
        assert!(there == (key, value.to_vec()));
    }
    assert!(cursor.go(MDB_NEXT, &[], &[]).is_none());
    let table = snap.multi_table("multi").unwrap().unwrap();
    assert_eq!(table.count(), theirs.count(Which::Multi));
    let mut cursor = theirs.cursor(Which::Multi);
    for pair in table.range(..).unwrap() {
        let there = cursor.go(MDB_NEXT, &[], &[]).unwrap();
        assert!(there == pair.unwrap());
    }
    assert!(cursor.go(MDB_NEXT, &[], &[]).is_none());
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn shared_operations_give_the_same_answers() {
    let seeds = std::env::var("TIDALITE_AGREE_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(12);
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let folder =
            std::env::temp_dir().join(format!("tidalite-agree-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let lmdb = Lmdb::open(&folder);
        let page_size = [512, 1024, 4096][seed as usize % 3];
        let db = Options::new().page_size(page_size);
        let db = db.open_storage(Arc::new(MemoryStorage::new())).unwrap();
        for _ in 0..12 {
            let mut ours = db.begin_write().unwrap();
            let mut theirs = lmdb.begin();
            let operations = rng.index(700);
            for _ in 0..operations {
                if rng.one_in(2) {
                    plain(&mut ours, &mut theirs, &mut rng);
                } else {
                    multi(&mut ours, &mut theirs, &mut rng);
                }
            }
            ours.table("plain").unwrap();
            ours.multi_table("multi").unwrap();
            if rng.one_in(5) {
                drop((ours, theirs));
            } else {
                ours.commit().unwrap();
                theirs.commit();
            }
            if db.begin_read().unwrap().tables().unwrap().len() == 2 {
                same_content(&db, &lmdb.begin());
            }
        }
        drop((db, lmdb));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
