//! Dynamically typed values, for programs that learn the columns of a series at run time.

use crate::types::column::{Column, ColumnType};
use crate::types::decimal::{DECIMAL_SCALE_MAX, Decimal};
use crate::types::error::Result;
use crate::types::error::cause::Cause;
use std::fmt;
use tidalite_codec::ColumnType as WordType;

/// Maximum length in bytes of a string or of a value of bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// A value of a row in one column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Null: the row has no value in the column.
    Null,
    /// A value of a column of `F64` or `F32`.
    F64(f64),
    /// A value of a column of `I64`.
    I64(i64),
    /// A value of a column of `U64`.
    U64(u64),
    /// A value of a column of `Bool`.
    Bool(bool),
    /// A value of a column of `Decimal`.
    Decimal(Decimal),
    /// A value of a column of `String`.
    String(String),
    /// A value of a column of `Bytes`.
    Bytes(Vec<u8>),
    /// A value of a column of `Guid`.
    Guid([u8; 16]),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<[u8; 16]> for Value {
    fn from(guid: [u8; 16]) -> Self {
        Self::Guid(guid)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Self::F64(x)
    }
}

impl From<f32> for Value {
    fn from(x: f32) -> Self {
        Self::F64(f64::from_bits(WordType::widen(x)))
    }
}

impl From<i64> for Value {
    fn from(x: i64) -> Self {
        Self::I64(x)
    }
}

impl From<i32> for Value {
    fn from(x: i32) -> Self {
        Self::I64(i64::from(x))
    }
}

impl From<u64> for Value {
    fn from(x: u64) -> Self {
        Self::U64(x)
    }
}

impl From<bool> for Value {
    fn from(x: bool) -> Self {
        Self::Bool(x)
    }
}

impl From<Decimal> for Value {
    fn from(x: Decimal) -> Self {
        Self::Decimal(x)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(x: Option<T>) -> Self {
        x.map_or(Self::Null, Into::into)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::F64(x) => x.fmt(f),
            Self::I64(x) => x.fmt(f),
            Self::U64(x) => x.fmt(f),
            Self::Bool(x) => x.fmt(f),
            Self::Decimal(x) => x.fmt(f),
            Self::String(x) => f.write_str(x),
            Self::Bytes(x) => x.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Guid(x) => f.write_str(&crate::types::text_form::guid_text(x)),
        }
    }
}

impl Column {
    /// The bytes that are stored for a value of a text column; `None` for null.
    ///
    /// # Errors
    /// `Schema` if the value does not fit the column; `Limit` if the value is too long.
    pub(crate) fn text<'v>(&self, value: &'v Value) -> Result<Option<&'v [u8]>> {
        let text: &[u8] = match (self.ty, value) {
            (_, Value::Null) if self.nullable => return Ok(None),
            (ColumnType::String, Value::String(text)) => text.as_bytes(),
            (ColumnType::Bytes, Value::Bytes(bytes)) => bytes,
            (ColumnType::Guid, Value::Guid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])) => {
                &[]
            }
            (ColumnType::Guid, Value::Guid(guid)) => guid,
            _ => {
                let ty = self.ty.name();
                return Err(self.problem(format!("{value:?} does not fit a column of {ty}")));
            }
        };
        if text.len() > TEXT_BYTES_MAX {
            return Err(crate::Error::from(Cause::Limit {
                what: "bytes of a string or of bytes",
                found: text.len() as u64,
                limit: TEXT_BYTES_MAX as u64,
            }));
        }
        Ok(Some(text))
    }

    /// Converts the stored bytes of a text to a value of the column's type; returns an error if they are damaged.
    pub(crate) fn of_text(&self, text: Vec<u8>) -> Result<Value> {
        let bad = |found: String, expected: &str| -> crate::Error {
            let what = format!("text of column {}", self.name);
            tidalite_base::Corrupt::new(what, 0, found, expected).into()
        };
        Ok(match self.ty {
            ColumnType::Bytes => Value::Bytes(text),
            ColumnType::Guid if text.is_empty() => Value::Guid([0; 16]),
            ColumnType::Guid => {
                let found = format!("{} bytes", text.len());
                Value::Guid(text.try_into().map_err(|_| bad(found, "16 bytes"))?)
            }
            _ => {
                let text = String::from_utf8(text);
                Value::String(text.map_err(|error| bad(error.to_string(), "UTF-8"))?)
            }
        })
    }

    /// Encodes a value as a stored word. A number is accepted if it fits exactly: an integer in a column of floats or
    /// decimals, and 1 or 0 in a column of bools.
    ///
    /// # Errors
    /// `Schema` if the value does not fit the column, is null in a column without nulls, or is the pattern reserved for
    /// null. Also `Schema` for a text column, because only the series can assign words to texts
    /// ([`SeriesMut::word`](crate::SeriesMut::word)).
    pub fn word(&self, value: &Value) -> Result<u64> {
        if *value == Value::Null {
            return self
                .null()
                .ok_or_else(|| self.problem("it has no nulls, given was one"));
        }
        let word = match (self.ty, value) {
            (ColumnType::F64, Value::F64(x)) => Some(x.to_bits()),
            (ColumnType::F32, Value::F64(x)) => {
                let word = x.to_bits();
                let narrow = WordType::widen(WordType::narrow(word)) == word;
                narrow.then_some(word)
            }
            (ColumnType::I64, Value::I64(x)) => Some(*x as u64),
            (ColumnType::I64, Value::U64(x)) => i64::try_from(*x).ok().map(|x| x as u64),
            (ColumnType::U64, Value::U64(x)) => Some(*x),
            (ColumnType::U64, Value::I64(x)) => u64::try_from(*x).ok(),
            (ColumnType::Bool, Value::Bool(x)) => Some(u64::from(*x)),
            (ColumnType::Bool, Value::I64(x @ (0 | 1))) => Some(*x as u64),
            (ColumnType::Bool, Value::U64(x @ (0 | 1))) => Some(*x),
            (ColumnType::Decimal(scale), Value::Decimal(x)) => {
                x.with_scale(scale).map(|x| x.units as u64)
            }
            (ColumnType::Decimal(scale), Value::I64(x)) => {
                let whole = Decimal {
                    units: *x,
                    scale: 0,
                };
                whole.with_scale(scale).map(|x| x.units as u64)
            }
            (ColumnType::F64, Value::I64(x)) => exact(*x as f64, i128::from(*x)),
            (ColumnType::F64, Value::U64(x)) => exact(*x as f64, i128::from(*x)),
            (ColumnType::F32, Value::I64(x)) => exact(f64::from(*x as f32), i128::from(*x)),
            (ColumnType::F32, Value::U64(x)) => exact(f64::from(*x as f32), i128::from(*x)),
            _ => None,
        };
        let word = word.ok_or_else(|| {
            let ty = self.ty.name();
            self.problem(format!("{value:?} does not fit a column of {ty}"))
        })?;
        self.as_value(word)
    }

    /// Decodes a stored word. In a text column the result is only the number of the text; `Series::values` and
    /// `Series::value` read the text itself.
    #[must_use]
    pub fn value(&self, word: u64) -> Value {
        if self.is_null(word) {
            return Value::Null;
        }
        match self.ty {
            ColumnType::F64 | ColumnType::F32 => Value::F64(f64::from_bits(word)),
            ColumnType::I64 => Value::I64(word as i64),
            ColumnType::U64 | ColumnType::String | ColumnType::Bytes | ColumnType::Guid => {
                Value::U64(word)
            }
            ColumnType::Bool => Value::Bool(word != 0),
            ColumnType::Decimal(scale) => Value::Decimal(Decimal {
                units: word as i64,
                scale,
            }),
        }
    }
}

/// The bits of `float` if it equals the integer `int`; otherwise `None`.
fn exact(float: f64, int: i128) -> Option<u64> {
    (float as i128 == int).then(|| float.to_bits())
}

/// Converts a bound of a range to units of a decimal column: the greatest integer at or below `x` x 10^`scale`, and
/// whether that integer is exact. The conversion uses the decimal digits of `x`, so 0.29 with two digits is 29 units,
/// although 0.29 x 100 is less than 29 in floats.
pub(crate) fn units_at_or_below(x: f64, scale: u8) -> (i128, bool) {
    debug_assert!(scale <= DECIMAL_SCALE_MAX);
    if !x.is_finite() {
        let far = if x > 0.0 {
            i128::MAX / 4
        } else {
            i128::MIN / 4
        };
        return (far, false);
    }
    let text = format!("{:e}", x.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().unwrap_or(0);
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let shift = exponent - fraction.len() as i32 + i32::from(scale);
    let (units, rest) = if shift >= 0 {
        let power = 10i128.checked_pow(shift.unsigned_abs());
        let units = power.and_then(|power| digits.checked_mul(power));
        (units.unwrap_or(i128::MAX / 4), false)
    } else {
        match 10i128.checked_pow(shift.unsigned_abs()) {
            Some(power) => (digits / power, digits % power != 0),
            None => (0, digits != 0),
        }
    };
    match (x < 0.0, rest) {
        (false, rest) => (units, !rest),
        (true, false) => (-units, true),
        (true, true) => (-units - 1, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_come_back_as_they_are_written() {
        for (text, scale, units) in [
            ("0", 0, 0),
            ("-0.5", 1, -5),
            ("+7.10", 1, 71),
            (".25", 2, 25),
            ("9223372036854775807", 0, i64::MAX),
            ("-9.223372036854775808", 18, i64::MIN),
        ] {
            assert_eq!(Decimal::parse(text, scale), Some(Decimal { units, scale }));
        }
        for (text, scale) in [
            ("", 2),
            ("-", 2),
            (".", 2),
            ("1e3", 2),
            ("1.234", 2),
            ("9223372036854775808", 0),
            ("10", 18),
            ("1.-2", 2),
            ("é", 1),
        ] {
            assert_eq!(Decimal::parse(text, scale), None, "{text}");
        }
        for units in [0, 1, -1, 99, -100, i64::MIN, i64::MAX] {
            for scale in [0, 1, 2, 18] {
                let decimal = Decimal { units, scale };
                assert_eq!(Decimal::parse(&decimal.to_string(), scale), Some(decimal));
            }
        }
    }

    #[test]
    fn bounds_of_decimals_go_by_their_digits() {
        for (x, scale, units, exact) in [
            (0.29, 2, 29, true),
            (-0.29, 2, -29, true),
            (0.295, 2, 29, false),
            (-0.295, 2, -30, false),
            (1e3, 2, 100_000, true),
            (1e-30, 2, 0, false),
            (-1e-30, 2, -1, false),
            (0.0, 0, 0, true),
        ] {
            assert_eq!(units_at_or_below(x, scale), (units, exact), "{x}");
        }
        assert!(units_at_or_below(1e300, 18).0 > i128::from(i64::MAX));
        assert!(units_at_or_below(f64::NEG_INFINITY, 18).0 < i128::from(i64::MIN));
    }

    #[test]
    fn values_go_where_they_fit_and_nowhere_else() {
        use ColumnType::{Bool, F32, F64, I64, U64};
        let fits = |ty, value: Value| {
            let (plain, nullable) = (Column::new("x", ty), Column::nullable("x", ty));
            let word = plain.word(&value);
            if let Ok(word) = word {
                assert_eq!(nullable.word(&value).ok(), Some(word));
                assert_eq!(plain.f64(plain.word(&value).unwrap()), plain.f64(word));
            }
            assert!(plain.word(&Value::Null).is_err());
            let null = nullable.word(&Value::Null).unwrap();
            assert_eq!(nullable.value(null), Value::Null);
            word.is_ok()
        };
        assert!(fits(F64, 0.1.into()) && fits(F32, 0.1f32.into()) && !fits(F32, 0.1.into()));
        assert!(fits(F64, (1i64 << 53).into()) && !fits(F64, ((1i64 << 53) + 1).into()));
        assert!(fits(I64, 5u64.into()) && !fits(U64, (-5).into()) && !fits(I64, 0.5.into()));
        assert!(fits(Bool, true.into()) && fits(Bool, 1.into()) && !fits(Bool, 2.into()));
        let price = |units, scale| Value::Decimal(Decimal { units, scale });
        assert!(fits(ColumnType::Decimal(2), price(15, 1)));
        assert!(fits(ColumnType::Decimal(2), price(1500, 3)));
        assert!(!fits(ColumnType::Decimal(2), price(1501, 3)));
        assert!(fits(ColumnType::Decimal(2), 3.into()));
        // The bit pattern that would be reserved for null can be a value only in columns without nulls.
        for (ty, value) in [
            (I64, Value::I64(i64::MIN)),
            (U64, Value::U64(u64::MAX)),
            (F64, Value::F64(f64::from_bits(WordType::NullF64.fill()))),
        ] {
            assert!(Column::new("x", ty).word(&value).is_ok());
            assert!(Column::nullable("x", ty).word(&value).is_err());
        }
    }
}
