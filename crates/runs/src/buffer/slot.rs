//! Entries of a log: the state of each series, and stretches (contiguous rows of one series).

use tidalite_base::SeriesId;

/// Marks the absence of an open stretch, or a stretch whose rows were moved elsewhere.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// Marks a slot without an overlay.
pub(super) const NO_OVERLAY: u32 = u32::MAX;

/// Bytes that a stretch costs in the log. Grouping temporarily needs as much again.
pub(super) const STRETCH_BYTES: usize = size_of::<Stretch>();

/// Rows of one slot, contiguous in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) slot: u32,
    pub(super) start: u32,
}

/// State of a series of this layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotState {
    pub(crate) series: SeriesId,
    /// Greatest time in closed stretches; valid if `staged`.
    pub(super) time_max: i64,
    pub(super) staged: bool,
    /// Index of its overlay, or `NO_OVERLAY`.
    pub(super) overlay: u32,
}
