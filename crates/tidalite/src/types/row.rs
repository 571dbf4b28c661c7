//! A row of a series.

/// A row, copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its timestamp, in the series' unit.
    pub time: i64,
    /// One word a column.
    pub words: Vec<u64>,
}

impl Row {
    /// A column as a float: the bits of its word as they are, whatever the column is of. A row does not know its columns;
    /// [`Series::get`](crate::Series::get) does, and tells when one is of another type.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn f64(&self, column: usize) -> f64 {
        f64::from_bits(self.words[column])
    }

    /// A column as a signed integer: the bits of its word as they are, as with `f64`.
    ///
    /// # Panics
    /// When there is no such column.
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
