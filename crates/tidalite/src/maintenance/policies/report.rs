//! The report that a call of maintenance returns.

use crate::catalog::commit_clock::ClockReading;
use crate::maintenance::cold::Cooled;
use crate::types::error::kind::ErrorKind;
use tidalite_base::TxnId;

/// A pin or reader that retains pages of an old version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A named pin.
    Pin {
        /// Name of the pin.
        name: String,
        /// The version that the pin retains.
        txn: TxnId,
    },
    /// A snapshot that some process holds.
    Reader {
        /// Id of the process that holds the snapshot.
        process: u32,
        /// The version that the snapshot reads.
        txn: TxnId,
    },
}

/// Sizes of a file that is under a cap for the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapState {
    /// The cap in bytes: the smallest one if there are several.
    pub cap_bytes: u64,
    /// Bytes in use before the call, as counted for the cap.
    pub used_before: u64,
    /// Bytes in use after the call. They exceed the cap only if nothing removable is left or the time was up. (A cap
    /// that was out of reach from the start is refused.)
    pub used_bytes: u64,
    /// Current size of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of pages that only old versions need.
    pub retained_bytes: u64,
    /// The pins and readers that retain old versions, if the file is longer than the cap.
    pub holders: Vec<Holder>,
}

/// The work of one call of maintenance on topic tables, queues, buckets and tables of containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaintainedMessages {
    /// Number of tables that were maintained, because something was to be removed or a lease had lapsed.
    pub tables: u64,
    /// Number of messages that were removed because they had expired, were older than the retention of their queue, or
    /// exceeded a maximum of their container.
    pub messages: u64,
    /// Number of expired objects that were removed.
    pub objects: u64,
    /// Number of commits made for this.
    pub commits: u64,
}

/// A table of messages that could not be maintained.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedTable {
    /// Name of the table.
    pub table: String,
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Text of the error.
    pub problem: String,
}

/// Report of one call of maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Number of series from which rows were removed.
    pub series: u64,
    /// Number of rows removed.
    pub rows: u64,
    /// Number of windows stored in place of removed rows ([`Downsample`](crate::retention::Downsample)).
    pub windows: u64,
    /// Messages and objects that were removed.
    pub messages: MaintainedMessages,
    /// Tables of messages that could not be maintained; everything else was.
    pub failed: Vec<FailedTable>,
    /// Number of commits made, without those counted in `messages` and `cold`.
    pub commits: u64,
    /// Data rewritten in cold form, with the number of commits that did so.
    pub cold: Cooled,
    /// True if the budget was used up before all work was done.
    pub more: bool,
    /// Sizes of the file under a cap for the whole file, if more bytes were in use than the cap or the file is longer.
    pub cap: Option<CapState>,
    /// The clocks, if the wall clock is ahead and more would be removed, made cold or maintained by the wall clock. This
    /// work waits until the wall clock is confirmed.
    pub clock_ahead: Option<ClockReading>,
}
