//! Tests of the allocator against a model: sets of free, used and held pages, compared page by page.

use super::base::Base;
use super::build::Built;
use super::free_space::Space;
use super::lists::{List, cut, ranges_per_list};
use super::ranges::{Changes, RangeSet};
use super::reclaim::walk;
use super::{LISTS_PER_COMMIT, TxnSpace};
use crate::error::Error;
use crate::format::header::verify_block;
use crate::format::layout::first_page;
use crate::format::meta::{FreedRange, Meta, fit};
use crate::format::pages::PageRef;
use crate::format::ptr::Ptr;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PAGE: usize = 512;

/// Random number generator (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[derive(Clone, Default)]
struct Model {
    /// Used pages: maps the page number to the birth of the page.
    used: BTreeMap<u64, u64>,
    /// Freed pages: maps the page number to birth and freeing transaction. A page is removed when it is allocated
    /// again.
    freed_ranges: BTreeMap<u64, (u64, u64)>,
    /// Pages of the free-space structure in the file.
    structure: BTreeSet<u64>,
}

impl Model {
    fn is_held(&self, page: u64, live: &[u64]) -> bool {
        let freed_ranges = self.freed_ranges.get(&page);
        freed_ranges.is_some_and(|&(birth, freed)| live.iter().any(|&s| birth <= s && s < freed))
    }
}

struct World {
    space: Space,
    model: Model,
    /// The model as it was at the newest meta record.
    stored: Model,
    restarts: u64,
    waited: u64,
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
            stored: Model::default(),
            restarts: 0,
            waited: 0,
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

    fn read(file: &RefCell<BTreeMap<u64, Vec<u8>>>, ptr: &Ptr) -> Result<PageRef<'static>, Error> {
        let bytes: Arc<[u8]> = file.borrow()[&ptr.addr].clone().into();
        verify_block(&bytes, ptr)?;
        Ok(PageRef::Owned(bytes))
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
        if self.rng.below(12) == 0 {
            self.restart();
        }
        self.space.begin_free_range(false);
        let live = self.live();
        // Often takes fewer list pages than could be reclaimed.
        let lists_max = self.rng.below(5) as usize;
        let file = &self.file;
        let taken = self
            .space
            .reclaim(&live, lists_max, &|ptr| Self::read(file, ptr));
        assert!(taken <= lists_max);
        self.compare();
        let number = self.txn + 1;
        let mut txn = TxnSpace::default();
        let mut used = self.model.used.clone();
        let mut freed_ranges = self.model.freed_ranges.clone();
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
                    freed_ranges.remove(&page);
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
                freed_ranges.insert(page, (birth, number));
            }
        }
        match self.rng.below(6) {
            0 => self.space.roll_back(&mut txn),
            1 | 2 => {
                let list = txn.freed_ranges(number);
                self.space.stage(&txn);
                self.space.committed(number, &list);
                (self.txn, self.model.used, self.model.freed_ranges) = (number, used, freed_ranges);
            }
            3 => {
                // Simulates a commit that fails while it is writing.
                let list = txn.freed_ranges(number);
                self.space.stage(&txn);
                let built = self.build(&mut txn, number, &list);
                drop(built);
                self.space.unstage(&txn);
                self.space.roll_back(&mut txn);
            }
            _ => {
                (self.model.used, self.model.freed_ranges) = (used, freed_ranges);
                self.commit(txn, number);
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

    /// Plans the free-space part of a commit, allocates its pages in up to as many extents as the plan allows, and
    /// builds the pages.
    fn build(&mut self, txn: &mut TxnSpace, number: u64, freed_ranges: &[FreedRange]) -> Built {
        let live = self.live();
        let file = self.file.clone();
        let read = |ptr: &Ptr| Self::read(&file, ptr);
        let plan = self.space.plan(number, freed_ranges, &live, &read);
        let (mut left, mut pieces) = (plan.pages(), Vec::new());
        while left > 0 {
            let most = pieces.len() + 1 == plan.pieces_max() || self.rng.below(3) > 0;
            let pages = if most { left } else { 1 + self.rng.below(left) };
            pieces.push((self.alloc(txn, pages, true), pages));
            left -= pages;
        }
        assert!(pieces.len() <= plan.pieces_max() || pieces.is_empty());
        self.space.build(plan, pieces, &read).unwrap()
    }

    fn commit(&mut self, mut txn: TxnSpace, number: u64) {
        let list = txn.freed_ranges(number);
        self.space.stage(&txn);
        let live = self.live();
        let built = self.build(&mut txn, number, &list);
        let mut own = BTreeSet::new();
        for (at, bytes) in &built.writes {
            for (i, page) in bytes.chunks(PAGE).enumerate() {
                let at = at + (i * PAGE) as u64;
                own.insert(at / PAGE as u64);
                self.file.borrow_mut().insert(at, page.to_vec());
            }
        }
        assert_eq!(own.len() as u64, built.pages());
        for range in built.replaced() {
            for page in range.page..range.page + range.pages {
                assert!(
                    self.model.structure.remove(&page),
                    "page {page} was the structure's"
                );
                self.model.freed_ranges.insert(page, (range.birth, number));
            }
        }
        for &page in &own {
            self.model.freed_ranges.remove(&page);
        }
        self.model.structure.extend(own);
        let lists = built.lists.clone();
        assert!(fit(lists.changes.len(), lists.pendings.len()));
        self.space.install(built, &live);
        self.meta.txn = number;
        self.meta.pages = lists.pages;
        self.meta.free_root = lists.free_root;
        self.meta.freed_directory = lists.freed_directory;
        (self.meta.changes, self.meta.pendings) = (lists.changes, lists.pendings);
        self.space.durable_is(number);
        self.txn = number;
        self.stored = self.model.clone();
        self.structure_is_what_the_model_says();
        self.stored_is_what_is_in_memory();
    }

    /// Asserts that a process which opens the file now finds the same pages free, and the same pages held.
    fn stored_is_what_is_in_memory(&mut self) {
        let mut stored = self.load().unwrap();
        let all = |space: &mut Space| {
            let mut free = BTreeSet::new();
            space.for_each_free(|page| {
                free.insert(page);
            });
            let retained = space
                .retained()
                .flat_map(|range| range.page..range.page + range.pages);
            let retained: BTreeSet<u64> = retained.collect();
            (free, retained, space.stacks().to_vec())
        };
        let (mut free, retained, stacks) = all(&mut self.space);
        free.retain(|&page| page < self.meta.pages);
        assert_eq!(all(&mut stored), (free, retained, stacks));
    }

    fn lists(&self) -> Vec<(u64, Ptr, List)> {
        let mut lists = Vec::new();
        for stack in self.space.stacks() {
            let read = |ptr: &Ptr| Self::read(&self.file, ptr);
            let (mut pages, before) = (0, lists.len());
            walk(stack, &read, &mut |at, list| {
                pages += list.ranges.iter().map(|range| range.pages).sum::<u64>();
                assert!(
                    list.ranges
                        .iter()
                        .all(|range| range.birth <= stack.newest_birth)
                );
                lists.push((stack.snapshot_txn, *at, list.clone()));
                true
            })
            .unwrap();
            assert_eq!(pages, stack.pages);
            assert_eq!((lists.len() - before) as u64, stack.lists);
        }
        lists
    }

    fn structure_is_what_the_model_says(&self) {
        let mut structure: BTreeSet<u64> = BTreeSet::new();
        let lists = self.lists();
        let tops = lists.iter().map(|(_, at, _)| at);
        for ptr in self.space.structure().chain(tops) {
            assert!(structure.insert(ptr.addr / PAGE as u64), "once");
        }
        assert_eq!(structure, self.model.structure);
    }

    fn load(&self) -> Result<Space, Error> {
        let read = |ptr: &Ptr| Self::read(&self.file, ptr);
        crate::space::load::load(PAGE, &self.meta, self.space.durable[1], &read)
    }

    /// Simulates that the process ends and another process opens the file. Readers of other processes continue.
    fn restart(&mut self) {
        let durable = self.space.durable;
        self.space = self.load().unwrap();
        assert_eq!(self.space.durable, durable);
        self.model = self.stored.clone();
        self.txn = self.meta.txn;
        self.readers.retain(|&txn| txn <= self.meta.txn);
        self.restarts += 1;
    }

    /// Asserts that all pages that are not needed are free, except pages listed on the stacks of snapshots that have
    /// ended.
    fn compare(&mut self) {
        let live = self.live();
        let mut free = BTreeSet::new();
        self.space.for_each_free(|page| {
            free.insert(page);
        });
        assert_eq!(free.len() as u64, self.space.free_pages());
        let mut retained = BTreeSet::new();
        let mut waiting = BTreeSet::new();
        for range in self.space.retained() {
            retained.extend(range.page..range.page + range.pages);
        }
        for (snapshot_txn, _, list) in self.lists() {
            for range in list.ranges {
                let pages = range.page..range.page + range.pages;
                retained.extend(pages.clone());
                if live.binary_search(&snapshot_txn).is_err() {
                    waiting.extend(pages);
                    self.waited += 1;
                }
            }
        }
        assert_eq!(retained.len() as u64, self.space.retained_pages());
        for page in first_page(PAGE)..self.space.pages() {
            let in_use =
                self.model.used.contains_key(&page) || self.model.structure.contains(&page);
            let is_held = self.model.is_held(page, &live);
            if waiting.contains(&page) {
                assert!(!in_use && !free.contains(&page), "page {page} waits");
            } else {
                assert_eq!(
                    !in_use && !is_held,
                    free.contains(&page),
                    "page {page}: {:?} {:?} {} live {live:?} restarts {} meta {:?}",
                    self.model.used.get(&page),
                    self.model.freed_ranges.get(&page),
                    self.model.structure.contains(&page),
                    self.restarts,
                    (self.meta.txn, self.meta.pages)
                );
                assert_eq!(is_held, retained.contains(&page), "page {page} held");
            }
        }
    }
}

#[test]
fn the_allocator_agrees_with_sets() {
    let (mut restarts, mut waited, mut stacked) = (0, 0, 0);
    let (seeds, transactions) = if cfg!(miri) { (2, 12) } else { (16, 150) };
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..transactions {
            world.transaction();
            stacked += world.space.stacks().len();
        }
        assert!(world.space.pages() > 100);
        restarts += world.restarts;
        waited += world.waited;
    }
    println!("{restarts} restarts, {waited} ranges waited, {stacked} stacks");
    assert!(cfg!(miri) || restarts > 50 && waited > 500 && stacked > 500);
}

#[test]
fn ranges_agree_with_sets() {
    let mut rng = Random(1);
    let mut ranges = RangeSet::default();
    let mut set = BTreeSet::new();
    let mut changes = Changes::default();
    let mut states = BTreeMap::new();
    for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
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
        let listed = changes.clone().into_vec();
        let all: BTreeMap<u64, bool> = listed
            .iter()
            .flat_map(|change| (change.page..change.page + change.pages).map(|p| (p, change.used)))
            .collect();
        assert_eq!(all, states);
        assert_eq!(listed.len(), changes.len());
        let touching = |pair: &[crate::format::meta::Change]| {
            pair[0].page + pair[0].pages == pair[1].page && pair[0].used == pair[1].used
        };
        assert!(!listed.windows(2).any(touching), "neighbours are joined");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a structure of many pages, read again and again")]
fn a_damaged_structure_is_a_typed_error() {
    let mut world = World::new(3);
    while world.space.stacks().len() < 2 || world.meta.free_root.is_null() {
        world.transaction();
    }
    world.restart();
    let mut rng = Random(9);
    let whole = world.file.borrow().clone();
    let meta = world.meta.clone();
    let (mut damaged, mut broken) = (0, 0);
    for _ in 0..2000 {
        world.file.replace(whole.clone());
        world.meta = meta.clone();
        match rng.below(3) {
            0 => {
                let lists = world.lists();
                let list = &lists[rng.below(lists.len() as u64) as usize];
                let mut pages: Vec<u64> = world.space.structure().map(|ptr| ptr.addr).collect();
                pages.push(list.1.addr);
                let at = pages[rng.below(pages.len() as u64) as usize];
                let mut file = world.file.borrow_mut();
                if let Some(page) = file.get_mut(&at) {
                    page[rng.below(PAGE as u64) as usize] ^= 1 << rng.below(8);
                }
            }
            1 => world.meta.pages = rng.below(world.meta.pages),
            _ => {
                for change in &mut world.meta.changes {
                    change.page ^= rng.below(4) << rng.below(60);
                }
            }
        }
        match world.load() {
            Err(_) => damaged += 1,
            Ok(mut space) => {
                // If a list page cannot be read, the only damage is that the space listed on it is lost.
                let live = [space.durable[1], space.durable[0]];
                let file = &world.file;
                space.reclaim(&live, 1000, &|ptr| World::read(file, ptr));
                broken += usize::from(space.stacks().iter().any(|stack| stack.broken));
            }
        }
    }
    println!("{damaged} refused, {broken} with a broken stack");
    assert!(damaged > 100 && broken > 10);
}

/// List pages with arbitrary contents (and a valid checksum) must be rejected or contain ranges that can be
/// processed.
#[test]
fn lists_of_any_bytes_are_refused_or_sound() {
    let mut rng = Random(5);
    let at = Ptr::NULL;
    let (mut sound, mut refused) = (0, 0);
    for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
        let mut ranges = Vec::new();
        let mut page = rng.below(1000);
        let dense = rng.below(2) == 0;
        for _ in 0..1 + rng.below(if dense { 60 } else { 15 }) {
            let pages = 1 + rng.below(if dense { 3 } else { 200 });
            let birth = if dense { 7 } else { rng.below(9) };
            let freed = birth + 1;
            ranges.push(FreedRange {
                page,
                pages,
                birth,
                freed,
            });
            page += pages + 1 + rng.below(3);
        }
        let mut rest = Vec::new();
        let mut lists = if dense {
            cut(PAGE, &ranges, &mut rest)
        } else {
            Vec::new()
        };
        if lists.is_empty() {
            let bits = false;
            ranges.truncate(ranges_per_list(PAGE));
            let (below, next) = (0, Ptr::NULL);
            lists.push(List {
                ranges,
                bits,
                below,
                next,
            });
        }
        for list in lists {
            let mut bytes = list.encode(PAGE);
            bytes[9] = u8::from(list.bits);
            assert_eq!(List::decode(&bytes, &at, 0).unwrap(), list);
            for _ in 0..3 {
                let i = 32 + rng.below(PAGE as u64 - 32) as usize;
                bytes[i] = rng.below(256) as u8;
            }
            bytes[9] ^= rng.below(2) as u8;
            match List::decode(&bytes, &at, rng.below(2)) {
                Ok(list) => {
                    let mut seen = RangeSet::default();
                    for range in &list.ranges {
                        assert!(seen.insert(range.page, range.pages));
                    }
                    sound += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    let enough = sound > 1000 && refused > 1000;
    assert!(cfg!(miri) || enough, "{sound}, {refused}");
}

/// The ranges freed by one transaction must take at most one list page per `window` of the file, however fragmented
/// they are, and must be reclaimed a few list pages per transaction.
#[test]
#[cfg_attr(miri, ignore = "hundreds of thousands of pages, counted")]
fn a_dropped_table_is_bounded_work() {
    const BIG: usize = 4096;
    let pages = 270_000;
    let mut space = Space::new(BIG, first_page(BIG), Base::default(), [1, 1]);
    space.grow(pages);
    let mut txn = TxnSpace::default();
    let first = first_page(BIG);
    space.take_at(first, pages - first);
    txn.own.insert(first, pages - first);
    space.stage(&txn);
    let file: RefCell<BTreeMap<u64, Vec<u8>>> = RefCell::default();
    let read = |ptr: &Ptr| World::read(&file, ptr);
    let mut number = 1;
    let mut commit = |space: &mut Space, freed: &mut TxnSpace| {
        number += 1;
        let freed_ranges = freed.freed_ranges(number);
        let mut live = vec![space.durable[1], space.durable[0]];
        live.dedup();
        space.reclaim(&live, LISTS_PER_COMMIT, &read);
        space.stage(freed);
        let plan = space.plan(number, &freed_ranges, &live, &read);
        let need = plan.pages();
        let mut own = TxnSpace::default();
        let pieces = match need {
            0 => Vec::new(),
            _ => vec![match space.take_extent(need) {
                Some(page) => (page, need),
                None => {
                    let start = space.pages();
                    space.grow(start + need);
                    (space.take_at(start, need), need)
                }
            }],
        };
        for &(page, pages) in &pieces {
            own.own.insert(page, pages);
        }
        let built = space.build(plan, pieces, &read).unwrap();
        for (at, bytes) in &built.writes {
            for (i, page) in bytes.chunks(BIG).enumerate() {
                let at = at + (i * BIG) as u64;
                file.borrow_mut().insert(at, page.to_vec());
            }
        }
        space.install(built, &live);
        space.durable_is(number);
        need
    };
    commit(&mut space, &mut txn);
    // Frees every page but each hundredth: 267,000 pages in 2,700 ranges; then every second page of the rest of a
    // table.
    let mut freed = TxnSpace::default();
    let mut ranges = 0u64;
    for page in (first..pages).filter(|page| page % 2 == 0) {
        freed.free(page, 1, 2);
        ranges += 1;
    }
    let wrote = commit(&mut space, &mut freed);
    println!("{ranges} ranges took {wrote} pages");
    assert!(
        wrote <= 30,
        "9 regions: bitmaps, bits, and a few pages above them"
    );
    let mut commits = 0;
    while space.free_pages() < ranges {
        let before = space.work;
        let wrote = commit(&mut space, &mut TxnSpace::default());
        assert!(space.work.lists_taken - before.lists_taken <= LISTS_PER_COMMIT as u64);
        assert!(wrote <= 2 * LISTS_PER_COMMIT as u64, "{wrote} pages");
        commits += 1;
        assert!(commits < 20);
    }
    println!("free again after {commits} commits");
}

/// If only pages in punched holes are left, one of them is allocated. It will be written, so it must no longer count
/// as punched.
#[test]
fn a_page_that_is_taken_of_a_punched_range_is_punched_no_more() {
    let first = first_page(PAGE);
    let mut space = Space::new(PAGE, first, Base::default(), [1, 1]);
    space.grow(first + 40);
    space.map.punch(first, 40);
    assert_eq!(space.written_free_pages(), 0);
    for left in (0..40).rev() {
        assert!(space.take_page().is_some());
        assert_eq!((space.free_pages(), space.written_free_pages()), (left, 0));
    }
    space.release(first, 40);
    assert_eq!(space.written_free_pages(), 40);
}
