//! What the 64 bits of a column's word mean.

use tidalite_base::Corrupt;

/// The type of a column. Every value is one 64-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ColumnType {
    /// The bits of an `f64`; every bit pattern is kept, NaN payloads too.
    F64 = 1,
    /// A two's complement `i64`.
    I64 = 2,
    /// A `u64`.
    U64 = 3,
}

impl ColumnType {
    /// The code in the file.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The type of a code in the file.
    ///
    /// # Errors
    /// [`Corrupt`] (with address 0: the caller knows where it read) for a code that is not 1 to 3.
    pub fn from_code(code: u8) -> Result<Self, Corrupt> {
        match code {
            1 => Ok(Self::F64),
            2 => Ok(Self::I64),
            3 => Ok(Self::U64),
            other => Err(Corrupt::new("column type", 0, other, "1, 2 or 3")),
        }
    }

    /// A signed key of `word` with the order of the values. Among floats -0.0 < +0.0 and NaN
    /// lies outside the infinities, by sign.
    #[must_use]
    #[inline(always)]
    pub fn order_key(self, word: u64) -> i64 {
        match self {
            Self::F64 => float_key(word),
            Self::I64 => word as i64,
            Self::U64 => (word ^ (1 << 63)) as i64,
        }
    }
}

/// Maps the bits of an `f64` to an integer of the same order; its own inverse.
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
        for ty in [ColumnType::F64, ColumnType::I64, ColumnType::U64] {
            assert_eq!(ColumnType::from_code(ty.code()), Ok(ty));
        }
        assert!(ColumnType::from_code(0).is_err());
        assert!(ColumnType::from_code(4).is_err());
    }
}
