//! The state of a compaction pass between two steps: where the next step continues.

use tidalite_base::SeriesId;
use tidalite_delta::DeltaPosition;
use tidalite_series::Moving;

/// The structure, and the place in it, at which the next step of a compaction pass continues.
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

/// A compaction pass in progress: one walk over all structures that moves pages to the front of the file.
pub(crate) struct Pass {
    pub(crate) at: At,
    pub(crate) moving: Moving,
    /// Address in the second file; large values at or after it are moved towards the front.
    pub(crate) second_boundary: u64,
    pub(crate) number: u32,
    /// Number of consecutive passes before this one that did not lower the end of the file.
    pub(crate) fruitless: u32,
    /// Number of pages that this pass has moved so far.
    pub(crate) moved: u64,
    /// Numbers of the first pages after the used space when the pass began, in the main file and in the second file.
    pub(crate) ends: [u64; 2],
}
