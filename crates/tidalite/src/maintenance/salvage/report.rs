//! The report of a salvage.

use crate::maintenance::check::Finding;

/// Maximum number of losses that are described; further losses are only counted.
const LOST_MAX: usize = 1000;

/// Report of a salvage: data saved and data lost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The commit whose roots were readable; `None` if all data was found by headers.
    pub txn: Option<tidalite_base::TxnId>,
    /// The tables saved, each with its number of rows.
    pub tables: Vec<Saved>,
    /// The series saved, each with its number of rows.
    pub series: Vec<Saved>,
    /// Number of retention policies saved.
    pub retentions: u64,
    /// The unreadable parts, and the data affected by each.
    pub lost: Vec<Finding>,
    /// Number of losses beyond those in `lost`.
    pub more_lost: u64,
    /// Number of pages and blocks of all kinds that were found by their headers.
    pub headers: u64,
}

/// The data saved of one table or series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Name of the table or series; a generated name if the name was lost.
    pub name: String,
    /// Number of rows written, including `rows_by_headers`.
    pub rows: u64,
    /// Number of rows found by headers alone: some rows may be of an older version.
    pub rows_by_headers: u64,
}

impl SalvageReport {
    /// Total number of rows of series and entries of tables.
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

    /// Records a loss like `lose`; `tell` builds the description only if it is kept.
    pub(super) fn lose_with(&mut self, tell: impl FnOnce() -> Finding) {
        if self.lost.len() < LOST_MAX {
            self.lost.push(tell());
        } else {
            self.more_lost += 1;
        }
    }
}
