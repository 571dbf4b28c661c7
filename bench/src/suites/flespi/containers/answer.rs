//! Questions to a store of messages, and its answers. Answers contain only integers, so that the answers of all stores
//! are exactly equal.

/// An hour in nanoseconds.
pub(super) const HOUR: i64 = 3_600_000_000_000;

/// The form in which messages are passed to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The messages that the store has prepared before.
    Prepared,
    /// JSON texts.
    Text,
}

/// An interval of a device's messages, both ends inclusive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) device: usize,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// The selection and the form of the messages of an interval that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// All messages, each decoded to a document.
    Documents,
    /// All messages as stored text (peers only).
    Texts,
    /// Three fields of all messages.
    Projected,
    /// The messages that match the filter, decoded.
    Filtered,
}

/// The source from which figures are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The series of a container; for a peer, the column.
    Series,
    /// The documents.
    Documents,
}

/// The answer to a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Number of messages.
    pub(super) found: u64,
    /// Sum of their times; it may wrap around.
    times: i64,
    /// Sum of their speeds in tenths. For projected messages, the sum of their three numbers in units of their last
    /// decimals.
    values: i64,
}

impl Answer {
    pub(super) fn add(&mut self, time: i64, value: i64) {
        self.found += 1;
        self.times = self.times.wrapping_add(time);
        self.values += value;
    }

    pub(super) fn join(&mut self, other: Self) {
        self.found += other.found;
        self.times = self.times.wrapping_add(other.times);
        self.values += other.values;
    }
}

/// A number as an integer, in units of its last decimal.
pub(super) fn units(value: f64, decimals: i32) -> i64 {
    (value * 10f64.powi(decimals)).round() as i64
}

/// The three projected numbers, combined into the value of an answer.
pub(super) fn projected(speed: f64, battery: f64, latitude: f64) -> i64 {
    units(speed, 1) + units(battery, 2) + units(latitude, 5)
}

/// Figures of the speeds of an hour, in tenths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hour {
    pub(super) start: i64,
    pub(super) count: u64,
    pub(super) sum: i64,
    pub(super) max: i64,
}
