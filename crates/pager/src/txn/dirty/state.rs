//! State of the pages that an open transaction writes before its commit.

use super::background::BackgroundWriter;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tidalite_disk::storage::{Storage, WriteBack};

/// Minimum number of written pages before the rate of repeated writes is checked.
const WRITTEN_MIN: u64 = 256;

/// Write-behind continues while at most 1/`AGAIN_PART` of the written pages is changed again.
const AGAIN_PART: u64 = 4;

/// State of a transaction's write-behind, that is, of writing leaves while the transaction is open
/// (`write_behind.rs`).
#[derive(Debug, Default)]
pub(super) struct WriteBehind {
    /// The storage to which pages are written early, while write-behind is on. Set to `None` when too many written
    /// pages are changed again.
    pub(super) storage: Option<OwnedStorage>,
    /// Number of pages that are written at a time.
    pub(super) part: usize,
    /// The background thread that writes pages, which is started once enough pages were changed.
    pub(super) background: Option<BackgroundWriter>,
    /// Numbers of the pages that may be written early, in the order in which they were allocated.
    pub(super) waiting: VecDeque<u64>,
    /// Number of pages allocated since write-behind last checked whether the disk is idle.
    pub(super) not_requested: usize,
    pub(super) written: u64,
    /// Number of the written pages that were changed after they were written.
    pub(super) again: u64,
}

/// A shared reference to the storage, kept while write-behind is on.
pub(super) struct OwnedStorage(pub(super) Arc<dyn Storage>);

impl fmt::Debug for OwnedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl WriteBehind {
    /// Asks the system to start writing a range of the file to the medium, through the background thread if there is
    /// one.
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

/// The bulk pages of a transaction: pages that are complete when they are added.
#[derive(Debug)]
pub(super) struct BulkPages {
    /// Numbers of the bulk pages in memory; some of them may have been freed or changed since they were added.
    pub(super) waiting: Vec<u64>,
    /// Whether any bulk pages have been written.
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
