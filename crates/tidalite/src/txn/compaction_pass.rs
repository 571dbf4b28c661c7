//! Position of a compaction between its steps.

use tidalite_base::SeriesId;
use tidalite_delta::DeltaPosition;
use tidalite_series::Moving;

/// Position of the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Tables { name: String, key: Vec<u8> },
    Catalog { tree: usize, key: Vec<u8> },
    Leaves { series: SeriesId, time: i64 },
    Records { key: Vec<u8> },
    Extents { key: Vec<u8> },
    Delta(DeltaPosition),
    Settle,
}

/// A pass in progress.
pub(crate) struct Pass {
    pub(crate) at: At,
    pub(crate) moving: Moving,
    /// The boundary in the second file.
    pub(crate) second_boundary: u64,
    pub(crate) number: u32,
    /// Consecutive passes before this one that did not lower the file's end.
    pub(crate) fruitless: u32,
    /// Pages moved by this pass.
    pub(crate) moved: u64,
    /// Ends of the files when the pass began, in pages.
    pub(crate) ends: [u64; 2],
}
