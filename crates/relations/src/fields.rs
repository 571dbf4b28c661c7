//! The value of a row: the columns that are not in the key, in the order of their field ids.
//!
//! ```text
//! count       varint           number of fields: all that existed when the row was written
//! present     count / 8 bytes  rounded up; bit i is set if field i is not null; unused bits are 0
//! fields      .                the fields that are not null
//! ```
//!
//! ```text
//! bool                              0 or 1
//! i16, i32, i64, date, decimal      zigzag varint
//! u64                               varint
//! time, f64                         8 bytes, little-endian
//! f32                               4 bytes, little-endian
//! text, bytes                       varint length, bytes
//! guid                              16 bytes
//! ```
//!
//! A field whose number is `count` or greater was added to the schema later and reads as its absent value.

use crate::cell::{Cell, CellRef, fits_digits};
use crate::kind::ColumnType;
use tidalite_base::varint;

/// Appends a value that fits the type and is not null.
pub(crate) fn push(bytes: &mut Vec<u8>, kind: ColumnType, cell: &Cell) {
    match (cell, kind) {
        (Cell::Bool(value), _) => bytes.push(u8::from(*value)),
        (Cell::I64(value), ColumnType::Time { .. }) => {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        (Cell::I64(value), _) => varint::push_signed(bytes, (*value).into()),
        (Cell::U64(value), _) => varint::push(bytes, *value),
        (Cell::F64(value), ColumnType::F32) => {
            bytes.extend_from_slice(&(*value as f32).to_le_bytes());
        }
        (Cell::F64(value), _) => bytes.extend_from_slice(&value.to_le_bytes()),
        (Cell::Text(text), _) => push_bytes(bytes, text.as_bytes()),
        (Cell::Bytes(value), _) => push_bytes(bytes, value),
        (Cell::Decimal(value), _) => varint::push_signed(bytes, *value),
        (Cell::Guid(value), _) => bytes.extend_from_slice(value),
        (Cell::Null, _) => debug_assert!(false, "null is only a bit"),
    }
}

fn push_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    varint::push(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// Length in bytes of the value at the beginning of `bytes`; `None` if there are too few bytes.
#[inline]
pub(crate) fn len(kind: ColumnType, bytes: &[u8]) -> Option<usize> {
    let len = match kind {
        ColumnType::Bool => 1,
        ColumnType::F32 => 4,
        ColumnType::F64 | ColumnType::Time { .. } => 8,
        ColumnType::Guid => 16,
        ColumnType::I16
        | ColumnType::I32
        | ColumnType::I64
        | ColumnType::U64
        | ColumnType::Date
        | ColumnType::Decimal { .. } => return varint::len(bytes),
        ColumnType::Text | ColumnType::Bytes => {
            let (len, at) = varint::read(bytes)?;
            at.checked_add(usize::try_from(len).ok()?)?
        }
    };
    (len <= bytes.len()).then_some(len)
}

/// Decodes a value from exactly these bytes; `None` if they are not a value of this type.
#[inline]
pub(crate) fn read(kind: ColumnType, bytes: &[u8]) -> Option<CellRef<'_>> {
    Some(match kind {
        ColumnType::Bool => match bytes {
            [0] => CellRef::Bool(false),
            [1] => CellRef::Bool(true),
            _ => return None,
        },
        ColumnType::I64 => CellRef::I64(varint::read_signed(bytes)?.0),
        ColumnType::I16 => {
            let value = varint::read_signed(bytes)?.0;
            CellRef::I64(i16::try_from(value).ok()?.into())
        }
        ColumnType::I32 | ColumnType::Date => {
            let value = varint::read_signed(bytes)?.0;
            CellRef::I64(i32::try_from(value).ok()?.into())
        }
        ColumnType::Time { .. } => CellRef::I64(i64::from_le_bytes(bytes.try_into().ok()?)),
        ColumnType::U64 => CellRef::U64(varint::read(bytes)?.0),
        ColumnType::F32 => CellRef::F64(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        ColumnType::F64 => CellRef::F64(f64::from_le_bytes(bytes.try_into().ok()?)),
        ColumnType::Decimal { precision, .. } => {
            let value = varint::read_wide_signed(bytes)?.0;
            fits_digits(value, precision).then_some(CellRef::Decimal(value))?
        }
        ColumnType::Guid => CellRef::Guid(bytes.try_into().ok()?),
        ColumnType::Text => {
            let (_, at) = varint::read(bytes)?;
            CellRef::Text(std::str::from_utf8(&bytes[at..]).ok()?)
        }
        ColumnType::Bytes => {
            let (_, at) = varint::read(bytes)?;
            CellRef::Bytes(&bytes[at..])
        }
    })
}

/// Appends null or a value: a byte that distinguishes them, followed by the value if there is one.
pub(crate) fn push_nullable(bytes: &mut Vec<u8>, kind: ColumnType, cell: &Cell) {
    bytes.push(u8::from(!cell.is_null()));
    if !cell.is_null() {
        push(bytes, kind, cell);
    }
}

/// Decodes a cell that `push_nullable` has written at the beginning of `bytes`, and moves `bytes` past it.
pub(crate) fn read_nullable(bytes: &mut &[u8], kind: ColumnType) -> Option<Cell> {
    let (&is_value, rest) = bytes.split_first()?;
    *bytes = rest;
    match is_value {
        0 => Some(Cell::Null),
        1 => {
            let (value, rest) = rest.split_at(len(kind, rest)?);
            *bytes = rest;
            Some(read(kind, value)?.to_cell())
        }
        _ => None,
    }
}

/// The value of a row, split into its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    /// Number of fields.
    pub(crate) count: usize,
    present: &'a [u8],
    /// The fields that are not null.
    pub(crate) body: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Splits the value of a row; `None` if it is too short or has more than `fields` fields.
    #[inline]
    pub(crate) fn open(value: &'a [u8], fields: usize) -> Option<Self> {
        let (count, at) = varint::read(value)?;
        let count = usize::try_from(count).ok()?;
        if count > fields {
            return None;
        }
        let (present, body) = value[at..].split_at_checked(count.div_ceil(8))?;
        Some(Self {
            count,
            present,
            body,
        })
    }

    /// Whether a field is stored and not null.
    #[inline]
    pub(crate) fn is_present(&self, field: usize) -> bool {
        self.present
            .get(field / 8)
            .is_some_and(|byte| byte >> (field % 8) & 1 == 1)
    }

    /// Whether no bit beyond the number of fields is set.
    pub(crate) fn is_trimmed(&self) -> bool {
        (self.count..8 * self.present.len()).all(|field| !self.is_present(field))
    }
}

/// Appends the number of fields, and a bitmap of the fields that are not null.
pub(crate) fn push_head<'c>(
    bytes: &mut Vec<u8>,
    count: usize,
    cells: impl Iterator<Item = (usize, &'c Cell)>,
) {
    varint::push(bytes, count as u64);
    let at = bytes.len();
    bytes.resize(at + count.div_ceil(8), 0);
    for (field, cell) in cells {
        if !cell.is_null() {
            bytes[at + field / 8] |= 1 << (field % 8);
        }
    }
}
