//! A row of a series that owns its values.

/// A row that owns its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Timestamp of the row.
    pub time: i64,
    /// One raw value per column.
    pub words: Vec<u64>,
}
