//! Determines how many rows of a series justify a leaf.

use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::RowsRef;

/// Minimum number of rows after the whole vectors of a series that justify a leaf at a commit, if the series has whole
/// vectors or the transaction has already installed leaves for the series. The number is lower than `LINKED_ROWS_MIN`,
/// so that the last rows of a bulk load become a leaf as well; later rows of the series are added to that leaf.
pub(crate) const BULK_REST_ROWS_MIN: usize = 64;

/// Minimum number of rows of a series that justify a leaf at a commit.
pub(crate) const LINKED_ROWS_MIN: usize = VECTOR_ROWS / 2;

/// Returns the number of rows in whole vectors, reduced until the next row has a different time.
pub(crate) fn whole_vectors(rows: RowsRef<'_>) -> usize {
    rows.cut(rows.len() / VECTOR_ROWS * VECTOR_ROWS)
}

/// Returns how many of the first rows justify leaves at a commit: whole vectors, and a last vector that is at least
/// half full. If such a last vector stayed in the delta, every compaction that includes its rows would rewrite them,
/// and every reader of the series would collect them again. If the transaction has already installed rows of the
/// series as leaves, a shorter remainder becomes a leaf as well, so that a bulk load ends in leaves.
pub(crate) fn linkable(rows: RowsRef<'_>, linked_before: bool) -> usize {
    linkable_of(rows.len(), whole_vectors(rows), linked_before)
}

/// Like [`linkable`], for `rows` rows of which `whole` are in whole vectors.
pub(crate) fn linkable_of(rows: usize, whole: usize, linked_before: bool) -> usize {
    debug_assert!(whole <= rows, "whole vectors are some of the rows");
    let least = if linked_before || whole > 0 {
        BULK_REST_ROWS_MIN
    } else {
        LINKED_ROWS_MIN
    };
    if rows - whole >= least { rows } else { whole }
}

/// Rows of a series that a helper thread encodes for leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Whole vectors only, while the transaction is open.
    Whole,
    /// All rows that justify leaves at the end of a transaction.
    AtCommit,
}

impl Take {
    /// Minimum number of rows that a series must have so that any of them are encoded for leaves.
    pub(crate) fn rows_min(self) -> usize {
        match self {
            Self::Whole => VECTOR_ROWS,
            Self::AtCommit => LINKED_ROWS_MIN,
        }
    }

    pub(crate) fn of(self, rows: RowsRef<'_>) -> usize {
        match self {
            Self::Whole => whole_vectors(rows),
            Self::AtCommit => linkable(rows, false),
        }
    }
}
