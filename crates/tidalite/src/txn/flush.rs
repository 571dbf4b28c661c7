//! Flushes the write buffer of a write transaction, with the help of worker threads if there are any.
//!
//! Invariants:
//! 1. A flush that fails or panics breaks the transaction, because it is half done. A worker thread can fail only by a
//!    panic, which makes this thread panic too (`changing`).
//! 2. Before a series is read, or changed other than by new rows, its rows in worker threads are collected
//!    (`finish_background`).

use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_delta::{Blocks, Slot};

/// Error text for a transaction poisoned by a panicking helper thread.
pub(crate) const PANICKED: &str = "a thread panicked while rows were handed over";

impl WriteTxn {
    /// Flushes the rows of the write buffer for which enough are buffered: rows for a leaf, or all whole vectors if the
    /// buffer is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn flush_write_buffer(&mut self) -> Result<()> {
        let threads = self.shared.flush_threads;
        self.changing(|txn| {
            let (pages, leaves) = (&mut txn.pages, &mut txn.leaves);
            Ok(txn.delta.flush_with(
                pages,
                &mut txn.write_buffer,
                leaves,
                &mut txn.background,
                threads,
            )?)
        })
    }

    /// Collects the rows of a series that worker threads hold. Called before the series is read, or changed other than
    /// by new rows.
    pub(crate) fn finish_background(&mut self, slot: Slot) -> Result<()> {
        if !self.write_buffer.is_lent(slot) {
            return Ok(());
        }
        self.changing(|txn| {
            let (pages, leaves) = (&mut txn.pages, &mut txn.leaves);
            Ok(txn.delta.finish_background(
                pages,
                &mut txn.write_buffer,
                leaves,
                &mut txn.background,
            )?)
        })
    }

    /// Flushes all rows of the write buffer.
    pub(crate) fn store_rows(&mut self) -> Result<()> {
        let threads = self.shared.flush_threads;
        self.changing(|txn| {
            let (pages, leaves) = (&mut txn.pages, &mut txn.leaves);
            Ok(txn.delta.store_with(
                pages,
                &mut txn.write_buffer,
                leaves,
                &mut txn.background,
                threads,
            )?)
        })
    }

    /// Adds the blocks that appenders have encoded, after collecting the rows that worker threads hold. While it runs
    /// the transaction is marked as broken: a panic here would otherwise go unnoticed.
    pub(crate) fn add_blocks(&mut self, blocks: Vec<Blocks>) -> Result<()> {
        self.check_usable()?;
        self.broken = Some(PANICKED.to_owned());
        let (pages, leaves) = (&mut self.pages, &mut self.leaves);
        let (delta, write_buffer) = (&mut self.delta, &mut self.write_buffer);
        let result = delta
            .finish_background(pages, write_buffer, leaves, &mut self.background)
            .and_then(|()| delta.add_blocks(pages, write_buffer, leaves, blocks));
        self.broken = result.as_ref().err().map(ToString::to_string);
        Ok(result?)
    }
}
