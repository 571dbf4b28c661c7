//! Variable-length integers with their lengths in front: 4 bits per length, so that a reader locates all integers
//! with a few shifts and finds their end by summing the lengths.
//!
//! ```text
//! | lengths: 4 bits a number, lowest bits first | number 0 | number 1 | ...
//! ```
//!
//! An integer takes 0 to 8 bytes, lowest first, and its highest byte is not 0, so its encoding is unique.

/// Maximum size of an integer, in bytes.
const NUMBER_BYTES_MAX: usize = 8;

/// Mask, by length, that keeps the bytes of an integer at the start of eight bytes. Lengths above 8 are invalid.
const MASKS: [u64; 16] = {
    let mut masks = [0; 16];
    let mut len = 1;
    while len <= NUMBER_BYTES_MAX {
        masks[len] = u64::MAX >> (64 - 8 * len);
        len += 1;
    }
    masks
};

/// The packed lengths of at most 16 integers.
#[must_use]
pub fn lengths(numbers: &[u64]) -> u64 {
    debug_assert!(numbers.len() <= 16, "a length has 4 bits");
    let of = |number: &u64| u64::from(64 - number.leading_zeros()).div_ceil(8);
    let lengths = numbers.iter().rev();
    lengths.fold(0, |all, number| all << 4 | of(number))
}

/// Appends the bytes of integers; the caller has written their lengths.
pub fn put(numbers: &[u64], out: &mut Vec<u8>) {
    let mut lengths = lengths(numbers);
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..(lengths & 15) as usize]);
        lengths >>= 4;
    }
}

/// Total size in bytes of integers with these lengths. For lengths that no writer produces it may be up to 240.
#[must_use]
#[inline]
pub fn sum(lengths: u64) -> usize {
    const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let pairs = (lengths & EVEN) + ((lengths >> 4) & EVEN);
    (pairs.wrapping_mul(ONES) >> 56) as usize
}

/// Zigzag encoding: integers of small magnitude and either sign become small unsigned ones.
#[must_use]
#[inline]
pub fn zigzag(x: u64) -> u64 {
    (x << 1) ^ ((x as i64) >> 63) as u64
}

/// Inverse of [`zigzag`].
#[must_use]
#[inline]
pub fn unzigzag(x: u64) -> u64 {
    (x >> 1) ^ (x & 1).wrapping_neg()
}

/// Whether every length is valid: 0 to 8.
#[inline]
fn are_lengths(lengths: u64) -> bool {
    const EIGHTS: u64 = 0x8888_8888_8888_8888;
    let below = lengths & !EIGHTS;
    let set = (below << 1) | (below << 2) | (below << 3);
    lengths & set & EIGHTS == 0
}

/// Maximum size of 16 integers, plus the bytes that are read past the last of them.
const ROOM_BYTES: usize = 16 * NUMBER_BYTES_MAX + NUMBER_BYTES_MAX;
/// Mask for the offset of an integer: none begins at a greater offset.
const PLACES: usize = 16 * NUMBER_BYTES_MAX - 1;

/// `N` integers from number `FROM` on, of a sequence whose bytes begin at `at`; `None` if a length is invalid or the
/// bytes end too soon.
///
/// Lengths and room are checked once for all integers, so no branch and no check remains per integer.
#[must_use]
#[inline(always)]
pub fn get_from<const FROM: usize, const N: usize>(
    bytes: &[u8],
    at: usize,
    lengths: u64,
) -> Option<[u64; N]> {
    const { assert!(0 < N && FROM + N <= 16, "a length has 4 bits") };
    let lengths = lengths & (u64::MAX >> (64 - 4 * (FROM + N)));
    if !are_lengths(lengths) {
        return None;
    }
    let room = bytes.get(at..).and_then(<[u8]>::first_chunk);
    match room {
        Some(room) => Some(all::<FROM, N>(room, lengths)),
        None => near_end::<FROM, N>(bytes, at, lengths),
    }
}

/// The first `N` integers.
#[must_use]
#[inline(always)]
pub fn get<const N: usize>(bytes: &[u8], at: usize, lengths: u64) -> Option<[u64; N]> {
    get_from::<0, N>(bytes, at, lengths)
}

/// Size in bytes of the integers before number `FROM`.
#[inline(always)]
fn before<const FROM: usize>(lengths: u64) -> usize {
    match FROM {
        0 => 0,
        _ => sum(lengths & !(u64::MAX << (4 * FROM))),
    }
}

#[inline(always)]
fn all<const FROM: usize, const N: usize>(room: &[u8; ROOM_BYTES], lengths: u64) -> [u64; N] {
    let mut at = before::<FROM>(lengths);
    let mut numbers = [0; N];
    for (i, place) in numbers.iter_mut().enumerate() {
        let len = ((lengths >> (4 * (FROM + i))) & 15) as usize;
        let mut word = [0; NUMBER_BYTES_MAX];
        word.copy_from_slice(&room[at & PLACES..][..NUMBER_BYTES_MAX]);
        *place = u64::from_le_bytes(word) & MASKS[len];
        at += len;
    }
    numbers
}

/// Reads integers that end at or near the end of `bytes`. The last few entries of every directory do, so this case is
/// common: where eight bytes would extend past the end, the last eight bytes are read instead.
#[inline(never)]
fn near_end<const FROM: usize, const N: usize>(
    bytes: &[u8],
    at: usize,
    lengths: u64,
) -> Option<[u64; N]> {
    let rest = bytes.get(at..)?;
    if rest.len() < sum(lengths) {
        return None;
    }
    let Some(room) = bytes.last_chunk::<ROOM_BYTES>() else {
        return Some(all::<FROM, N>(&copied(rest), lengths));
    };
    const LAST: usize = ROOM_BYTES - NUMBER_BYTES_MAX;
    let mut at = ROOM_BYTES - rest.len() + before::<FROM>(lengths);
    let mut numbers = [0; N];
    for (i, place) in numbers.iter_mut().enumerate() {
        let len = ((lengths >> (4 * (FROM + i))) & 15) as usize;
        let from = at.min(LAST);
        let mut word = [0; NUMBER_BYTES_MAX];
        word.copy_from_slice(&room[from..][..NUMBER_BYTES_MAX]);
        // An offset eight bytes past `LAST` can only belong to an integer of no bytes.
        let beyond = 8 * (at - from) as u32;
        *place = u64::from_le_bytes(word).wrapping_shr(beyond) & MASKS[len];
        at += len;
    }
    Some(numbers)
}

#[cold]
#[inline(never)]
fn copied(rest: &[u8]) -> [u8; ROOM_BYTES] {
    let mut room = [0; ROOM_BYTES];
    room[..rest.len()].copy_from_slice(rest);
    room
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Rng, few};

    #[test]
    fn numbers_of_every_length_come_back() {
        let mut rng = Rng(11);
        for _ in 0..few(2000) {
            let numbers: [u64; 16] =
                std::array::from_fn(|_| rng.next().checked_shr(rng.below(65) as u32).unwrap_or(0));
            let mut bytes = vec![7; 3];
            put(&numbers, &mut bytes);
            let lengths = lengths(&numbers);
            assert_eq!(bytes.len(), 3 + sum(lengths));
            assert_eq!(get(&bytes, 3, lengths), Some(numbers));
            assert_eq!(get::<4>(&bytes, 3, lengths), numbers.first_chunk().copied());
            let last = numbers.last_chunk().copied();
            assert_eq!(get_from::<3, 13>(&bytes, 3, lengths), last);
            // With many bytes before the integers.
            let late = [&[9; 200][..], &bytes].concat();
            assert_eq!(get(&late, 203, lengths), Some(numbers));
            assert_eq!(get_from::<3, 13>(&late, 203, lengths), last);
            assert_eq!(
                get_from::<15, 1>(&late, 203, lengths),
                numbers.last_chunk().copied()
            );
            assert_eq!(
                get::<16>(&late[..late.len() - 1], 203, lengths).is_none(),
                sum(lengths) > 0
            );
            // With many bytes after the integers.
            let more = [&bytes[..], &[9; 200]].concat();
            assert_eq!(get(&more, 3, lengths), Some(numbers));
            assert_eq!(get_from::<3, 13>(&more, 3, lengths), last);
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
                let behind = get_from::<2, 5>(&bytes, 0, length << (4 * place));
                assert_eq!(behind.is_none(), place < 7);
            }
        }
        let eights = [0x0101_0101_0101_0101; 16];
        assert_eq!(get::<16>(&bytes, 0, 0x8888_8888_8888_8888), Some(eights));
        assert_eq!(get::<1>(&bytes, 301, 0), None);
        assert_eq!(sum(u64::MAX), 240);
        assert_eq!(
            lengths(&[0, 1, 255, 256, u64::MAX, i64::MIN as u64]),
            0x88_2110
        );
    }
}
