//! What a salvage reports.

use crate::maintenance::check::Finding;

/// Descriptions of loss that are kept; the rest are counted.
const LOST_MAX: usize = 1000;

/// What was saved and what was lost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The commit whose record was found; `None`: everything was saved by headers.
    pub txn: Option<tidalite_base::TxnId>,
    /// Tables, each with its rows.
    pub tables: Vec<Saved>,
    /// Series, each with its rows.
    pub series: Vec<Saved>,
    /// Retention policies.
    pub retentions: u64,
    /// What could not be read, and what it takes along.
    pub lost: Vec<Finding>,
    /// Losses beyond those in `lost`.
    pub more_lost: u64,
    /// Pages and blocks found by their headers, whatever they were.
    pub headers: u64,
}

/// What was saved of a table or a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Its name; made up where that was lost.
    pub name: String,
    /// Rows written, of both kinds below.
    pub rows: u64,
    /// Rows among them that were found by headers alone: some may be of an older version.
    pub rows_by_headers: u64,
}

impl SalvageReport {
    /// Rows and table entries in all.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let all = self.tables.iter().chain(&self.series);
        all.map(|saved| saved.rows).sum()
    }

    /// True when nothing was found to be missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.txn.is_some()
    }

    pub(super) fn lose(&mut self, finding: Finding) {
        self.lose_with(|| finding);
    }

    /// As `lose`, of what takes time to tell.
    pub(super) fn lose_with(&mut self, tell: impl FnOnce() -> Finding) {
        if self.lost.len() < LOST_MAX {
            self.lost.push(tell());
        } else {
            self.more_lost += 1;
        }
    }
}
