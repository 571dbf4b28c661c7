//! A row of a series.

/// An owned copy of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The timestamp, in the series' unit.
    pub time: i64,
    /// One word per column.
    pub words: Vec<u64>,
}

impl Row {
    /// A column as a float: the bits of its word unchanged, whatever the column's type is. A row does not contain its
    /// schema; [`Series::get`](crate::Series::get) uses the schema, and reports a column of another type.
    ///
    /// # Panics
    /// If the column does not exist.
    #[must_use]
    pub fn f64(&self, column: usize) -> f64 {
        f64::from_bits(self.words[column])
    }

    /// A column as a signed integer: the bits of its word unchanged, as in `f64`.
    ///
    /// # Panics
    /// If the column does not exist.
    #[must_use]
    pub fn i64(&self, column: usize) -> i64 {
        self.words[column] as i64
    }
}

impl From<tidalite_series::Row> for Row {
    fn from(row: tidalite_series::Row) -> Self {
        Self {
            time: row.time,
            words: row.words,
        }
    }
}

impl AsRef<[u64]> for Row {
    fn as_ref(&self) -> &[u64] {
        &self.words
    }
}
