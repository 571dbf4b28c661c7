//! What the last vector of times or of a column taught: tried first for the next one.

use crate::chunk;
use crate::encode::layout::Laid;
use crate::loops::float::Alp;

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
    /// Decimals: [`CORRECTING`] or 0. Split: bits of the high part.
    pub(crate) detail: u8,
    /// The decimals of a float column.
    pub(crate) alp: Alp,
    /// Exceptions in 1024 rows that these had when they were found.
    pub(crate) bad: u16,
    /// Of the vector inside the last one: runs and lists.
    pub(crate) inner: Inner,
    /// How the last vector's integers were laid down. It is not among the bytes of a hint: it is found again
    /// with the first vector, for the cost of one search.
    pub(crate) laid: Laid,
}

/// What of a hint is kept for the vector inside a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inner {
    encoding: u8,
    bits: u8,
    detail: u8,
    alp: Alp,
    bad: u16,
}

/// The detail of decimals that are corrected.
pub(crate) const CORRECTING: u8 = 1;

impl Hint {
    /// A choice is looked at again after this many vectors: the data may have become simple.
    const AGE_MAX: u8 = 32;

    /// Decimals, the cheapest to write and to read, after so many.
    const AGE_MAX_DECIMALS: u8 = 255;

    /// Remembers what a search found.
    pub(crate) fn learn(&mut self, encoding: u8, bits: u64, rows: usize) {
        self.encoding = encoding;
        self.bits = (bits / rows as u64).min(255) as u8;
        self.age = 0;
        self.detail = 0;
    }

    /// The hint for the vector inside.
    pub(crate) fn inside(&self) -> Self {
        let Inner {
            encoding,
            bits,
            detail,
            alp,
            bad,
        } = self.inner;
        Self {
            encoding,
            bits,
            age: 1,
            detail,
            alp,
            bad,
            ..Self::default()
        }
    }

    /// Remembers what the vector inside taught.
    pub(crate) fn keep_inside(&mut self, inside: &Self) {
        self.inner = Inner {
            encoding: inside.encoding,
            bits: inside.bits,
            detail: inside.detail,
            alp: inside.alp,
            bad: inside.bad,
        };
    }

    /// Whether a vector of this size still keeps the promise.
    pub(crate) fn holds(&self, bits: u64, rows: usize) -> bool {
        bits / rows as u64 <= u64::from(self.bits) * 5 / 4 + 1
    }

    /// Exceptions that the remembered decimals may have: one row in 64, and twice what they had.
    pub(crate) fn bad_max(&self, rows: usize) -> usize {
        rows / 64 + 2 * usize::from(self.bad) * rows / 1024
    }

    /// Counts a vector; whether the choice is too old.
    pub(crate) fn grow_old(&mut self) -> bool {
        self.age = self.age.saturating_add(1);
        let most = if self.encoding == chunk::ALP_FOR {
            Self::AGE_MAX_DECIMALS
        } else {
            Self::AGE_MAX
        };
        self.age >= most
    }
}
