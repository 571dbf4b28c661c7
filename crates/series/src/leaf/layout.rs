//! The layout of a leaf: up to 16 vectors of rows, column after column, under one directory.
//!
//! ```text
//! 0         32      64         + 8 (1 + columns)          directory bytes          + data bytes   up to 64-byte alignment
//! | header  | fixed | sections | times | column 0 | 1 | ..| times | column 0 | 1 ..| zeros |
//! |<---------------- one block, under the link's checksum --->|<- payloads, each under a checksum of the directory
//!
//! fixed:    32     36        37        38  40                44           48      56    64
//!           | rows | vectors | columns | 0 | directory bytes | data bytes | begin | end |
//!           | u32  |   u8    |   u8    |u16|       u32       |    u32     |  i64  | i64 |
//! sections: of the times, then of each column
//!           | mode | type | bytes in the directory | bytes of payloads |
//!           |  u8  |  u8  |          u16           |        u32        |    type: 0 for times
//! times:    mode 1, stepped: row i is at begin + i * step; every vector but the last has 1024 rows
//!           | step u64 |
//! columns:  mode 1, constant: every value of the leaf is equal
//!           | value u64 |
//! both:     mode 0, for each vector | bytes of the entry u8 | of the payload u16 |; then the entries, see entry.rs
//! ```
//!
//! A leaf in cold form has its own kind, so that a link shows it; its times and columns may be in mode 2: the model
//! shared by the vectors is stored before the contents of mode 0 (decision 0414).
//! ```text
//!           | checksum | bytes |  of the model, the first payload of its section
//!           |   u64    |  u32  |
//! ```
//! A leaf with fewer columns than its series was written before the others were added (decision 0410). Sections and
//! payloads are contiguous and in equal order, as are the vectors in each: positions follow from the preceding lengths.
//! The statistics of a vector of a constant column are not stored; they follow from the value. Directories are kept
//! small because vectors of few bits are small, too: docs/performance/file-size.md.

use tidalite_base::checksum;
use tidalite_pager::{HEADER_BYTES, Kind};

pub(super) const ROWS_AT: usize = HEADER_BYTES;
pub(super) const VECTORS_AT: usize = ROWS_AT + 4;
pub(super) const COLUMNS_AT: usize = VECTORS_AT + 1;
pub(super) const DIRECTORY_BYTES_AT: usize = COLUMNS_AT + 3;
pub(super) const DATA_BYTES_AT: usize = DIRECTORY_BYTES_AT + 4;
pub(super) const BEGIN_AT: usize = DATA_BYTES_AT + 4;
pub(super) const END_AT: usize = BEGIN_AT + 8;
pub(super) const SECTIONS_AT: usize = END_AT + 8;
const _: () = assert!(SECTIONS_AT == 64);

pub(super) const SECTION_MODE: usize = 0;
pub(super) const SECTION_TYPE: usize = SECTION_MODE + 1;
pub(super) const SECTION_ENTRIES: usize = SECTION_TYPE + 1;
pub(super) const SECTION_PAYLOADS: usize = SECTION_ENTRIES + 2;
pub(super) const SECTION_BYTES: usize = SECTION_PAYLOADS + 4;

/// Mode of a section in which each vector has an entry of its own.
pub(super) const MODE_VECTORS: u8 = 0;
/// Mode of a section without entries: one constant step (times) or one constant value (column) for the whole leaf.
pub(super) const MODE_WHOLE: u8 = 1;
/// Mode like `MODE_VECTORS`, but with a model before the entries, which vectors in cold form need.
pub(super) const MODE_COLD: u8 = 2;

pub(super) const ENTRY_LENGTH_AT: usize = 0;
pub(super) const PAYLOAD_LENGTH_AT: usize = ENTRY_LENGTH_AT + 1;
pub(super) const LENGTHS_BYTES: usize = PAYLOAD_LENGTH_AT + 2;

/// Size in bytes of the step or value in `MODE_WHOLE`.
pub(super) const WHOLE_BYTES: usize = 8;

pub(super) const MODEL_CHECKSUM: usize = 0;
pub(super) const MODEL_BYTES: usize = MODEL_CHECKSUM + 8;
pub(super) const MODEL_ENTRY_BYTES: usize = MODEL_BYTES + 4;

/// True if pointers of this kind lead to a leaf.
pub(crate) fn is_leaf(kind: Kind) -> bool {
    matches!(kind, Kind::SeriesLeaf | Kind::SeriesCold)
}

/// Alignment in bytes of leaves in their extents.
pub(crate) const LEAF_ALIGN: usize = 64;

/// `bytes` rounded up to a multiple of the alignment of leaves.
pub(crate) fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(LEAF_ALIGN)
}

/// Checksum of a payload, as the directory stores it; 0 for an empty payload.
pub(crate) fn payload_checksum(bytes: &[u8]) -> u64 {
    if bytes.is_empty() { 0 } else { checksum(bytes) }
}
