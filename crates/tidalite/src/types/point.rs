//! Points: structs with a schema of their own that encode themselves as 64-bit words.

use crate::types::schema::Schema;

/// A struct that is stored as a row and encodes itself: each column is one 64-bit word, the bits of an f64, an i64 or a
/// u64 (see [`Column::null`](crate::Column::null) for rows without a value).
///
/// ```
/// use tidalite::{ColumnType, Point, Schema, Unit};
///
/// struct Trade { at: i64, volume: f64, price: i64 }
///
/// impl Point for Trade {
///     fn schema() -> Schema {
///         Schema::new(Unit::Micros, [("volume", ColumnType::F64), ("price", ColumnType::I64)])
///     }
///     fn time(&self) -> i64 { self.at }
///     fn write_words(&self, words: &mut [u64]) {
///         words[0] = self.volume.to_bits();
///         words[1] = self.price as u64;
///     }
///     fn from_words(time: i64, words: &[u64]) -> Self {
///         Trade { at: time, volume: f64::from_bits(words[0]), price: words[1] as i64 }
///     }
/// }
/// ```
pub trait Point: Sized {
    /// The schema of the rows: unit and columns. It is the same for every value of the type.
    fn schema() -> Schema;
    /// Time of the point, in the schema's unit.
    fn time(&self) -> i64;
    /// Writes the fields as 64-bit words; `words` has one element per column of the schema.
    fn write_words(&self, words: &mut [u64]);
    /// Builds a point from its time and the words of its columns.
    fn from_words(time: i64, words: &[u64]) -> Self;
}

/// The default point: time, flags and value. As a [`Record`](crate::Record) it fits series with nanosecond timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time in the unit of the series: nanoseconds since 1970-01-01 UTC for the default schema.
    pub time: i64,
    /// A number that the user may use for quality, source or status.
    pub flags: i64,
    /// The measured value.
    pub value: f64,
}

impl Point for Sample {
    fn schema() -> Schema {
        Schema::point()
    }

    fn time(&self) -> i64 {
        self.time
    }

    fn write_words(&self, words: &mut [u64]) {
        words[0] = self.flags as u64;
        words[1] = self.value.to_bits();
    }

    fn from_words(time: i64, words: &[u64]) -> Self {
        Self {
            time,
            flags: words[0] as i64,
            value: f64::from_bits(words[1]),
        }
    }
}
