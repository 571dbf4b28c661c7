//! Lists of variable-length integers with their lengths in front: 4 bits per length, so that a reader locates all
//! integers with a few shifts, and finds the end of the list by adding the lengths.
//!
//! ```text
//! | lengths: 4 bits a number, lowest bits first, whole bytes | number 0 | number 1 | ...
//! ```
//!
//! The reader knows the number of integers in a list. If that number is odd, the last half byte of the lengths is 0. An
//! integer takes 0 to 8 bytes, lowest first, and its highest byte is not 0, so its encoding is unique.

/// Maximum length of an integer in bytes.
const NUMBER_BYTES_MAX: usize = 8;

/// For each length, a mask that keeps the bytes of an integer at the start of eight bytes; zero for lengths above 8,
/// which are invalid.
const MASKS: [u64; 16] = {
    let mut masks = [0; 16];
    let mut len = 1;
    while len <= NUMBER_BYTES_MAX {
        masks[len] = u64::MAX >> (64 - 8 * len);
        len += 1;
    }
    masks
};

/// The lengths in bytes of at most 16 integers, packed in 4 bits each.
fn lengths(numbers: &[u64]) -> u64 {
    debug_assert!(numbers.len() <= 16, "a length has 4 bits");
    let of = |number: &u64| u64::from(64 - number.leading_zeros()).div_ceil(8);
    let lengths = numbers.iter().rev();
    lengths.fold(0, |all, number| all << 4 | of(number))
}

/// Number of bytes that the lengths of this many integers take.
const fn lengths_bytes(numbers: usize) -> usize {
    numbers.div_ceil(2)
}

/// Maximum size in bytes of a list of this many integers.
#[must_use]
pub const fn bytes_max(numbers: usize) -> usize {
    lengths_bytes(numbers) + NUMBER_BYTES_MAX * numbers
}

/// Length in bytes of an encoded list of integers.
#[must_use]
pub fn bytes(numbers: &[u64]) -> usize {
    lengths_bytes(numbers.len()) + sum(lengths(numbers))
}

/// Appends a list of at most 16 integers: their lengths, then their bytes.
pub fn put(numbers: &[u64], out: &mut Vec<u8>) {
    let mut lengths = lengths(numbers);
    out.extend_from_slice(&lengths.to_le_bytes()[..lengths_bytes(numbers.len())]);
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..(lengths & 15) as usize]);
        lengths >>= 4;
    }
}

/// Total length in bytes of integers with these packed lengths. For lengths that no writer produces it may be up to
/// 240.
#[inline]
fn sum(lengths: u64) -> usize {
    const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let pairs = (lengths & EVEN) + ((lengths >> 4) & EVEN);
    (pairs.wrapping_mul(ONES) >> 56) as usize
}

/// Zigzag encoding: maps integers of small magnitude and either sign to small unsigned integers.
#[must_use]
#[inline]
pub fn zigzag(x: u64) -> u64 {
    (x << 1) ^ ((x as i64) >> 63) as u64
}

/// Decodes the result of [`zigzag`].
#[must_use]
#[inline]
pub fn unzigzag(x: u64) -> u64 {
    (x >> 1) ^ (x & 1).wrapping_neg()
}

/// True if every packed length is valid, that is at most 8.
#[inline]
fn are_lengths(lengths: u64) -> bool {
    const EIGHTS: u64 = 0x8888_8888_8888_8888;
    let below = lengths & !EIGHTS;
    let set = (below << 1) | (below << 2) | (below << 3);
    lengths & set & EIGHTS == 0
}

/// Maximum total length in bytes of 16 integers, plus the bytes after the last integer that are read with it.
const ROOM_BYTES: usize = 16 * NUMBER_BYTES_MAX + NUMBER_BYTES_MAX;
/// Mask for the offset of an integer; no offset exceeds this number.
const PLACES: usize = 16 * NUMBER_BYTES_MAX - 1;

/// The packed lengths of `N` integers at the beginning of a list; `None` if the bytes end too soon.
#[inline(always)]
fn lengths_at<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    // The shift drops the bytes after the lengths and, if the number of lengths is odd, the unused half byte.
    let list = bytes.get(at..)?;
    if let Some(eight) = list.first_chunk::<8>() {
        return Some(u64::from_le_bytes(*eight) & (u64::MAX >> (64 - 8 * lengths_bytes(N))));
    }
    let own = list.get(..lengths_bytes(N))?.iter().rev();
    Some(own.fold(0, |all, &byte| all << 8 | u64::from(byte)))
}

/// The list of `N` integers that begins at `at`, and the offset of its end; `None` if a length is invalid or the bytes
/// end too soon.
///
/// Lengths and room are checked once for all integers, so reading each of them needs no branch and no check.
#[must_use]
#[inline(always)]
pub fn get<const N: usize>(bytes: &[u8], at: usize) -> Option<([u64; N], usize)> {
    const { assert!(0 < N && N <= 16, "a length has 4 bits") };
    let lengths = lengths_at::<N>(bytes, at)?;
    let from = at + lengths_bytes(N);
    let is_odd = N % 2 == 1;
    if !are_lengths(lengths) || (is_odd && lengths >> (4 * (N % 16)) != 0) {
        return None;
    }
    let room = bytes.get(from..).and_then(<[u8]>::first_chunk);
    let numbers = match room {
        Some(room) => all::<N>(room, lengths),
        None => near_end::<N>(bytes, from, lengths)?,
    };
    Some((numbers, from + sum(lengths)))
}

/// The offset of the end of the list of `N` integers that begins at `at`; `None` if the bytes end before. Does not
/// check the lengths.
#[must_use]
#[inline(always)]
pub fn end<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let end = at + lengths_bytes(N) + sum(lengths_at::<N>(bytes, at)?);
    (end <= bytes.len()).then_some(end)
}

#[inline(always)]
fn all<const N: usize>(room: &[u8; ROOM_BYTES], lengths: u64) -> [u64; N] {
    let mut at = 0;
    let mut numbers = [0; N];
    for (i, place) in numbers.iter_mut().enumerate() {
        let len = ((lengths >> (4 * i)) & 15) as usize;
        let mut word = [0; NUMBER_BYTES_MAX];
        word.copy_from_slice(&room[at & PLACES..][..NUMBER_BYTES_MAX]);
        *place = u64::from_le_bytes(word) & MASKS[len];
        at += len;
    }
    numbers
}

/// Reads integers that end at or near the end of `bytes`. Where eight bytes would extend past the end of `bytes`, reads
/// the last eight bytes instead. This case is common: the last few entries of every directory are such integers.
#[inline(never)]
fn near_end<const N: usize>(bytes: &[u8], at: usize, lengths: u64) -> Option<[u64; N]> {
    let rest = bytes.get(at..)?;
    if rest.len() < sum(lengths) {
        return None;
    }
    let Some(room) = bytes.last_chunk::<ROOM_BYTES>() else {
        return Some(all::<N>(&copied(rest), lengths));
    };
    const LAST: usize = ROOM_BYTES - NUMBER_BYTES_MAX;
    let mut at = ROOM_BYTES - rest.len();
    let mut numbers = [0; N];
    for (i, place) in numbers.iter_mut().enumerate() {
        let len = ((lengths >> (4 * i)) & 15) as usize;
        let from = at.min(LAST);
        let mut word = [0; NUMBER_BYTES_MAX];
        word.copy_from_slice(&room[from..][..NUMBER_BYTES_MAX]);
        // An offset that is eight bytes past `LAST` can only belong to an integer of length 0.
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

    fn comes_back<const N: usize>(numbers: [u64; N], more: usize) {
        let mut bytes = vec![7; 3];
        put(&numbers, &mut bytes);
        let stop = bytes.len();
        assert_eq!(stop, 3 + super::bytes(&numbers));
        bytes.resize(stop + more, 9);
        assert_eq!(get(&bytes, 3), Some((numbers, stop)));
        assert_eq!(end::<N>(&bytes, 3), Some(stop));
        // Tests a list with many bytes before it.
        let late = [&[9; 200][..], &bytes].concat();
        assert_eq!(get(&late, 203), Some((numbers, 200 + stop)));
        // Tests bytes that end within the list.
        for len in [stop - 1, 4, 3, 2] {
            if len < stop {
                assert_eq!(get::<N>(&bytes[..len], 3), None);
                assert_eq!(end::<N>(&bytes[..len], 3), None);
            }
        }
    }

    #[test]
    fn lists_of_every_length_come_back() {
        let mut rng = Rng(11);
        for _ in 0..few(2000) {
            let numbers: [u64; 16] =
                std::array::from_fn(|_| rng.next().checked_shr(rng.below(65) as u32).unwrap_or(0));
            for more in [0, 1, 200] {
                comes_back(numbers, more);
                comes_back::<3>(std::array::from_fn(|i| numbers[i]), more);
                comes_back::<4>(std::array::from_fn(|i| numbers[i]), more);
                comes_back::<7>(std::array::from_fn(|i| numbers[i]), more);
                comes_back::<12>(std::array::from_fn(|i| numbers[i]), more);
                comes_back::<15>(std::array::from_fn(|i| numbers[i]), more);
            }
        }
    }

    #[test]
    fn lengths_above_eight_are_refused() {
        for length in 9..16u8 {
            for place in 0..16 {
                let mut bytes = [0; 300];
                bytes[place / 2] = length << (4 * (place % 2));
                assert_eq!(get::<16>(&bytes, 0), None);
                // Reads with a smaller count: the invalid length is then read as a part of a number, or is the unused
                // half byte.
                assert_eq!(get::<8>(&bytes, 0).is_none(), place < 8);
                assert_eq!(get::<7>(&bytes, 0).is_none(), place < 8);
            }
        }
        let mut unused = [0; 300];
        unused[1] = 1 << 4;
        assert_eq!(get::<3>(&unused, 0), None, "the fourth half byte is zero");
        assert!(get::<4>(&unused, 0).is_some());
        let mut eights = [1; 300];
        eights[..8].fill(0x88);
        let found = get::<16>(&eights, 0);
        assert_eq!(found, Some(([0x0101_0101_0101_0101; 16], 136)));
        assert_eq!(get::<1>(&eights, 301), None);
        assert_eq!(sum(u64::MAX), 240);
        assert_eq!(
            lengths(&[0, 1, 255, 256, u64::MAX, i64::MIN as u64]),
            0x88_2110
        );
    }
}
