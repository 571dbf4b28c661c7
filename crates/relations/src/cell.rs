//! Values of columns, owned and borrowed.

use crate::kind::{ColumnType, DECIMAL_DIGITS_MAX};
use std::fmt;

/// A value of a column, or null.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// No value.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer of any width, a date or a time.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A float of 32 or 64 bits.
    F64(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A decimal, as an integer: the value multiplied by ten to the power of the column's scale.
    Decimal(i128),
    /// A GUID.
    Guid([u8; 16]),
}

/// A value of a column, or null. Texts and bytes are borrowed from the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellRef<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer of any width, a date or a time.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A float of 32 or 64 bits.
    F64(f64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A decimal, as an integer: the value multiplied by ten to the power of the column's scale.
    Decimal(i128),
    /// A GUID.
    Guid([u8; 16]),
}

impl Cell {
    /// The same value, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> CellRef<'_> {
        match self {
            Self::Null => CellRef::Null,
            Self::Bool(value) => CellRef::Bool(*value),
            Self::I64(value) => CellRef::I64(*value),
            Self::U64(value) => CellRef::U64(*value),
            Self::F64(value) => CellRef::F64(*value),
            Self::Text(value) => CellRef::Text(value),
            Self::Bytes(value) => CellRef::Bytes(value),
            Self::Decimal(value) => CellRef::Decimal(*value),
            Self::Guid(value) => CellRef::Guid(*value),
        }
    }

    /// True for null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether a column of this type can store the value. Every type can store null.
    #[must_use]
    pub fn fits(&self, kind: ColumnType) -> bool {
        use ColumnType as Type;
        match (self, kind) {
            (Self::Null, _)
            | (Self::Bool(_), Type::Bool)
            | (Self::I64(_), Type::I64 | Type::Time { .. })
            | (Self::U64(_), Type::U64)
            | (Self::F64(_), Type::F64)
            | (Self::Text(_), Type::Text)
            | (Self::Bytes(_), Type::Bytes)
            | (Self::Guid(_), Type::Guid) => true,
            (Self::I64(value), Type::I16) => i16::try_from(*value).is_ok(),
            (Self::I64(value), Type::I32 | Type::Date) => i32::try_from(*value).is_ok(),
            (Self::F64(value), Type::F32) => value.is_nan() || f64::from(*value as f32) == *value,
            (Self::Decimal(value), Type::Decimal { precision, .. }) => {
                fits_digits(*value, precision)
            }
            _ => false,
        }
    }
}

/// The powers of ten. A decimal with n digits is below the power with index n.
const POWERS: [u128; DECIMAL_DIGITS_MAX as usize + 1] = {
    let mut powers = [1; DECIMAL_DIGITS_MAX as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Whether a decimal has at most this number of digits.
pub(crate) fn fits_digits(value: i128, precision: u8) -> bool {
    let limit = POWERS.get(usize::from(precision));
    limit.is_some_and(|limit| value.unsigned_abs() < *limit)
}

impl CellRef<'_> {
    /// The same value, owned.
    #[must_use]
    pub fn to_cell(self) -> Cell {
        match self {
            Self::Null => Cell::Null,
            Self::Bool(value) => Cell::Bool(value),
            Self::I64(value) => Cell::I64(value),
            Self::U64(value) => Cell::U64(value),
            Self::F64(value) => Cell::F64(value),
            Self::Text(value) => Cell::Text(value.to_owned()),
            Self::Bytes(value) => Cell::Bytes(value.to_vec()),
            Self::Decimal(value) => Cell::Decimal(value),
            Self::Guid(value) => Cell::Guid(value),
        }
    }

    /// True for null.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }
}

/// Maximum number of characters or bytes of a value that an error text shows.
const SHOWN_MAX: usize = 64;

impl fmt::Display for CellRef<'_> {
    /// Writes the value for an error text; long texts and bytes are truncated.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::U64(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
            Self::Decimal(value) => value.fmt(f),
            Self::Text(value) => match value.char_indices().nth(SHOWN_MAX) {
                Some((end, _)) => write!(f, "{:?}...", &value[..end]),
                None => write!(f, "{value:?}"),
            },
            Self::Bytes(value) => {
                let shown = &value[..value.len().min(SHOWN_MAX)];
                let rest = if shown.len() < value.len() { "..." } else { "" };
                f.write_str("0x")?;
                shown.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(rest)
            }
            Self::Guid(value) => value.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

macro_rules! cells {
    ($($ty:ty => $make:expr;)*) => {$(
        impl From<$ty> for Cell {
            fn from(value: $ty) -> Self {
                $make(value)
            }
        }
    )*};
}
cells! {
    bool => Self::Bool;
    i64 => Self::I64;
    u64 => Self::U64;
    f64 => Self::F64;
    String => Self::Text;
    &str => |text: &str| Self::Text(text.to_owned());
    Vec<u8> => Self::Bytes;
    &[u8] => |bytes: &[u8]| Self::Bytes(bytes.to_vec());
    i128 => Self::Decimal;
    [u8; 16] => Self::Guid;
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_fits_its_digits_and_no_more() {
        for precision in 0..=DECIMAL_DIGITS_MAX {
            let beyond = 10_i128.pow(precision.into());
            assert!(fits_digits(beyond - 1, precision) && fits_digits(1 - beyond, precision));
            assert!(!fits_digits(beyond, precision) && !fits_digits(-beyond, precision));
            assert!(!fits_digits(i128::MIN, precision));
        }
        assert!(!fits_digits(0, DECIMAL_DIGITS_MAX + 1));
    }
}
