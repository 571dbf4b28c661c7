//! Places: some rows of a vector, as ascending row numbers in few bits.
//!
//! `k` of `n` rows take the shorter of two forms, the first if both are equally long:
//!
//! ```text
//! parts    | low bits: l of each row, ceil(k * l / 8) bytes | high parts: ceil((k + ((n - 1) >> l)) / 8) bytes |
//! bitmap   | a bit a row, ceil(n / 8) bytes                                                                    |
//! ```
//!
//! l is 8 if 64 * k <= n, otherwise 4: a byte or half a byte for each row, the first row in the lower half. The high
//! part of row number i (counted from 0) is `row >> l`; bit `(row >> l) + i` is set for it (Elias and Fano, with a
//! fixed number of low bits, because these two are the fastest to read and cost at most a tenth more). Unused bits are
//! zero.

use tidalite_base::limits::VECTOR_ROWS;

/// Maximum number of rows in parts; for more the bitmap is shorter.
pub(crate) const PARTS_MAX: usize = VECTOR_ROWS / 5;

/// Number of rows up to which a small buffer is used.
const FEW: usize = 32;

/// Number of low bits of each row number.
#[inline]
fn low(rows: usize, count: usize) -> u32 {
    if 64 * count <= rows { 8 } else { 4 }
}

/// Lengths in bytes of low bits and high parts; `None` if the bitmap is shorter.
#[inline]
fn parts(rows: usize, count: usize) -> Option<[usize; 2]> {
    let low = low(rows, count);
    let lows = (count * low as usize).div_ceil(8);
    let highs = (count + (rows.saturating_sub(1) >> low)).div_ceil(8);
    (lows + highs <= rows.div_ceil(8)).then_some([lows, highs])
}

/// True if this number of row numbers is stored as a bitmap.
#[inline]
pub(crate) fn is_bitmap(rows: usize, count: usize) -> bool {
    parts(rows, count).is_none()
}

/// Length in bytes of `count` of `rows` row numbers.
#[inline]
pub(crate) fn bytes(rows: usize, count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    parts(rows, count).map_or(rows.div_ceil(8), |[lows, highs]| lows + highs)
}

/// True if a bitmap has a bit for each of `count` rows below `rows`, and no others.
pub(crate) fn is_complete(bitmap: &[u8], rows: usize, count: usize) -> bool {
    let (words, rest) = bitmap.as_chunks::<8>();
    let set = |bits: &u64| bits.count_ones() as usize;
    let of_words: usize = words
        .iter()
        .map(|word| set(&u64::from_le_bytes(*word)))
        .sum();
    let of_rest: usize = rest.iter().map(|&byte| set(&u64::from(byte))).sum();
    let beyond = match (rows % 8, bitmap.last()) {
        (0, _) | (_, None) => 0,
        (used, Some(last)) => last >> used,
    };
    bitmap.len() == rows.div_ceil(8) && of_words + of_rest == count && beyond == 0
}

/// Appends ascending row numbers below `rows`.
pub(crate) fn put(rows: usize, places: &[u16], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + bytes(rows, places.len()), 0);
    let out = &mut out[at..];
    let set = |bytes: &mut [u8], bit: usize| bytes[bit / 8] |= 1 << (bit % 8);
    let Some([lows, _]) = parts(rows, places.len()) else {
        return places.iter().for_each(|&row| set(out, usize::from(row)));
    };
    let (lows, highs) = out.split_at_mut(lows);
    let low = low(rows, places.len());
    for (i, &row) in places.iter().enumerate() {
        set(highs, usize::from(row >> low) + i);
        match low {
            8 => lows[i] = row as u8,
            _ => lows[i / 2] |= (row as u8 & 15) << (4 * (i % 2)),
        }
    }
}

/// Reads `count` ascending row numbers below `rows` from their bytes, of which there must be as many as [`bytes`] says,
/// into a buffer with room for `count`. Returns `None` if the bytes are not `count` ascending row numbers below `rows`.
#[inline]
pub(crate) fn get<'b>(
    bytes: &[u8],
    rows: usize,
    count: usize,
    buffer: &'b mut [u16],
) -> Option<&'b [u16]> {
    let out = buffer.get_mut(..count)?;
    match parts(rows, count) {
        Some([lows, _]) => {
            let (lows, highs) = bytes.split_at_checked(lows)?;
            let low = low(rows, count);
            if count <= FEW {
                read_parts::<FEW>(lows, highs, low, rows, out)
            } else {
                read_parts::<{ PARTS_MAX.next_power_of_two() }>(lows, highs, low, rows, out)
            }
        }
        None => read_bitmap(bytes, rows, out),
    }
    .then_some(&*out)
}

/// Writes `number(bit, i)` for set bit number i to place i. Returns false if there are not as many bits as places.
#[inline(always)]
fn each_bit(bytes: &[u8], out: &mut [u16], number: impl Fn(usize, usize) -> u16) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let (mut left, mut i) = (out, 0);
    for (at, word) in words.iter().chain([&last]).enumerate() {
        let mut word = u64::from_le_bytes(*word);
        let Some((places, behind)) = left.split_at_mut_checked(word.count_ones() as usize) else {
            return false;
        };
        for place in places {
            *place = number(64 * at + word.trailing_zeros() as usize, i);
            word &= word.wrapping_sub(1);
            i += 1;
        }
        left = behind;
    }
    left.is_empty()
}

fn read_bitmap(bytes: &[u8], rows: usize, out: &mut [u16]) -> bool {
    each_bit(bytes, out, |row, _| row as u16)
        && out.last().is_none_or(|&last| usize::from(last) < rows)
}

/// Reads at most `MAX` row numbers, where `MAX` is a power of two.
fn read_parts<const MAX: usize>(
    lows: &[u8],
    highs: &[u8],
    low: u32,
    rows: usize,
    out: &mut [u16],
) -> bool {
    // A byte for each low part, in a buffer whose length makes a check of the index unnecessary.
    let mut parts = [0u8; MAX];
    let whole = if low == 8 {
        let Some(place) = parts.get_mut(..lows.len()) else {
            return false;
        };
        place.copy_from_slice(lows);
        each_bit(
            highs,
            out,
            #[inline(always)]
            |bit, i| ((bit - i) << 8) as u16 | u16::from(parts[i % MAX]),
        )
    } else {
        for (pair, &byte) in parts.as_chunks_mut::<2>().0.iter_mut().zip(lows) {
            *pair = [byte & 15, byte >> 4];
        }
        each_bit(
            highs,
            out,
            #[inline(always)]
            |bit, i| ((bit - i) << 4) as u16 | u16::from(parts[i % MAX]),
        )
    };
    // Two rows with the same high part may have low parts that do not ascend.
    let mut wrong = false;
    for (row, next) in out.iter().zip(out.iter().skip(1)) {
        wrong |= row >= next;
    }
    whole && !wrong && out.last().is_none_or(|&last| usize::from(last) < rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Rng, few};

    #[test]
    fn places_come_back_and_damaged_ones_are_refused_or_ascend() {
        let mut rng = Rng(11);
        for _ in 0..few(20_000) {
            let rows = [1, 2, 7, 100, 1000, 1023, 1024][rng.below(7) as usize];
            let share = [1, 3, 30, 200, 700, 1000][rng.below(6) as usize];
            let places: Vec<u16> = (0..rows as u16)
                .filter(|_| rng.below(1000) < share)
                .collect();
            let mut stored = Vec::new();
            put(rows, &places, &mut stored);
            assert_eq!(stored.len(), bytes(rows, places.len()));
            assert!(stored.len() <= rows.div_ceil(8));
            let mut buffer = [0; VECTOR_ROWS];
            let back = get(&stored, rows, places.len(), &mut buffer);
            assert_eq!(back, Some(&places[..]), "{rows}");
            if is_bitmap(rows, places.len()) {
                assert!(is_complete(&stored, rows, places.len()));
                let at = rng.below(8 * stored.len() as u64) as usize;
                stored[at / 8] ^= 1 << (at % 8);
                assert!(!is_complete(&stored, rows, places.len()));
                stored[at / 8] ^= 1 << (at % 8);
            }
            if !stored.is_empty() {
                let at = rng.below(stored.len() as u64) as usize;
                stored[at] ^= 1 << rng.below(8);
                if let Some(back) = get(&stored, rows, places.len(), &mut buffer) {
                    assert!(back.windows(2).all(|pair| pair[0] < pair[1]));
                    assert!(back.iter().all(|&row| usize::from(row) < rows));
                }
                assert_eq!(get(&stored, rows, places.len() + 1, &mut []), None);
            }
        }
    }

    #[test]
    fn few_places_take_few_bytes() {
        assert_eq!(
            [0, 1, 2, 3, 16, 51].map(|k| bytes(1024, k)),
            [0, 2, 3, 4, 19, 41]
        );
        assert_eq!([256, 300, 1024].map(|k| bytes(1024, k)), [128; 3]);
        assert_eq!([1, 2, 20].map(|k| bytes(20, k)), [2, 2, 3]);
    }
}
