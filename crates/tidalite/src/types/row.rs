//! A row of a series.

/// A row of a series, copied out of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Time of the row, in the series' unit.
    pub time: i64,
    /// The stored words of the row, one per column.
    pub words: Vec<u64>,
}

impl Row {
    /// The word of a column as a float, with unchanged bits, whatever the column's type is. A row does not contain its
    /// schema; [`Series::get`](crate::Series::get) uses the schema, and returns an error for a column of another type.
    ///
    /// # Panics
    /// If the column does not exist.
    #[must_use]
    pub fn f64(&self, column: usize) -> f64 {
        f64::from_bits(self.words[column])
    }

    /// The word of a column as a signed integer, with unchanged bits, whatever the column's type is.
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
