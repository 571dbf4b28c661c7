//! What a check of a whole database reports.

use crate::maintenance::check::finding::Finding;
use tidalite_pager::LostCommits;

/// What a check found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// What is wrong and what it takes along; empty for a sound file.
    pub findings: Vec<Finding>,
    /// The same, one sentence each.
    pub problems: Vec<String>,
    /// How many of the problems are damaged copies of blocks in the head, which the next handle that opens the file for writing rewrites.
    pub problems_healable: u64,
    /// The durable commits that are missing, when opening found that some are; one of the problems says so, unless the loss was accepted.
    pub lost_commits: Option<LostCommits>,
    /// What is no damage but may be of interest: traces of a crash, which the next handle that opens the file for writing removes.
    pub notes: Vec<String>,
    /// True when who watched has stopped it: what is not found here may still be there.
    pub cancelled: bool,
    /// Pages of the file.
    pub pages_total: u64,
    /// Pages that are neither free nor waiting, the head of the file included.
    pub pages_used: u64,
    /// Pages that can be allocated.
    pub pages_free: u64,
    /// Pages that are dead but still seen by a snapshot or needed by the newest durable states.
    pub pages_pending: u64,
    /// Tables of the user.
    pub tables: u64,
    /// Series.
    pub series: u64,
    /// Leaves of series.
    pub leaves: u64,
    /// Rows in leaves.
    pub leaf_rows: u64,
    /// Runs of the front.
    pub runs: u64,
    /// Merges of runs that are under way.
    pub merges: u64,
    /// Rows in the front.
    pub front_rows: u64,
    /// Pinned versions.
    pub pins: u64,
}

impl CheckReport {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && !self.cancelled
    }
}
