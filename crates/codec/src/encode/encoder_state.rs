//! Encoder state carried from one vector of times, or of a column, to the next: the encoding that was chosen last is
//! tried first.

use crate::chunk;
use crate::encode::layout::LayoutMemory;
use crate::loops::float::Alp;

/// The choice made for the last vector of one column of one series, or of its times. A wrong state costs time and
/// space, but the encoded vector is still correct. Keep one state per series and column; `EncoderState::default()` is
/// empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncoderState {
    /// Encoding of the last vector that was not constant; 0 if there was none yet.
    pub(crate) encoding: u8,
    /// Bits per value found by the last search.
    pub(crate) bits: u8,
    /// Vectors since the last search.
    pub(crate) age: u8,
    /// For decimals: [`CORRECTING`] or 0. For a split: the bits of the high part.
    pub(crate) detail: u8,
    /// The decimal rule of a float column.
    pub(crate) alp: Alp,
    /// Exceptions per 1024 rows that this rule had when it was found.
    pub(crate) bad: u16,
    /// State of the inner vector of runs and lists.
    pub(crate) inner: Inner,
    /// Layout of the last vector's integers. It is not serialized with a state: the first vector after loading a
    /// state finds it again, at the cost of one search.
    pub(crate) layouts: LayoutMemory,
}

/// The part of a state that is kept for an inner vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inner {
    encoding: u8,
    bits: u8,
    detail: u8,
    alp: Alp,
    bad: u16,
}

/// Value of `detail` for decimals with corrections.
pub(crate) const CORRECTING: u8 = 1;

impl EncoderState {
    /// A new search runs after this many vectors: the data may have become simple.
    const AGE_MAX: u8 = 32;

    /// Like `AGE_MAX`, for decimals, which are the cheapest encoding to write and to read.
    const AGE_MAX_DECIMALS: u8 = 255;

    /// Stores the result of a search.
    pub(crate) fn learn(&mut self, encoding: u8, bits: u64, rows: usize) {
        self.encoding = encoding;
        self.bits = (bits / rows as u64).min(255) as u8;
        self.age = 0;
        self.detail = 0;
    }

    /// The state for the inner vector.
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

    /// Stores the state of the inner vector.
    pub(crate) fn keep_inside(&mut self, inside: &Self) {
        self.inner = Inner {
            encoding: inside.encoding,
            bits: inside.bits,
            detail: inside.detail,
            alp: inside.alp,
            bad: inside.bad,
        };
    }

    /// Whether the cost of a vector is still close to the cost that the search found.
    pub(crate) fn holds(&self, bits: u64, rows: usize) -> bool {
        bits / rows as u64 <= u64::from(self.bits) * 5 / 4 + 1
    }

    /// Maximum number of exceptions with the remembered decimal rule: one row in 64, plus twice the rate when it was
    /// found.
    pub(crate) fn bad_max(&self, rows: usize) -> usize {
        rows / 64 + 2 * usize::from(self.bad) * rows / 1024
    }

    /// Counts a vector; returns whether the choice is too old.
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
