//! Tests times of an even clock whose rows are each recorded a little late: such times lie near a line.

use super::{Rng, few, times_round_trip};
use crate::kernel::at_every_level;
use crate::{Chunk, EncoderState, chunk, decode_times, encode_times};

/// Creates the times of `rows` rows, beginning with row number `from`.
fn late(rng: &mut Rng, (tick, unit): (i64, i64), late: u64, from: i64, rows: i64) -> Vec<i64> {
    let time = |row| row * tick + rng.below(late) as i64 * unit;
    (from..from + rows).map(time).collect()
}

fn encode(times: &[i64], state: &mut EncoderState) -> (Chunk, Vec<u8>) {
    let mut bytes = Vec::new();
    let chunk = encode_times(times, state, &mut bytes);
    let mut back = vec![7; times.len()];
    decode_times(&chunk, &bytes, &mut back).expect("what was encoded");
    assert_eq!(back, times, "{chunk:?}");
    (chunk, bytes)
}

#[test]
fn late_rows_cost_bits_in_proportion_to_their_delay() {
    let mut rng = Rng(1);
    for (clock, bits) in [
        ((1_000_000_000, 100), 20),
        ((1_000_000_000, 1000), 10),
        ((10_000, 1), 9),
        ((60_000, 1), 3),
    ] {
        let mut state = EncoderState::default();
        for vector in 0..few(100) as i64 {
            let times = late(&mut rng, clock, 1 << bits, vector * 1024, 1024);
            let (chunk, bytes) = encode(&times, &mut state);
            let unit = if clock.1 == 1 { 0 } else { 8 };
            assert_eq!(chunk.encoding, chunk::SLOPE, "{clock:?} {chunk:?}");
            assert_eq!(
                (chunk.start, bytes.len()),
                (clock.0 as u64, bits * 128 + unit)
            );
        }
    }
}

#[test]
fn punctual_rows_are_encoded_as_steps() {
    let mut rng = Rng(2);
    // Events follow each other at random intervals: each delay moves all later times.
    let mut at = 0;
    let mut events = || {
        at += 1 + rng.below(2_000_000) as i64;
        at
    };
    let times: Vec<i64> = (0..1024).map(|_| events()).collect();
    assert_eq!(times_round_trip(&times).0.encoding, chunk::DELTA);
    // Times of a clock that stops for a while.
    let mut rng = Rng(3);
    let mut times = late(&mut rng, (1_000_000, 1), 1000, 0, 1024);
    times[300..]
        .iter_mut()
        .for_each(|time| *time += 3_600_000_000);
    assert_eq!(times_round_trip(&times).0.encoding, chunk::DELTA);
}

#[test]
fn a_few_rows_that_are_very_late_are_stored_apart() {
    let mut rng = Rng(4);
    let mut times = late(&mut rng, (1_000_000, 1), 1000, 0, 1024);
    for row in [17, 500, 1000] {
        times[row] += 900_000;
    }
    let (chunk, bytes) = times_round_trip(&times);
    assert_eq!((chunk.encoding, chunk.patches), (chunk::SLOPE, 3));
    assert!(bytes.len() < 10 * 128 + 3 * 8, "{chunk:?}");
}

/// Clocks change, stop, and run backwards; vectors are short; times lie at the ends of their range. A remembered
/// encoder state must never lead to a wrong result.
#[test]
fn any_times_round_trip_under_any_state() {
    let mut expected: Option<Vec<Vec<u8>>> = None;
    at_every_level(|level| {
        let (mut rng, mut state) = (Rng(5), EncoderState::default());
        let mut found = Vec::new();
        for _ in 0..few(3000) {
            let rows = [1024, 1024, 1000, 130, 64, 63, 2][rng.below(7) as usize];
            let tick = [1_000_000_000, 1_000_000, 7, -60_000, 1 << 53][rng.below(5) as usize];
            let unit = [1, 100, 1000][rng.below(3) as usize];
            let from = [0, i64::MAX / tick - 500, i64::MIN / tick][rng.below(3) as usize];
            let bits = rng.below(24);
            let noise = 1 + rng.below(1 << bits);
            let mut times: Vec<i64> = (0..rows)
                .map(|row: i64| {
                    let even = from.wrapping_add(row).wrapping_mul(tick);
                    even.wrapping_add(rng.below(noise) as i64 * unit)
                })
                .collect();
            match rng.below(6) {
                0 => times[(rows / 2) as usize] = rng.next() as i64,
                1 => times[(rows / 3) as usize..].fill(0),
                _ => {}
            }
            let (chunk, mut bytes) = encode(&times, &mut state);
            chunk.put(&mut bytes);
            found.push(bytes);
        }
        match &expected {
            None => expected = Some(found),
            Some(expected) => assert!(*expected == found, "{level}"),
        }
    });
}

#[test]
fn damaged_slopes_are_read_or_refused() {
    let mut rng = Rng(6);
    let times = late(&mut rng, (1_000_000, 10), 1 << 10, 5, 700);
    let (chunk, payload) = times_round_trip(&times);
    assert_eq!(chunk.encoding, chunk::SLOPE);
    let mut refused = 0;
    for _ in 0..few(20_000) {
        let (mut bytes, mut payload) = (Vec::new(), payload.clone());
        chunk.put(&mut bytes);
        match rng.below(3) {
            0 => payload.truncate(rng.below(payload.len() as u64) as usize),
            _ => {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        let read = Chunk::get(&bytes, 0, (700, payload.len()));
        let mut out = vec![0; 700];
        let is_read =
            read.is_some_and(|(chunk, _)| decode_times(&chunk, &payload, &mut out).is_ok());
        refused += usize::from(!is_read);
    }
    assert!(refused > 0);
}
