//! What the last vector of times or of a column taught: tried first for the next one.

use crate::float::Alp;
use crate::layout::Laid;

/// The choice made for the last vector of one column of one series, or of its times. Wrong hints cost time and
/// bytes, never correctness. Keep one per series and column; `Hint::default()` knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Encoding of the last vector that was not constant; 0: none yet.
    pub(crate) encoding: u8,
    /// Bits a value that the last search promised.
    pub(crate) bits: u8,
    /// Vectors since the last search.
    pub(crate) age: u8,
    /// The decimals of a float column.
    pub(crate) alp: Alp,
    /// Exceptions in 1024 rows that these had when they were found.
    pub(crate) bad: u16,
    /// How the last vector's integers were laid down. It is not among the bytes of a hint: it is found again
    /// with the first vector, for the cost of one search.
    pub(crate) laid: Laid,
}

impl Hint {
    /// A choice other than decimals is looked at again after this many vectors: the data may have
    /// become simple.
    const AGE_MAX: u8 = 32;

    /// Remembers what a search found.
    pub(crate) fn learn(&mut self, encoding: u8, bits: u64, rows: usize) {
        self.encoding = encoding;
        self.bits = (bits / rows as u64).min(255) as u8;
        self.age = 0;
    }

    /// Whether a vector of this size still keeps the promise.
    pub(crate) fn holds(&self, bits: u64, rows: usize) -> bool {
        bits / rows as u64 <= u64::from(self.bits) * 3 / 2 + 2
    }

    /// Exceptions that the remembered decimals may have: one row in 64, and twice what they had.
    pub(crate) fn bad_max(&self, rows: usize) -> usize {
        rows / 64 + 2 * usize::from(self.bad) * rows / 1024
    }

    /// Counts a vector; whether the choice is too old.
    pub(crate) fn grow_old(&mut self) -> bool {
        self.age = self.age.saturating_add(1);
        self.age >= Self::AGE_MAX
    }
}
