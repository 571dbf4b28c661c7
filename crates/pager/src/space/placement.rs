//! Choice of the next free pages for a transaction: adjacent ones, or the most recently freed.

use std::collections::VecDeque;

/// The free range from which the running transaction takes pages.
#[derive(Debug)]
pub(super) struct CurrentRange {
    pub(super) next: u64,
    pub(super) end: u64,
    /// Number of pages that this transaction has taken from such ranges.
    pub(super) taken: u64,
    /// Number of pages that the last transaction with allocations took.
    pub(super) before: u64,
    /// True if no range is left that this transaction could use.
    pub(super) over: bool,
    /// A range of this many pages, or more, is known not to exist: a search failed, and none has appeared since.
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

/// Recently freed ranges, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Ranges from which pages are taken before others, if that is enabled.
    pub(super) first: VecDeque<(u64, u64)>,
    /// Whether `first` is used: enabled by the options (`always`), or for this transaction (`now`).
    pub(super) always: bool,
    pub(super) now: bool,
    /// Ranges to overwrite with a pattern; `None` if that is disabled.
    pub(super) poison: Option<Vec<(u64, u64)>>,
}
