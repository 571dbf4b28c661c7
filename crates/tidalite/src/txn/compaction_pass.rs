//! Where a compaction goes on in its next step.

use tidalite_base::SeriesId;
use tidalite_series::Moving;

/// Where the next step goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Tables { name: String, key: Vec<u8> },
    Catalog { tree: usize, key: Vec<u8> },
    Leaves { series: SeriesId, time: i64 },
    Records { key: Vec<u8> },
    Extents { key: Vec<u8> },
    Front,
    Settle,
}

/// A pass under way.
pub(crate) struct Pass {
    pub(crate) at: At,
    pub(crate) moving: Moving,
    /// The boundary in the second file.
    pub(crate) second_boundary: u64,
    pub(crate) number: u32,
    /// Passes before this one, one after the other, that did not bring the end down.
    pub(crate) fruitless: u32,
    /// Pages that this one has moved.
    pub(crate) moved: u64,
    /// Where the files ended when the pass began, in pages.
    pub(crate) ends: [u64; 2],
}
