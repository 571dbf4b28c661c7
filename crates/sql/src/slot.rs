//! The snapshot that all nodes of a plan read.
//!
//! A plan is kept after its statement, so that it can run again in a newer snapshot. Between two runs the slot is
//! empty, because a snapshot would prevent the pages of its commit from being freed.

use crate::error::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite::AnyRead;

/// The place of a snapshot. The nodes of a plan share it.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<State>>>);

/// The state of a running statement.
struct State {
    snapshot: AnyRead,
    /// The snapshots of other files that the statement reads.
    others: Vec<Running>,
}

/// A running statement. Dropping it empties its slot.
pub(crate) struct Running(Slot);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshot of the running statement, as a handle that counts its own reads.
    pub(crate) fn snapshot(&self) -> Result<AnyRead> {
        let state = self.lock();
        let snapshot = state.as_ref().map(|state| state.snapshot.clone());
        snapshot.ok_or_else(ended)
    }

    /// Makes `other` end together with the running statement.
    pub(crate) fn keep(&self, other: Running) -> Result<()> {
        let mut state = self.lock();
        state.as_mut().ok_or_else(ended)?.others.push(other);
        Ok(())
    }

    /// Whether a statement is running.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().is_some()
    }

    /// Begins a statement that reads this snapshot.
    pub(crate) fn run(&self, snapshot: AnyRead) -> Running {
        let others = Vec::new();
        *self.lock() = Some(State { snapshot, others });
        Running(self.clone())
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Execution, "the statement has ended")
}

impl Drop for Running {
    fn drop(&mut self) {
        // The other slots are emptied after this one is unlocked.
        let state = self.0.lock().take();
        drop(state);
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        write!(
            f,
            "Slot({:?})",
            state.as_ref().map(|state| state.snapshot.txn())
        )
    }
}
