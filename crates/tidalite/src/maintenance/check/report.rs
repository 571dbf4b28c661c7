//! The report of a check of a whole database.

use crate::maintenance::check::finding::Finding;
use tidalite_pager::LostCommits;

/// Report of a check of the whole database.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Problems and the data that they affect; empty for a sound file.
    pub findings: Vec<Finding>,
    /// The text of each finding, as one sentence.
    pub problems: Vec<String>,
    /// Number of problems that are damaged copies of the blocks at the head of the file; the next handle that opens the
    /// file for writing rewrites these copies.
    pub problems_healable: u64,
    /// Durable commits found missing at opening. One of the problems reports them, unless the loss was accepted by an
    /// option.
    pub lost_commits: Option<LostCommits>,
    /// Observations that are not damage: traces of a crash, which the next handle that opens the file for writing
    /// removes.
    pub notes: Vec<String>,
    /// True if the watch stopped the check: there may be problems that were not found.
    pub cancelled: bool,
    /// Number of pages in the file.
    pub pages_total: u64,
    /// Number of pages that are neither free nor pending, including the head of the file.
    pub pages_used: u64,
    /// Number of pages that can be allocated.
    pub pages_free: u64,
    /// Number of pages that the newest version does not use, but that a snapshot can still see or that the newest
    /// durable states need.
    pub pages_pending: u64,
    /// Number of user tables.
    pub tables: u64,
    /// Number of series.
    pub series: u64,
    /// Number of leaves of all series.
    pub leaves: u64,
    /// Number of rows in leaves.
    pub leaf_rows: u64,
    /// Number of sorted runs in the delta.
    pub runs: u64,
    /// Number of compactions of runs that are in progress.
    pub compactions: u64,
    /// Number of rows in the delta: committed rows that are not in leaves yet.
    pub delta_rows: u64,
    /// Number of pinned versions.
    pub pins: u64,
}

impl CheckReport {
    /// True if the check found no problems and was not cancelled.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && !self.cancelled
    }
}
