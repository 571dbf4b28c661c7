//! Integers in a variable number of bytes: seven bits in each byte, the lowest bits first; all bytes except the last
//! have bit 7 set. Signed integers are zigzag-encoded first, so that small negative numbers are also short.

/// Appends an integer of at most 64 bits.
#[inline]
pub fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends an integer of at most 128 bits.
pub fn push_wide(bytes: &mut Vec<u8>, mut value: u128) {
    while value > u64::MAX.into() {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    push(bytes, value as u64);
}

/// Appends a signed integer.
pub fn push_signed(bytes: &mut Vec<u8>, value: i128) {
    push_wide(bytes, (value << 1 ^ value >> 127).cast_unsigned());
}

macro_rules! read {
    ($(#[$doc:meta])* $name:ident, $value:ty) => {
        $(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name(bytes: &[u8]) -> Option<($value, usize)> {
            let mut value: $value = 0;
            for (at, &byte) in bytes.iter().enumerate() {
                let bits = <$value>::from(byte & 0x7f);
                let shift = 7 * at as u32;
                if shift >= <$value>::BITS || bits << shift >> shift != bits {
                    return None;
                }
                value |= bits << shift;
                if byte < 0x80 {
                    return (byte != 0 || at == 0).then_some((value, at + 1));
                }
            }
            None
        }
    };
}

read! {
    /// Reads an integer of at most 64 bits at the beginning of `bytes`; returns it and its length in bytes. `None` if
    /// it is too large or not in the shortest form.
    read, u64
}

read! {
    /// Reads an integer of at most 128 bits.
    read_wide, u128
}

/// Reads a signed integer of at most 64 bits.
#[must_use]
#[inline]
pub fn read_signed(bytes: &[u8]) -> Option<(i64, usize)> {
    let (value, len) = read(bytes)?;
    Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), len))
}

/// Reads a signed integer of at most 128 bits.
#[must_use]
pub fn read_wide_signed(bytes: &[u8]) -> Option<(i128, usize)> {
    let (value, len) = read_wide(bytes)?;
    Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), len))
}

/// Length in bytes of the integer at the beginning of `bytes`.
#[must_use]
#[inline]
pub fn len(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte < 0x80).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_back_and_longer_forms_are_refused() {
        for value in [0, 1, 127, 128, 300, u64::MAX.into(), u128::MAX] {
            let mut bytes = Vec::new();
            push_wide(&mut bytes, value);
            assert_eq!(read_wide(&bytes), Some((value, bytes.len())));
            assert_eq!(len(&bytes), Some(bytes.len()));
            assert_eq!(read(&bytes).is_some(), value <= u64::MAX.into());
        }
        for value in [0, 1, -1, i128::MIN, i128::MAX, i64::MIN.into()] {
            let mut bytes = Vec::new();
            push_signed(&mut bytes, value);
            assert_eq!(read_wide_signed(&bytes), Some((value, bytes.len())));
        }
        // Both widths give the same result for every integer of up to 64 bits, and for bytes that encode no integer.
        let beyond = u128::from(u64::MAX) + 1;
        for value in (0..128).flat_map(|bit| [1u128 << bit, (1 << bit) - 1, beyond - 1, beyond]) {
            let mut bytes = Vec::new();
            push_wide(&mut bytes, value);
            let narrow = u64::try_from(value).ok();
            assert_eq!(read(&bytes), narrow.map(|value| (value, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut]), None);
            }
            let end = bytes.len() - 1;
            bytes[end] |= 0x80;
            bytes.push(0);
            assert_eq!((read(&bytes), read_wide(&bytes)), (None, None), "{value}");
        }
        let mut least = Vec::new();
        push_signed(&mut least, i64::MIN.into());
        assert_eq!(read_signed(&least), Some((i64::MIN, 10)));
        assert_eq!(read(&[0x80, 0]), None);
        assert_eq!(read_wide(&[0xff; 30]), None);
        assert_eq!(read(&[0x80]), None);
    }
}
