//! Kind of the last commit of a handle. The next commit is likely to be of the same kind. A wrong guess affects only
//! the speed.

use crate::txn::dirty::write_behind::WriteBehindChoice;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    /// Whether the pages of the last commit were written without a sync to follow, or stayed in memory.
    pub(crate) passing: bool,
    /// Whether the last commit was not durable.
    pub(crate) lazy: bool,
    /// Decides whether the next transaction writes leaves while it is still open.
    pub(crate) early: WriteBehindChoice,
}
