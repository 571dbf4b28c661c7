//! Durability of commits, and the result of a commit.

use tidalite_base::TxnId;

/// Durability of a commit: which failures it survives once the commit function has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The commit survives a power failure. It takes two syncs, shared by the commits of many threads. It takes one
    /// sync if small commits follow each other and fit in the redo log (`log_bytes` of the options); each block of the
    /// redo log is then written twice.
    #[default]
    Durable,
    /// Like `Durable`, but small commits go to the redo log from the second one on, and each block of the redo log is
    /// written once. The disadvantage is that if one of these blocks is damaged before the redo log is emptied, and
    /// the file is opened after a crash, the file goes back to the commit before the damaged one. The open database
    /// reports this (`recovery`).
    OneFlush,
    /// The commit is visible to all processes and survives the death of this process. After a system crash, the file
    /// is at its last durable commit. A lazy commit needs no sync. It becomes durable later: with the next durable
    /// commit, by `sync` of the open database, or after the bytes and time set in the options.
    Lazy,
    /// The commit is visible only to this process, until the next commit of another durability stores its changes as
    /// well. Meant for bulk loads.
    None,
}

impl Durability {
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Self::Durable | Self::OneFlush)
    }

    /// Whether commits of this durability have a meta record.
    pub(crate) fn has_meta(self) -> bool {
        self != Self::None
    }
}

/// Result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitInfo {
    /// Transaction number of the commit; if nothing was changed, the number of the commit on which the transaction
    /// builds.
    pub txn: TxnId,
    /// Number of whole pages written, including pages of the free-space structure, without meta blocks and extents.
    pub pages_written: u64,
    /// Number of all bytes written: pages, extents and meta blocks.
    pub bytes_written: u64,
    /// Number of pages of the free-space structure among the pages written.
    pub space_pages_written: u64,
}
