//! Public descriptions of readers and of the writer.

use std::time::Duration;
use tidalite_base::TxnId;

/// Kind of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// A reader that lends pages and retains them for its lifetime.
    Read,
    /// A reader that copies pages and may be evicted.
    Evictable,
    /// An idle reader, which may be evicted.
    Parked,
}

/// A snapshot held in any process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reader {
    /// The reader's slot in the reader table.
    pub slot: usize,
    /// The kind of reader.
    pub kind: ReaderKind,
    /// Its process, by its number in its own PID namespace.
    pub process: u32,
    /// The thread that began it.
    pub thread: u32,
    /// Whether it belongs to the queried handle.
    pub own: bool,
    /// The commit that it sees.
    pub txn: TxnId,
    /// Number of transactions between its commit and the newest one.
    pub lag_txns: u64,
    /// Its age, to a few milliseconds.
    pub age: Duration,
    /// Bytes of the file that could be reused without it, as of the newest write transaction. Bytes that several
    /// readers retain are counted for one of them.
    pub retained_bytes: u64,
    /// Bytes freed by all commits since it began: an upper bound of the bytes it retains.
    pub freed_bytes: u64,
}

/// The holder of the writer lock, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterSeen {
    /// Its process, by its number in its own PID namespace.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// The time for which it has held the lock, to a few milliseconds.
    pub since: Duration,
}
