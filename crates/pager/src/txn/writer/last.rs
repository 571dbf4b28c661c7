//! Kind of the last commit of a handle: the next one is likely to be of the same kind. Affects only speed.

use crate::txn::dirty::write_behind::WriteBehindChoice;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    /// Its pages were written to the cache in passing, or stayed in memory: no sync was about to follow.
    pub(crate) passing: bool,
    /// It was not durable.
    pub(crate) lazy: bool,
    /// Whether leaves are written while a transaction is open.
    pub(crate) early: WriteBehindChoice,
}
