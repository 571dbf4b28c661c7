//! The report of maintenance.

use crate::catalog::commit_clock::ClockReading;
use crate::maintenance::cold::Cooled;
use tidalite_base::TxnId;

/// A pin or reader that retains pages of an old version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A pin.
    Pin {
        /// The pin's name.
        name: String,
        /// The version that it retains.
        txn: TxnId,
    },
    /// A snapshot in use.
    Reader {
        /// The reader's process.
        process: u32,
        /// The version that it reads.
        txn: TxnId,
    },
}

/// A file under a cap for the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapState {
    /// The cap: the smallest one if there are several.
    pub cap_bytes: u64,
    /// Bytes in use before, as counted for the cap.
    pub used_before: u64,
    /// Bytes in use now. They exceed the cap only if nothing removable is left or the time was up. (A cap that was out
    /// of reach from the start is refused.)
    pub used_bytes: u64,
    /// Current size of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of pages that only old versions need.
    pub retained_bytes: u64,
    /// The pins and readers of these versions, if the file is longer than the cap.
    pub holders: Vec<Holder>,
}

/// The result of maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Number of series that were cut.
    pub series: u64,
    /// Number of rows removed.
    pub rows: u64,
    /// Commits.
    pub commits: u64,
    /// Data made cold; its commits are counted there.
    pub cold: Cooled,
    /// True if the budget ended before the work did.
    pub more: bool,
    /// The file's state under a cap for the whole file, if more was in use than the cap or the file is longer.
    pub cap: Option<CapState>,
    /// The clocks, if the wall clock is ahead and more would be removed or made cold by its time. This work waits until
    /// the clock is confirmed.
    pub clock_ahead: Option<ClockReading>,
}
