//! Choice of the next free pages for a transaction: adjacent pages, or the most recently freed pages.

use std::collections::VecDeque;

/// The free range from which the running transaction allocates pages.
#[derive(Debug)]
pub(super) struct CurrentRange {
    pub(super) next: u64,
    pub(super) end: u64,
    /// Number of pages that this transaction has allocated from such ranges.
    pub(super) taken: u64,
    /// Number of pages that the last transaction with allocations has allocated.
    pub(super) before: u64,
    /// Whether no free range is left that this transaction could use.
    pub(super) over: bool,
    /// Length in pages of a free range that is known not to exist: a search for it failed, and no free range of this
    /// length has appeared since.
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

/// Recently freed ranges, in the order in which they were freed.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Ranges from which pages are allocated before other pages, if `always` or `now` is set.
    pub(super) first: VecDeque<(u64, u64)>,
    /// Whether pages from `first` are allocated first: `always` is set by the options, `now` for the running
    /// transaction.
    pub(super) always: bool,
    pub(super) now: bool,
    /// Freed ranges to overwrite with a pattern; `None` if the options do not ask for this.
    pub(super) poison: Option<Vec<(u64, u64)>>,
}
