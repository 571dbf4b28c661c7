//! Durable commits that a damaged file has lost.

use std::fmt;
use tidalite_base::TxnId;

/// Durable commits that cannot be found any more because the damage exceeds the redundancy of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostCommits {
    /// The newest commit that was found. The open file shows the data of this commit.
    pub found: TxnId,
    /// The newest commit that left any trace in the file.
    pub newest: TxnId,
    /// The part of the file that was damaged.
    pub cause: LossCause,
}

/// The part of the file whose damage caused the loss of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// All copies of a block of the redo log are damaged. (A block of [`OneFlush`](crate::Durability::OneFlush)
    /// commits has only one copy.)
    Log,
    /// Both copies of the newest durable meta record are damaged.
    Record,
}

impl LostCommits {
    /// Number of transactions from the newest commit found to the newest commit known, including commits that were
    /// never durable.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.newest.0.saturating_sub(self.found.0)
    }
}

impl fmt::Display for LostCommits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let damaged = match self.cause {
            LossCause::Log => "a block of the redo log is damaged in all its copies",
            LossCause::Record => "both copies of the newest commit record are lost",
        };
        let (missing, found, newest) = (self.missing(), self.found, self.newest);
        let noun = if missing == 1 { "commit" } else { "commits" };
        write!(
            f,
            "durable commits are missing: {damaged}; the newest commit found is {found}, the newest one known is {newest}, {missing} {noun} later"
        )
    }
}
