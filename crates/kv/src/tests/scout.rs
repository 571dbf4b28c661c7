//! What a walk asks for ahead where pages are read alone: every leaf before it is read, and little in vain.

use super::{Seed, check_all};
use crate::Tree;
use std::cell::RefCell;
use std::collections::BTreeSet;
use tidalite_pager::{Counters, PageRead, PageRef, Ptr, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// Pages that are read alone; what was asked for, and what was read without having been.
struct Alone<'a> {
    pages: &'a ScratchPages,
    asked: RefCell<BTreeSet<u64>>,
    calls: RefCell<u64>,
    waited: RefCell<BTreeSet<u64>>,
    /// Nobody turns, so nothing is asked for again.
    once: bool,
}

impl<'a> Alone<'a> {
    fn new(pages: &'a ScratchPages, once: bool) -> Self {
        Self {
            pages,
            asked: RefCell::default(),
            calls: RefCell::default(),
            waited: RefCell::default(),
            once,
        }
    }
}

impl PageRead for Alone<'_> {
    fn page_size(&self) -> usize {
        self.pages.page_size()
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        if !self.asked.borrow().contains(&ptr.addr) {
            self.waited.borrow_mut().insert(ptr.addr);
        }
        self.pages.page(ptr)
    }

    fn reads_alone(&self) -> bool {
        true
    }

    fn read_ahead(&self, addr: u64, bytes: u64) {
        assert!(bytes > 0, "nothing is asked for");
        *self.calls.borrow_mut() += 1;
        for page in (addr..addr + bytes).step_by(self.page_size()) {
            let new = self.asked.borrow_mut().insert(page);
            assert!(new || !self.once, "asked for twice: {page}");
        }
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        self.pages.block(ptr)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        self.pages.bytes(addr, len)
    }

    fn counters(&self) -> &Counters {
        self.pages.counters()
    }
}

const ROWS: u64 = 12_000;

/// A table of three levels, filled in order or at random.
fn table(pages: &mut ScratchPages, rows: u64, rng: Option<&mut Rng>) -> Tree {
    let mut keys: Vec<u64> = (0..rows).collect();
    if let Some(rng) = rng {
        for at in (1..keys.len()).rev() {
            keys.swap(at, rng.index(at + 1));
        }
    }
    let mut tree = Tree::new(1);
    for key in keys {
        tree.insert(pages, &key.to_be_bytes(), &[7; 200]).unwrap();
    }
    tree.seal(pages).unwrap();
    pages.commit();
    check_all(&tree, pages);
    assert!(tree.height() >= 3, "{} levels", tree.height());
    tree
}

fn walk(tree: &Tree, pages: &Alone<'_>, forward: bool) -> u64 {
    let (mut cursor, mut rows) = (tree.cursor(pages), 0);
    let mut more = if forward {
        cursor.first()
    } else {
        cursor.last()
    }
    .unwrap();
    while more {
        let expected = if forward { rows } else { tree.rows - 1 - rows };
        assert_eq!(cursor.key(), expected.to_be_bytes());
        rows += 1;
        more = if forward {
            cursor.next()
        } else {
            cursor.previous()
        }
        .unwrap();
    }
    rows
}

#[test]
fn a_walk_asks_for_every_leaf_before_it_comes() {
    for (in_order, forward) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut pages = ScratchPages::new(4096);
        let mut rng = Rng::new(11);
        let tree = table(&mut pages, ROWS, (!in_order).then_some(&mut rng));
        let alone = Alone::new(&pages, true);
        assert_eq!(walk(&tree, &alone, forward), ROWS);
        let waited = alone.waited.borrow().len();
        // The way to the first leaf, and the second branch, which is not known to be needed before.
        assert!(
            waited <= usize::from(tree.height()) + 1,
            "{waited} pages waited for"
        );
        let (asked, calls) = (alone.asked.borrow().len(), *alone.calls.borrow());
        assert!(asked > 600, "{asked} pages");
        if in_order {
            assert!(
                calls < 60,
                "{calls} calls for {asked} pages that lie side by side"
            );
        }
    }
}

#[test]
fn a_short_range_asks_for_little_in_vain() {
    let mut pages = ScratchPages::new(4096);
    let tree = table(&mut pages, ROWS, None);
    for rows in [10, 20, 40, 100] {
        let alone = Alone::new(&pages, true);
        let mut cursor = tree.cursor(&alone);
        assert!(cursor.seek_ge(&5_432u64.to_be_bytes()).unwrap());
        (0..rows).for_each(|_| assert!(cursor.next().unwrap()));
        let (asked, leaves) = (alone.asked.borrow().len(), rows / 18 + 1);
        assert!(
            asked <= 3 * leaves + 2,
            "{asked} of {leaves} leaves, {rows} rows"
        );
    }
}

#[test]
fn rows_are_the_same_whatever_the_way() {
    for number in 0..16 {
        let seed = Seed::of(number, 4096);
        turns(number);
        seed.passed();
    }
}

/// Walks from random places, some steps in a direction, then in one again.
fn turns(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut pages = ScratchPages::new(4096);
    let tree = table(&mut pages, ROWS, seed.is_multiple_of(2).then_some(&mut rng));
    let alone = Alone::new(&pages, false);
    let mut cursor = tree.cursor(&alone);
    for _ in 0..10 {
        let mut at = rng.below(ROWS);
        assert!(cursor.seek(&at.to_be_bytes()).unwrap());
        for _ in 0..rng.index(8) {
            let forward = rng.below(2) == 0;
            let left = if forward { ROWS - 1 - at } else { at };
            for _ in 0..rng.below(700).min(left) {
                let there = if forward {
                    at += 1;
                    cursor.next()
                } else {
                    at -= 1;
                    cursor.previous()
                };
                assert!(there.unwrap());
                assert_eq!(cursor.key(), at.to_be_bytes());
            }
        }
    }
}
