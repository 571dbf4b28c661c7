//! Compares a table in which rows ascend in many places at once with a model. Ascending rows must
//! fill the leaves that they leave, whatever other operations come in between.

use super::{Seed, all_rows, check_all, few};
use crate::Tree;
use std::collections::BTreeMap;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key_of(place: u64, row: u64) -> Vec<u8> {
    [place.to_be_bytes(), row.to_be_bytes()].concat()
}

fn check_rows(tree: &Tree, pages: &ScratchPages, model: &Model) {
    check_all(tree, pages);
    let rows: Vec<_> = all_rows(tree, pages).collect();
    assert_eq!(rows.len(), model.len());
    for ((key, value), expected) in rows.into_iter().zip(model) {
        assert_eq!((&key, &value.to_vec().unwrap()), expected);
    }
}

/// Fill of the pages (bytes of rows divided by bytes of pages) of a table with rows that ascend in many places.
fn filled(places: u64, rows: u64, page_size: usize, transactions: u64) -> f64 {
    let mut pages = ScratchPages::new(page_size);
    let (mut tree, mut model) = (Tree::new(1), Model::new());
    for row in 0..rows {
        for place in 0..places {
            let (key, value) = (key_of(place, row), vec![place as u8; 16]);
            assert!(!tree.insert(&mut pages, &key, &value).unwrap());
            model.insert(key, value);
        }
        if row % (rows / transactions) == 0 {
            tree.seal(&mut pages).unwrap();
            pages.commit();
        }
    }
    tree.seal(&mut pages).unwrap();
    check_rows(&tree, &pages, &model);
    // Adds the bytes of the slot, of the two lengths, of the value, and of the key's suffix.
    let bytes_of_a_row = 6 + 2 + 16 + 2;
    let used = places * rows * bytes_of_a_row;
    used as f64 / (pages.live_pages() as f64 * page_size as f64)
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn ascending_inserts_at_many_positions_fill_leaves() {
    for (places, rows, page_size, least) in [
        (40, 1500, 4096, 0.8),
        (40, 6000, 4096, 0.9),
        (7, 3000, 1024, 0.85),
    ] {
        let filled = filled(places, rows, page_size, 10);
        assert!(
            filled > least,
            "{places} places, {page_size} B pages: {filled}"
        );
    }
}

#[test]
fn ascending_inserts_among_random_ones_agree_with_a_model() {
    for (seed, page_size) in [(1, 512), (2, 1024), (3, 4096), (4, 512), (5, 4096)] {
        let printed = Seed::of(seed, page_size);
        let mut rng = Rng::new(seed);
        let mut pages = ScratchPages::new(page_size);
        let (mut tree, mut model) = (Tree::new(seed), Model::new());
        let mut next = [0u64; 12];
        for step in 0..few(12_000) {
            match rng.below(100) {
                0..2 => {
                    // A late row or a repeated key, which falls into the middle of full leaves.
                    let place = rng.index(next.len());
                    let key = key_of(place as u64, rng.below(next[place].max(1)));
                    let value = vec![step as u8; rng.index(40)];
                    let was = tree.insert(&mut pages, &key, &value).unwrap();
                    assert_eq!(was, model.insert(key, value).is_some());
                }
                2..5 => {
                    let place = rng.index(next.len());
                    let key = key_of(place as u64, rng.below(next[place].max(1)));
                    let was = tree.remove(&mut pages, &key).unwrap();
                    assert_eq!(was, model.remove(&key).is_some());
                }
                5 => {
                    tree.seal(&mut pages).unwrap();
                    pages.commit();
                }
                _ => {
                    // Several rows of one place, as a sensor sends them, with gaps that late rows fill.
                    let place = rng.index(next.len());
                    for _ in 0..1 + rng.below(9) {
                        let key = key_of(place as u64, next[place]);
                        next[place] += 1 + rng.below(3);
                        let value = vec![place as u8; rng.index(40)];
                        tree.insert(&mut pages, &key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
            }
            assert_eq!(tree.len(), model.len() as u64);
        }
        tree.seal(&mut pages).unwrap();
        check_rows(&tree, &pages, &model);
        printed.passed();
    }
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn random_inserts_are_not_taken_for_ascending() {
    let mut rng = Rng::new(9);
    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    let rows = 40_000u64;
    for _ in 0..rows {
        tree.insert(&mut pages, &rng.u64().to_be_bytes(), &[1; 8])
            .unwrap();
    }
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    let full = rows * (6 + 2 + 8 + 7) / (4096 - 64);
    let pages = pages.live_pages();
    assert!(pages < full * 4 / 3, "{pages} pages, {full} full leaves");
}

/// Fill of the pages (bytes of rows divided by bytes of pages) of a table with bursts of ascending rows, each burst in
/// another place.
fn filled_by_bursts(burst: u64, value_bytes: usize) -> f64 {
    let mut rng = Rng::new(burst);
    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    let bursts = 40_000 / burst;
    for _ in 0..bursts {
        let place = rng.u64();
        for row in 0..burst {
            let key = [place.to_be_bytes(), row.to_be_bytes()].concat();
            tree.insert(&mut pages, &key, &vec![1; value_bytes])
                .unwrap();
        }
    }
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    let bytes_of_a_row = (6 + 2 + 15 + value_bytes) as u64;
    (bursts * burst * bytes_of_a_row) as f64 / (pages.live_pages() * 4096) as f64
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn rows_of_one_call_are_not_taken_for_ascending() {
    for (burst, value_bytes) in [(3, 16), (6, 16), (10, 16), (10, 100), (25, 16)] {
        let filled = filled_by_bursts(burst, value_bytes);
        assert!(filled > 0.68, "{burst} rows at a time: {filled}");
    }
}
