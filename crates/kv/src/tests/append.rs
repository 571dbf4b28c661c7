//! Compares long ascending runs of keys of many shapes, interrupted now and then, with a `BTreeMap`.

use super::{Seed, check_all, few, random_key, random_value};
use crate::{AppendCursor, Tree};
use std::collections::BTreeMap;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The key number `n` of a sequence; the keys of one shape ascend with `n`.
fn shaped(rng: &mut Rng, shape: u64, n: u64) -> Vec<u8> {
    match shape {
        0 => n.to_be_bytes().to_vec(),
        1 => (n * 256 + rng.below(256)).to_be_bytes().to_vec(),
        2 => format!("plant/{:03}/turbine/{n:09}", n / 700).into_bytes(),
        3 => [&[b'k'; 90][..], &n.to_be_bytes()[..]].concat(),
        // For 40 consecutive numbers, each key is a prefix of the next key.
        4 => [&(n / 40).to_be_bytes()[..], &vec![0; (n % 40) as usize]].concat(),
        _ => format!("{n:b}").into_bytes(),
    }
}

fn rows(rng: &mut Rng, page_size: usize, from: u64, count: u64) -> Rows {
    let shape = rng.below(6);
    let most = *rng.pick(&[0, 8, 150]);
    let mut rows: Rows = (from..from + count)
        .map(|n| {
            let key = shaped(rng, shape, n);
            let mut value = vec![0; rng.index(most + 1)];
            rng.fill(&mut value);
            (key, value)
        })
        .collect();
    rows.sort();
    rows.dedup_by(|next, row| next.0 == row.0);
    // Mixes in rows that are too large for the leaf builder, keys that are out of order, and duplicate keys.
    for _ in 0..rng.below(4) {
        let at = rng.index(rows.len());
        match rng.below(4) {
            0 => rows[at].1 = vec![1; page_size / 4 + rng.index(page_size)],
            1 => rows.insert(
                at,
                (random_key(rng, page_size), random_value(rng, page_size)),
            ),
            2 => rows.insert(at, rows[rng.index(at + 1)].clone()),
            _ => {
                let other = rng.index(rows.len());
                rows.swap(at, other);
            }
        }
    }
    rows
}

/// Checks that a cursor returns the rows of the model.
fn assert_rows(tree: &Tree, pages: &ScratchPages, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut cursor = tree.cursor(pages);
    for (key, value) in model {
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), key);
        assert_eq!(&cursor.value().unwrap().to_vec().unwrap(), value);
    }
    assert!(!cursor.next().unwrap());
}

#[test]
#[cfg_attr(miri, ignore = "thousands of runs")]
fn bulk_loads_of_every_shape_agree_with_a_map() {
    for seed in 0..few(60) {
        let page_size = [512, 4096, 16_384][seed as usize % 3];
        let printed = Seed::of(seed, page_size);
        let mut rng = Rng::new(seed);
        let mut pages = ScratchPages::new(page_size);
        let (mut tree, mut model) = (Tree::new(5), BTreeMap::new());
        let mut from = 0;
        for _ in 0..12 {
            let most = *rng.pick(&[3, 300, 4000]);
            let count = 1 + rng.below(most);
            let rows = rows(&mut rng, page_size, from, count);
            from += if rng.one_in(5) { count / 2 } else { count };
            let before = model.len();
            model.extend(rows.iter().cloned());
            let new = match rng.one_in(2) {
                true => tree.append(&mut pages, rows),
                false => tree.append_lent(&mut pages, |put| {
                    rows.iter().try_for_each(|(key, value)| put(key, value))
                }),
            };
            let new = new.unwrap();
            assert_eq!(new, (model.len() - before) as u64);
            assert_eq!(tree.len(), model.len() as u64);
            for _ in 0..rng.below(20).min(model.len() as u64) {
                let row = model.iter().nth(rng.index(model.len()));
                let key = row.map(|(key, _)| key.clone()).unwrap_or_default();
                let rank = model.range(..key.clone()).count() as u64;
                assert_eq!(tree.rank(&pages, &key).unwrap(), rank);
                if rng.one_in(2) {
                    assert!(tree.remove(&mut pages, &key).unwrap());
                    model.remove(&key);
                }
            }
            if rng.one_in(2) {
                tree.seal(&mut pages).unwrap();
                check_all(&tree, &pages);
                if rng.one_in(2) {
                    pages.commit();
                }
            }
            assert_rows(&tree, &pages, &model);
        }
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        assert_leaves(&tree, &pages);
        printed.passed();
    }
}

/// If the source of the rows fails, the rows before the error stay.
#[test]
fn rows_before_a_failure_of_the_source_stay() {
    for count in [0, 1, 50, 2000] {
        let mut pages = ScratchPages::new(512);
        let mut tree = Tree::new(5);
        let failed = tree.append_lent(&mut pages, |put| {
            (0..count).try_for_each(|n: u32| put(&n.to_be_bytes(), b"value"))?;
            Err(crate::Error::Limit {
                what: "rows of this test",
                found: 1,
                limit: 0,
            })
        });
        assert!(failed.is_err());
        assert_eq!(tree.len(), u64::from(count));
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        let model = (0..count).map(|n| (n.to_be_bytes().to_vec(), b"value".to_vec()));
        assert_rows(&tree, &pages, &model.collect());
    }
}

/// `read_leaves` reads all leaves, with the right counts, and stops on request.
fn assert_leaves(tree: &Tree, pages: &ScratchPages) {
    let mut before = Vec::new();
    let all = tree.read_leaves(pages, &mut |rows| {
        before.push(rows);
        true
    });
    all.unwrap();
    assert!(before.is_sorted_by(|a, b| a < b));
    assert!(before.iter().all(|rows| *rows < tree.len()));
    assert_eq!(before.is_empty(), tree.height() < 2);
    let mut left = before.len() / 2;
    let some = tree.read_leaves(pages, &mut |_| {
        left -= usize::from(left > 0);
        left > 0
    });
    some.unwrap();
    assert_eq!(left, 0);
}

/// Inserts rows one by one, mostly after the last one, with one `AppendCursor` per transaction.
#[test]
fn hinted_inserts_agree_with_a_map() {
    for seed in 0..few(60) {
        let page_size = [512, 4096][seed as usize % 2];
        let printed = Seed::of(seed, page_size);
        let mut rng = Rng::new(seed);
        let mut pages = ScratchPages::new(page_size);
        let (mut tree, mut model) = (Tree::new(5), BTreeMap::<Vec<u8>, Vec<u8>>::new());
        let mut n = 0;
        for _ in 0..6 {
            let shape = rng.below(6);
            let mut cursor = AppendCursor::default();
            for _ in 0..rng.below(few(1500)) {
                n += rng.below(3);
                let mut key = shaped(&mut rng, shape, n);
                if rng.one_in(100) {
                    key = random_key(&mut rng, page_size);
                }
                let values_of = if rng.one_in(50) { page_size } else { 16 };
                let value = random_value(&mut rng, values_of);
                match rng.below(300) {
                    0 => {
                        cursor.forget();
                        let was = model.pop_first().map(|(key, _)| key).unwrap_or_default();
                        tree.remove(&mut pages, &was).unwrap();
                    }
                    1 => {
                        tree.seal(&mut pages).unwrap();
                    }
                    choice if choice % 2 == 0 => {
                        let above = model.last_key_value().is_none_or(|(last, _)| *last < key);
                        let done = tree.append_hinted(&mut pages, &mut cursor, &key, &value);
                        assert_eq!(done.unwrap(), above);
                        if above {
                            model.insert(key, value);
                        }
                    }
                    _ => {
                        let was = tree.insert_hinted(&mut pages, &mut cursor, &key, &value);
                        assert_eq!(was.unwrap(), model.insert(key, value).is_some());
                    }
                }
                assert_eq!(tree.len(), model.len() as u64);
            }
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            pages.commit();
            assert_rows(&tree, &pages, &model);
        }
        printed.passed();
    }
}
