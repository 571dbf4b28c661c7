//! Bounds on the work of the delta.

use tidalite_base::limits::{CHECKSUM_SPAN_MAX, LEAF_VECTORS_MAX, VECTOR_ROWS};

/// Maximum number of rows that are flushed at once for one series: as many as a leaf holds.
pub const LEAF_ROWS: usize = LEAF_VECTORS_MAX * VECTOR_ROWS;

/// Number of input runs of one compaction: the oldest runs of a tier.
pub const FAN_IN: usize = 16;

/// Maximum number of live runs in a tier, without the output of its open compaction. If one more run arrives, the open
/// compaction is completed first.
pub const TIER_RUNS_MAX: usize = 2 * FAN_IN - 1;

/// Maximum number of tiers; runs of the last tier are compacted into one run of the same tier. 16^8 tail pages are
/// more rows than a file can hold.
pub const TIERS_MAX: usize = 8;

/// Maximum number of layouts (lists of column types) in one file.
pub const LAYOUTS_MAX: usize = 256;

/// Minimum size in bytes of the rows by which an open compaction advances per step. With fewer bytes, decoding the
/// blocks to resume would cost more than the step; with more, small commits would slow down noticeably.
pub const COMPACTION_STEP_BYTES: u64 = 64 * 1024;

/// Size in bytes of the rows by which a step of a compaction may exceed its budget to reach the end of a series: the
/// rows of a leaf of points. If the step split the series, a remainder that could have become a leaf would go to a
/// run.
pub const COMPACTION_OVERSHOOT_BYTES: u64 = LEAF_ROWS as u64 * 32;

/// Maximum number of 4 KiB pages that the delta writes per commit, averaged over many small commits: the tail page,
/// and occasionally a free-space page. The two meta blocks per commit are not counted.
pub const PAGES_A_COMMIT_MAX: f64 = 1.1;

/// Maximum number of bytes that the delta writes per byte of rows (8 for the series, 8 for the time, 8 per column),
/// in addition to `PAGES_A_COMMIT_MAX`: runs, compactions of runs, leaves and the tree above the leaves.
pub const BYTES_A_BYTE_MAX: f64 = 8.0;

/// Maximum length in bytes of a block of a run.
pub(crate) const BLOCK_BYTES_MAX: usize = CHECKSUM_SPAN_MAX;
