//! The report of a check of a whole database.

use crate::maintenance::check::finding::Finding;
use tidalite_pager::LostCommits;

/// Result of a check.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Problems and the data they affect; empty for a sound file.
    pub findings: Vec<Finding>,
    /// The findings as text, one sentence each.
    pub problems: Vec<String>,
    /// Number of problems that are damaged copies of head blocks; the next handle that opens the file for writing
    /// rewrites these.
    pub problems_healable: u64,
    /// The durable commits found missing on opening; one of the problems reports them, unless the loss was accepted.
    pub lost_commits: Option<LostCommits>,
    /// Observations that are not damage: traces of a crash, which the next handle that opens the file for writing
    /// removes.
    pub notes: Vec<String>,
    /// True if the watch stopped the check: there may be further problems.
    pub cancelled: bool,
    /// Pages of the file.
    pub pages_total: u64,
    /// Pages that are neither free nor pending, including the head of the file.
    pub pages_used: u64,
    /// Pages that can be allocated.
    pub pages_free: u64,
    /// Dead pages still visible to a snapshot or needed by the newest durable states.
    pub pages_pending: u64,
    /// Tables of the user.
    pub tables: u64,
    /// Series.
    pub series: u64,
    /// Leaves of series.
    pub leaves: u64,
    /// Rows in leaves.
    pub leaf_rows: u64,
    /// Runs of the delta.
    pub runs: u64,
    /// Compactions of runs in progress.
    pub compactions: u64,
    /// Rows in the delta.
    pub delta_rows: u64,
    /// Pinned versions.
    pub pins: u64,
}

impl CheckReport {
    /// True if there are no problems.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && !self.cancelled
    }
}
