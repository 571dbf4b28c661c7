//! The allocator against sets: what is free, used and held, page by page.

use super::base::{self, Base};
use super::ranges::{Changes, RangeSet};
use super::{Space, TxnSpace};
use crate::error::Error;
use crate::layout::first_page;
use crate::meta::Meta;
use crate::pages::PageRef;
use crate::ptr::Ptr;
use crate::verify_block;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PAGE: usize = 512;

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[derive(Default)]
struct Model {
    /// In use: page to birth.
    used: BTreeMap<u64, u64>,
    /// Dead: page to (birth, freed); forgotten when allocated again.
    dead: BTreeMap<u64, (u64, u64)>,
    /// Pages of the stored structure.
    structure: BTreeSet<u64>,
}

impl Model {
    fn is_held(&self, page: u64, live: &[u64]) -> bool {
        let dead = self.dead.get(&page);
        dead.is_some_and(|&(birth, freed)| live.iter().any(|&s| birth <= s && s < freed))
    }
}

struct World {
    space: Space,
    model: Model,
    file: RefCell<BTreeMap<u64, Vec<u8>>>,
    meta: Meta,
    txn: u64,
    readers: Vec<u64>,
    rng: Random,
}

impl World {
    fn new(seed: u64) -> Self {
        let pages = first_page(PAGE);
        Self {
            space: Space::new(PAGE, pages, Base::default(), [1, 1]),
            model: Model::default(),
            file: RefCell::default(),
            meta: Meta::first([0; 16], pages, 0),
            txn: 1,
            readers: Vec::new(),
            rng: Random(seed),
        }
    }

    fn live(&self) -> Vec<u64> {
        let mut live = self.readers.clone();
        live.push(self.txn);
        live.extend(self.space.durable);
        live.sort_unstable();
        live.dedup();
        live
    }

    fn take(&mut self, pages: u64, extent: bool) -> u64 {
        let found = if extent {
            self.space.take_extent(pages)
        } else {
            self.space.take_page()
        };
        found.unwrap_or_else(|| {
            let start = self.space.pages() - self.space.tail_free();
            let need = pages - self.space.tail_free().min(pages);
            let more = need + self.rng.below(40);
            self.space.grow(self.space.pages() + more);
            self.space.take_at(start, pages)
        })
    }

    fn alloc(&mut self, txn: &mut TxnSpace, pages: u64, extent: bool) -> u64 {
        let live = self.live();
        let page = self.take(pages, extent);
        for page in page..page + pages {
            assert!(
                !self.model.used.contains_key(&page),
                "page {page} is in use"
            );
            assert!(
                !self.model.structure.contains(&page),
                "page {page} is the structure's"
            );
            assert!(!self.model.is_held(page, &live), "page {page} is held");
        }
        assert!(txn.own.insert(page, pages));
        txn.own_pages += pages;
        page
    }

    fn transaction(&mut self) {
        let live = self.live();
        self.space.reclaim(&live);
        self.compare();
        let number = self.txn + 1;
        let mut txn = TxnSpace::default();
        let mut used = self.model.used.clone();
        let mut dead = self.model.dead.clone();
        let many = self.rng.below(8) == 0;
        for _ in 0..self.rng.below(if many { 150 } else { 6 }) {
            if self.rng.below(5) < 3 || used.is_empty() {
                let pages = match self.rng.below(12) {
                    0 => 1 + self.rng.below(400),
                    1..4 => 1 + self.rng.below(20),
                    _ => 1,
                };
                let extent = pages > 1 || self.rng.below(3) == 0;
                let page = self.alloc(&mut txn, pages, extent);
                for page in page..page + pages {
                    used.insert(page, number);
                    dead.remove(&page);
                }
                continue;
            }
            let index = self.rng.below(used.len() as u64) as usize;
            let Some((&page, &birth)) = used.iter().nth(index) else {
                continue;
            };
            used.remove(&page);
            if birth == number {
                assert!(txn.own.remove(page, 1));
                txn.own_pages -= 1;
                self.space.release(page, 1);
            } else {
                self.space.can_free(&txn, page, 1).unwrap();
                txn.free(page, 1, birth);
                assert!(self.space.can_free(&txn, page, 1).is_err());
                dead.insert(page, (birth, number));
            }
        }
        match self.rng.below(6) {
            0 => self.space.roll_back(&mut txn),
            1 | 2 => {
                let list = txn.dead(number);
                self.space.stage(&txn, &list);
                self.space.committed(number, list);
                (self.txn, self.model.used, self.model.dead) = (number, used, dead);
            }
            3 => {
                // A commit that fails while it writes.
                let list = txn.dead(number);
                let before = self.space.stage(&txn, &list);
                self.space.unstage(&txn, &list, before);
                self.space.roll_back(&mut txn);
            }
            _ => {
                (self.model.used, self.model.dead) = (used, dead);
                self.commit(txn, number);
                self.reload();
            }
        }
        if self.rng.below(3) == 0 {
            self.readers.push(self.txn);
        }
        if self.rng.below(3) == 0 && !self.readers.is_empty() {
            let index = self.rng.below(self.readers.len() as u64) as usize;
            self.readers.swap_remove(index);
        }
    }

    fn commit(&mut self, mut txn: TxnSpace, number: u64) {
        let mut list = txn.dead(number);
        self.space.stage(&txn, &list);
        let (mut pages, mut changes, mut pendings) = self.space.meta_lists();
        if self.space.needs_base() {
            let mut plan = self.space.plan_base(number);
            let page = self.alloc(&mut txn, plan.pages(), true);
            let replaced = std::mem::take(&mut plan.dead);
            let file = self.file.borrow().clone();
            let old = |ptr: &Ptr| Ok(file[&ptr.addr].clone());
            let new = self.space.build_base(plan, page, &old).unwrap();
            for (i, bytes) in new.bytes.chunks(PAGE).enumerate() {
                let at = (page + i as u64) * PAGE as u64;
                self.file.borrow_mut().insert(at, bytes.to_vec());
            }
            self.meta.free_root = new.root();
            pages = new.meta_pages;
            (changes, pendings) = (new.meta_changes.clone(), new.meta_pendings.clone());
            self.space.install_base(new, &replaced);
            for range in &replaced {
                for page in range.page..range.page + range.pages {
                    assert!(self.model.structure.remove(&page));
                    self.model.dead.insert(page, (range.birth, number));
                }
            }
            list.extend(replaced);
            let pages = self.space.base().pages().map(|ptr| ptr.addr / PAGE as u64);
            self.model.structure = pages.collect();
        }
        self.meta.txn = number;
        self.meta.pages = pages;
        (self.meta.changes, self.meta.pendings) = (changes, pendings);
        self.space.durable_committed(number);
        self.space.committed(number, list);
        self.txn = number;
    }

    fn load(&self) -> Result<Space, Error> {
        let read = |ptr: &Ptr| {
            let bytes: Arc<[u8]> = self.file.borrow()[&ptr.addr].clone().into();
            verify_block(&bytes, ptr)?;
            Ok(PageRef::Owned(bytes))
        };
        base::load(PAGE, &self.meta, self.space.durable[1], &read)
    }

    /// What is stored must mean: free is what neither of the two newest durable states needs.
    fn reload(&self) {
        let mut stored = self.load().unwrap();
        let live = self.space.durable;
        let mut free = BTreeSet::new();
        stored.for_each_free(|page| {
            free.insert(page);
        });
        for page in first_page(PAGE)..self.meta.pages {
            let in_use = self.model.used.contains_key(&page)
                || self.model.structure.contains(&page)
                || self.model.is_held(page, &live);
            assert_eq!(!in_use, free.contains(&page), "page {page} as stored");
        }
        let beyond = self.meta.pages..;
        assert!(self.model.used.range(beyond.clone()).next().is_none());
        assert!(self.model.structure.range(beyond.clone()).next().is_none());
        assert!(
            beyond
                .take(2000)
                .all(|page| !self.model.is_held(page, &live))
        );
    }

    fn compare(&mut self) {
        let live = self.live();
        let mut free = BTreeSet::new();
        self.space.for_each_free(|page| {
            free.insert(page);
        });
        assert_eq!(free.len() as u64, self.space.free_pages());
        for page in first_page(PAGE)..self.space.pages() {
            let in_use = self.model.used.contains_key(&page)
                || self.model.structure.contains(&page)
                || self.model.is_held(page, &live);
            assert_eq!(!in_use, free.contains(&page), "page {page}");
        }
    }
}

#[test]
fn the_allocator_agrees_with_sets() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..150 {
            world.transaction();
        }
        assert!(world.space.pages() > 100);
    }
}

#[test]
fn ranges_agree_with_sets() {
    let mut rng = Random(1);
    let mut ranges = RangeSet::default();
    let mut set = BTreeSet::new();
    let mut changes = Changes::default();
    let mut states = BTreeMap::new();
    for _ in 0..20_000 {
        let (page, pages) = (rng.below(300), 1 + rng.below(12));
        let span = page..page + pages;
        if rng.below(2) == 0 {
            let added = span.clone().all(|page| !set.contains(&page));
            assert_eq!(ranges.insert(page, pages), added);
            if added {
                set.extend(span.clone());
            }
        } else {
            let removed = span.clone().all(|page| set.contains(&page));
            assert_eq!(ranges.remove(page, pages), removed);
            set.retain(|page| !(removed && span.contains(page)));
        }
        let all: BTreeSet<u64> = ranges.iter().flat_map(|(at, n)| at..at + n).collect();
        assert_eq!(all, set);
        let used = rng.below(2) == 0;
        changes.set(page, pages, used);
        states.extend(span.map(|page| (page, used)));
        let listed = changes.to_vec();
        let all: BTreeMap<u64, bool> = listed
            .iter()
            .flat_map(|change| (change.page..change.page + change.pages).map(|p| (p, change.used)))
            .collect();
        assert_eq!(all, states);
        assert_eq!(listed.len(), changes.len());
        let touching = |pair: &[crate::meta::Change]| {
            pair[0].page + pair[0].pages == pair[1].page && pair[0].used == pair[1].used
        };
        assert!(!listed.windows(2).any(touching), "neighbours are joined");
    }
}

#[test]
fn a_damaged_structure_is_a_typed_error() {
    let mut world = World::new(3);
    for _ in 0..120 {
        world.transaction();
    }
    let mut rng = Random(9);
    let whole = world.file.borrow().clone();
    let meta = world.meta.clone();
    let mut damaged = 0;
    for _ in 0..2000 {
        world.file.replace(whole.clone());
        world.meta = meta.clone();
        match rng.below(3) {
            0 => {
                let mut file = world.file.borrow_mut();
                let index = rng.below(file.len() as u64) as usize;
                let Some(page) = file.values_mut().nth(index) else {
                    continue;
                };
                page[rng.below(PAGE as u64) as usize] ^= 1 << rng.below(8);
            }
            1 => world.meta.pages = rng.below(world.meta.pages),
            _ => {
                for change in &mut world.meta.changes {
                    change.page ^= rng.below(4) << rng.below(60);
                }
            }
        }
        damaged += u64::from(world.load().is_err());
    }
    assert!(damaged > 100);
}
