//! Leaves of a large transaction that are written while it is still open: the disk works meanwhile, and the commit finds a part of its
//! pages on the way already (decision 0022).
//!
//! A page that is changed again is written a second time. Of ten thousand random rows in a table of forty thousand leaves an eighth
//! comes back; in one of ten thousand half of them. So what comes back is counted, and where it is too much, it ends,
//! for this transaction and for some after it.
//!
//! Invariants
//! 1. A page that was written here is in memory as well, sealed, and `spilled` with the same checksum; `load` forgets the latter when it is
//!    about to be changed.
//! 2. What is written are pages that this transaction has allocated: nobody sees them before its commit, and given up they are free pages.

use super::{Dirty, FLAGS_AT, Handing, write_pages};
use crate::error::Result;
use crate::header::{Header, Kind, seal_block};
use crate::storage::{Beside, Storage};
use std::fmt;
use std::sync::Arc;
use std::thread;

/// A generation is this part of what makes a transaction large (`Options::early_bytes`). One is written when the next one is full: what was
/// changed a moment ago is likely to be changed again.
const GENERATIONS: u64 = 8;
/// So many pages are written before it is asked what came back.
const WRITTEN_MIN: u64 = 256;
/// It goes on while at most one page in so many comes back.
const AGAIN_PART: u64 = 8;
/// A transaction that takes more pages than it frees by one part in so many, and by more than some, makes the file longer. Its sync waits
/// for that, and writing early gains nothing.
const GROWTH_PART: u64 = 128;
const GROWTH_PAGES: u64 = 16;
/// Transactions that do without after one where too much came back.
const PAUSE: u32 = 15;

/// Whether the next transaction writes early: what the writer keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habit {
    large: bool,
    pause: u32,
}

impl Habit {
    /// A transaction begins: whether it is to write early.
    pub(crate) fn begin(&mut self) -> bool {
        let pauses = self.pause > 0;
        if self.large {
            self.pause = self.pause.saturating_sub(1);
        }
        self.large && !pauses && thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
    }

    /// A transaction was committed that took so many pages and freed so many. `for_sync`: a sync follows.
    /// `early_bytes`: what makes it a large one, if anything does.
    pub(crate) fn note(
        &mut self,
        dirty: &Dirty,
        (taken, freed): (u64, u64),
        for_sync: bool,
        early_bytes: u64,
    ) {
        let bytes = dirty.pages_written * dirty.page_size as u64;
        let is_large = early_bytes > 0 && bytes >= early_bytes;
        self.large = for_sync && is_large && taken <= freed + freed / GROWTH_PART + GROWTH_PAGES;
        if dirty.early.comes_back() {
            self.pause = PAUSE;
        }
    }
}

/// What is written early of a transaction.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// It is asked for; given up when too much comes back.
    storage: Option<Own>,
    generation_bytes: u64,
    /// Asks the system; there is none before enough was changed.
    beside: Option<Beside>,
    young: Vec<u64>,
    old: Vec<u64>,
    written: u64,
    /// Of these, changed afterwards.
    pub(super) again: u64,
}

/// For the thread that asks.
struct Own(Arc<dyn Storage>);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl Early {
    pub(super) fn beside(&self) -> Option<&Beside> {
        self.beside.as_ref()
    }

    fn comes_back(&self) -> bool {
        self.written >= WRITTEN_MIN && self.again * AGAIN_PART > self.written
    }
}

impl Dirty {
    /// From now on leaves are written early. `early_bytes`: what makes a transaction a large one.
    pub(crate) fn write_early(&mut self, storage: &Arc<dyn Storage>, early_bytes: u64) {
        self.early.storage = Some(Own(Arc::clone(storage)));
        self.early.generation_bytes = early_bytes / GENERATIONS;
    }

    /// A page was allocated.
    ///
    /// # Errors
    /// The system's, when pages are written.
    pub(super) fn note_early(&mut self, storage: &dyn Storage, page: u64) -> Result<()> {
        let Some(own) = &self.early.storage else {
            return Ok(());
        };
        self.early.young.push(page);
        let young_bytes = (self.early.young.len() * self.page_size) as u64;
        if young_bytes < self.early.generation_bytes {
            return Ok(());
        }
        let mut numbers = std::mem::take(&mut self.early.old);
        if self.early.beside.is_none() {
            self.early.beside = Beside::begin(&own.0);
        }
        if self.early.comes_back() {
            self.early.storage = None;
        } else {
            self.write_leaves(storage, &mut numbers)?;
        }
        numbers.clear();
        self.early.old = std::mem::replace(&mut self.early.young, numbers);
        Ok(())
    }

    /// Seals and writes those of these pages that are leaves which lead nowhere.
    fn write_leaves(&mut self, storage: &dyn Storage, numbers: &mut Vec<u64>) -> Result<()> {
        let (page_size, birth) = (self.page_size, self.txn);
        numbers.retain(|&number| {
            let Some(page) = self.pages.get_mut(&number) else {
                return false;
            };
            let Some(bytes) = page.bytes.as_mut().filter(|_| page.spilled.is_none()) else {
                return false;
            };
            if page.kind != Kind::KvLeaf || bytes[FLAGS_AT] != 0 {
                return false;
            }
            if page.sealed.is_none() {
                let header = Header {
                    kind: page.kind,
                    flags: 0,
                    owner: page.owner,
                    address: number * page_size as u64,
                    birth,
                };
                page.sealed = Some(seal_block(Arc::make_mut(bytes), &header).checksum);
            }
            true
        });
        let pages = numbers.iter().filter_map(|number| {
            let bytes = self.pages.get(number)?.bytes.as_ref()?;
            Some((*number, &**bytes))
        });
        self.writes += write_pages(
            (storage, self.early.beside()),
            page_size,
            pages.collect(),
            Handing::ForSync,
        )?;
        for number in &*numbers {
            if let Some(page) = self.pages.get_mut(number) {
                page.spilled = page.sealed;
            }
        }
        self.pages_written += numbers.len() as u64;
        self.early.written += numbers.len() as u64;
        Ok(())
    }
}
