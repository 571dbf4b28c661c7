//! Choice of the next free pages for a transaction: adjacent ones, or the most recently freed.

use std::collections::VecDeque;

/// The free range in use.
#[derive(Debug)]
pub(super) struct CurrentRange {
    pub(super) next: u64,
    pub(super) end: u64,
    /// Pages that this transaction has taken from such ranges.
    pub(super) taken: u64,
    /// Pages that the last transaction with any took.
    pub(super) before: u64,
    /// No range is left that this transaction could use.
    pub(super) over: bool,
    /// No range of this many pages was found, and none has appeared since.
    pub(super) missing: u64,
}

impl Default for CurrentRange {
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

/// Freed ranges, oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Taken first, if enabled.
    pub(super) first: VecDeque<(u64, u64)>,
    /// Enabled by the options (`always`), or for this transaction (`now`).
    pub(super) always: bool,
    pub(super) now: bool,
    /// Ranges to overwrite with a pattern; `None`: disabled.
    pub(super) poison: Option<Vec<(u64, u64)>>,
}
