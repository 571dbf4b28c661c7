//! Tests the read-ahead of a scan if the kernel reads each page alone: every leaf is requested before it is read, and
//! few leaves are requested in vain.

use super::{Seed, check_all};
use crate::Tree;
use std::cell::RefCell;
use std::collections::BTreeSet;
use tidalite_pager::{Counters, Kind, PageRead, PageRef, Ptr, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// A reader that acts as if the kernel read each page alone; it records the requested pages, and the pages read without
/// a request.
struct Alone<'a> {
    pages: &'a ScratchPages,
    asked: RefCell<BTreeSet<u64>>,
    calls: RefCell<u64>,
    waited: RefCell<BTreeSet<u64>>,
    /// True if the scan never turns, so that no page may be requested twice.
    once: bool,
    /// Addresses of the leaves read as part of a sequential range, in order; `None` if this reader does not distinguish
    /// sequential ranges.
    sequential: Option<RefCell<Vec<u64>>>,
}

impl<'a> Alone<'a> {
    fn new(pages: &'a ScratchPages, once: bool) -> Self {
        Self {
            pages,
            asked: RefCell::default(),
            calls: RefCell::default(),
            waited: RefCell::default(),
            once,
            sequential: None,
        }
    }

    /// Creates a reader with kernel readahead in sequential ranges.
    fn with_sequential_ranges(pages: &'a ScratchPages) -> Self {
        Self {
            sequential: Some(RefCell::default()),
            ..Self::new(pages, false)
        }
    }

    fn sequential(&self) -> Vec<u64> {
        self.sequential
            .as_ref()
            .map_or_else(Vec::new, |read| read.borrow().clone())
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

    fn reads_single_pages(&self) -> bool {
        true
    }

    fn reads_ahead_in_order(&self) -> bool {
        self.sequential.is_some()
    }

    fn page_in_order(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        let read = self
            .sequential
            .as_ref()
            .expect("sequential_ranges are read here");
        if ptr.kind == Kind::KvLeaf {
            read.borrow_mut().push(ptr.addr);
        }
        self.pages.page(ptr)
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
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn scan_requests_every_leaf_in_advance() {
    for (in_order, forward) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut pages = ScratchPages::new(4096);
        let mut rng = Rng::new(11);
        let tree = table(&mut pages, ROWS, (!in_order).then_some(&mut rng));
        let alone = Alone::new(&pages, true);
        assert_eq!(walk(&tree, &alone, forward), ROWS);
        let waited = alone.waited.borrow().len();
        // The pages of the path to the first leaf, and the second branch, which could not be requested earlier.
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

/// Number of rows that fill 26 MiB of leaves.
const LONG_ROWS: u64 = 120_000;

/// The greatest distance between two leaves of sequential ranges that were read one after the other.
fn farthest(sequential: &[u64]) -> u64 {
    let pairs = sequential.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
    pairs.max().unwrap_or_default()
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn long_sequential_scan_uses_kernel_readahead() {
    let mut pages = ScratchPages::new(4096);
    let tree = table(&mut pages, LONG_ROWS, None);
    let alone = Alone::with_sequential_ranges(&pages);
    assert_eq!(walk(&tree, &alone, true), LONG_ROWS);
    let (waited, asked) = (alone.waited.borrow().len(), alone.asked.borrow().len());
    assert!(
        waited <= usize::from(tree.height()) + 1,
        "{waited} pages waited for"
    );
    // Pages requested one by one: the leaves of the first 16 MiB, and the branches.
    assert!((4096..4500).contains(&asked), "{asked} pages asked for");
    let sequential = alone.sequential();
    assert!(
        sequential.len() > 2000,
        "{} leaves of sequential_ranges",
        sequential.len()
    );
    assert!(
        farthest(&sequential) < 64 << 10,
        "{}",
        farthest(&sequential)
    );
    let both = sequential
        .iter()
        .filter(|leaf| alone.asked.borrow().contains(leaf));
    assert_eq!(both.count(), 0, "asked for, and read by the system as well");
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn scattered_leaves_are_requested_without_kernel_readahead() {
    let mut pages = ScratchPages::new(4096);
    let mut tree = table(&mut pages, LONG_ROWS, None);
    let mut rng = Rng::new(3);
    for _ in 0..150 {
        let key = rng.below(LONG_ROWS).to_be_bytes();
        tree.insert(&mut pages, &key, &[8; 200]).unwrap();
    }
    tree.seal(&mut pages).unwrap();
    pages.commit();
    let alone = Alone::with_sequential_ranges(&pages);
    assert_eq!(walk(&tree, &alone, true), LONG_ROWS);
    let waited = alone.waited.borrow().len();
    assert!(
        waited <= usize::from(tree.height()) + 1,
        "{waited} pages waited for"
    );
    let sequential = alone.sequential();
    assert!(
        sequential.len() > 1800,
        "{} leaves of sequential_ranges",
        sequential.len()
    );
    assert!(
        farthest(&sequential) < 128 << 10,
        "{}",
        farthest(&sequential)
    );
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn short_random_and_backward_scans_use_no_kernel_readahead() {
    for (in_order, forward, rows) in [(true, false, LONG_ROWS), (false, true, LONG_ROWS)] {
        let mut pages = ScratchPages::new(4096);
        let mut rng = Rng::new(5);
        let tree = table(&mut pages, rows, (!in_order).then_some(&mut rng));
        let alone = Alone::with_sequential_ranges(&pages);
        assert_eq!(walk(&tree, &alone, forward), rows);
        assert_eq!(alone.sequential(), [], "in order: {in_order}");
        assert!(alone.waited.borrow().len() <= usize::from(tree.height()) + 1);
        // Each scan covers 13 MiB of leaves and then begins elsewhere: too short for kernel readahead.
        let mut cursor = tree.cursor(&alone);
        for _ in 0..3 {
            let at = rng.below(rows - 60_000);
            assert!(cursor.seek_ge(&at.to_be_bytes()).unwrap());
            (0..60_000).for_each(|_| assert!(cursor.next().unwrap()));
        }
        assert_eq!(alone.sequential(), [], "in order: {in_order}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn short_range_requests_few_unneeded_leaves() {
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
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn all_ways_to_read_give_the_same_rows() {
    for number in 0..16 {
        let seed = Seed::of(number, 4096);
        turns(number);
        seed.passed();
    }
}

/// Runs scans from random positions in changing directions.
fn turns(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut pages = ScratchPages::new(4096);
    let tree = table(&mut pages, ROWS, seed.is_multiple_of(2).then_some(&mut rng));
    let alone = match seed % 4 {
        0 | 1 => Alone::new(&pages, false),
        _ => Alone::with_sequential_ranges(&pages),
    };
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
