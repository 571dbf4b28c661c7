//! Guarantees and results of commits.

use tidalite_base::TxnId;

/// Guarantee of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The commit survives a power cut. It takes two barriers, shared by the commits of many threads, or one, if small
    /// commits follow each other and the log takes them (`Options::log_bytes`); each log block is then written twice.
    #[default]
    Durable,
    /// Like `Durable`, but small commits go to the log from the second one on, and each log block is written once. The
    /// price: if one of these blocks is damaged before the log is emptied, and the file is opened after a crash, the
    /// file goes back to the commit before the damaged one. The open database reports this (`recovery`).
    OneFlush,
    /// The commit is visible to all processes and survives the death of this one. After a system crash the file is at
    /// its last durable commit. A lazy commit needs no barrier. It becomes durable later: with the next durable commit,
    /// by `sync` of the open database, or after the bytes and time set in the options.
    Lazy,
    /// The commit is visible to this process only, until the next commit of another durability stores its changes too.
    /// For bulk loads.
    None,
}

impl Durability {
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Self::Durable | Self::OneFlush)
    }

    /// Whether such a commit has a meta record.
    pub(crate) fn has_meta(self) -> bool {
        self != Self::None
    }
}

/// Result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitInfo {
    /// The number of the commit; if nothing was changed, the number of the commit that the transaction builds on.
    pub txn: TxnId,
    /// Whole pages written, including the free-space structure, without meta blocks and extents.
    pub pages_written: u64,
    /// All bytes written: pages, extents, meta blocks.
    pub bytes_written: u64,
    /// Pages of the free-space structure among the pages written.
    pub space_pages_written: u64,
}
