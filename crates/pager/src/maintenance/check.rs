//! Checks that every page of the file is either used exactly once, or free, or pending.
//!
//! The crates above the pager traverse their structures under the snapshot and claim the pages that they reach.
//! `finish` adds the free-space structure and compares the claims with the free space. It reports damaged, doubly
//! claimed, lost and leaked pages.
//!
//! ```text
//! head      the heads of both files        compare   reached pages against free pages
//! ```

mod compare;
mod head;

use crate::commit::pipeline::{Until, Waited};
use crate::error::Result;
use crate::format::header::verify_block;
use crate::format::layout::{LARGE_AT, first_page, is_large_page};
use crate::format::meta::{FreedRange, Meta};
use crate::format::pages::{PageRef, expect_zeros};
use crate::format::ptr::Ptr;
use crate::format::superblock;
use crate::space::large::Large;
use crate::space::lists::Stack;
use crate::space::load;
use crate::space::reclaim::walk;
use crate::txn::inner::Pager;
use crate::txn::make_durable;
use crate::txn::published::published;
use crate::txn::snapshot::Snapshot;
use crate::txn::writer::Writer;
use std::collections::BTreeMap;
use std::fmt::Display;
use tidalite_disk::lock::WriterGuard;

/// Maximum number of problems that are described one by one; further problems are only counted.
const PROBLEMS_MAX: usize = 100;
/// Report of a check of the database file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Descriptions of the problems, one sentence each; empty for an intact file.
    pub problems: Vec<String>,
    /// Number of problems that are damaged copies of head blocks. The next handle that opens the file for writing
    /// rewrites these blocks.
    pub problems_healable: u64,
    /// Findings that are not damage, but traces of a crash. The next handle that opens the file for writing removes
    /// them.
    pub notes: Vec<String>,
    /// Number of pages of the file, including its head.
    pub pages_total: u64,
    /// Number of pages that tables, series and the free-space structure use.
    pub pages_claimed: u64,
    /// Number of pages that can be allocated.
    pub pages_free: u64,
    /// Number of freed pages that snapshots may still read, so that they cannot be allocated yet.
    pub pages_pending: u64,
}

impl CheckReport {
    /// Whether the check found no problems.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

/// A set of pages, with one bit for each page of the file.
#[derive(Clone, Debug, Default)]
struct PageSet {
    words: Vec<u64>,
    len: u64,
}

impl PageSet {
    fn new(pages: u64) -> Self {
        Self {
            words: vec![0; pages.div_ceil(64) as usize],
            len: 0,
        }
    }

    fn has(&self, page: u64) -> bool {
        self.words[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// Adds a page to the set; returns true if the page was not in the set.
    fn insert(&mut self, page: u64) -> bool {
        assert!(page / 64 < self.words.len() as u64, "a page of the file");
        let fresh = !self.has(page);
        self.words[(page / 64) as usize] |= 1 << (page % 64);
        self.len += u64::from(fresh);
        fresh
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// The free space when the check began. The snapshot keeps all pages to which it refers unchanged.
struct Captured {
    /// Length of the file in pages.
    pages: u64,
    free: PageSet,
    retained: Vec<FreedRange>,
    retained_pages: u64,
    /// The free pages of the second file, and the length of that file in pages.
    large: Option<PageSet>,
    large_pages: u64,
    /// Pointers to the pages of the free-space structure, except the list pages on the stacks.
    structure: Vec<Ptr>,
    stacks: Vec<Stack>,
    /// The newest durable meta record, and the transaction of the previous durable meta record.
    meta: Meta,
    before: u64,
    /// Blocks of the pins and of the list of commit times, each with the number of pages of its extent.
    pins: Vec<(Ptr, u64)>,
}

/// A check in progress. Readers and writers may continue, since the check reads a snapshot.
pub struct Check {
    pager: Pager,
    snapshot: Snapshot,
    captured: Captured,
    page_size: u64,
    pages: u64,
    claimed: PageSet,
    claimed_large: PageSet,
    /// Name and claimed pages of an older version, while that version is being traversed.
    version: Option<(String, PageSet)>,
    problems: Vec<String>,
    more: u64,
    /// Claimed page ranges by kind of page, if the caller has requested them.
    ranges: Option<BTreeMap<String, Vec<(u64, u64)>>>,
}

impl Pager {
    /// Begins a check of the newest commit; waits until that commit is durable. While a write transaction is open in
    /// any process, the newest commit visible to all processes is checked instead, without waiting. Writers continue
    /// during the check.
    ///
    /// # Errors
    /// If the free space cannot be read; `Poisoned` and errors of a pending sync; the errors of `begin_read`.
    pub fn begin_check(&self) -> Result<Check> {
        let page_size = self.inner.files.page_size;
        let (snapshot, captured) = match self.lock_newest()? {
            Some(_turn) => {
                let snapshot = self.begin_read()?;
                let mut writer = self.inner.take_writer(snapshot.state())?;
                writer.reclaim(&self.inner);
                let captured = Captured::of(&mut writer, page_size);
                self.inner.put_writer(writer);
                (snapshot, captured)
            }
            None => {
                let (snapshot, mut writer) = published(&self.inner)?;
                (snapshot, Captured::of(&mut writer, page_size))
            }
        };
        let pages = captured.pages;
        Ok(Check {
            pager: self.clone(),
            snapshot,
            claimed_large: PageSet::new(captured.large_pages),
            captured,
            page_size: page_size as u64,
            pages,
            claimed: PageSet::new(pages),
            version: None,
            problems: Vec::new(),
            more: 0,
            ranges: None,
        })
    }
}

impl Pager {
    /// Acquires the writer lock when all commits are visible to readers, so that the free space in memory is the free
    /// space of the newest visible commit. Returns `None` while another thread or process writes.
    fn lock_newest(&self) -> Result<Option<WriterGuard>> {
        self.inner.files.lock.check_process()?;
        if self.inner.files.options.read_only {
            return self.inner.lock_writer().map(Some);
        }
        loop {
            let Some(guard) = self.inner.files.writer_lock.try_take()? else {
                return Ok(None);
            };
            let shown = self.inner.state();
            let shown_txn = shown.txn;
            let newest = self.inner.pipeline.base(shown).txn;
            if newest <= shown_txn {
                return Ok(Some(guard));
            }
            let wanted = (newest.0, Until::Kept);
            if self.inner.wait(wanted, None)? == Waited::Durable {
                return Ok(Some(guard));
            }
            // The newest commit has no meta record. Making it durable adds an empty commit on top of it, which takes
            // the writer lock and has a meta record.
            drop(guard);
            make_durable(&self.inner, (newest, Until::Kept), None)?;
        }
    }
}

impl Captured {
    fn of(writer: &mut Writer, page_size: usize) -> Self {
        let pages = writer.space.pages();
        let mut free = PageSet::new(pages);
        writer.space.for_each_free(|page| {
            free.insert(page);
        });
        Self {
            pages,
            free,
            retained: writer.space.retained().copied().collect(),
            retained_pages: writer.space.retained_pages(),
            large: writer.space.large.as_deref().map(free_of),
            large_pages: writer.space.large.as_deref().map_or(0, Large::pages),
            structure: writer.space.structure().copied().collect(),
            stacks: writer.space.stacks().to_vec(),
            meta: Meta::clone(&writer.meta),
            before: writer.space.durable[1],
            pins: writer.pins.extents(page_size),
        }
    }
}

impl Check {
    /// Returns the snapshot of the commit that is being checked.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Adds a problem to the report.
    pub fn problem(&mut self, problem: impl Display) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem.to_string());
        } else {
            self.more += 1;
        }
    }

    /// Claims `pages` pages from byte `addr` on. Returns false if the range is not inside the file or was claimed
    /// before. The caller must then not descend into the pages, since a cycle would never end.
    pub fn claim(&mut self, addr: u64, pages: u64, what: &str) -> bool {
        if addr >= LARGE_AT {
            return self.claim_large(addr, pages, what);
        }
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
        if let Some(ranges) = &mut self.ranges
            && self.version.is_none()
        {
            let known = ranges.entry(what.to_owned()).or_default();
            match known.last_mut() {
                Some((from, count)) if *from + *count == first => *count += pages,
                _ => known.push((first, pages)),
            }
        }
        let mut sound = true;
        for page in first..first + pages {
            let claimed = match &mut self.version {
                Some((_, claimed)) => claimed,
                None => &mut self.claimed,
            };
            if !claimed.insert(page) {
                self.problem(format!(
                    "page {page} is reached twice, the second time by {what}"
                ));
                sound = false;
            }
        }
        sound
    }

    /// Like `claim`, for pages of the second file.
    fn claim_large(&mut self, addr: u64, pages: u64, what: &str) -> bool {
        let place = (addr - LARGE_AT) / self.page_size;
        let end = place.checked_add(pages);
        let outside = !addr.is_multiple_of(self.page_size)
            || place < first_page(self.page_size as usize)
            || end.is_none_or(|end| end > self.captured.large_pages);
        if outside || pages == 0 {
            self.problem(format!(
                "{what}: {pages} pages at byte {addr} are not a range of pages of the second file"
            ));
            return false;
        }
        let mut sound = true;
        for page in place..place + pages {
            let free = &self.captured.large;
            if self.version.is_some() {
                if free.as_ref().is_some_and(|free| free.has(page)) {
                    self.problem(format!(
                        "page {page} of the second file is free, but {what} of an older version reaches it"
                    ));
                    sound = false;
                }
            } else if !self.claimed_large.insert(page) {
                self.problem(format!(
                    "page {page} of the second file is reached twice, the second time by {what}"
                ));
                sound = false;
            }
        }
        sound
    }

    /// Returns the number of pages that traversing the newest version is expected to claim.
    #[must_use]
    pub fn pages_expected(&self) -> u64 {
        self.pages
            .saturating_sub(self.captured.free.len() + self.captured.retained_pages)
    }

    /// From now on, `claim` claims pages for an older version with this name, until `end_version`.
    pub fn begin_version(&mut self, name: &str) {
        self.version = Some((name.to_owned(), PageSet::new(self.pages)));
    }

    /// Ends the traversal of the older version. Each of its pages that is free is reported as a problem.
    pub fn end_version(&mut self) {
        let Some((name, claimed)) = self.version.take() else {
            return;
        };
        for page in first_page(self.page_size as usize)..self.pages {
            if claimed.has(page) && self.captured.free.has(page) {
                self.problem(format!("page {page} is free, but {name} reaches it"));
            }
        }
    }

    /// Makes the check record the claimed page ranges by kind of page; adjacent ranges of one kind are merged.
    pub fn keep_ranges(&mut self) {
        self.ranges = Some(BTreeMap::new());
    }

    /// Claims the pages of the free-space structure and the pins, and returns all claimed ranges by kind of page,
    /// each as first page and number of pages.
    #[must_use]
    pub fn into_ranges(mut self) -> BTreeMap<String, Vec<(u64, u64)>> {
        self.check_structure();
        self.check_stacks();
        self.ranges.take().unwrap_or_default()
    }

    /// Number of pages claimed so far.
    #[must_use]
    pub fn pages_claimed(&self) -> u64 {
        self.claimed.len()
    }

    /// Ends an incomplete check, without comparing the claimed pages with the free space.
    #[must_use]
    pub fn abandon(mut self) -> CheckReport {
        CheckReport {
            problems: std::mem::take(&mut self.problems),
            problems_healable: 0,
            notes: Vec::new(),
            pages_total: self.pages,
            pages_claimed: self.claimed.len(),
            pages_free: self.captured.free.len(),
            pages_pending: self.captured.retained_pages,
        }
    }

    /// Compares the claimed pages with the free space, checks the head of the file, and returns the report.
    #[must_use]
    pub fn finish(mut self) -> CheckReport {
        let (notes, problems_healable) = self.check_head();
        self.check_structure();
        self.check_stacks();
        let free = std::mem::take(&mut self.captured.free);
        let mut retained = std::mem::take(&mut self.captured.retained);
        let stacks = std::mem::take(&mut self.captured.stacks);
        retained.extend(self.on_stacks(&stacks));
        let mut state = self.states(&free, &retained, "in memory");
        self.compare("in memory", &state);
        if let Some(free) = self.captured.large.take() {
            let pages = self.captured.large_pages;
            self.compare_large("in memory", &free, pages, &retained);
        }
        if self.snapshot.txn().0 == self.captured.meta.txn {
            match self.stored() {
                Ok((free, mut retained, stacks, large)) => {
                    retained.extend(self.on_stacks(&stacks));
                    if let Some((free, pages)) = large {
                        self.compare_large("as stored", &free, pages, &retained);
                    }
                    state = self.states(&free, &retained, "as stored");
                    self.compare("as stored", &state);
                }
                Err(error) => self.problem(format!("free space as stored: {error}")),
            }
        }
        if self.more > 0 {
            let more = format!("and {} more problems", self.more);
            self.problems.push(more);
        }
        CheckReport {
            problems: std::mem::take(&mut self.problems),
            problems_healable,
            notes,
            pages_total: self.pages,
            pages_claimed: self.claimed.len(),
            pages_free: free.len(),
            pages_pending: self.captured.retained_pages,
        }
    }

    /// Reads the free-space structure, the pins and the clock again, and claims their pages.
    fn check_structure(&mut self) {
        for (ptr, pages) in std::mem::take(&mut self.captured.pins) {
            self.claim(ptr.addr, pages, "pins");
            let inner = &self.pager.inner;
            let end = self.pages.saturating_mul(self.page_size);
            let room = (pages * self.page_size).saturating_sub(u64::from(ptr.len)) as usize;
            let padding = ptr.addr.saturating_add(u64::from(ptr.len));
            let read = inner
                .files
                .block(&ptr, end)
                .and_then(|block| verify_block(&block, &ptr))
                .and_then(|()| expect_zeros(&self.snapshot, padding, room));
            if let Err(error) = read {
                self.problem(error);
            }
        }
        if let Some(redo) = self.captured.meta.redo {
            // The pages of the redo log are claimed, but not read: its commits, if any, are newer than the checked
            // commit.
            self.claim(redo.page * self.page_size, redo.pages, "log");
        }
        for ptr in std::mem::take(&mut self.captured.structure) {
            self.claim(ptr.addr, 1, "free space");
            if let Err(error) = read_again(&self.pager, &ptr) {
                self.problem(error);
            }
        }
    }

    /// Reads the list pages with freed ranges again, and claims them.
    fn check_stacks(&mut self) {
        let pager = self.pager.clone();
        let read = |ptr: &Ptr| read_again(&pager, ptr);
        for stack in self.captured.stacks.clone() {
            let (mut pages, mut lists) = (0u64, Vec::new());
            let mut problems = Vec::new();
            let walked = walk(&stack, &read, &mut |at, list| {
                let at = at.addr;
                lists.push(at);
                for range in &list.ranges {
                    pages = pages.saturating_add(range.pages);
                    let end = range.page.saturating_add(range.pages);
                    let (least, most) = if is_large_page(range.page) {
                        let number = Large::first_number(self.page_size as usize);
                        (number, number + self.captured.large_pages)
                    } else {
                        (0, self.pages)
                    };
                    if range.page < least + first_page(self.page_size as usize) || end > most {
                        problems.push(format!(
                            "list of pending ranges at byte {at}: {range:?} is not in the file"
                        ));
                    }
                    if range.birth > stack.newest_birth || range.freed < stack.oldest_freed {
                        problems.push(format!(
                            "list of pending ranges at byte {at}: {range:?} is not of its stack"
                        ));
                    }
                }
                problems.len() < PROBLEMS_MAX
            });
            for problem in problems {
                self.problem(problem);
            }
            for at in lists {
                self.claim(at, 1, "lists of pending ranges");
            }
            match walked {
                Err(error) => self.problem(error),
                Ok(()) if pages != stack.pages => self.problem(format!(
                    "pending ranges held by transaction {}: {pages} pages, expected {}",
                    stack.snapshot_txn, stack.pages
                )),
                Ok(()) => {}
            }
        }
    }

    /// Returns the freed ranges on the readable list pages; `check_stacks` reports the unreadable pages.
    fn on_stacks(&self, stacks: &[Stack]) -> Vec<FreedRange> {
        let read = |ptr: &Ptr| read_again(&self.pager, ptr);
        let mut retained = Vec::new();
        for stack in stacks {
            let walked = walk(stack, &read, &mut |_, list| {
                retained.extend(&list.ranges);
                true
            });
            drop(walked);
        }
        retained
    }

    /// Returns the free space that is stored in the file, which must match the free space in memory.
    fn stored(&self) -> Result<Stored> {
        let read = |ptr: &Ptr| read_again(&self.pager, ptr);
        let Captured { meta, before, .. } = &self.captured;
        let mut stored = load::load(self.page_size as usize, meta, *before, &read)?;
        stored.grow(self.pages.max(stored.pages()));
        let mut free = PageSet::new(stored.pages());
        stored.for_each_free(|page| {
            free.insert(page);
        });
        let retained = stored.retained().copied().collect();
        let large = stored.large.as_deref();
        let large = large.map(|large| (free_of(large), large.pages()));
        Ok((free, retained, stored.stacks().to_vec(), large))
    }
}

/// Free pages, freed ranges in the meta record, stacks of list pages, and free pages and length of the second file.
type Stored = (PageSet, Vec<FreedRange>, Vec<Stack>, Option<(PageSet, u64)>);

fn free_of(large: &Large) -> PageSet {
    let mut free = PageSet::new(large.pages());
    for page in (0..large.pages()).filter(|page| large.map.is_free(*page)) {
        free.insert(page);
    }
    free
}

/// Reads a page and verifies it, even if the options say that pages are not verified.
fn read_again<'a>(pager: &'a Pager, ptr: &Ptr) -> Result<PageRef<'a>> {
    let inner = &pager.inner;
    let len = inner
        .files
        .storage
        .len()
        .map_err(|e| superblock::read_failed(0, e))?;
    let page = inner.files.page(ptr, len)?;
    verify_block(&page, ptr)?;
    Ok(page)
}
