//! Whole numbers in as few bytes as they need, their lengths in front: 4 bits each, so that a reader finds all of them with
//! a few shifts and knows where they end by adding up.
//!
//! ```text
//! | lengths: 4 bits a number, lowest bits first | number 0 | number 1 | ...
//! ```
//!
//! A number has 0 to 8 bytes, the lowest first, and its highest byte is not 0; so there is one form of each.

/// Bytes of a number at most.
const NUMBER_BYTES_MAX: usize = 8;

/// What is left of eight bytes that begin with a number of so many.
const MASKS: [u64; NUMBER_BYTES_MAX + 1] = [
    0,
    0xff,
    0xffff,
    0xff_ffff,
    0xffff_ffff,
    0xff_ffff_ffff,
    0xffff_ffff_ffff,
    0xff_ffff_ffff_ffff,
    u64::MAX,
];

/// The lengths of numbers, up to 16.
pub(crate) fn lengths(numbers: &[u64]) -> u64 {
    debug_assert!(numbers.len() <= 16, "a length has 4 bits");
    let of = |number: &u64| u64::from(64 - number.leading_zeros()).div_ceil(8);
    let lengths = numbers.iter().rev();
    lengths.fold(0, |all, number| all << 4 | of(number))
}

/// Appends the bytes of numbers, whose lengths were written.
pub(crate) fn put(numbers: &[u64], out: &mut Vec<u8>) {
    let mut lengths = lengths(numbers);
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..(lengths & 15) as usize]);
        lengths >>= 4;
    }
}

/// The bytes that numbers of these lengths take in all. Of lengths that no writer makes it may be up to 240.
#[inline]
pub(crate) fn sum(lengths: u64) -> usize {
    const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let pairs = (lengths & EVEN) + ((lengths >> 4) & EVEN);
    (pairs.wrapping_mul(ONES) >> 56) as usize
}

/// The number of `len` bytes at `at`.
#[inline]
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let mask = MASKS.get(len)?;
    match bytes.get(at..at + NUMBER_BYTES_MAX) {
        Some(field) => {
            let mut word = [0; NUMBER_BYTES_MAX];
            word.copy_from_slice(field);
            Some(u64::from_le_bytes(word) & mask)
        }
        None => near_end(bytes, at, len),
    }
}

#[cold]
fn near_end(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let mut word = [0; NUMBER_BYTES_MAX];
    word[..len].copy_from_slice(bytes.get(at..at + len)?);
    Some(u64::from_le_bytes(word))
}

/// The first `N` numbers of those whose bytes begin at `at`; `None` when a length is no length or the bytes end before.
#[inline]
pub(crate) fn get<const N: usize>(bytes: &[u8], at: usize, lengths: u64) -> Option<[u64; N]> {
    let (mut at, mut lengths) = (at, lengths);
    let mut numbers = [0; N];
    for place in &mut numbers {
        let len = (lengths & 15) as usize;
        *place = number(bytes, at, len)?;
        at += len;
        lengths >>= 4;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_testkit::rng::Rng;

    #[test]
    fn numbers_of_every_length_come_back() {
        let mut rng = Rng::new(11);
        for _ in 0..2000 {
            let numbers: [u64; 16] =
                std::array::from_fn(|_| rng.u64().checked_shr(rng.below(65) as u32).unwrap_or(0));
            let mut bytes = vec![7; 3];
            put(&numbers, &mut bytes);
            let lengths = lengths(&numbers);
            assert_eq!(bytes.len(), 3 + sum(lengths));
            assert_eq!(get(&bytes, 3, lengths), Some(numbers));
            assert_eq!(get::<4>(&bytes, 3, lengths), numbers.first_chunk().copied());
            if sum(lengths) > 0 {
                bytes.pop();
                assert_eq!(get::<16>(&bytes, 3, lengths), None, "the bytes end early");
            }
        }
    }

    #[test]
    fn what_is_no_length_is_no_number() {
        let bytes = [1; 300];
        for length in 9..16u64 {
            for place in 0..16 {
                assert_eq!(get::<16>(&bytes, 0, length << (4 * place)), None);
            }
        }
        assert_eq!(sum(u64::MAX), 240);
        assert_eq!(
            lengths(&[0, 1, 255, 256, u64::MAX, i64::MIN as u64]),
            0x88_2110
        );
    }
}
