//! Checking: every page of the file is reached exactly once, or is free, or waits to become free.
//!
//! The structures above walk themselves from the snapshot and claim what they reach; `finish` adds the
//! free-space structure and compares. The damaged, the doubly claimed, the lost and the leaked are reported.

use crate::error::Result;
use crate::layout::{first_page, meta_at, superblock_at};
use crate::meta::MetaBlocks;
use crate::pager::Pager;
use crate::pages::PageRef;
use crate::ptr::Ptr;
use crate::snapshot::Snapshot;
use crate::space::Space;
use crate::space::base;
use crate::superblock;
use crate::turns::Turn;
use crate::verify_block;
use crate::writer::Writer;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Problems that are described one by one; the rest are counted.
const PROBLEMS_MAX: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// What is wrong, one sentence each; empty for a sound file.
    pub problems: Vec<String>,
    /// Pages of the file, its head included.
    pub pages_total: u64,
    /// Pages reached by the structures and the free-space structure.
    pub pages_claimed: u64,
    /// Pages that can be allocated.
    pub pages_free: u64,
    /// Pages that wait to become free.
    pub pages_pending: u64,
}

impl CheckReport {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

/// A check under way. Holds the writers' turn: nothing is committed meanwhile.
pub struct Check {
    pager: Pager,
    snapshot: Snapshot,
    writer: Option<Box<Writer>>,
    page_size: u64,
    pages: u64,
    claimed: Vec<u64>,
    problems: Vec<String>,
    more: u64,
    _turn: Turn,
}

impl Pager {
    /// Begins a check of the newest commit. Waits for a write transaction under way.
    ///
    /// # Errors
    /// When the free space cannot be read.
    pub fn begin_check(&self) -> Result<Check> {
        let turn = self.inner.turns.wait();
        let mut writer = self.inner.take_writer()?;
        writer.reclaim(&self.inner);
        let pages = writer.space.pages();
        Ok(Check {
            pager: self.clone(),
            snapshot: self.begin_read(),
            writer: Some(writer),
            page_size: self.inner.page_size as u64,
            pages,
            claimed: vec![0; pages.div_ceil(64) as usize],
            problems: Vec::new(),
            more: 0,
            _turn: turn,
        })
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.pager.inner.put_writer(writer);
        }
    }
}

impl Check {
    /// The commit that is checked.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Something is wrong.
    pub fn problem(&mut self, problem: impl Display) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem.to_string());
        } else {
            self.more += 1;
        }
    }

    /// A structure reaches `pages` pages from byte `addr` on. False when that cannot be, or when it was
    /// claimed before: then do not go further down, a cycle would not end.
    pub fn claim(&mut self, addr: u64, pages: u64, what: &str) -> bool {
        let first = addr / self.page_size;
        let outside = !addr.is_multiple_of(self.page_size)
            || first < first_page(self.page_size as usize)
            || first.checked_add(pages).is_none_or(|end| end > self.pages);
        if outside || pages == 0 {
            self.problem(format!(
                "{what}: {pages} pages at byte {addr} are not a range of pages of the file"
            ));
            return false;
        }
        let mut sound = true;
        for page in first..first + pages {
            let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
            if self.claimed[word] & bit != 0 {
                self.problem(format!(
                    "page {page} is reached twice, the second time by {what}"
                ));
                sound = false;
            }
            self.claimed[word] |= bit;
        }
        sound
    }

    fn is_claimed(&self, page: u64) -> bool {
        self.claimed[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// Compares what was claimed with the free space, and checks the head of the file.
    pub fn finish(mut self) -> CheckReport {
        let Some(mut writer) = self.writer.take() else {
            unreachable!("the writer state is there until the check is dropped")
        };
        self.check_head();
        self.check_structure(&writer.space);
        self.compare("in memory", &mut writer.space);
        if self.snapshot.txn().0 == writer.meta.txn {
            self.check_stored(&writer);
        }
        let claimed = self
            .claimed
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        if self.more > 0 {
            let more = format!("and {} more problems", self.more);
            self.problems.push(more);
        }
        let report = CheckReport {
            problems: std::mem::take(&mut self.problems),
            pages_total: self.pages,
            pages_claimed: claimed,
            pages_free: writer.space.free_pages(),
            pages_pending: writer.space.held_pages(),
        };
        self.writer = Some(writer);
        report
    }

    fn check_head(&mut self) {
        let storage = self.pager.inner.storage.clone();
        match superblock::load(&*storage) {
            Ok((_, damaged)) => {
                for (copy, error) in damaged.into_iter().enumerate() {
                    if let Some(error) = error {
                        let at = superblock_at(copy);
                        self.problem(format!("superblock copy at byte {at}: {error}"));
                    }
                }
            }
            Err(error) => self.problem(format!("superblock: {error}")),
        }
        let blocks = MetaBlocks::load(&*storage, &self.pager.uuid());
        for (pair, copies) in blocks.copies.iter().enumerate() {
            for (copy, found) in copies.iter().enumerate() {
                if let Err(error) = found {
                    let at = meta_at(pair, copy);
                    self.problem(format!("meta block at byte {at}: {error}"));
                }
            }
            if let [Ok(a), Ok(b)] = copies
                && !a.is_copy_of(b)
            {
                let problem = format!(
                    "meta pair {pair}: its copies hold txn {} and txn {}",
                    a.txn, b.txn
                );
                self.problem(problem);
            }
        }
    }

    /// Reads the free-space structure afresh and claims its pages.
    fn check_structure(&mut self, space: &Space) {
        let pages: Vec<Ptr> = space.base().pages().copied().collect();
        for ptr in pages {
            self.claim(ptr.addr, 1, "free space");
            if let Err(error) = read_again(&self.pager, &ptr) {
                self.problem(error);
            }
        }
    }

    /// The free space as stored must say the same as the one in memory.
    fn check_stored(&mut self, writer: &Writer) {
        let pager = self.pager.clone();
        let before = writer.space.durable[1];
        let read = |ptr: &Ptr| read_again(&pager, ptr);
        match base::load(self.page_size as usize, &writer.meta, before, &read) {
            Ok(mut stored) => {
                stored.grow(self.pages.max(stored.pages()));
                self.compare("as stored", &mut stored);
            }
            Err(error) => self.problem(format!("free space as stored: {error}")),
        }
    }

    fn compare(&mut self, which: &str, space: &mut Space) {
        let mut state = vec![0u8; self.pages as usize];
        space.for_each_free(|page| state[page as usize] += 1);
        let mut doubly = Vec::new();
        for range in space.held() {
            for page in range.page..range.page + range.pages {
                if state[page as usize] != 0 {
                    doubly.push(page);
                }
                state[page as usize] += 2;
            }
        }
        for page in doubly {
            self.problem(format!("page {page} is listed as free twice ({which})"));
        }
        // Neighbours with the same problem are one problem.
        let mut runs: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
        let mut last: Option<(u64, &str)> = None;
        for page in first_page(self.page_size as usize)..self.pages {
            let problem = match (self.is_claimed(page), state[page as usize]) {
                (true, 0) | (false, 1 | 2) => None,
                (true, 1) => Some("in use and free"),
                (true, _) => Some("in use and about to become free"),
                (false, 0) => Some("leaked: neither in use nor free"),
                (false, _) => None,
            };
            match (problem, last) {
                (Some(problem), Some((start, same))) if problem == same => {
                    runs.insert(start, (page - start + 1, problem));
                }
                (Some(problem), _) => {
                    runs.insert(page, (1, problem));
                    last = Some((page, problem));
                    continue;
                }
                (None, _) => last = None,
            }
        }
        for (page, (count, problem)) in runs {
            self.problem(format!("page {page} ({count} pages) {problem} ({which})"));
        }
    }
}

/// Reads and verifies a page whatever the options say.
fn read_again<'a>(pager: &'a Pager, ptr: &Ptr) -> Result<PageRef<'a>> {
    let inner = &pager.inner;
    let len = inner
        .storage
        .len()
        .map_err(|e| superblock::read_failed(0, e))?;
    let page = inner.page(ptr, len)?;
    verify_block(&page, ptr)?;
    Ok(page)
}
