//! Columns: their types, and how a value is encoded as one 64-bit word.
//!
//! ```text
//! type        word                                        null, where the column has nulls
//! F64, F32    bits of the f64 (of the same value)         a NaN with the payload "null"
//! I64         two's complement                            i64::MIN
//! Decimal(s)  value x 10^s as an i64                      i64::MIN
//! U64         as it is                                    u64::MAX
//! Bool        0 or 1                                      u64::MAX
//! String, Bytes, Guid   the number of a text (texts.rs)   u64::MAX
//! ```
//!
//! A nullable column reserves one bit pattern for null; storing this pattern as a value is refused. Columns without
//! nulls accept every pattern.

use crate::types::decimal::{DECIMAL_SCALE_MAX, decimal_to_f64, power_of_ten};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use tidalite_codec::ColumnType as WordType;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnType {
    /// An `f64`. Every bit pattern is kept, including the payload of a NaN.
    F64,
    /// A signed integer of 64 bits, `i64`.
    I64,
    /// An unsigned integer of 64 bits, `u64`.
    U64,
    /// An `f32`. Every bit pattern is kept. Reads return the value as an `f64`.
    F32,
    /// A truth value, stored as 0 or 1.
    Bool,
    /// A number with this many digits after the decimal point (0 to 18), stored exactly: an `i64` in units of the last
    /// digit.
    Decimal(u8),
    /// UTF-8 text of up to 1 MiB.
    String,
    /// Bytes, up to 1 MiB.
    Bytes,
    /// A GUID of sixteen bytes.
    Guid,
}

impl ColumnType {
    /// The number of this type in the file, and the scale of a decimal (0 for other types).
    pub(crate) fn code(self) -> (u8, u8) {
        match self {
            Self::F64 => (1, 0),
            Self::I64 => (2, 0),
            Self::U64 => (3, 0),
            Self::F32 => (4, 0),
            Self::Bool => (5, 0),
            Self::Decimal(scale) => (6, scale),
            Self::String => (7, 0),
            Self::Bytes => (8, 0),
            Self::Guid => (9, 0),
        }
    }

    pub(crate) fn from_code(code: u8, scale: u8) -> Option<Self> {
        match (code, scale) {
            (1, 0) => Some(Self::F64),
            (2, 0) => Some(Self::I64),
            (3, 0) => Some(Self::U64),
            (4, 0) => Some(Self::F32),
            (5, 0) => Some(Self::Bool),
            (6, 0..=DECIMAL_SCALE_MAX) => Some(Self::Decimal(scale)),
            (7, 0) => Some(Self::String),
            (8, 0) => Some(Self::Bytes),
            (9, 0) => Some(Self::Guid),
            _ => None,
        }
    }

    /// The type's name, as `tidalite series --schema` prints it and `import --columns` takes it: `f64`, `decimal(2)`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::F64 => "f64".to_owned(),
            Self::I64 => "i64".to_owned(),
            Self::U64 => "u64".to_owned(),
            Self::F32 => "f32".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Decimal(scale) => format!("decimal({scale})"),
            Self::String => "string".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Guid => "guid".to_owned(),
        }
    }

    /// The type with this name; `None` if there is no such type. The inverse of [`ColumnType::name`].
    ///
    /// ```
    /// use tidalite::ColumnType;
    /// for ty in [ColumnType::F32, ColumnType::Decimal(4), ColumnType::Guid] {
    ///     assert_eq!(ColumnType::named(&ty.name()), Some(ty));
    /// }
    /// assert_eq!(ColumnType::named("decimal(19)"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let scale = name.strip_prefix("decimal(");
        if let Some(scale) = scale.and_then(|rest| rest.strip_suffix(')')) {
            let scale: u8 = scale.parse().ok()?;
            return (scale <= DECIMAL_SCALE_MAX).then_some(Self::Decimal(scale));
        }
        let plain = [
            Self::F64,
            Self::I64,
            Self::U64,
            Self::F32,
            Self::Bool,
            Self::String,
            Self::Bytes,
            Self::Guid,
        ];
        plain.into_iter().find(|ty| ty.name() == name)
    }

    /// Whether a word of this type is the number of a stored text: strings, bytes and GUIDs.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::String | Self::Bytes | Self::Guid)
    }

    /// The storage type of words in a column of this type without nulls.
    fn words(self) -> WordType {
        match self {
            Self::F64 => WordType::F64,
            Self::F32 => WordType::F32,
            Self::I64 | Self::Decimal(_) => WordType::I64,
            Self::U64 | Self::Bool | Self::String | Self::Bytes | Self::Guid => WordType::U64,
        }
    }

    /// Converts a word to a float; `None` for a type that is not numeric. The word must not be null.
    pub(crate) fn number(self, word: u64) -> Option<f64> {
        Some(match self {
            Self::F64 | Self::F32 => f64::from_bits(word),
            Self::I64 => word as i64 as f64,
            Self::U64 | Self::Bool => word as f64,
            Self::Decimal(scale) => decimal_to_f64(word as i64, scale),
            Self::String | Self::Bytes | Self::Guid => return None,
        })
    }

    /// Converts a sum or difference of stored words to the column's values: a decimal is stored in units of its last
    /// digit.
    pub(crate) fn scaled(self, sum: f64) -> f64 {
        match self {
            Self::Decimal(scale) => sum / power_of_ten(scale),
            _ => sum,
        }
    }
}

/// A column of a series: its name and type, and whether rows may lack a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, unique within the schema.
    pub name: String,
    /// Type of the column's values.
    pub ty: ColumnType,
    /// Whether a row may have no value in this column.
    pub nullable: bool,
}

impl Column {
    /// Creates a column in which every row has a value.
    #[must_use]
    pub fn new(name: impl Into<String>, ty: ColumnType) -> Self {
        Self {
            name: name.into(),
            ty,
            nullable: false,
        }
    }

    /// Creates a nullable column.
    #[must_use]
    pub fn nullable(name: impl Into<String>, ty: ColumnType) -> Self {
        Self {
            nullable: true,
            ..Self::new(name, ty)
        }
    }

    /// The storage type of the column's words, including whether one word stands for null.
    pub(crate) fn words(&self) -> WordType {
        let words = self.ty.words();
        if self.nullable {
            words.or_null()
        } else {
            words
        }
    }

    /// The word that stands for null; `None` for a column without nulls.
    #[must_use]
    pub fn null(&self) -> Option<u64> {
        self.words().null()
    }

    /// Whether a word stands for null.
    #[must_use]
    #[inline]
    pub fn is_null(&self, word: u64) -> bool {
        self.null() == Some(word)
    }

    /// Converts a word to a float. Integers and decimals give the nearest float, true is 1, NaN stays NaN. `None` for
    /// null, and in a column of texts.
    #[must_use]
    pub fn f64(&self, word: u64) -> Option<f64> {
        if self.is_null(word) {
            return None;
        }
        self.ty.number(word)
    }

    pub(crate) fn problem(&self, problem: impl std::fmt::Display) -> Error {
        Error::from(Cause::Schema {
            problem: format!("column {}: {problem}", self.name),
        })
    }

    /// Returns the word, or an error if the word stands for null in this column.
    pub(crate) fn as_value(&self, word: u64) -> Result<u64> {
        if self.is_null(word) {
            return Err(self.problem("this value stands for null in a column with nulls"));
        }
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;
    use tidalite_testkit::rng::Rng;

    /// Compares `units` / 10^`scale` with `mantissa` times 2^`exponent`, in integer arithmetic.
    fn compare(units: u64, scale: u8, mantissa: u64, exponent: i32) -> Ordering {
        let power = 10u128.pow(u32::from(scale));
        let (mut left, mut right) = (u128::from(units), u128::from(mantissa) * power);
        match exponent {
            0.. => right <<= exponent,
            _ => left <<= -exponent,
        }
        left.cmp(&right)
    }

    /// Whether `float` is the float nearest to `units` / 10^`scale`, with ties to even: the exact quotient must not lie
    /// beyond the midpoints to the neighbouring floats.
    fn is_nearest(units: i64, scale: u8, float: f64) -> bool {
        let magnitude = units.unsigned_abs();
        if magnitude == 0 {
            return float == 0.0;
        }
        let bits = float.abs().to_bits();
        let exponent = (bits >> 52) as i32 - 1075;
        let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
        let is_even = mantissa.is_multiple_of(2);
        // A midpoint between two floats needs one more bit; just below a power of two the floats are twice as dense.
        let above = compare(magnitude, scale, 2 * mantissa + 1, exponent - 1);
        let below = match mantissa == 1 << 52 {
            true => compare(magnitude, scale, 4 * mantissa - 1, exponent - 2),
            false => compare(magnitude, scale, 2 * mantissa - 1, exponent - 1),
        };
        let within = match is_even {
            true => above.is_le() && below.is_ge(),
            false => above.is_lt() && below.is_gt(),
        };
        within && (float < 0.0) == (units < 0)
    }

    #[test]
    fn a_decimal_becomes_the_nearest_float() {
        let known = 5_012_216_766_205_461.0;
        assert_eq!(decimal_to_f64(501_221_676_620_546_051, 2), known);
        assert!(is_nearest(501_221_676_620_546_051, 2, known));
        assert!(!is_nearest(501_221_676_620_546_051, 2, known.next_down()));
        assert!(!is_nearest(501_221_676_620_546_051, 2, known.next_up()));
        let check = |units: i64, scale| {
            let float = decimal_to_f64(units, scale);
            assert!(
                is_nearest(units, scale, float),
                "{units} by 10^{scale}: {float}"
            );
            let column = Column::new("x", ColumnType::Decimal(scale));
            let decimal = crate::Decimal { units, scale };
            assert_eq!(column.f64(units as u64), Some(float), "{decimal}");
            assert_eq!(decimal.to_f64(), float, "{decimal}");
            assert_eq!(
                decimal.to_string().parse(),
                Ok(float),
                "as the standard library reads it"
            );
        };
        let edges = [
            0,
            1,
            2,
            (1 << 53) - 1,
            1 << 53,
            (1 << 53) + 1,
            (1 << 54) + 2,
            (1 << 54) + 6,
            i64::MAX,
        ];
        for (scale, float) in [
            (19, 9.223_372_036_854_776e-1),
            (30, 9.223_372_036_854_776e-12),
        ] {
            let decimal = crate::Decimal {
                units: i64::MAX,
                scale,
            };
            assert_eq!(decimal.to_f64(), float);
        }
        let mut rng = Rng::new(0xdec1);
        for scale in 0..=DECIMAL_SCALE_MAX {
            for units in edges {
                check(units, scale);
                check(-units, scale);
            }
            check(i64::MIN, scale);
            for _ in 0..200_000 / (usize::from(DECIMAL_SCALE_MAX) + 1) + 1 {
                // The numbers have all lengths from 1 to 63 bits, half of them beyond 2^53.
                let shift = if rng.one_in(2) {
                    rng.below(63)
                } else {
                    rng.below(10)
                };
                check(rng.u64() as i64 >> shift, scale);
            }
        }
    }
}
