//! The report of a salvage.

use crate::maintenance::check::Finding;

/// Maximum number of losses described; further ones are counted.
const LOST_MAX: usize = 1000;

/// Data saved and data lost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The commit whose record was found; `None` if everything was saved by headers.
    pub txn: Option<tidalite_base::TxnId>,
    /// Tables, each with its number of rows.
    pub tables: Vec<Saved>,
    /// Series, each with their number of rows.
    pub series: Vec<Saved>,
    /// Retention policies.
    pub retentions: u64,
    /// Unreadable parts, and the data affected.
    pub lost: Vec<Finding>,
    /// Losses beyond those in `lost`.
    pub more_lost: u64,
    /// Pages and blocks found by their headers, of all kinds.
    pub headers: u64,
}

/// The data saved of a table or a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The name; generated if it was lost.
    pub name: String,
    /// Rows written, including `rows_by_headers`.
    pub rows: u64,
    /// Rows found by headers alone: some may be of an older version.
    pub rows_by_headers: u64,
}

impl SalvageReport {
    /// Total of rows and table entries.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let all = self.tables.iter().chain(&self.series);
        all.map(|saved| saved.rows).sum()
    }

    /// True if no loss was found.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.txn.is_some()
    }

    pub(super) fn lose(&mut self, finding: Finding) {
        self.lose_with(|| finding);
    }

    /// Like `lose`, with a description that is expensive to build.
    pub(super) fn lose_with(&mut self, tell: impl FnOnce() -> Finding) {
        if self.lost.len() < LOST_MAX {
            self.lost.push(tell());
        } else {
            self.more_lost += 1;
        }
    }
}
