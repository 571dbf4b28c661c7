//! Waiting for a commit to become durable.

use super::{CommitInfo, Durability, WriteTxn};
use crate::error::{Error, Result};
use crate::metrics::Phase;
use crate::pager::Inner;
use crate::pipeline::Waited;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidalite_base::TxnId;

/// A commit on its way to the medium. Many threads may hold one each; one flush serves them all.
///
/// Dropping the ticket of a durable commit waits for it, so that nothing stays hidden; an error then shows in
/// the next call that writes.
#[must_use = "a durable commit is waited for when its ticket is dropped"]
pub struct Ticket {
    pub(super) inner: Arc<Inner>,
    pub(super) info: CommitInfo,
    pub(super) durability: Durability,
    pub(super) begun: Instant,
}

impl Ticket {
    /// What the commit did.
    #[must_use]
    pub fn info(&self) -> CommitInfo {
        self.info
    }

    /// True when the commit survives a power cut.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.inner.pipeline.durable_txn() >= self.info.txn.0
    }

    /// Waits until the commit is durable, whatever it was committed as; leads the flush when nobody else does.
    ///
    /// # Errors
    /// Any error of a sync or of writing the record; `Poisoned` for those who waited for another one's flush.
    pub fn wait(&self) -> Result<CommitInfo> {
        make_durable(&self.inner, self.info.txn, None)?;
        if self.durability.is_durable() {
            let metrics = &self.inner.pipeline.metrics;
            metrics.record(Phase::Commit, self.begun.elapsed());
        }
        Ok(self.info)
    }

    /// The same, but only so long: false when it is not durable by then. (A flush that was begun is finished.)
    ///
    /// # Errors
    /// As for `wait`.
    pub fn wait_for(&self, patience: Duration) -> Result<bool> {
        let until = Instant::now().checked_add(patience);
        make_durable(&self.inner, self.info.txn, until)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.durability.is_durable() && !self.is_durable() {
            // The error is remembered: the file is poisoned.
            drop(self.wait());
        }
    }
}

/// Waits until a commit is durable; false when that took too long.
pub(crate) fn make_durable(inner: &Arc<Inner>, txn: TxnId, until: Option<Instant>) -> Result<bool> {
    loop {
        match inner.pipeline.wait(inner, txn.0, until)? {
            Waited::Durable => return Ok(true),
            Waited::TimedOut => return Ok(false),
            Waited::NeedsTurn => {}
        }
        // An empty durable commit: it takes the turn, and a record if the newest commit has none.
        let empty = WriteTxn::begin(Arc::clone(inner), inner.turn()?)?;
        let app = Arc::clone(&empty.base.app);
        let (queued, _) = empty.enqueue(&app, Durability::Durable)?;
        if queued.txn < txn {
            // A commit that others could not see, and that was lost with a failed sync.
            return Err(Error::Poisoned {
                first: format!("{txn} is not among the commits any more"),
            });
        }
    }
}
