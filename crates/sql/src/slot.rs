//! The snapshot in which all nodes of a plan read.
//!
//! A plan is kept after its statement, to be run again in a newer snapshot. Between two runs the slot is empty: a
//! snapshot would retain the pages of its commit in the file.

use crate::error::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite::AnyRead;

/// The place of a snapshot, shared by the nodes of a plan.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<AnyRead>>>);

/// A running statement. Empties its slot when it ends.
pub(crate) struct Running(Slot);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<AnyRead>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshot of the running statement; a handle that counts its own reads.
    pub(crate) fn snapshot(&self) -> Result<AnyRead> {
        let ended = || Error::new(ErrorKind::Execution, "the statement has ended");
        self.lock().clone().ok_or_else(ended)
    }

    /// Whether a statement is running.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().is_some()
    }

    /// Begins a statement.
    pub(crate) fn run(&self, snapshot: AnyRead) -> Running {
        *self.lock() = Some(snapshot);
        Running(self.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({:?})", self.lock().as_ref().map(AnyRead::txn))
    }
}
