//! Compares pairs that are inserted after all others, singly and in bulk, with a map of sets; also tests the cost of
//! these inserts.

use super::pairs::{Pair, Sets, pair};
use super::{Seed, check_all, few, random_key};
use crate::{AllowedPosition, AppendCursor, Error, Tree};
use std::sync::atomic::Ordering;
use tidalite_pager::PageRead;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

const POSITIONS: [AllowedPosition; 3] = [
    AllowedPosition::LastOfTable,
    AllowedPosition::LastOfKey,
    AllowedPosition::Any,
];

/// Checks that the table has the pairs of the map.
fn assert_pairs(tree: &Tree, pages: &ScratchPages, model: &Sets) {
    let mut cursor = tree.pair_cursor(pages);
    for (key, set) in model {
        for value in set {
            assert!(cursor.next().unwrap());
            assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        }
    }
    assert!(!cursor.next().unwrap());
    assert_eq!(tree.keys(), model.len() as u64);
    let all: usize = model.values().map(std::collections::BTreeSet::len).sum();
    assert_eq!(tree.len(), all as u64);
}

fn put(model: &mut Sets, (key, value): Pair) -> bool {
    model.entry(key).or_default().insert(value)
}

/// Ascending pairs of keys with few and with many values, of one length and of several lengths; the order is
/// interrupted now and then.
fn ascending(rng: &mut Rng, page_size: usize, from: &mut u64) -> Vec<Pair> {
    let mut all = Vec::new();
    let most_values = *rng.pick(&[1, 3, 40, 900]);
    let keys = rng.one_in(2);
    for _ in 0..1 + rng.below(30) {
        *from += rng.below(3);
        let mut key = from.to_be_bytes().to_vec();
        if rng.one_in(60) {
            key.resize(page_size / 2, 7);
        }
        for n in 0..1 + rng.below(most_values) {
            let mut value = (n << 20).to_be_bytes().to_vec();
            if !keys {
                value.resize(8 + rng.index(30), 3);
            }
            if rng.one_in(500) {
                value.resize(page_size, 1);
            }
            all.push((key.clone(), value));
        }
    }
    for _ in 0..rng.below(4) {
        let at = rng.index(all.len());
        match rng.below(3) {
            0 => all.insert(at, all[rng.index(at + 1)].clone()),
            1 => all.insert(at, pair(rng, page_size)),
            _ => {
                let other = rng.index(all.len());
                all.swap(at, other);
            }
        }
    }
    all
}

#[test]
fn appended_pairs_agree_with_a_map_of_sets() {
    for seed in 0..few(40) {
        let page_size = [512, 512, 4096, 16_384][seed as usize % 4];
        let printed = Seed::of(seed, page_size);
        let mut rng = Rng::new(400 + seed);
        let mut pages = ScratchPages::new(page_size);
        let (mut tree, mut model) = (Tree::new_multi(5), Sets::new());
        let mut from = 0;
        for _ in 0..5 {
            let mut cursor = AppendCursor::default();
            for _ in 0..rng.below(few(20)) {
                match rng.below(8) {
                    0 => {
                        cursor.forget();
                        let all = ascending(&mut rng, page_size, &mut from);
                        let new = match rng.one_in(2) {
                            true => tree.pairs().extend(&mut pages, all.iter().cloned()),
                            false => tree.pairs().extend_lent(&mut pages, |put| {
                                all.iter().try_for_each(|(key, value)| put(key, value))
                            }),
                        };
                        let count = |pair| u64::from(put(&mut model, pair));
                        assert_eq!(new.unwrap(), all.into_iter().map(count).sum::<u64>());
                    }
                    1 => {
                        cursor.forget();
                        let key = model.keys().nth(rng.index(model.len() + 1)).cloned();
                        let key = key.unwrap_or_else(|| random_key(&mut rng, page_size));
                        let was = model.remove(&key).map_or(0, |set| set.len() as u64);
                        assert_eq!(tree.pairs().remove_all(&mut pages, &key).unwrap(), was);
                    }
                    2 => {
                        cursor.forget();
                        if let Some(mut last) = model.last_entry() {
                            let value = last.get().last().unwrap().clone();
                            let (key, set) = (last.key().clone(), last.get_mut());
                            set.remove(&value);
                            assert!(tree.pairs().remove(&mut pages, &key, &value).unwrap());
                        }
                        model.retain(|_, set| !set.is_empty());
                    }
                    3 => tree.seal(&mut pages).unwrap(),
                    _ => one_by_one(
                        &mut rng,
                        (&mut tree, &mut cursor),
                        &mut pages,
                        (&mut model, &mut from),
                    ),
                }
                assert_eq!(tree.keys(), model.len() as u64);
            }
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            assert_pairs(&tree, &pages, &model);
            pages.commit();
        }
        tree.clear(&mut pages).unwrap();
        assert_eq!(pages.live_pages(), 0);
        printed.passed();
    }
}

fn one_by_one(
    rng: &mut Rng,
    (tree, cursor): (&mut Tree, &mut AppendCursor),
    pages: &mut ScratchPages,
    (model, from): (&mut Sets, &mut u64),
) {
    let all = ascending(rng, pages.page_size(), from);
    for (key, value) in all {
        let above_of_key = model
            .get(&key)
            .is_none_or(|set| set.last().is_none_or(|last| *last < value));
        let above = model
            .last_key_value()
            .is_none_or(|(last, _)| *last < key || *last == key && above_of_key);
        let pair = (key.clone(), value.clone());
        let at = *rng.pick(&POSITIONS);
        let done = tree
            .pairs()
            .insert_hinted(pages, cursor, (&key, &value), at);
        let expected = match at {
            AllowedPosition::Any => put(model, pair),
            AllowedPosition::LastOfTable => above && put(model, pair),
            AllowedPosition::LastOfKey => above_of_key && put(model, pair),
        };
        assert_eq!(done.unwrap(), expected);
    }
}

fn read(pages: &ScratchPages) -> u64 {
    pages.counters().pages_read.load(Ordering::Relaxed)
}

/// Creates a committed table of 2000 keys with ten values each, and of one key with so many values that its set has
/// pages of its own.
fn committed(pages: &mut ScratchPages) -> Tree {
    let mut tree = Tree::new_multi(5);
    let small = (0..20_000u64).map(|n| ((n / 10 * 2).to_be_bytes(), (n << 20).to_be_bytes()));
    let large = (0..20_000u64).map(|n| (9999u64.to_be_bytes(), (n << 20).to_be_bytes()));
    tree.pairs().extend(pages, small.chain(large)).unwrap();
    tree.seal(pages).unwrap();
    pages.commit();
    tree
}

/// An insert reads one path of the table and one path of the key's set; for an existing pair it copies nothing.
#[test]
fn pair_insert_takes_one_descent() {
    let mut pages = ScratchPages::new(4096);
    let mut tree = committed(&mut pages);
    let height = u64::from(tree.height());
    let large = 9999u64.to_be_bytes();
    let set = tree.find_payload(&pages, &large).unwrap().unwrap();
    let set = Tree::decode_nested_root(&set.payload, 5, 4096, 0).unwrap();
    assert_eq!((height, set.height()), (2, 2));
    let within = |key: &[u8; 8]| height + if *key == large { 2 } else { 0 };

    let there = [
        (40u64.to_be_bytes(), (200u64 << 20).to_be_bytes()),
        (large, (7u64 << 20).to_be_bytes()),
    ];
    for (key, value) in there {
        let before = read(&pages);
        assert!(!tree.pairs().insert(&mut pages, &key, &value).unwrap());
        assert_eq!(read(&pages) - before, within(&key));
    }
    let copied = pages.pages_allocated();
    assert!(pages.live_pages() == copied, "nothing was copied");

    let new = [
        (40u64.to_be_bytes(), [9; 8]),
        (41u64.to_be_bytes(), [9; 8]),
        (large, [9; 8]),
    ];
    for (key, value) in new {
        let before = read(&pages);
        assert!(tree.pairs().insert(&mut pages, &key, &value).unwrap());
        assert_eq!(read(&pages) - before, within(&key));
    }
}

/// An append after the last pair reads nothing, in the table or in the set of its last key.
#[test]
#[cfg_attr(miri, ignore = "tens of thousands of pairs, counted")]
fn ascending_pairs_need_no_descent() {
    let mut pages = ScratchPages::new(4096);
    let mut tree = committed(&mut pages);
    let mut cursor = AppendCursor::default();
    let mut append = |tree: &mut Tree, pages: &mut ScratchPages, key: u64, value: u64| {
        let (key, value) = (key.to_be_bytes(), value.to_be_bytes());
        let at = POSITIONS[usize::from(value[7] % 3)];
        let mut pairs = tree.pairs();
        let done = pairs.insert_hinted(pages, &mut cursor, (&key, &value), at);
        assert!(done.unwrap());
    };
    for key in 10_000..10_003 {
        append(&mut tree, &mut pages, key, 1);
    }
    // Keys with few values: each full leaf costs a descent, and a search for the new last leaf.
    let (before, pages_before) = (read(&pages), pages.pages_allocated());
    for n in 0..5_000 {
        append(&mut tree, &mut pages, 20_000 + n / 10, n);
    }
    let leaves = pages.pages_allocated() - pages_before;
    let once = read(&pages) - before;
    assert!(
        leaves > 10 && once <= 8 * leaves,
        "{once} pages read, {leaves} leaves"
    );

    // One key with many values: the same cost in the set of this key.
    let (before, pages_before) = (read(&pages), pages.pages_allocated());
    for n in 0..20_000 {
        append(&mut tree, &mut pages, 30_000, n << 20);
    }
    let leaves = pages.pages_allocated() - pages_before;
    let once = read(&pages) - before;
    // The set is small at first, and a set with pages of its own begins with two descents.
    assert!(
        leaves > 50 && once <= 8 * leaves + 20,
        "{once} pages read, {leaves} leaves"
    );
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
}

/// Number of bytes of pages per pair, for pairs inserted in bulk (`at_once`) or singly.
fn bytes_a_pair(pairs: &[([u8; 8], [u8; 8])], at_once: bool) -> f64 {
    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new_multi(5);
    if at_once {
        let before = read(&pages);
        tree.pairs()
            .extend(&mut pages, pairs.iter().copied())
            .unwrap();
        // For each full page only a few pages are read: the branches above the page.
        let once = read(&pages) - before;
        assert!(once < 8 * pages.live_pages(), "{once} pages read");
    } else {
        for (key, value) in pairs {
            tree.pairs().insert(&mut pages, key, value).unwrap();
        }
    }
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    assert_eq!(tree.len(), pairs.len() as u64);
    pages.live_pages() as f64 * 4096.0 / pairs.len() as f64
}

/// Checks the figures in docs/parity/libmdbx.md under S7.
#[test]
#[cfg_attr(miri, ignore = "hundreds of thousands of pairs, counted")]
fn sets_of_eight_byte_values_have_the_documented_size() {
    let mut rng = Rng::new(3);
    let mut random: Vec<u64> = (0..100_000).map(|_| rng.below(u64::MAX)).collect();
    let one_key = |values: &[u64]| {
        let pair = |value: &u64| ([1; 8], value.to_be_bytes());
        values.iter().map(pair).collect::<Vec<_>>()
    };
    let scattered = bytes_a_pair(&one_key(&random), false);
    random.sort_unstable();
    let sorted = bytes_a_pair(&one_key(&random), true);
    let counted: Vec<u64> = (0..100_000).collect();
    let close = bytes_a_pair(&one_key(&counted), true);
    let ten: Vec<_> = (0..100_000u64)
        .map(|n| ((n / 10).to_be_bytes(), random[n as usize].to_be_bytes()))
        .collect();
    let small = [true, false].map(|at_once| bytes_a_pair(&ten, at_once));
    let about = |found: f64, said: f64| (found - said).abs() < 0.1;
    assert!(
        about(sorted, 16.2) && about(close, 10.4),
        "{sorted} {close}"
    );
    assert!(about(scattered, 20.5), "{scattered}");
    assert!(small.iter().all(|bytes| about(*bytes, 9.7)), "{small:?}");
}

/// Pairs before an error stay, whether their source fails or a pair is invalid.
#[test]
fn pairs_before_a_failure_of_the_source_stay() {
    let long = vec![0; crate::KEY_BYTES_MAX + 1];
    for count in [0, 1, 50, 3000u32] {
        for (key, value) in [(&b"z"[..], &long[..]), (&long, b"v")] {
            let mut pages = ScratchPages::new(512);
            let mut tree = Tree::new_multi(5);
            let failed = tree.pairs().extend_lent(&mut pages, |put| {
                (0..count).try_for_each(|n| put(&(n / 200).to_be_bytes(), &n.to_be_bytes()))?;
                put(key, value)
            });
            assert!(matches!(failed, Err(Error::Limit { .. })));
            let mut model = Sets::new();
            for n in 0..count {
                put(
                    &mut model,
                    ((n / 200).to_be_bytes().to_vec(), n.to_be_bytes().to_vec()),
                );
            }
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            assert_pairs(&tree, &pages, &model);
        }
    }
}
