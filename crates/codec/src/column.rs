//! Column types: the meaning of a word, the 64 bits in which a value is stored.
//!
//! An f32 is kept as the f64 of the same value, so that all code that reads floats can read an f32. In a column with
//! nulls one word is reserved for null: [`ColumnType::null`].

use tidalite_base::Corrupt;

/// The type of a column. Every value is one 64-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ColumnType {
    /// The word holds the bits of an `f64`; every bit pattern is kept, including the payload of a NaN.
    F64 = 1,
    /// The word holds an `i64` in two's complement.
    I64 = 2,
    /// The word holds a `u64`.
    U64 = 3,
    /// The word holds the bits of an `f64` that came from an `f32` ([`ColumnType::widen`]). Any other word is stored
    /// correctly, too, but takes as much space as an f64.
    F32 = 4,
    /// As `F64`, or null.
    NullF64 = 17,
    /// As `I64`, or null.
    NullI64 = 18,
    /// As `U64`, or null.
    NullU64 = 19,
    /// As `F32`, or null.
    NullF32 = 20,
}

/// The word for null in a column of floats: a quiet NaN that no `f32` widens to and that no arithmetic produces. Its
/// payload is the text "null" in ASCII.
pub(crate) const NULL_FLOAT: u64 = 0x7ff8_0000_6e75_6c6c;
/// The word for null in a column of signed integers: `i64::MIN`.
pub(crate) const NULL_INT: u64 = 1 << 63;
/// The word for null in a column of unsigned integers: `u64::MAX`.
pub(crate) const NULL_UNSIGNED: u64 = u64::MAX;

impl ColumnType {
    /// All column types.
    pub const ALL: [Self; 8] = [
        Self::F64,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::NullF64,
        Self::NullI64,
        Self::NullU64,
        Self::NullF32,
    ];

    /// The number that stands for this type in the file.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The type for which a number in the file stands.
    ///
    /// # Errors
    /// [`Corrupt`] (with address 0: the caller knows where it read) for an unknown code.
    pub fn from_code(code: u8) -> Result<Self, Corrupt> {
        Ok(match code {
            1 => Self::F64,
            2 => Self::I64,
            3 => Self::U64,
            4 => Self::F32,
            17 => Self::NullF64,
            18 => Self::NullI64,
            19 => Self::NullU64,
            20 => Self::NullF32,
            _ => return Err(Corrupt::new("column type", 0, code, "1 to 4 or 17 to 20")),
        })
    }

    /// The same type without nulls.
    #[must_use]
    #[inline(always)]
    pub fn base(self) -> Self {
        match self {
            Self::F64 | Self::NullF64 => Self::F64,
            Self::I64 | Self::NullI64 => Self::I64,
            Self::U64 | Self::NullU64 => Self::U64,
            Self::F32 | Self::NullF32 => Self::F32,
        }
    }

    /// The same type with nulls.
    #[must_use]
    pub fn or_null(self) -> Self {
        match self.base() {
            Self::F64 => Self::NullF64,
            Self::I64 => Self::NullI64,
            Self::U64 => Self::NullU64,
            _ => Self::NullF32,
        }
    }

    /// True if the words of this type are floats, with or without nulls.
    #[must_use]
    #[inline(always)]
    pub fn is_float(self) -> bool {
        matches!(self.base(), Self::F64 | Self::F32)
    }

    /// The word that stands for null; `None` if this type has no nulls.
    #[must_use]
    #[inline(always)]
    pub fn null(self) -> Option<u64> {
        match self {
            Self::NullF64 | Self::NullF32 => Some(NULL_FLOAT),
            Self::NullI64 => Some(NULL_INT),
            Self::NullU64 => Some(NULL_UNSIGNED),
            _ => None,
        }
    }

    /// The word for a row that was written before the column was added: null, or zero if this type has no nulls.
    #[must_use]
    pub fn fill(self) -> u64 {
        self.null().unwrap_or(0)
    }

    /// The word that stores an `f32`, bit by bit: a NaN keeps its payload.
    ///
    /// ```
    /// use tidalite_codec::ColumnType;
    /// for x in [7.12f32, -0.0, f32::INFINITY, f32::MIN_POSITIVE / 2.0] {
    ///     let word = ColumnType::widen(x);
    ///     assert_eq!(f64::from_bits(word), f64::from(x));
    ///     assert_eq!(ColumnType::narrow(word).to_bits(), x.to_bits());
    /// }
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn widen(x: f32) -> u64 {
        if x.is_nan() {
            let bits = u64::from(x.to_bits());
            // Moves the bits of the NaN without a conversion, because a conversion would make a signalling NaN quiet.
            return (bits >> 31 << 63) | 0x7ff << 52 | (bits & 0x7f_ffff) << 29;
        }
        f64::from(x).to_bits()
    }

    /// The `f32` nearest to the float in `word`; a widened NaN is restored bit by bit.
    #[must_use]
    #[inline(always)]
    pub fn narrow(word: u64) -> f32 {
        let x = f64::from_bits(word);
        if x.is_nan() {
            let payload = (word >> 29) as u32 & 0x7f_ffff;
            // If the kept bits of the NaN's payload are all zero, sets one bit: without a payload the word would be an
            // infinity.
            let payload = if payload == 0 { 1 << 22 } else { payload };
            return f32::from_bits((word >> 63 << 31) as u32 | 0xff << 23 | payload);
        }
        x as f32
    }

    /// Converts `word` to a signed integer that sorts like the values. Among floats -0.0 sorts before +0.0, and NaNs
    /// sort outside the infinities: negative ones below, positive ones above.
    #[must_use]
    #[inline(always)]
    pub fn order_key(self, word: u64) -> i64 {
        match self.base() {
            Self::I64 => word as i64,
            Self::U64 => (word ^ (1 << 63)) as i64,
            _ => float_key(word),
        }
    }
}

/// Maps the bits of an `f64` to an integer with the same order. Applied to its own result, it restores the bits.
#[inline(always)]
pub(crate) fn float_key(bits: u64) -> i64 {
    let bits = bits as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_of_values() {
        let floats = [
            f64::NEG_INFINITY,
            -1.0,
            -5e-324,
            -0.0,
            0.0,
            5e-324,
            1.0,
            f64::INFINITY,
        ];
        for pair in floats.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|f| ColumnType::F64.order_key(f.to_bits()));
            assert!(a < b, "{} before {}", pair[0], pair[1]);
        }
        assert!(ColumnType::U64.order_key(0) < ColumnType::U64.order_key(u64::MAX));
        assert!(ColumnType::I64.order_key(-1i64 as u64) < ColumnType::I64.order_key(0));
    }

    #[test]
    fn codes_come_back() {
        for ty in ColumnType::ALL {
            assert_eq!(ColumnType::from_code(ty.code()), Ok(ty));
            assert_eq!(ty.or_null().base(), ty.base());
            assert_eq!(ty.null().is_some(), ty == ty.or_null());
        }
        for code in [0, 5, 16, 21, 255] {
            assert!(ColumnType::from_code(code).is_err());
        }
    }

    /// Tests every exponent with the mantissas that matter, including signalling NaNs.
    #[test]
    fn an_f32_round_trips_through_its_word() {
        for high in 0..=0x1ff_u32 {
            for low in [
                0, 1, 2, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x7f_ffff, 0x12_3456,
            ] {
                let x = f32::from_bits(high << 23 | low);
                let word = ColumnType::widen(x);
                assert_eq!(ColumnType::narrow(word).to_bits(), x.to_bits());
                assert_ne!(word, NULL_FLOAT);
                assert_eq!(f64::from_bits(word).is_nan(), x.is_nan());
            }
        }
        assert!(f64::from_bits(NULL_FLOAT).is_nan());
        assert!(ColumnType::narrow(NULL_FLOAT).is_nan());
    }
}
