//! Integers in a variable number of bytes: seven bits for each byte, the lowest first; all bytes but the last have bit 7
//! set. Signed integers are zigzag-encoded first, so that small negative ones are short, too.

/// Appends an integer.
pub(crate) fn push(bytes: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends a signed integer.
pub(crate) fn push_signed(bytes: &mut Vec<u8>, value: i128) {
    push(bytes, (value << 1 ^ value >> 127).cast_unsigned());
}

/// Reads an integer of at most 64 bits at the front of `bytes`, and its length in bytes; `None` if it is not in the shortest
/// form or too large.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((first.into(), 1));
    }
    let (value, len) = read_wide(bytes)?;
    Some((u64::try_from(value).ok()?, len))
}

/// Reads a signed integer of at most 64 bits.
#[inline]
pub(crate) fn read_signed(bytes: &[u8]) -> Option<(i64, usize)> {
    let (value, len) = read(bytes)?;
    Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), len))
}

/// Reads an integer of at most 128 bits.
pub(crate) fn read_wide(bytes: &[u8]) -> Option<(u128, usize)> {
    let mut value = 0u128;
    for (at, &byte) in bytes.iter().enumerate() {
        let bits = u128::from(byte & 0x7f);
        let shift = 7 * at as u32;
        if shift >= 128 || bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return (byte != 0 || at == 0).then_some((value, at + 1));
        }
    }
    None
}

/// Reads a signed integer of at most 128 bits.
pub(crate) fn read_wide_signed(bytes: &[u8]) -> Option<(i128, usize)> {
    let (value, len) = read_wide(bytes)?;
    Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), len))
}

/// Length in bytes of an integer at the front of `bytes`.
#[inline]
pub(crate) fn len(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte < 0x80).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_back_and_longer_forms_are_refused() {
        for value in [0, 1, 127, 128, 300, u64::MAX.into(), u128::MAX] {
            let mut bytes = Vec::new();
            push(&mut bytes, value);
            assert_eq!(read_wide(&bytes), Some((value, bytes.len())));
            assert_eq!(len(&bytes), Some(bytes.len()));
            assert_eq!(read(&bytes).is_some(), value <= u64::MAX.into());
        }
        for value in [0, 1, -1, i128::MIN, i128::MAX, i64::MIN.into()] {
            let mut bytes = Vec::new();
            push_signed(&mut bytes, value);
            assert_eq!(read_wide_signed(&bytes), Some((value, bytes.len())));
        }
        let mut least = Vec::new();
        push_signed(&mut least, i64::MIN.into());
        assert_eq!(read_signed(&least), Some((i64::MIN, 10)));
        assert_eq!(read(&[0x80, 0]), None);
        assert_eq!(read_wide(&[0xff; 30]), None);
        assert_eq!(read(&[0x80]), None);
    }
}
