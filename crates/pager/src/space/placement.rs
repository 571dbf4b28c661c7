//! Which free pages a transaction is to take next: side by side, or those that became free last.

use std::collections::VecDeque;

/// The stretch of free pages in use.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) next: u64,
    pub(super) end: u64,
    /// Pages that this transaction took so.
    pub(super) taken: u64,
    /// Pages that the one before took.
    pub(super) before: u64,
    /// There is none left that this transaction could use.
    pub(super) over: bool,
    /// No stretch of so many pages was found, and none has come up since.
    pub(super) missing: u64,
}

impl Default for Stretch {
    fn default() -> Self {
        Self {
            next: 0,
            end: 0,
            taken: 0,
            before: 0,
            over: false,
            missing: u64::MAX,
        }
    }
}

/// What became free, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// To be taken first, where that is asked for.
    pub(super) first: VecDeque<(u64, u64)>,
    /// It is asked for: by the options, or for this transaction.
    pub(super) always: bool,
    pub(super) now: bool,
    /// To be spoilt; `None`: nobody asked for that.
    pub(super) spoil: Option<Vec<(u64, u64)>>,
}
