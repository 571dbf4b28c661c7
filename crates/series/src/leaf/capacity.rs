//! How many vectors a leaf takes.

use crate::leaf::entry::{COLUMN_ENTRY_BYTES_MAX, TIME_ENTRY_BYTES_MAX};
use crate::leaf::layout::{MODEL_ENTRY_BYTES, PLACE_BYTES, SECTION_BYTES, SECTIONS_AT};
use tidalite_base::limits::{CHECKSUM_SPAN_MAX, LEAF_VECTORS_MAX};

/// Payload bytes after which a leaf takes no further vector: rewriting one then stays cheap.
pub(super) const DATA_BYTES_SOFT: usize = 64 * 1024;

/// Vectors that fit one leaf: 16, or fewer when many columns could stretch the directory over 64 KiB.
pub(crate) fn vectors_max(columns: usize) -> usize {
    let sections = 1 + columns;
    let fixed = SECTIONS_AT + sections * (SECTION_BYTES + MODEL_ENTRY_BYTES);
    let entry = sections * PLACE_BYTES + TIME_ENTRY_BYTES_MAX + columns * COLUMN_ENTRY_BYTES_MAX;
    ((CHECKSUM_SPAN_MAX - fixed) / entry).clamp(1, LEAF_VECTORS_MAX)
}
