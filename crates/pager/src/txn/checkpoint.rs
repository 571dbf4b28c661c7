//! Committing and going on: the turn passes from one transaction of a writer to its next, and to nobody else.
//!
//! 1. From the beginning of the first transaction to the end of the last the turn is one `Turn`, in this handle and among the handles: nobody else
//!    begins to write in between.
//! 2. Readers see each commit as they see any other.
//! 3. Lazy commits become durable by who makes them, when they are due, or by who waits for them, beside this (`Turns::keep_beside`).
//! 4. Where a commit or its flush fails the turn goes on, as at the end of any transaction.

use super::ticket::make_durable_in_turn;
use super::{CommitInfo, Durability, Ticket, WriteTxn};
use crate::commit::metrics::Phase;
use crate::commit::pipeline::Until;
use crate::error::Result;
use std::sync::Arc;
use std::time::Instant;

impl WriteTxn {
    /// Commits and begins the next transaction without giving the turn away: whoever waits for it, in this process or in another, waits on. A
    /// durable commit has been made durable when this returns.
    ///
    /// Lazy commits become durable on the way where `Options::sync_bytes`, `sync_after` or `background_flush` asks for it; without these, by a durable
    /// commit now and then, or after the last transaction; or when somebody else of this handle waits for one of them or for a commit before
    /// ([`Ticket::wait`], `Pager::sync`), who flushes beside this.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit) and `Pager::begin_write`; the turn goes on then.
    ///
    /// # Panics
    /// As for `commit`.
    pub fn checkpoint(mut self, app: &[u8], durability: Durability) -> Result<(CommitInfo, Self)> {
        let begun = Instant::now();
        let inner = Arc::clone(&self.inner);
        let done = self.enqueue(app, durability, Until::Kept, begun);
        let Some(mut turn) = self.turn.take() else {
            unreachable!("only this takes it, with the transaction")
        };
        // What this transaction had is put back before the turn goes anywhere.
        drop(self);
        let (info, durability) = done?;
        if durability.is_durable() {
            turn = make_durable_in_turn(&inner, (info.txn, Until::Kept), turn)?;
            let metrics = &inner.pipeline.metrics;
            metrics.record(Phase::Commit, begun.elapsed());
        } else if durability == Durability::Lazy && inner.sync_is_due_in_turn() {
            let newest = inner.pipeline.base(inner.state()).txn;
            turn = make_durable_in_turn(&inner, (newest, Until::Kept), turn)?;
        }
        let ticket = Ticket {
            inner: Arc::clone(&inner),
            info,
            durability,
            begun,
        };
        ticket.tell_if_slow();
        Ok((info, Self::begin(inner, turn)?))
    }
}
