//! Maximum number of vectors in a leaf.

use crate::leaf::entry::{COLUMN_ENTRY_BYTES_MAX, TIME_ENTRY_BYTES_MAX};
use crate::leaf::layout::{LENGTHS_BYTES, MODEL_ENTRY_BYTES, SECTION_BYTES, SECTIONS_AT};
use tidalite_base::limits::{CHECKSUM_SPAN_MAX, LEAF_VECTORS_MAX};

/// Payload size in bytes from which a leaf accepts no further vector, so that rewriting the leaf stays cheap.
pub(super) const DATA_BYTES_SOFT: usize = 64 * 1024;

/// Maximum number of vectors in a leaf: 16, or fewer if many columns could extend the directory beyond 64 KiB.
pub(crate) fn vectors_max(columns: usize) -> usize {
    let sections = 1 + columns;
    let fixed = SECTIONS_AT + sections * (SECTION_BYTES + MODEL_ENTRY_BYTES);
    let entry = sections * LENGTHS_BYTES + TIME_ENTRY_BYTES_MAX + columns * COLUMN_ENTRY_BYTES_MAX;
    let vectors = ((CHECKSUM_SPAN_MAX - fixed) / entry).clamp(1, LEAF_VECTORS_MAX);
    debug_assert!(
        fixed + vectors * entry <= CHECKSUM_SPAN_MAX,
        "the directory of a full leaf of {columns} columns is one block"
    );
    vectors
}
