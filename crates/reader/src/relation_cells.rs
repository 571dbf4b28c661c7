//! Types and cells of relations (section 9.15 of docs/format.md), as fields of rows and as pieces of keys.

use crate::bytes::Fields;
use crate::error::Result;
use crate::runs::{broken, require};
use crate::shown::Bytes;
use std::fmt;

/// Names of the types without parameters, indexed by their number in the file.
const NAMES: [&str; 13] = [
    "bool", "i16", "i32", "i64", "u64", "f32", "f64", "text", "bytes", "decimal", "date", "time",
    "guid",
];
const BOOL: u8 = 0;
const I16: u8 = 1;
const I32: u8 = 2;
const U64: u8 = 4;
const F32: u8 = 5;
const F64: u8 = 6;
const TEXT: u8 = 7;
const BYTES: u8 = 8;
const DECIMAL: u8 = 9;
const DATE: u8 = 10;
const TIME: u8 = 11;
const GUID: u8 = 12;

/// Names of the units of times, indexed by their number in the file.
const TIME_UNITS: [&str; 4] = ["s", "ms", "us", "ns"];

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The number of the type.
    pub code: u8,
    /// Digits and scale of a decimal; unit of a time, and 1 for an instant in UTC; otherwise 0.
    pub of: [u8; 2],
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer, a date or a time.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// Bits of a double, also for a float of 32 bits.
    Float(u64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A decimal in units of its last digit.
    Decimal(i128),
    /// A GUID.
    Guid([u8; 16]),
}

impl Kind {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let code = fields.u8()?;
        let of = match code {
            DECIMAL => [fields.u8()?, fields.u8()?],
            TIME => {
                let byte = fields.u8()?;
                [byte & 0x7f, byte >> 7]
            }
            _ => [0, 0],
        };
        let is_known = match code {
            DECIMAL => (1..=38).contains(&of[0]) && of[1] <= of[0],
            TIME => usize::from(of[0]) < TIME_UNITS.len(),
            _ => usize::from(code) < NAMES.len(),
        };
        fields.require(is_known, "the type of a column")?;
        Ok(Self { code, of })
    }

    /// Number of bytes of an integer in a key.
    fn key_bytes(self) -> usize {
        match (self.code, self.of[0]) {
            (BOOL, _) => 1,
            (I16, _) => 2,
            (I32 | DATE | F32, _) | (DECIMAL, 0..=9) => 4,
            (DECIMAL, 19..) | (GUID, _) => 16,
            _ => 8,
        }
    }

    /// A signed integer as a cell of this type.
    fn integer(self, value: i128) -> Result<Cell> {
        let fits = match self.code {
            I16 => i16::try_from(value).is_ok(),
            I32 | DATE => i32::try_from(value).is_ok(),
            DECIMAL => value.unsigned_abs() < 10_u128.pow(self.of[0].into()),
            _ => i64::try_from(value).is_ok(),
        };
        require(fits, "an integer beyond its type")?;
        Ok(match self.code {
            DECIMAL => Cell::Decimal(value),
            _ => Cell::I64(value as i64),
        })
    }
}

/// Reads a varint of at most 128 bits in its shortest form.
fn varint(fields: &mut Fields<'_>) -> Result<u128> {
    let mut value = 0_u128;
    for shift in (0..128).step_by(7) {
        let byte = u128::from(fields.u8()?);
        let bits = byte & 0x7f;
        fields.require(bits << shift >> shift == bits, "a varint is too long")?;
        value |= bits << shift;
        if byte < 0x80 {
            fields.require(byte > 0 || shift == 0, "a varint is too long")?;
            return Ok(value);
        }
    }
    Err(fields.damaged("a varint is too long"))
}

fn boolean(byte: u8) -> Result<Cell> {
    require(byte < 2, "a boolean")?;
    Ok(Cell::Bool(byte == 1))
}

fn text(bytes: Vec<u8>) -> Result<Cell> {
    let text = String::from_utf8(bytes);
    text.map(Cell::Text)
        .map_err(|_| broken("a text that is not UTF-8"))
}

fn guid(bytes: &[u8]) -> Cell {
    let mut guid = [0; 16];
    guid.copy_from_slice(bytes);
    Cell::Guid(guid)
}

/// Reads a field of a row that is not null.
pub(crate) fn field(fields: &mut Fields<'_>, kind: Kind) -> Result<Cell> {
    Ok(match kind.code {
        BOOL => boolean(fields.u8()?)?,
        U64 => {
            let value = varint(fields)?;
            let value = u64::try_from(value);
            Cell::U64(value.map_err(|_| broken("an integer beyond its type"))?)
        }
        F32 => {
            let bits = fields.u32()? as u32;
            Cell::Float(f64::from(f32::from_bits(bits)).to_bits())
        }
        F64 => Cell::Float(fields.u64()?),
        TIME => Cell::I64(fields.i64()?),
        GUID => guid(fields.take(16)?),
        TEXT | BYTES => {
            let bytes = usize::try_from(varint(fields)?);
            let bytes = fields.take(bytes.unwrap_or(usize::MAX))?.to_vec();
            match kind.code {
                TEXT => text(bytes)?,
                _ => Cell::Bytes(bytes),
            }
        }
        _ => {
            let word = varint(fields)?;
            kind.integer((word >> 1).cast_signed() ^ -(word & 1).cast_signed())?
        }
    })
}

/// Reads a byte that is 0 for null, or 1 and a field.
pub(crate) fn nullable_field(fields: &mut Fields<'_>, kind: Kind) -> Result<Cell> {
    match fields.u8()? {
        0 => Ok(Cell::Null),
        1 => field(fields, kind),
        _ => Err(fields.damaged("a cell that may be null")),
    }
}

/// A big-endian number of up to sixteen bytes.
fn big(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |value, &byte| value << 8 | u128::from(byte))
}

/// Reads a piece of a key that is not null.
pub(crate) fn decode_key(fields: &mut Fields<'_>, kind: Kind) -> Result<Cell> {
    if matches!(kind.code, TEXT | BYTES) {
        let mut bytes = Vec::new();
        loop {
            match fields.u8()? {
                0 => match fields.u8()? {
                    0 => break,
                    0xff => bytes.push(0),
                    _ => return Err(fields.damaged("a zero byte in a key")),
                },
                byte => bytes.push(byte),
            }
        }
        return match kind.code {
            TEXT => text(bytes),
            _ => Ok(Cell::Bytes(bytes)),
        };
    }
    let taken = fields.take(kind.key_bytes())?;
    let (value, bits) = (big(taken), 8 * taken.len());
    let sign = 1 << (bits - 1);
    Ok(match kind.code {
        BOOL => boolean(taken[0])?,
        U64 => Cell::U64(value as u64),
        F32 | F64 => {
            let value = match value & sign {
                0 => !value & (u128::MAX >> (128 - bits)),
                _ => value ^ sign,
            };
            match kind.code {
                F32 => Cell::Float(f64::from(f32::from_bits(value as u32)).to_bits()),
                _ => Cell::Float(value as u64),
            }
        }
        GUID => guid(taken),
        _ => {
            // The sign bit is flipped; the rest is extended to 128 bits.
            let extended = (value ^ sign) << (128 - bits);
            kind.integer(extended.cast_signed() >> (128 - bits))?
        }
    })
}

/// A cell as a piece of a key; empty for null.
pub(crate) fn key_piece(kind: Kind, cell: &Cell) -> Vec<u8> {
    let bytes = kind.key_bytes();
    let integer = |value: i128| {
        let word = value.cast_unsigned() ^ 1 << (8 * bytes - 1);
        word.to_be_bytes()[16 - bytes..].to_vec()
    };
    let escaped = |text: &[u8]| {
        let mut piece = Vec::new();
        for &byte in text {
            piece.push(byte);
            if byte == 0 {
                piece.push(0xff);
            }
        }
        piece.extend([0, 0]);
        piece
    };
    match cell {
        Cell::Null => Vec::new(),
        Cell::Bool(value) => vec![u8::from(*value)],
        Cell::I64(value) => integer((*value).into()),
        Cell::Decimal(value) => integer(*value),
        Cell::U64(value) => value.to_be_bytes().to_vec(),
        Cell::Text(text) => escaped(text.as_bytes()),
        Cell::Bytes(bytes) => escaped(bytes),
        Cell::Guid(guid) => guid.to_vec(),
        Cell::Float(bits) => {
            let value = f64::from_bits(*bits);
            let word = match kind.code {
                _ if value.is_nan() => u64::MAX >> (65 - 8 * bytes),
                F32 => (value as f32 + 0.0).to_bits().into(),
                _ => (value + 0.0).to_bits(),
            };
            let sign = 1 << (8 * bytes - 1);
            let word = if word & sign == 0 { word | sign } else { !word };
            word.to_be_bytes()[8 - bytes..].to_vec()
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.of;
        f.write_str(NAMES[usize::from(self.code)])?;
        match self.code {
            DECIMAL => write!(f, "({first}, {second})"),
            TIME => {
                let zone = if second == 1 { ", UTC" } else { "" };
                write!(f, "({}{zone})", TIME_UNITS[usize::from(first)])
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::I64(value) => write!(f, "{value}"),
            Self::U64(value) => write!(f, "{value}"),
            Self::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            Self::Text(text) => write!(f, "{}", Bytes(text.as_bytes())),
            Self::Bytes(bytes) => write!(f, "bytes {}", Bytes(bytes)),
            Self::Decimal(value) => write!(f, "{value}"),
            Self::Guid(guid) => guid.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}
