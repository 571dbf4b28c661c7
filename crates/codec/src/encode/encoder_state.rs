//! The encoder state that is carried from one vector of a column (or of the times) to the next: the encoding that was
//! chosen last is tried first.

use crate::chunk;
use crate::encode::layout::LayoutMemory;
use crate::loops::float::Alp;

/// The choice made for the last vector of one column of one series, or of its times. A wrong state costs time and
/// space, but the encoded vector is still correct. Callers keep one state per series and column;
/// `EncoderState::default()` has no remembered choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncoderState {
    /// Encoding of the last vector whose values were not all equal; 0 if there has been no such vector yet.
    pub(crate) encoding: u8,
    /// Number of bits per value that the last search for the best encoding found.
    pub(crate) bits: u8,
    /// Number of vectors encoded since the last search for the best encoding.
    pub(crate) age: u8,
    /// For decimals: [`CORRECTING`] or 0. For words split in two: the number of bits of the high part.
    pub(crate) detail: u8,
    /// The rule that converts the floats of the column to decimals.
    pub(crate) alp: Alp,
    /// Number of exceptions (words stored unencoded) per 1024 rows that the decimal rule had when it was found.
    pub(crate) bad: u16,
    /// How floats that came from f32 are encoded: see [`Single`].
    pub(crate) single: Single,
    /// The state of the inner vector, if the encoding is runs or a list.
    pub(crate) inner: Inner,
    /// Layout of the integers of the last vector (near a base, by deltas or near a line). The layout is not serialized:
    /// the first vector after a state was loaded finds it again, at the cost of one search.
    pub(crate) layouts: LayoutMemory,
}

/// The choice that was made for floats that came from f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Single {
    /// No choice is known.
    #[default]
    Unknown,
    /// The floats become decimals with this many fractional digits.
    Decimals(u8),
    /// The floats are encoded as they are.
    Plain,
}

impl Single {
    /// Maximum number of fractional digits that are tried: with more digits, no f32 becomes shorter.
    pub(crate) const DIGITS_MAX: u8 = 10;

    /// The choice as a number below 16.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Decimals(digits) => digits + 1,
            Self::Plain => 15,
        }
    }

    /// The choice for a number; any other number stands for `Unknown`.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            15 => Self::Plain,
            1.. if code <= Self::DIGITS_MAX + 1 => Self::Decimals(code - 1),
            _ => Self::Unknown,
        }
    }
}

/// The part of an encoder state that is kept for an inner vector.
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
    /// Number of vectors after which a new search runs, because the data may have become simpler.
    const AGE_MAX: u8 = 32;

    /// Like `AGE_MAX`, for decimals, which are the fastest encoding to write and to read.
    const AGE_MAX_DECIMALS: u8 = 255;

    /// Stores the result of a search for the best encoding.
    pub(crate) fn learn(&mut self, encoding: u8, bits: u64, rows: usize) {
        self.encoding = encoding;
        self.bits = (bits / rows as u64).min(255) as u8;
        self.age = 0;
        self.detail = 0;
    }

    /// Creates the state with which the inner vector is encoded.
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

    /// Stores the state that encoding the inner vector has left.
    pub(crate) fn keep_inside(&mut self, inside: &Self) {
        self.inner = Inner {
            encoding: inside.encoding,
            bits: inside.bits,
            detail: inside.detail,
            alp: inside.alp,
            bad: inside.bad,
        };
    }

    /// True if a vector of `bits` bits costs not much more per row than the last search found.
    pub(crate) fn holds(&self, bits: u64, rows: usize) -> bool {
        bits / rows as u64 <= u64::from(self.bits) * 5 / 4 + 1
    }

    /// Maximum number of rows that the remembered decimal rule may fail to reproduce: one row in 64, plus twice the
    /// rate at which it failed when it was found.
    pub(crate) fn bad_max(&self, rows: usize) -> usize {
        rows / 64 + 2 * usize::from(self.bad) * rows / 1024
    }

    /// Counts a vector since the last search; returns true if a new search is due.
    pub(crate) fn grow_old(&mut self) -> bool {
        let due = self.is_due();
        self.age = self.age.saturating_add(1);
        due
    }

    /// True if a new search is due for the next vector.
    pub(crate) fn is_due(&self) -> bool {
        let most = if self.encoding == chunk::ALP_FOR {
            Self::AGE_MAX_DECIMALS
        } else {
            Self::AGE_MAX
        };
        self.age.saturating_add(1) >= most
    }
}
