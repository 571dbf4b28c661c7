//! Tests of whole vectors: round trips, golden bytes, damage, real data.

#[cfg(feature = "cold")]
mod cold;
mod damage;
mod golden;
mod kernels;
mod late;
mod nulls;
mod points;
mod real;
mod round_trip;

use crate::{Chunk, ColumnType, EncoderState, count_up_to, word_at};
use crate::{decode_column, decode_times, encode_column, encode_times};

/// Number of rounds of a test; much fewer under Miri, where each round takes hundreds of times as long.
pub(super) const fn few(rounds: u64) -> u64 {
    match cfg!(miri) {
        true if rounds > 2000 => rounds / 1000,
        true => 2,
        false => rounds,
    }
}

/// Random number generator splitmix64.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Encodes words after some other bytes, checks that decoding restores them, and returns the payload with its chunk.
pub(super) fn column_round_trip(
    ty: ColumnType,
    words: &[u64],
    state: &mut EncoderState,
) -> (Chunk, Vec<u8>) {
    let mut out = vec![0xaa; 3];
    let chunk = encode_column(ty, words, state, &mut out);
    assert_eq!(out[..3], [0xaa; 3]);
    let bytes = out.split_off(3);
    assert_eq!((chunk.len(), chunk.rows()), (bytes.len(), words.len()));
    assert!(bytes.len() <= 8 * words.len() + 16, "{chunk:?}");
    let chunk = described(&chunk);
    let mut back = vec![0x5555; words.len()];
    decode_column(&chunk, &bytes, &mut back).unwrap();
    assert_eq!(back, words, "{ty:?} {chunk:?}");
    points_agree(&chunk, &bytes, words);
    (chunk, bytes)
}

/// Encodes the description of a chunk, and returns the chunk that is decoded from it.
fn described(chunk: &Chunk) -> Chunk {
    let mut bytes = Vec::new();
    chunk.put(&mut bytes);
    let (found, end) = Chunk::get(&bytes, 0, (chunk.rows(), chunk.len())).unwrap();
    assert_eq!((found, end), (*chunk, bytes.len()));
    found
}

/// Checks that reading single words, and searching ascending words, agrees with the whole decoded vector or returns
/// `None`.
fn points_agree(chunk: &Chunk, bytes: &[u8], words: &[u64]) {
    let n = words.len();
    let rows = [
        0,
        1,
        n / 7,
        n / 3,
        n / 2,
        n - n / 9,
        n.saturating_sub(2),
        n - 1,
    ];
    for row in rows.map(|row| row.min(n - 1)) {
        let word = word_at(chunk, bytes, n, row).unwrap();
        assert!(
            word.is_none_or(|word| word == words[row]),
            "row {row} of {chunk:?}"
        );
    }
    assert_eq!(word_at(chunk, bytes, n, n).unwrap(), None);
    if words.is_sorted() {
        let around = rows.map(|row| words[row.min(n - 1)]);
        let around = around.map(|word| [word.wrapping_sub(1), word, word.wrapping_add(1)]);
        for word in around.into_iter().flatten() {
            let count = count_up_to(chunk, bytes, n, word).unwrap();
            let expected = words.partition_point(|other| *other <= word);
            assert!(
                count.is_none_or(|count| count == expected),
                "{word} in {chunk:?}"
            );
        }
    }
}

pub(super) fn times_round_trip(times: &[i64]) -> (Chunk, Vec<u8>) {
    let mut bytes = Vec::new();
    let chunk = encode_times(times, &mut EncoderState::default(), &mut bytes);
    assert_eq!((chunk.len(), chunk.rows()), (bytes.len(), times.len()));
    let mut back = vec![0x5555; times.len()];
    decode_times(&described(&chunk), &bytes, &mut back).unwrap();
    assert_eq!(back, times, "{chunk:?}");
    points_agree(&chunk, &bytes, crate::words(times));
    (chunk, bytes)
}
