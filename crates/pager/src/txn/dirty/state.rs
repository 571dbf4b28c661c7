//! What a transaction remembers of the pages that it writes while it is open.

use super::background::Beside;
use crate::storage::{Storage, WriteBack};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// So many pages are written before it is asked what came back.
const WRITTEN_MIN: u64 = 256;

/// It goes on while at most one page in so many comes back.
const AGAIN_PART: u64 = 4;

/// What is written early of a transaction.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// It is asked for; given up when too much comes back.
    pub(super) storage: Option<Own>,
    /// Pages of a part.
    pub(super) part: usize,
    /// Writes and asks the system; there is none before enough was changed.
    pub(super) beside: Option<Beside>,
    /// Pages in the order in which they were allocated.
    pub(super) waiting: VecDeque<u64>,
    /// So many were allocated since it was asked whether the disk has something to do.
    pub(super) unasked: usize,
    pub(super) written: u64,
    /// Of these, changed afterwards.
    pub(super) again: u64,
}

/// For the thread that writes.
pub(super) struct Own(pub(super) Arc<dyn Storage>);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl Early {
    /// Has the system begin to write bytes to the medium: beside the transaction where a thread does that.
    pub(super) fn ask(&self, storage: &dyn Storage, at: u64, len: u64) {
        match &self.beside {
            Some(beside) => beside.write_back(at, len),
            None => storage.write_back(at, len),
        }
    }

    pub(super) fn comes_back(&self) -> bool {
        self.written >= WRITTEN_MIN && self.again * AGAIN_PART > self.written
    }
}

/// The whole pages of a transaction.
#[derive(Debug)]
pub(super) struct Whole {
    /// Numbers of those that are in memory, unless they were given up or changed since.
    pub(super) waiting: Vec<u64>,
    /// Some were written.
    pub(super) has_begun: bool,
    pub(super) write_back: WriteBack,
}

impl Default for Whole {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            has_begun: false,
            write_back: WriteBack::new(None),
        }
    }
}
