//! How many rows of a series are worth a leaf.

use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::RowsRef;

/// The least rest of a bulk load that is worth a leaf; the next rows of the series join it.
pub(crate) const BULK_REST_ROWS_MIN: usize = 64;

/// The least rows of a series that are worth a leaf at a commit.
pub(crate) const LINKED_ROWS_MIN: usize = VECTOR_ROWS / 2;

/// Of these rows those of whole vectors, as many as are followed by another time.
pub(crate) fn whole_vectors(rows: RowsRef<'_>) -> usize {
    rows.cut(rows.len() / VECTOR_ROWS * VECTOR_ROWS)
}

/// Rows of a commit's stretch that are worth a leaf: whole vectors, and a last one that is half full at least.
/// Its rows would be written again by every merge they take part in, and every reader of the series would
/// collect them anew.
/// Where the transaction has linked rows of the series before, a shorter rest follows them: a bulk load ends in leaves.
pub(crate) fn linkable(rows: RowsRef<'_>, linked_before: bool) -> usize {
    linkable_of(rows.len(), whole_vectors(rows), linked_before)
}

/// The same of so many rows, of which those of whole vectors are known.
pub(crate) fn linkable_of(rows: usize, whole: usize, linked_before: bool) -> usize {
    let least = if linked_before || whole > 0 {
        BULK_REST_ROWS_MIN
    } else {
        LINKED_ROWS_MIN
    };
    if rows - whole >= least { rows } else { whole }
}

/// How many rows of a series are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Whole vectors.
    Whole,
    /// What is worth a leaf at the end of a transaction.
    AtCommit,
}

impl Take {
    /// Of fewer rows none are taken.
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
