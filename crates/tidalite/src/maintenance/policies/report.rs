//! What maintenance reports.

use crate::catalog::commit_clock::ClockReading;
use crate::maintenance::cold::Cooled;
use tidalite_base::TxnId;

/// Something that keeps pages of an old version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A pin.
    Pin {
        /// Its name.
        name: String,
        /// The version that it keeps.
        txn: TxnId,
    },
    /// A snapshot that somebody reads.
    Reader {
        /// Its process.
        process: u32,
        /// The version that it sees.
        txn: TxnId,
    },
}

/// A file under a cap for the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapState {
    /// The cap: the least of them, where there are several.
    pub cap_bytes: u64,
    /// Bytes in use before, as the cap counts them.
    pub used_before: u64,
    /// Bytes in use now. More than the cap only where nothing is left that could be removed, or where the time was up. (A cap that was out of
    /// reach from the start is refused.)
    pub used_bytes: u64,
    /// Bytes of the file now.
    pub file_bytes: u64,
    /// Bytes of pages that only old versions need.
    pub held_bytes: u64,
    /// The pins and readers of these versions, where the file is longer than the cap.
    pub holders: Vec<Holder>,
}

/// What maintenance did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Series that were cut.
    pub series: u64,
    /// Rows that were removed.
    pub rows: u64,
    /// Commits.
    pub commits: u64,
    /// What became cold; its commits are counted there.
    pub cold: Cooled,
    /// True when the budget ended before the work did.
    pub more: bool,
    /// How the file stands to a cap for the whole file, where more was in use than the cap or the file is longer.
    pub cap: Option<CapState>,
    /// The wall clock is ahead, and by it there would be more to remove or to make cold: that waits until the clock is confirmed.
    pub clock_ahead: Option<ClockReading>,
}
