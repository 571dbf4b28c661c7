//! The bounds of the front's work, and counters that prove them without a clock.

use crate::buffer::staging::LEAF_ROWS;
use tidalite_base::limits::CHECKSUM_SPAN_MAX;

/// Runs that one merge takes: the oldest ones of a tier.
pub const FAN_IN: usize = 16;

/// Live runs of a tier at most, the output of its open merge not counted: when one more comes, the open
/// merge is driven to its end first.
pub const TIER_RUNS_MAX: usize = 2 * FAN_IN - 1;

/// Tiers at most; the last one merges into itself. 16^8 tail pages are more rows than a file can hold.
pub const TIERS_MAX: usize = 8;

/// Layouts (lists of column types) at most in one file.
pub const LAYOUTS_MAX: usize = 256;

/// Bytes of rows by which an open merge advances at least, when it advances. With fewer, the
/// blocks decoded to resume would cost more than the step; with more, small commits would feel it.
pub const MERGE_STEP_BYTES: u64 = 64 * 1024;

/// Bytes of rows by which a step may go on to reach the end of a series: a leaf of default points. A series cut in
/// the middle would leave a remainder in a run that could have been linked.
pub const MERGE_OVERSHOOT_BYTES: u64 = LEAF_ROWS as u64 * 32;

/// Over many small commits together, pages of 4 KiB written at most for each: the tail's page, now and then one of the free
/// space. Meta blocks, two a commit, are not counted ...
pub const PAGES_A_COMMIT_MAX: f64 = 1.1;

/// ... and beside them bytes written at most for each byte of rows (8 for the series, 8 for the time, 8 a column): in runs,
/// merges of runs, leaves and the tree over them.
pub const BYTES_A_BYTE_MAX: f64 = 8.0;

/// Bytes of a block at most.
pub(crate) const BLOCK_BYTES_MAX: usize = CHECKSUM_SPAN_MAX;

/// What the front did since it was loaded or since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rows given: staged rows that were handed over.
    pub rows_given: u64,
    /// Bytes of those rows, raw (8 for the series, 8 for the time, 8 a column).
    pub bytes_given: u64,
    /// Rows handed to the sink straight from staging.
    pub rows_linked: u64,
    /// Those of them that were encoded as vectors by threads beside the writer.
    pub rows_linked_beside: u64,
    /// Rows encoded as blocks of a run by threads beside the writer.
    pub rows_in_blocks: u64,
    /// Rows handed to the sink by merges.
    pub rows_linked_by_merges: u64,
    /// Rows read by merges.
    pub rows_merged: u64,
    /// Blocks written, by new runs, merges and deletes.
    pub blocks_written: u64,
    /// Pages of extents written, blocks and record.
    pub extent_pages_written: u64,
    /// Runs written from staging and tail.
    pub runs_written: u64,
    /// Merges that ended.
    pub merges_ended: u64,
    /// Blocks of inputs that were freed while their merge went on.
    pub blocks_passed: u64,
    /// Logs of rows given to other threads when all was to be handed over.
    pub logs_lent: u64,
    /// Merges that had to be driven to their end because their tier was full.
    pub merges_forced: u64,
}
