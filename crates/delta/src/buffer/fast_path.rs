//! Decides how far a log may grow by plain appends, and when `WriteBuffer` looks at it again.
//!
//! ```text
//! rows     0 ........................ end ... check_at              end <= check_at - 1, end <= allocated rows
//!          points with `flags` are    |       |
//!          appended, nothing else     |       `- a flush may be due: the budget, a leaf in the open batch,
//!          is checked                 |          or whole vectors of the rounds
//!                                     `- the next row is checked, or needs memory
//! ```
//!
//! Both bounds follow from five values: the start of the open batch, the row count `flush_at` at which the rounds are
//! flushed, the budget, the allocated rows, and whether the columns are the two of a point, with constant flags.
//! `Log::refresh` is the only function that computes the bounds. It is called after a change of these values; until
//! then a bound may be too low, which costs a check, but never too high. A row that may change the columns calls
//! `invalidate`, and the next point refreshes.

/// Bounds on the row count of a log: up to which count points are appended without checks, and at which count the
/// next check is due. The head of this file describes how they are computed.
#[derive(Debug, Default)]
pub(super) struct FastPath {
    /// Row count of the log up to which the memory budget has been checked; 0 before the first row.
    budget_at: usize,
    /// Row count of the log at which `WriteBuffer` checks whether a flush is due.
    check_at: usize,
    /// Points below this row number are appended on the fast path, without checks; 0 if the fast path is closed.
    end: usize,
    /// The flags that a point must have to take the fast path.
    flags: u64,
}

impl FastPath {
    /// Returns the row count of the log at which `WriteBuffer` checks whether a flush is due.
    #[inline]
    pub(super) fn check_at(&self) -> usize {
        self.check_at
    }

    /// Whether a point may be appended as row `row` without any other check.
    #[inline(always)]
    pub(super) fn takes(&self, row: usize, flags: u64) -> bool {
        row < self.end && flags == self.flags
    }

    /// Whether the memory budget has been checked since the log was emptied.
    #[inline]
    pub(super) fn has_budget(&self) -> bool {
        self.budget_at > 0
    }

    /// Sets the row count of the log up to which the memory budget need not be checked again. The caller must call
    /// `refresh` afterwards.
    #[inline]
    pub(super) fn set_budget(&mut self, budget_at: usize) {
        debug_assert!(budget_at > 0, "at least one row is within the budget");
        self.budget_at = budget_at;
    }

    /// Closes the fast path until the next `refresh`, because a column of the log may stop being constant.
    #[inline]
    pub(super) fn invalidate(&mut self) {
        self.end = 0;
    }

    /// Computes both bounds (`check_at` and `end`). `flush_at` is the row count at which the open batch or the rounds
    /// must be flushed; `flags` are the constant flags if the log has the two columns of a point; `room` is the
    /// number of allocated rows.
    #[inline]
    pub(super) fn refresh(&mut self, flush_at: usize, flags: Option<u64>, room: usize) {
        self.check_at = self.budget_at.min(flush_at);
        self.end = 0;
        if let Some(flags) = flags {
            self.flags = flags;
            self.end = self.check_at.saturating_sub(1).min(room);
        }
    }
}
