//! State of the pages that an open transaction writes before its commit.

use super::background::BackgroundWriter;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tidalite_disk::storage::{Storage, WriteBack};

/// Number of pages written before the rate of repeated writes is checked.
const WRITTEN_MIN: u64 = 256;

/// Early writing continues while at most this part (1/n) of the written pages is changed again.
const AGAIN_PART: u64 = 4;

/// State of a transaction's write-behind (`write_behind.rs`).
#[derive(Debug, Default)]
pub(super) struct WriteBehind {
    /// Set while pages are written early; dropped when too many are changed again.
    pub(super) storage: Option<OwnedStorage>,
    /// Number of pages that are written at a time.
    pub(super) part: usize,
    /// The background thread; started once enough pages were changed.
    pub(super) background: Option<BackgroundWriter>,
    /// Pages that may be written early, in the order in which they were allocated.
    pub(super) waiting: VecDeque<u64>,
    /// Pages allocated since the last check whether the disk is idle.
    pub(super) not_requested: usize,
    pub(super) written: u64,
    /// Number of the written pages that were changed afterwards.
    pub(super) again: u64,
}

/// Handle for the background thread.
pub(super) struct OwnedStorage(pub(super) Arc<dyn Storage>);

impl fmt::Debug for OwnedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl WriteBehind {
    /// Asks the system to start writing a range to the medium, through the background thread if there is one.
    pub(super) fn ask(&self, storage: &dyn Storage, at: u64, len: u64) {
        match &self.background {
            Some(background) => background.write_back(at, len),
            None => storage.write_back(at, len),
        }
    }

    pub(super) fn comes_back(&self) -> bool {
        self.written >= WRITTEN_MIN && self.again * AGAIN_PART > self.written
    }
}

/// The bulk pages of a transaction.
#[derive(Debug)]
pub(super) struct BulkPages {
    /// Numbers of bulk pages in memory; some may have been freed or changed since.
    pub(super) waiting: Vec<u64>,
    /// Whether some bulk pages have been written.
    pub(super) has_begun: bool,
    pub(super) write_back: WriteBack,
}

impl Default for BulkPages {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            has_begun: false,
            write_back: WriteBack::new(None),
        }
    }
}
