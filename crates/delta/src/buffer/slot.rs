//! Entries of a log: the state of each series (its *slot*), and batches (contiguous rows of one series).

use tidalite_base::SeriesId;

/// Slot number that marks the absence of an open batch, or a batch whose rows were moved elsewhere.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// Overlay index of a slot without an overlay.
pub(super) const NO_OVERLAY: u32 = u32::MAX;

/// Size in bytes of a batch in the log. Grouping temporarily needs as much again.
pub(super) const BATCH_BYTES: usize = size_of::<Batch>();

/// Rows of one slot, contiguous in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) slot: u32,
    pub(super) start: u32,
}

/// State in the log of one series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotState {
    pub(crate) series: SeriesId,
    /// Greatest time of the series in closed batches; valid if `buffered` is true.
    pub(super) time_max: i64,
    pub(super) buffered: bool,
    /// Whether the series keeps all rows with the same time. Its rows in the log then ascend strictly in time.
    pub(super) keeps_all: bool,
    /// Index of the overlay that holds the buffered rows of the series, or `NO_OVERLAY`.
    pub(super) overlay: u32,
}
