//! Compares random operations in several transactions with a `BTreeMap`; old snapshots must stay unchanged.

use super::{check_all, few, random_key, random_value};
use crate::Tree;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use tidalite_pager::PageRead;
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{ScratchPages, ScratchSnapshot};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

struct Harness {
    rng: Rng,
    pages: ScratchPages,
    tree: Tree,
    model: Model,
    old: Vec<(ScratchSnapshot, Tree, Model)>,
}

impl Harness {
    fn new(seed: u64, page_size: usize) -> Self {
        Self {
            rng: Rng::new(seed),
            pages: ScratchPages::new(page_size),
            tree: Tree::new(seed + 1),
            model: Model::new(),
            old: Vec::new(),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        // Half of the chosen keys exist.
        if !self.model.is_empty() && self.rng.one_in(2) {
            let near = random_key(&mut self.rng, self.pages.page_size());
            if let Some((key, _)) = self.model.range(near..).next() {
                return key.clone();
            }
        }
        random_key(&mut self.rng, self.pages.page_size())
    }

    /// Runs one random operation; `growth` is the percentage of inserts among inserts and removals.
    fn step(&mut self, growth: u64) {
        let page_size = self.pages.page_size();
        match self.rng.below(200) {
            0 if self.rng.one_in(20) => {
                self.tree.clear(&mut self.pages).unwrap();
                self.model.clear();
            }
            1 => {
                let (a, b) = (self.key(), self.key());
                let doomed: Vec<_> = match a < b {
                    true => self.model.range(a.clone()..b.clone()).take(40).collect(),
                    false => Vec::new(),
                };
                let b = doomed.last().map_or(b, |(key, _)| (*key).clone());
                let expected = doomed.len().saturating_sub(1) as u64;
                let removed = self.tree.remove_range(&mut self.pages, &a, &b).unwrap();
                assert_eq!(removed, expected);
                self.model.retain(|key, _| !(a <= *key && *key < b));
            }
            2 => {
                let mut rows: Model = (0..self.rng.index(200))
                    .map(|_| {
                        let key = random_key(&mut self.rng, page_size);
                        (key, random_value(&mut self.rng, page_size))
                    })
                    .collect();
                let new = rows.keys().filter(|key| !self.model.contains_key(*key));
                let new = new.count() as u64;
                assert_eq!(self.tree.append(&mut self.pages, &rows).unwrap(), new);
                self.model.append(&mut rows);
            }
            _ => {
                let key = self.key();
                if self.rng.below(100) < growth {
                    let value = random_value(&mut self.rng, page_size);
                    let was = self.tree.insert(&mut self.pages, &key, &value).unwrap();
                    assert_eq!(was, self.model.insert(key, value).is_some());
                } else {
                    let was = self.tree.remove(&mut self.pages, &key).unwrap();
                    assert_eq!(was, self.model.remove(&key).is_some());
                }
            }
        }
        assert_eq!(self.tree.len(), self.model.len() as u64);
    }

    /// Seeks near a random key with every relation, and steps in both directions.
    fn look(&mut self) {
        let key = self.key();
        let got = self.tree.get(&self.pages, &key).unwrap();
        let got = got.map(|value| value.to_vec().unwrap());
        assert_eq!(got.as_ref(), self.model.get(&key));

        let mut cursor = self.tree.cursor(&self.pages);
        let model = &self.model;
        let up = |bound| model.range((bound, Unbounded)).next();
        let down = |bound| model.range((Unbounded, bound)).next_back();
        let sides = [
            (cursor.seek_ge(&key).unwrap(), up(Included(key.clone()))),
            (cursor.seek_gt(&key).unwrap(), up(Excluded(key.clone()))),
            (cursor.seek_le(&key).unwrap(), down(Included(key.clone()))),
            (cursor.seek_lt(&key).unwrap(), down(Excluded(key.clone()))),
        ];
        assert!(sides.iter().all(|(there, row)| *there == row.is_some()));
        assert_eq!(cursor.seek(&key).unwrap(), model.contains_key(&key));
        cursor.seek_ge(&key).unwrap();
        let mut walk = model.range((Included(key.clone()), Unbounded));
        for _ in 0..self.rng.index(60) {
            let Some((k, v)) = walk.next() else {
                assert!(!cursor.is_at_row());
                break;
            };
            assert_eq!(cursor.key(), k);
            assert_eq!(&cursor.value().unwrap().to_vec().unwrap(), v);
            cursor.next().unwrap();
        }
        cursor.seek_le(&key).unwrap();
        let mut walk = model.range((Unbounded, Included(key.clone()))).rev();
        for _ in 0..self.rng.index(60) {
            let Some((k, _)) = walk.next() else {
                assert!(!cursor.is_at_row());
                break;
            };
            assert_eq!(cursor.key(), k);
            cursor.previous().unwrap();
        }

        assert_eq!(
            self.tree.rank(&self.pages, &key).unwrap(),
            model.range((Unbounded, Excluded(key.clone()))).count() as u64
        );
    }

    fn commit(&mut self) {
        self.tree.seal(&mut self.pages).unwrap();
        check_all(&self.tree, &self.pages);
        assert_eq!(Tree::decode(&self.tree.encode()).unwrap(), self.tree);
        if self.old.len() > 3 {
            let index = self.rng.index(self.old.len());
            let (snapshot, tree, model) = self.old.swap_remove(index);
            assert_same(&tree, &snapshot, &model);
        }
        let snapshot = self.pages.snapshot();
        self.old.push((snapshot, self.tree, self.model.clone()));
        self.pages.commit();
    }
}

/// Compares all rows, read forward, and all keys, read backward, with the model.
fn assert_same<R: PageRead>(tree: &Tree, pages: &R, model: &Model) {
    let mut rows = super::all_rows(tree, pages);
    for (key, value) in model {
        let (k, v) = rows.next().unwrap();
        assert_eq!(&k, key);
        assert_eq!(&v.to_vec().unwrap(), value);
    }
    assert!(rows.next().is_none());
    let mut cursor = tree.cursor(pages);
    let mut there = cursor.last().unwrap();
    for key in model.keys().rev() {
        assert!(there);
        assert_eq!(cursor.key(), key);
        there = cursor.previous().unwrap();
    }
    assert!(!there);
}

fn against_model(seed: u64, page_size: usize, transactions: usize, steps: usize) {
    let printed = super::Seed::of(seed, page_size);
    let mut run = Harness::new(seed, page_size);
    let mut heights = (u8::MAX, 0);
    let (transactions, steps) = if cfg!(miri) {
        (3, steps / 8)
    } else {
        (transactions, steps)
    };
    for transaction in 0..transactions {
        // The table grows, then shrinks to a few rows, repeatedly, which causes splits and merges at every level.
        let growth = if transaction % 8 < 5 { 85 } else { 8 };
        let before = (run.tree, run.model.clone());
        for _ in 0..run.rng.index(steps) {
            run.step(growth);
            if run.rng.one_in(8) {
                run.look();
            }
        }
        if run.rng.one_in(10) {
            run.pages.rollback();
            (run.tree, run.model) = before;
            check_all(&run.tree, &run.pages);
        } else {
            run.commit();
        }
        let height = run.tree.height();
        heights = (heights.0.min(height), heights.1.max(height));
    }
    let levels_min = if page_size == 512 { 2 } else { 1 };
    assert!(
        cfg!(miri) || heights.1 >= heights.0 + levels_min,
        "grew and shrank: {heights:?}"
    );
    for (snapshot, tree, model) in &run.old {
        assert_same(tree, snapshot, model);
    }
    run.tree.clear(&mut run.pages).unwrap();
    assert_eq!(run.pages.live_pages(), 0, "everything was freed");
    printed.passed();
}

#[test]
fn agrees_with_a_btreemap_in_the_smallest_pages() {
    for seed in 0..few(6) {
        against_model(seed, 512, 40, 400);
    }
}

#[test]
fn agrees_with_a_btreemap_in_ordinary_pages() {
    for seed in 100..100 + few(4) {
        against_model(seed, 4096, 32, 800);
    }
}

#[test]
#[cfg_attr(miri, ignore = "pages of 64 KiB and more, byte for byte")]
fn agrees_with_a_btreemap_in_large_pages() {
    against_model(200, 64 * 1024, 16, 600);
    against_model(201, 256 * 1024, 16, 600);
}
