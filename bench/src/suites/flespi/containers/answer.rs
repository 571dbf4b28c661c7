//! Questions to a store of messages, and its answers. Answers have only integers, so that the answers of all stores are equal
//! to the bit.

/// An hour in nanoseconds.
pub(super) const HOUR: i64 = 3_600_000_000_000;

/// The form in which messages are handed to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As the store has prepared them before.
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

/// Which messages of an interval are read, and how.
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

/// Where figures are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The series of a container; of a peer, the column.
    Series,
    /// The documents.
    Documents,
}

/// The answer to a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Number of messages.
    pub(super) found: u64,
    /// Sum of their times, which may wrap.
    times: i64,
    /// Sum of their speeds in tenths; of projected messages, of their three numbers in units of the last decimal.
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

/// A number in units of its last decimal.
pub(super) fn units(value: f64, decimals: i32) -> i64 {
    (value * 10f64.powi(decimals)).round() as i64
}

/// The three projected numbers as one value of an answer.
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
