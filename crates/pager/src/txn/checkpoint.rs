//! Commit and continue: the writer lock passes directly from one transaction of a writer to the next one.
//!
//! 1. One `WriterGuard` holds the writer lock, within this handle and between handles, from the beginning of the first
//!    transaction to the end of the last. No other writer begins in between.
//! 2. Readers see each commit like any other.
//! 3. Lazy commits are made durable by their writer when they are due, or by a thread that waits for them and flushes
//!    while the next transaction runs (`WriterLock::keep_for_background`).
//! 4. If a commit or its flush fails, the writer lock is released, as at the end of any transaction.

use super::ticket::make_durable_locked;
use super::{CommitInfo, Durability, Ticket, WriteTxn};
use crate::commit::metrics::Phase;
use crate::commit::pipeline::Until;
use crate::error::Result;
use std::sync::Arc;
use std::time::Instant;

impl WriteTxn {
    /// Commits and begins the next transaction without releasing the writer lock: writers that wait for it, in this
    /// process or another, keep waiting. A durable commit is durable when this returns.
    ///
    /// Lazy commits become durable on the way if `Options::sync_bytes`, `sync_after` or `background_flush` requires it.
    /// Otherwise they become durable with an occasional durable commit, after the last transaction, or when another
    /// thread of this handle waits for one of them or for an earlier commit ([`Ticket::wait`], `Pager::sync`); that
    /// thread flushes beside this transaction.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit) and `Pager::begin_write`; the writer lock is then released.
    ///
    /// # Panics
    /// As for `commit`.
    pub fn checkpoint(mut self, app: &[u8], durability: Durability) -> Result<(CommitInfo, Self)> {
        let begun = Instant::now();
        let inner = Arc::clone(&self.inner);
        let done = self.enqueue(app, durability, Until::Kept, begun);
        let Some(mut guard) = self.guard.take() else {
            unreachable!("only this takes it, with the transaction")
        };
        // Dropping the transaction restores the writer state and releases all resources before the next transaction
        // begins.
        drop(self);
        let (info, durability) = done?;
        if durability.is_durable() {
            guard = make_durable_locked(&inner, (info.txn, Until::Kept), guard)?;
            let metrics = &inner.pipeline.metrics;
            metrics.record(Phase::Commit, begun.elapsed());
        } else if durability == Durability::Lazy && inner.sync_is_due_for_writer() {
            let newest = inner.pipeline.base(inner.state()).txn;
            guard = make_durable_locked(&inner, (newest, Until::Kept), guard)?;
        }
        let ticket = Ticket {
            inner: Arc::clone(&inner),
            info,
            durability,
            begun,
        };
        ticket.report_if_slow();
        Ok((info, Self::begin(inner, guard)?))
    }
}
