//! Callbacks about readers that retain much space and about writers that wait.

use std::fmt;
use std::sync::Arc;
use tidalite_disk::lock::{Reader, WriterSeen};

/// Description of a reader that prevents the reuse of space, for the callback that decides about the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongReader {
    /// The reader, with the space that it retains.
    pub reader: Reader,
    /// Number of times that the callback was already called for the same allocation.
    pub retries: u32,
    /// Whether the disk is full; if false, the file would have to grow.
    pub disk_full: bool,
}

/// Decision of the callback about a long-lived reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongReaderAction {
    /// Wait a few milliseconds and check the reader again.
    Wait,
    /// Evict the reader if it is evictable or parked; otherwise evict the evictable or parked reader that retains
    /// most. If there is no such reader, act as `GiveUp`.
    Evict,
    /// Stop waiting: let the file grow or, if the disk is full, fail the transaction.
    GiveUp,
}

/// Callback that decides about a long-lived reader; see [`Options::on_long_reader`](crate::Options::on_long_reader).
#[derive(Clone)]
pub struct OnLongReader(pub Arc<dyn Fn(&LongReader) -> LongReaderAction + Send + Sync>);

impl fmt::Debug for OnLongReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLongReader(..)")
    }
}

/// Callback that is told once a second which handle has the writer lock; see
/// [`Options::on_wait`](crate::Options::on_wait).
#[derive(Clone)]
pub struct OnWait(pub Arc<dyn Fn(&WriterSeen) + Send + Sync>);

impl fmt::Debug for OnWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnWait(..)")
    }
}
