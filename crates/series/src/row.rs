//! One row of a series, owned.

/// A row that owns its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its timestamp.
    pub time: i64,
    /// One value per column.
    pub words: Vec<u64>,
}
