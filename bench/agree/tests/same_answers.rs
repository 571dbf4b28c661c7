//! Executes the same seeded operations with LMDB and with Tidalite: every result must be the same, and so must the
//! content after every commit.
//!
//! For more seeds: `TIDALITE_AGREE_SEEDS=200 cargo test --release --manifest-path bench/agree/Cargo.toml`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::ffi::CStr;
use std::ops::Bound;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Error, Options, SetCursor, SetTableMut, TableCursor, WriteTxn};
use tidalite_agree::lmdb::*;
use tidalite_testkit::rng::Rng;

type Pair = (Vec<u8>, Vec<u8>);

/// A random key. LMDB accepts keys and duplicates of 1 to 511 bytes.
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

fn at_pair(cursor: &SetCursor<'_>) -> Option<Pair> {
    let there = cursor.is_at_entry();
    there.then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

/// The two names between which the plain table is renamed.
const NAMES: [&CStr; 2] = [c"plain", c"renamed"];

fn name(which: usize) -> &'static str {
    NAMES[which].to_str().unwrap()
}

fn plain(ours: &mut WriteTxn, theirs: &mut Txn<'_>, named: usize, rng: &mut Rng) {
    let (k, v) = (key(rng), value(rng));
    let mut t = ours.table(name(named)).unwrap();
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
            // Tidalite removes a range in one call; LMDB removes the entries of the range one by one.
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
            // Replaces and removes entries at a cursor.
            let mut edit = t.cursor_mut();
            let mut cursor = theirs.cursor(Which::Plain);
            let found = cursor.go(MDB_SET_RANGE, &k, &[]);
            assert_eq!(edit.seek_ge(&k).unwrap(), found.is_some());
            if let Some((there, old)) = found {
                if rng.one_in(2) {
                    cursor.replace(&there, &v);
                    assert_eq!(edit.replace(&v).unwrap(), Some(old));
                } else {
                    cursor.remove(false);
                    assert!(edit.key() == there && edit.remove().unwrap());
                    // After the removal of an entry, a step to the next entry must reach the entry that followed the
                    // removed one.
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
    let mut m = ours.set_table("multi").unwrap();
    match rng.below(16) {
        14 => {
            // LMDB compares only the key with the last key of the table, Tidalite compares the whole pair with the last
            // pair.
            let last = theirs.cursor(Which::Multi).go(MDB_LAST, &[], &[]);
            let flag = match &last {
                Some((last, _)) if *last == k => MDB_APPENDDUP,
                _ => MDB_APPEND,
            };
            let done = theirs.put(Which::Multi, &k, &v, flag | MDB_NODUPDATA);
            assert_eq!(m.append(&k, &v).is_ok(), done);
        }
        15 => replace_current(&mut m, theirs, (k, v), rng),
        0..5 => {
            let new = theirs.put(Which::Multi, &k, &v, MDB_NODUPDATA);
            assert_eq!(m.put(&k, &v).unwrap(), new);
        }
        5 => {
            let done = theirs.put(Which::Multi, &k, &v, MDB_APPENDDUP | MDB_NODUPDATA);
            assert_eq!(m.append_value(&k, &v).is_ok(), done);
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
            let mut edit = m.cursor_mut();
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
                    0 => both(cursor.next().unwrap(), other.go(MDB_NEXT, &[], &[])),
                    1 => both(cursor.previous().unwrap(), other.go(MDB_PREV, &[], &[])),
                    2 => both(
                        cursor.next_value().unwrap(),
                        other.go(MDB_NEXT_DUP, &[], &[]),
                    ),
                    3 => both(
                        cursor.previous_value().unwrap(),
                        other.go(MDB_PREV_DUP, &[], &[]),
                    ),
                    4 => both(
                        cursor.next_key().unwrap(),
                        other.go(MDB_NEXT_NODUP, &[], &[]),
                    ),
                    5 => both(
                        cursor.previous_key().unwrap(),
                        other.go(MDB_PREV_NODUP, &[], &[]),
                    ),
                    6 => both(
                        cursor.first_value().unwrap(),
                        other.go(MDB_FIRST_DUP, &[], &[]),
                    ),
                    _ => both(
                        cursor.last_value().unwrap(),
                        other.go(MDB_LAST_DUP, &[], &[]),
                    ),
                };
                if (2..4).contains(&step) && !found.0 {
                    // The key has no such value: both report this, and the Tidalite cursor must not move.
                    assert!(found.1.is_none() && at_pair(&cursor) == at_pair(&keep));
                    break;
                }
            }
        }
    }
}

/// Replaces the value at which a cursor stands by another value.
fn replace_current(m: &mut SetTableMut<'_>, theirs: &mut Txn<'_>, (k, v): Pair, rng: &mut Rng) {
    let mut cursor = theirs.cursor(Which::Multi);
    let Some((_, old)) = cursor
        .go(MDB_GET_BOTH_RANGE, &k, &v)
        .map(|_| cursor.here().unwrap())
    else {
        return;
    };
    let mut edit = m.cursor_mut();
    assert!(edit.seek(&k, &old).unwrap());
    let mut near = old.clone();
    if let Some(last) = near.last_mut() {
        *last = last.wrapping_add(1);
    }
    let next = cursor.go(MDB_NEXT_DUP, &[], &[]);
    cursor.go(MDB_GET_BOTH, &k, &old).unwrap();
    let stays = near > old && next.is_none_or(|(_, next)| near < next);
    let new = if rng.one_in(2) {
        near.clone()
    } else {
        duplicate(rng)
    };
    if stays && new == near {
        cursor.replace(&k, &new);
    } else {
        // LMDB would leave the new value at a place where it does not belong in the order.
        cursor.remove(false);
        drop(cursor);
        theirs.put(Which::Multi, &k, &new, MDB_NODUPDATA);
    }
    edit.replace(&new).unwrap();
    assert_eq!((edit.key(), edit.value()), (&k[..], &new[..]));
    drop(edit);
    let mut cursor = theirs.cursor(Which::Multi);
    assert!(cursor.go(MDB_GET_BOTH, &k, &new).is_some());
    assert_eq!(m.view().unwrap().count_of(&k).unwrap(), cursor.count());
    assert_eq!(m.view().unwrap().contains(&k, &old).unwrap(), old == new);
}

/// Operations on the table whose values have one length, many values at a time.
fn fixed(ours: &mut WriteTxn, theirs: &mut Txn<'_>, rng: &mut Rng) {
    let (k, v) = (few(rng), (rng.below(4000) as u32).to_be_bytes());
    let mut m = ours.set_table("fixed").unwrap();
    match rng.below(8) {
        0..3 => {
            let new = theirs.put(Which::Fixed, &k, &v, MDB_NODUPDATA);
            assert_eq!(m.put(&k, &v).unwrap(), new);
        }
        3 => {
            let first = rng.below(4000) as u32;
            let values: Vec<_> = (first..first + rng.below(900) as u32)
                .map(u32::to_be_bytes)
                .collect();
            let put = |value: &[u8; 4]| theirs.put(Which::Fixed, &k, value, MDB_NODUPDATA);
            let new = values.iter().map(put).filter(|new| *new).count();
            assert_eq!(m.put_many(&k, &values).unwrap(), new as u64);
        }
        4 => {
            let was = theirs.del(Which::Fixed, &k, Some(&v));
            assert_eq!(m.remove(&k, &v).unwrap(), was);
        }
        _ => {
            let view = m.view().unwrap();
            let mut cursor = view.cursor();
            let mut other = theirs.cursor(Which::Fixed);
            let (found, there) = match rng.one_in(2) {
                true => (cursor.seek_key(&k).unwrap(), other.go(MDB_SET_KEY, &k, &[])),
                // From a value in the middle, LMDB returns only the rest of the page of this value.
                false => (cursor.first().unwrap(), other.go(MDB_FIRST, &[], &[])),
            };
            assert_eq!(found, there.is_some());
            if found {
                assert_eq!(
                    cursor.values(usize::MAX).unwrap().concat(),
                    other.multiple()
                );
            }
        }
    }
}

/// Operations on whole tables: clears, deletes and creates again, renames.
fn whole(ours: &mut WriteTxn, theirs: &mut Txn<'_>, named: &mut usize, rng: &mut Rng) {
    match rng.below(6) {
        0 => {
            ours.table(name(*named)).unwrap().clear().unwrap();
            theirs.clear(Which::Plain);
        }
        1 => {
            ours.set_table("multi").unwrap().clear().unwrap();
            theirs.clear(Which::Multi);
        }
        2 => {
            ours.set_table("fixed").unwrap();
            assert!(ours.drop_table("fixed").unwrap());
            theirs.remake(Which::Fixed, c"fixed");
            assert!(ours.set_table("fixed").unwrap().view().unwrap().is_empty());
        }
        3 => {
            ours.set_table("multi").unwrap();
            assert!(ours.drop_table("multi").unwrap());
            theirs.remake(Which::Multi, c"multi");
        }
        _ => {
            ours.table(name(*named)).unwrap();
            let to = 1 - *named;
            assert!(ours.rename_table(name(*named), name(to)).unwrap());
            theirs.rename_plain(NAMES[to]);
            *named = to;
        }
    }
}

/// Executes random operations, some of them in nested transactions that are committed or rolled back.
fn operate(
    ours: &mut WriteTxn,
    theirs: &mut Txn<'_>,
    named: usize,
    (count, depth): (usize, usize),
    rng: &mut Rng,
) {
    for _ in 0..count {
        if depth < 3 && rng.one_in(100) {
            let keep = rng.one_in(2);
            let count = rng.index(60);
            let mut child = theirs.nested();
            let done = ours.nested(|ours| {
                operate(ours, &mut child, named, (count, depth + 1), rng);
                let undo = || Error::from(std::io::Error::other("undone"));
                keep.then_some(()).ok_or_else(undo)
            });
            assert_eq!(done.is_ok(), keep);
            match keep {
                true => child.commit(),
                false => drop(child),
            }
        }
        match rng.below(5) {
            0 | 1 => plain(ours, theirs, named, rng),
            2 | 3 => multi(ours, theirs, rng),
            _ => fixed(ours, theirs, rng),
        }
    }
}

fn same_content(db: &Database, theirs: &Txn<'_>, named: usize) {
    let snap = db.begin_read().unwrap();
    let table = snap.table(name(named)).unwrap().unwrap();
    assert_eq!(table.count(), theirs.count(Which::Plain));
    let mut cursor = theirs.cursor(Which::Plain);
    for row in table.range(..).unwrap() {
        let (key, value) = row.unwrap();
        let there = cursor.go(MDB_NEXT, &[], &[]).unwrap();
        assert!(there == (key, value.to_vec()));
    }
    assert!(cursor.go(MDB_NEXT, &[], &[]).is_none());
    for (name, which) in [("multi", Which::Multi), ("fixed", Which::Fixed)] {
        let table = snap.set_table(name).unwrap().unwrap();
        assert_eq!(table.count(), theirs.count(which));
        let mut cursor = theirs.cursor(which);
        for pair in table.range(..).unwrap() {
            let there = cursor.go(MDB_NEXT, &[], &[]).unwrap();
            assert!(there == pair.unwrap());
        }
        assert!(cursor.go(MDB_NEXT, &[], &[]).is_none());
    }
    let mut names = vec!["fixed", "multi", name(named)];
    names.sort_unstable();
    assert_eq!(snap.tables().unwrap(), names);
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
        // The name of the plain table at the last commit; `named` below is the current name.
        let (mut committed, mut any) = (0, false);
        for _ in 0..12 {
            let mut ours = db.begin_write().unwrap();
            let mut theirs = lmdb.begin(NAMES[committed]);
            let mut named = committed;
            for _ in 0..rng.index(4) {
                let count = rng.index(200);
                operate(&mut ours, &mut theirs, named, (count, 0), &mut rng);
                if rng.one_in(3) {
                    whole(&mut ours, &mut theirs, &mut named, &mut rng);
                }
            }
            ours.table(name(named)).unwrap();
            ours.set_table("multi").unwrap();
            ours.set_table("fixed").unwrap();
            if rng.one_in(5) {
                drop((ours, theirs));
            } else {
                ours.commit().unwrap();
                theirs.commit();
                (committed, any) = (named, true);
            }
            if any {
                same_content(&db, &lmdb.begin(NAMES[committed]), committed);
            }
        }
        drop((db, lmdb));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
