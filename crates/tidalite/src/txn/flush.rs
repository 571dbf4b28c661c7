//! Staged rows of a write transaction go to their places, with the help of other threads where there are some.
//!
//! Invariants:
//! 1. A hand-over that fails, or panics, breaks the transaction: it is half done. A thread that helps can only panic, and so does then this one (`changing`).
//! 2. Before a series is read, or changed otherwise than by new rows, those that other threads have of it are back (`settle`).

use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_runs::{Blocks, Slot};

/// Why a transaction is broken in which a thread panicked.
pub(crate) const PANICKED: &str = "a thread panicked while rows were handed over";

impl WriteTxn {
    /// Hands staged rows over where they are ready.
    #[cold]
    #[inline(never)]
    pub(crate) fn flush_staging(&mut self) -> Result<()> {
        let threads = self.shared.sealing_threads;
        self.changing(|txn| {
            let (pages, leaves) = (&mut txn.pages, &mut txn.leaves);
            Ok(txn
                .front
                .flush_with(pages, &mut txn.staging, leaves, &mut txn.beside, threads)?)
        })
    }

    /// Before a series is read, or changed otherwise than by new rows: those that other threads have come back.
    pub(crate) fn settle(&mut self, slot: Slot) -> Result<()> {
        if !self.staging.is_away(slot) {
            return Ok(());
        }
        self.changing(|txn| {
            let (pages, leaves) = (&mut txn.pages, &mut txn.leaves);
            Ok(txn
                .front
                .settle(pages, &mut txn.staging, leaves, &mut txn.beside)?)
        })
    }

    /// Opens a series that the transaction before had open, unless it is open. Its slot may be among those whose rows are away, though
    /// this transaction has none of it.
    pub(crate) fn turn_to(&mut self, index: usize) -> Result<()> {
        if let Some(slot) = self.open.moved_by_turn(index, &self.staging) {
            self.settle(slot)?;
        }
        self.open.turn_to(index, &mut self.staging);
        Ok(())
    }

    /// Hands everything over that is staged.
    pub(crate) fn store_rows(&mut self) -> Result<()> {
        let threads = self.shared.sealing_threads;
        self.changing(|txn| {
            let (pages, leaves) = (&mut txn.pages, &mut txn.leaves);
            Ok(txn
                .front
                .store_with(pages, &mut txn.staging, leaves, &mut txn.beside, threads)?)
        })
    }

    /// Hands over what appenders have encoded, when what other threads have is back. Of a panic in the thread that does it nobody else would know.
    pub(crate) fn add_blocks(&mut self, blocks: Vec<Blocks>) -> Result<()> {
        self.check_usable()?;
        self.broken = Some(PANICKED.to_owned());
        let (pages, leaves) = (&mut self.pages, &mut self.leaves);
        let (front, staging) = (&mut self.front, &mut self.staging);
        let result = front
            .settle(pages, staging, leaves, &mut self.beside)
            .and_then(|()| front.add_blocks(pages, staging, leaves, blocks));
        self.broken = result.as_ref().err().map(ToString::to_string);
        Ok(result?)
    }
}
