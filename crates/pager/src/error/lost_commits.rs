//! Which durable commits a damaged file has lost.

use std::fmt;
use tidalite_base::TxnId;

/// Durable commits that cannot be found any more, because more of the file is damaged than its copies make up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostCommits {
    /// The newest commit that was found. What is shown is its state.
    pub found: TxnId,
    /// The newest commit that the file has a trace of.
    pub newest: TxnId,
    /// Which part of the file is damaged.
    pub cause: LossCause,
}

/// The part of the file whose damage made commits disappear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// A block of the log, in all its copies. (A block of [`OneFlush`](crate::Durability::OneFlush) commits has one copy.)
    Log,
    /// Both copies of the newest durable record.
    Record,
}

impl LostCommits {
    /// Number of transactions between the newest commit found and the newest one known. Numbers of commits that were never durable are
    /// among them.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.newest.0.saturating_sub(self.found.0)
    }
}

impl fmt::Display for LostCommits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let damaged = match self.cause {
            LossCause::Log => "a block of the log is damaged in all its copies",
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
