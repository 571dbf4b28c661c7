//! The bounds of the front's work.

use tidalite_base::limits::{CHECKSUM_SPAN_MAX, LEAF_VECTORS_MAX, VECTOR_ROWS};

/// Rows of a stretch that is handed over at once: a leaf.
pub const LEAF_ROWS: usize = LEAF_VECTORS_MAX * VECTOR_ROWS;

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
