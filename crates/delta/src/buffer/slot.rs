//! Entries of a log: the state of each series (its *slot*), and batches (contiguous rows of one series).

use tidalite_base::SeriesId;

/// Marks the absence of an open batch, or a batch whose rows were moved elsewhere.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// Marks a slot without an overlay.
pub(super) const NO_OVERLAY: u32 = u32::MAX;

/// Bytes that a batch costs in the log. Grouping temporarily needs as much again.
pub(super) const BATCH_BYTES: usize = size_of::<Batch>();

/// Rows of one slot, contiguous in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) slot: u32,
    pub(super) start: u32,
}

/// State of a series of this layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotState {
    pub(crate) series: SeriesId,
    /// Greatest time in closed batches; valid if `buffered`.
    pub(super) time_max: i64,
    pub(super) buffered: bool,
    /// Index of its overlay, or `NO_OVERLAY`.
    pub(super) overlay: u32,
}
