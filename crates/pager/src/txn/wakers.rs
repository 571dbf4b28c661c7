//! Tasks of asynchronous code that wait for commits.

use crate::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tidalite_base::TxnId;

/// Tasks of asynchronous code that wait for commits to become durable.
#[derive(Default)]
pub(crate) struct Wakers(Mutex<Tasks>);

#[derive(Default)]
pub(super) struct Tasks {
    pub(super) waiting: Vec<(TxnId, Waker)>,
    /// Whether a thread runs that flushes commits for these tasks.
    pub(super) running: bool,
    /// Error of the last flush of that thread, for the next task that polls.
    pub(super) failed: Option<Error>,
}

impl Wakers {
    pub(super) fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
