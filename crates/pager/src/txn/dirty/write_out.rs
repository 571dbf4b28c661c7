//! Writes changed pages before the commit. The table shows the reasons, and how the pages are written.
//!
//! ```text
//! reason     pages                                        sealed first   afterwards   written by
//! MakeRoom   least recently used, if many are in memory   leaves         in the file  this thread
//! Bulk       pages that a bulk load has added             when added     in the file  this thread
//! Behind     leaves of a large transaction                all            in both      a thread of the library, if useful
//! ```
//!
//! The commit writes all other pages ([`Dirty::write_all`]), with a hint whether a sync follows (`WriteHint`). Pages
//! that are changed in place (`in_place.rs`) need no write, and a commit without a meta record leaves its pages in
//! memory (`Dirty::take_unwritten`).
//!
//! Invariants
//! 1. Only pages of this transaction are written: no reader sees them before its commit.
//! 2. A page leaves memory only if its content is in the file; its checksum stays in memory.

use super::dirty_pages::Dirty;
use super::write_pages::{WriteHint, write_pages};
use crate::error::Result;
use std::sync::Arc;
use tidalite_disk::storage::Storage;

/// Reason for writing pages before the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Too many changed pages are in memory.
    MakeRoom,
    /// The pages belong to a bulk load and are unlikely to change again.
    Bulk,
    /// The pages are leaves of a large transaction; writing them keeps the disk busy while the transaction is open.
    Behind,
}

impl Reason {
    /// Whether leaves without pointers to other pages are sealed before they are written, so that they need not be
    /// written again.
    fn seals_leaves(self) -> bool {
        self != Self::Bulk
    }

    /// Whether the pages leave memory after they are written.
    fn frees_memory(self) -> bool {
        self != Self::Behind
    }

    /// Whether the buffers of the written pages are reused for the next pages.
    fn recycles(self) -> bool {
        self == Self::Bulk
    }

    fn hint(self) -> WriteHint {
        match self {
            // `Dirty::write_bulk` asks for the write-back of bulk pages itself, for several calls together.
            Self::Bulk => WriteHint::Plain,
            Self::MakeRoom | Self::Behind => WriteHint::ForSync,
        }
    }
}

impl Dirty {
    /// Writes the pages with the given numbers, unless they already have a copy in the file.
    ///
    /// # Errors
    /// I/O errors: the pages stay as they are.
    pub(super) fn write_out(
        &mut self,
        storage: &dyn Storage,
        numbers: &[u64],
        reason: Reason,
    ) -> Result<()> {
        let (page_size, txn) = (self.page_size, self.txn);
        if reason.seals_leaves() {
            for number in numbers {
                if let Some(page) = self.pages.get_mut(number) {
                    page.seal_leaf((number * page_size as u64, txn));
                }
            }
        }
        let unwritten = numbers
            .iter()
            .filter_map(|number| Some((*number, self.pages.get(number)?.unwritten()?)));
        let unwritten: Vec<_> = unwritten.collect();
        let count = unwritten.len() as u64;
        match &self.write_behind.background {
            Some(background) if reason == Reason::Behind => {
                let shared = unwritten.iter();
                background.write(shared.map(|(at, bytes)| (*at, Arc::clone(bytes))).collect());
            }
            _ => {
                let lent = unwritten.iter().map(|(at, bytes)| (*at, &***bytes));
                let ask = |at, len| self.write_behind.ask(storage, at, len);
                self.writes += write_pages(storage, ask, page_size, lent.collect(), reason.hint())?;
            }
        }
        self.pages_written += count;
        for number in numbers {
            let Some(page) = self.pages.get_mut(number) else {
                continue;
            };
            page.note_written();
            if reason.frees_memory()
                && let Some(bytes) = page.leave_memory()
            {
                assert!(
                    self.in_memory > 0,
                    "more pages leave memory than were there"
                );
                self.in_memory -= 1;
                if reason.recycles() {
                    self.keep_buffer(bytes);
                }
            }
        }
        Ok(())
    }

    /// If too many pages are in memory, writes a quarter of them and frees their memory.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn make_room(&mut self, storage: &dyn Storage) -> Result<()> {
        if self.in_memory >= self.in_memory_max {
            self.write_bulk(storage)?;
        }
        if self.in_memory < self.in_memory_max {
            return Ok(());
        }
        self.drain()?;
        let mut chosen = self.least_recently_used(self.in_memory_max / 4 + 1);
        chosen.sort_unstable();
        chosen.dedup();
        let before = self.in_memory;
        if let Err(error) = self.write_out(storage, &chosen, Reason::MakeRoom) {
            self.order.extend(chosen);
            return Err(error);
        }
        self.spilled += (before - self.in_memory) as u64;
        self.check();
        Ok(())
    }

    /// Chooses up to `wanted` pages in memory that were not used for long, by the clock algorithm.
    fn least_recently_used(&mut self, wanted: usize) -> Vec<u64> {
        let mut chosen = Vec::with_capacity(wanted);
        let mut passes = self.order.len() * 2;
        while chosen.len() < wanted && passes > 0 {
            passes -= 1;
            let Some(number) = self.order.pop_front() else {
                break;
            };
            match self.pages.get_mut(&number) {
                Some(page) if page.buffer().is_some() && page.touched => {
                    page.touched = false;
                    self.order.push_back(number);
                }
                Some(page) if page.buffer().is_some() => chosen.push(number),
                _ => {}
            }
        }
        assert!(chosen.len() <= wanted, "more pages are chosen than wanted");
        chosen
    }
}
