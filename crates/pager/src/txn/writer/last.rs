//! What the last commit of a handle was: the next one is likely to be of its kind. Nothing but speed hangs on that.

use crate::txn::dirty::write_behind::Habit;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    /// Its pages went to the cache in passing, or stayed in memory: no sync was about to follow.
    pub(crate) passing: bool,
    /// It was not to be durable.
    pub(crate) lazy: bool,
    /// Whether leaves are written while a transaction is open.
    pub(crate) early: Habit,
}
