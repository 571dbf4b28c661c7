//! Public descriptions of the snapshots in the reader table and of the current writer.

use std::time::Duration;
use tidalite_base::TxnId;

/// Kind of a reader, which determines whether a writer may evict it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// The reader lends pages to its caller, so its pages are retained until it ends.
    Read,
    /// The reader copies pages, so it may be evicted.
    Evictable,
    /// The reader is idle and may be evicted.
    Parked,
}

/// A snapshot that is open in some process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reader {
    /// Number of the reader's slot in the reader table.
    pub slot: usize,
    /// Kind of the reader.
    pub kind: ReaderKind,
    /// Id of the reader's process, in the PID namespace of that process.
    pub process: u32,
    /// Id of the thread that began the reader.
    pub thread: u32,
    /// Whether the reader belongs to the handle that was asked.
    pub own: bool,
    /// Transaction of the commit that the reader sees.
    pub txn: TxnId,
    /// Number of transactions between the commit that the reader sees and the newest commit.
    pub lag_txns: u64,
    /// Time since the reader began, accurate to a few milliseconds.
    pub age: Duration,
    /// Bytes of the file that could be reused if this reader ended, as of the newest write transaction. Bytes that
    /// several readers retain are counted for one of them.
    pub retained_bytes: u64,
    /// Bytes that all commits have freed since the reader began: an upper bound of the bytes that it retains.
    pub freed_bytes: u64,
}

/// The handle that has the writer lock now, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterSeen {
    /// Id of the writer's process, in the PID namespace of that process.
    pub process: u32,
    /// Id of the thread that acquired the writer lock.
    pub thread: u32,
    /// Time for which this handle has had the writer lock, accurate to a few milliseconds.
    pub since: Duration,
}
