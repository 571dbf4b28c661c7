//! Who reads and who writes, as programs see it.

use std::time::Duration;
use tidalite_base::TxnId;

/// What kind of reader it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// It lends pages and keeps them for as long as it lives.
    Read,
    /// It copies pages and may lose its snapshot.
    Evictable,
    /// It reads nothing now and may lose its snapshot.
    Parked,
}

/// A snapshot that somebody holds, in whatever process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reader {
    /// Which slot of the reader table it has.
    pub slot: usize,
    /// What kind of reader it is.
    pub kind: ReaderKind,
    /// Its process, as numbered where it runs (another PID namespace has other numbers).
    pub process: u32,
    /// Its thread, when it began.
    pub thread: u32,
    /// Whether it belongs to the handle that was asked.
    pub own: bool,
    /// The commit that it sees.
    pub txn: TxnId,
    /// How many transactions that is behind the newest one.
    pub lag_txns: u64,
    /// For how long it has been there, to a few milliseconds.
    pub age: Duration,
    /// Bytes of the file that could be used again without it, as of the newest write transaction. What several
    /// readers hold is counted with one of them.
    pub held_bytes: u64,
    /// Bytes that all commits since it began have freed: it holds no more than that.
    pub freed_bytes: u64,
}

/// Who has the write transaction, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterSeen {
    /// Its process, as numbered where it runs.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// For how long it has had it, to a few milliseconds.
    pub since: Duration,
}
