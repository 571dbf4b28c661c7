//! A value with its time.

/// A value with its time, in the series' unit or, in functions of several series, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Time of the row.
    pub time: i64,
    /// Value of the column in this row.
    pub value: f64,
}
