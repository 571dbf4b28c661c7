//! Cells as pieces of keys: bytes that sort like the values, as in `tidalite_base::Ordered`.
//!
//! ```text
//! bool            0 or 1
//! i16, i32, i64   big-endian, sign bit flipped; date as i32, time as i64, decimal as i32, i64 or i128 by its precision
//! u64             big-endian
//! f32, f64        big-endian; positive: sign bit flipped, negative: all bits flipped. -0 is stored as 0, and every NaN as
//!                 the one with only the sign bit clear and all other bits set, which is the greatest
//! text, bytes     zero bytes become 00 ff, and 00 00 terminates
//! guid            unchanged
//! ```
//!
//! A piece that may be null begins with a byte: 0 for null, which ends the piece; 1 for a value, which follows. So null
//! sorts first. The length of every piece follows from its own bytes, so pieces can be concatenated.

use crate::cell::{Cell, CellRef, fits_digits};
use crate::kind::ColumnType;
use tidalite_base::{Ordered, encode_bytes};

/// The byte that represents null.
pub(crate) const NULL: u8 = 0;
/// The byte before a value that might be null.
pub(crate) const VALUE: u8 = 1;

/// Appends a value; it must fit the type and not be null.
pub(crate) fn push(bytes: &mut Vec<u8>, kind: ColumnType, cell: &Cell) {
    use ColumnType as Type;
    match (cell, kind) {
        (Cell::Bool(value), _) => value.encode(bytes),
        (Cell::I64(value), Type::I16) => (*value as i16).encode(bytes),
        (Cell::I64(value), Type::I32 | Type::Date) => (*value as i32).encode(bytes),
        (Cell::I64(value), _) => value.encode(bytes),
        (Cell::U64(value), _) => value.encode(bytes),
        (Cell::F64(value), Type::F32) => match value.is_nan() {
            true => f32::from_bits(u32::MAX >> 1).encode(bytes),
            false => (*value as f32 + 0.0).encode(bytes),
        },
        (Cell::F64(value), _) => match value.is_nan() {
            true => f64::from_bits(u64::MAX >> 1).encode(bytes),
            false => (value + 0.0).encode(bytes),
        },
        (Cell::Text(text), _) => encode_bytes(text.as_bytes(), bytes),
        (Cell::Bytes(value), _) => encode_bytes(value, bytes),
        (Cell::Decimal(value), kind) => match kind.key_width() {
            Some(4) => (*value as i32).encode(bytes),
            Some(8) => (*value as i64).encode(bytes),
            _ => value.encode(bytes),
        },
        (Cell::Guid(value), _) => bytes.extend_from_slice(value),
        (Cell::Null, _) => debug_assert!(false, "null has no encoding of its own"),
    }
}

/// Appends a value that may be null.
pub(crate) fn push_nullable(bytes: &mut Vec<u8>, kind: ColumnType, cell: &Cell) {
    match cell {
        Cell::Null => bytes.push(NULL),
        cell => {
            bytes.push(VALUE);
            push(bytes, kind, cell);
        }
    }
}

/// Length in bytes of the value at the beginning of `bytes`; `None` if the bytes are not a value.
#[inline]
pub(crate) fn len(kind: ColumnType, bytes: &[u8]) -> Option<usize> {
    if let Some(width) = kind.key_width() {
        return (bytes.len() >= width).then_some(width);
    }
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
        match bytes.get(at)? {
            0 => return Some(at + 1),
            0xff => at += 1,
            _ => return None,
        }
    }
}

/// Like `len`, for a value that may be null.
pub(crate) fn len_nullable(kind: ColumnType, bytes: &[u8]) -> Option<usize> {
    match *bytes.first()? {
        NULL => Some(1),
        VALUE => Some(1 + len(kind, &bytes[1..])?),
        _ => None,
    }
}

/// Decodes texts and bytes that contain zero bytes.
pub(crate) fn unescape(bytes: &[u8]) -> Option<Vec<u8>> {
    Vec::from_key(bytes)
}

/// Decodes a value from exactly these bytes; `None` if they are not a value. Texts and bytes that contain a zero byte
/// cannot be borrowed from `bytes`: they are borrowed from `unescaped`, the result of `unescape`.
#[inline]
pub(crate) fn read<'a>(
    kind: ColumnType,
    bytes: &'a [u8],
    unescaped: impl FnOnce() -> Option<&'a [u8]>,
) -> Option<CellRef<'a>> {
    use ColumnType as Type;
    Some(match kind {
        Type::Bool => CellRef::Bool(bool::from_key(bytes)?),
        Type::I16 => CellRef::I64(i16::from_key(bytes)?.into()),
        Type::I32 | Type::Date => CellRef::I64(i32::from_key(bytes)?.into()),
        Type::I64 | Type::Time { .. } => CellRef::I64(i64::from_key(bytes)?),
        Type::U64 => CellRef::U64(u64::from_key(bytes)?),
        Type::F32 => CellRef::F64(f32::from_key(bytes)?.into()),
        Type::F64 => CellRef::F64(f64::from_key(bytes)?),
        Type::Decimal { precision, .. } => {
            let value = match bytes.len() {
                4 => i32::from_key(bytes)?.into(),
                8 => i64::from_key(bytes)?.into(),
                _ => i128::from_key(bytes)?,
            };
            fits_digits(value, precision).then_some(CellRef::Decimal(value))?
        }
        Type::Guid => CellRef::Guid(bytes.try_into().ok()?),
        Type::Text | Type::Bytes => {
            let end = bytes.len().checked_sub(2)?;
            let plain = match bytes[..end].contains(&0) {
                false => &bytes[..end],
                true => unescaped()?,
            };
            match kind {
                Type::Text => CellRef::Text(std::str::from_utf8(plain).ok()?),
                _ => CellRef::Bytes(plain),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::TimeUnit;

    fn key(kind: ColumnType, cell: &Cell) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_nullable(&mut bytes, kind, cell);
        bytes
    }

    fn ascend(kind: ColumnType, cells: &[Cell]) {
        let keys: Vec<Vec<u8>> = cells.iter().map(|cell| key(kind, cell)).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "{kind}: {cells:?}");
        for (cell, key) in cells.iter().zip(&keys) {
            let mut longer = key.clone();
            longer.extend([0, 7]);
            assert_eq!(len_nullable(kind, &longer), Some(key.len()));
            for cut in 0..key.len() {
                assert_eq!(len_nullable(kind, &key[..cut]), None, "{kind} {cell}");
            }
            if !cell.is_null() {
                let plain = || Some(&*unescape(&key[1..])?.leak());
                let read = read(kind, &key[1..], plain).unwrap();
                assert_eq!(read.to_cell().to_string(), cell.to_string(), "{kind}");
            }
        }
    }

    #[test]
    fn keys_sort_as_their_values_do() {
        let ints = |values: &[i64]| -> Vec<Cell> {
            std::iter::once(Cell::Null)
                .chain(values.iter().map(|value| Cell::I64(*value)))
                .collect()
        };
        ascend(ColumnType::I16, &ints(&[-32768, -1, 0, 1, 255, 256, 32767]));
        ascend(ColumnType::I32, &ints(&[i32::MIN.into(), -1, 0, 70000]));
        ascend(ColumnType::Date, &ints(&[-700_000, 0, 16_222]));
        ascend(ColumnType::I64, &ints(&[i64::MIN, -1, 0, i64::MAX]));
        let (unit, zoned) = (TimeUnit::Micros, true);
        ascend(ColumnType::Time { unit, zoned }, &ints(&[i64::MIN, 0, 1]));
        ascend(ColumnType::U64, &[0, 1, u64::MAX].map(Cell::U64));
        ascend(ColumnType::Bool, &[false, true].map(Cell::Bool));
        for kind in [ColumnType::F32, ColumnType::F64] {
            let floats = [f64::NEG_INFINITY, -1.5, 0.0, 0.5, f64::INFINITY, f64::NAN];
            ascend(kind, &floats.map(Cell::F64));
            assert_eq!(key(kind, &Cell::F64(-0.0)), key(kind, &Cell::F64(0.0)));
            let negative = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
            assert_eq!(
                key(kind, &Cell::F64(f64::NAN)),
                key(kind, &Cell::F64(negative))
            );
        }
        for precision in [4, 9, 10, 18, 19, 38] {
            let kind = ColumnType::Decimal {
                precision,
                scale: 2,
            };
            let most = 10i128.pow(precision.into()) - 1;
            ascend(kind, &[-most, -1, 0, 1, most].map(Cell::Decimal));
        }
        let texts = ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0b", "ab", "b"];
        let cells = texts.map(|text| Cell::Text(text.to_owned()));
        ascend(ColumnType::Text, &cells);
        let cells = texts.map(|text| Cell::Bytes(text.as_bytes().to_vec()));
        ascend(ColumnType::Bytes, &cells);
        ascend(
            ColumnType::Guid,
            &[[0; 16], [1; 16], [255; 16]].map(Cell::Guid),
        );
    }
}
