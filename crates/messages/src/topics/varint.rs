//! Numbers of variable length: 7 bits a byte, the lowest first, the highest bit set in each byte but the last.

/// Maximum length in bytes of an encoded number.
const BYTES_MAX: usize = 10;

pub(super) fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number at `at` and moves `at` past it; `None` if there is no valid number.
pub(super) fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0u64;
    for (count, &byte) in bytes.get(*at..)?.iter().take(BYTES_MAX).enumerate() {
        let part = u64::from(byte & 0x7f);
        let shift = 7 * count as u32;
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            *at += count + 1;
            return Some(number);
        }
    }
    None
}

/// Reads bytes that are preceded by their length, and moves `at` past them.
pub(super) fn get_bytes<'b>(bytes: &'b [u8], at: &mut usize) -> Option<&'b [u8]> {
    let len = usize::try_from(get(bytes, at)?).ok()?;
    let found = bytes.get(*at..at.checked_add(len)?)?;
    *at += len;
    Some(found)
}

pub(super) fn put_bytes(part: &[u8], bytes: &mut Vec<u8>) {
    put(part.len() as u64, bytes);
    bytes.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::{get, put};

    #[test]
    fn numbers_come_back_and_longer_ones_are_refused() {
        for shift in 0..64 {
            for number in [1 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let (mut bytes, mut at) = (Vec::new(), 0);
                put(number, &mut bytes);
                assert_eq!(get(&bytes, &mut at), Some(number));
                assert_eq!(at, bytes.len());
                assert_eq!(get(&bytes[..at - 1], &mut 0), None);
            }
        }
        assert_eq!(get(&[0xff; 11], &mut 0), None);
        assert_eq!(
            get(
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
                &mut 0
            ),
            None
        );
    }
}
