//! One row of a series, owned.

/// A row, copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its timestamp.
    pub time: i64,
    /// One value per column.
    pub words: Vec<u64>,
}
