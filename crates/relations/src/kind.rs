//! Types of columns.
//!
//! ```text
//! 0  u8  code
//! 1  .   decimal: precision u8, scale u8; time: unit in bits 0 to 1, bit 7 set if zoned; otherwise nothing
//! ```

use std::fmt;

/// Maximum number of digits of a decimal.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// The unit of a column of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// The type of a column.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// True or false.
    Bool,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// An unsigned integer of 64 bits.
    U64,
    /// A float of 32 bits.
    F32,
    /// A float of 64 bits.
    F64,
    /// A text, ordered by its UTF-8 bytes.
    Text,
    /// Bytes.
    Bytes,
    /// A decimal: an integer divided by ten to the power of `scale`.
    Decimal {
        /// Number of digits, 1 to 38.
        precision: u8,
        /// Number of digits after the point, at most `precision`.
        scale: u8,
    },
    /// Days since 1970-01-01, within 32 bits.
    Date,
    /// A time since 1970-01-01 00:00.
    Time {
        /// The unit.
        unit: TimeUnit,
        /// True for an instant in UTC; false for a local time without a zone.
        zoned: bool,
    },
    /// A GUID of 16 bytes.
    Guid,
}

const ZONED: u8 = 0x80;

impl ColumnType {
    /// Whether the type is valid: a decimal has 1 to 38 digits, any number of them after the point.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Decimal { precision, scale } => {
                (1..=DECIMAL_DIGITS_MAX).contains(&precision) && scale <= precision
            }
            _ => true,
        }
    }

    /// Length in bytes of a value in a key; `None` for texts and bytes.
    pub(crate) fn key_width(self) -> Option<usize> {
        Some(match self {
            Self::Bool => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 | Self::Date => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Time { .. } => 8,
            Self::Decimal { precision, .. } => match precision {
                0..=9 => 4,
                10..=18 => 8,
                _ => 16,
            },
            Self::Guid => 16,
            Self::Text | Self::Bytes => return None,
        })
    }

    pub(crate) fn encode(self, bytes: &mut Vec<u8>) {
        bytes.push(match self {
            Self::Bool => 0,
            Self::I16 => 1,
            Self::I32 => 2,
            Self::I64 => 3,
            Self::U64 => 4,
            Self::F32 => 5,
            Self::F64 => 6,
            Self::Text => 7,
            Self::Bytes => 8,
            Self::Decimal { .. } => 9,
            Self::Date => 10,
            Self::Time { .. } => 11,
            Self::Guid => 12,
        });
        match self {
            Self::Decimal { precision, scale } => bytes.extend([precision, scale]),
            Self::Time { unit, zoned } => bytes.push(unit as u8 | if zoned { ZONED } else { 0 }),
            _ => {}
        }
    }

    /// Decodes a type at the beginning of `bytes` and moves `bytes` past it; `None` if the type is unknown.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut next = || {
            let (&byte, rest) = bytes.split_first()?;
            *bytes = rest;
            Some(byte)
        };
        let kind = match next()? {
            0 => Self::Bool,
            1 => Self::I16,
            2 => Self::I32,
            3 => Self::I64,
            4 => Self::U64,
            5 => Self::F32,
            6 => Self::F64,
            7 => Self::Text,
            8 => Self::Bytes,
            9 => Self::Decimal {
                precision: next()?,
                scale: next()?,
            },
            10 => Self::Date,
            11 => {
                let byte = next()?;
                let unit = match byte & !ZONED {
                    0 => TimeUnit::Seconds,
                    1 => TimeUnit::Millis,
                    2 => TimeUnit::Micros,
                    3 => TimeUnit::Nanos,
                    _ => return None,
                };
                let zoned = byte & ZONED != 0;
                Self::Time { unit, zoned }
            }
            12 => Self::Guid,
            _ => return None,
        };
        kind.is_valid().then_some(kind)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Bool => "bool",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Decimal { precision, scale } => {
                return write!(f, "decimal({precision}, {scale})");
            }
            Self::Date => "date",
            Self::Time { unit, zoned } => {
                let unit = match unit {
                    TimeUnit::Seconds => "s",
                    TimeUnit::Millis => "ms",
                    TimeUnit::Micros => "us",
                    TimeUnit::Nanos => "ns",
                };
                let zone = if *zoned { ", UTC" } else { "" };
                return write!(f, "time({unit}{zone})");
            }
            Self::Guid => "guid",
        };
        f.write_str(name)
    }
}
