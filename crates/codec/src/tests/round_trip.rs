use super::{Rng, column_round_trip, few, times_round_trip};
use crate::{ColumnType, EncoderState, Stats, chunk};

/// Words that often break codecs, such as NaNs, infinities and the limits of number ranges.
const SPECIALS: [u64; 20] = [
    0x7ff8_0000_0000_0000, // quiet NaN
    0xfff8_0000_0000_0001, // negative, with payload
    0x7ff0_0000_0000_0001, // signalling
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000, // infinities
    0xfff0_0000_0000_0000,
    0x8000_0000_0000_0000, // -0.0
    0,
    1, // smallest subnormal
    0x000f_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff, // f64::MAX
    0xffef_ffff_ffff_ffff,
    0x4320_0000_0000_0000, // 2^51
    0x4330_0000_0000_0000, // 2^52
    0x4338_0000_0000_0000, // 1.5 * 2^52
    0xc320_0000_0000_0000, // -2^51
    0x43e0_0000_0000_0000, // 2^63
    0x3ff0_0000_0000_0001, // 1 + ulp
    0x3fb9_9999_9999_999a, // 0.1
];

const TYPES: [ColumnType; 3] = [ColumnType::F64, ColumnType::I64, ColumnType::U64];

const LENGTHS: [usize; 16] = [
    1, 2, 3, 7, 16, 31, 32, 33, 64, 127, 128, 255, 300, 512, 1000, 1024,
];

#[test]
fn special_words_among_ordinary_ones() {
    let mut rng = Rng(11);
    for ty in TYPES {
        let mut state = EncoderState::default();
        for round in 0..few(400) as usize {
            let n = LENGTHS[round % LENGTHS.len()];
            let share = [1, 2, 10, 100, 1000][round % 5];
            let words: Vec<u64> = (0..n)
                .map(|i| {
                    if rng.below(share) == 0 {
                        SPECIALS[rng.below(20) as usize]
                    } else {
                        (i as f64 * 0.25).to_bits()
                    }
                })
                .collect();
            column_round_trip(ty, &words, &mut state);
            let times: Vec<i64> = words.iter().map(|&w| w as i64).collect();
            times_round_trip(&times);
        }
    }
}

/// Encodes vectors of every shape one after another with the same state, so that the state is often wrong.
#[test]
fn random_shapes_under_wrong_states() {
    let mut states = [EncoderState::default(); 3];
    for seed in 0..few(2500) {
        let mut rng = Rng(seed);
        let n = match rng.below(3) {
            0 => 1024,
            1 => LENGTHS[rng.below(16) as usize],
            _ => 1 + rng.below(1024) as usize,
        };
        let words = shape(&mut rng, n);
        for (ty, state) in TYPES.iter().zip(&mut states) {
            column_round_trip(*ty, &words, state);
        }
        let times: Vec<i64> = words.iter().map(|&w| w as i64).collect();
        times_round_trip(&times);
    }
}

pub(super) fn shape(rng: &mut Rng, n: usize) -> Vec<u64> {
    let kind = rng.below(10);
    let bits = rng.below(64);
    let scale = [1, 10, 1000, 1 << 20, 1_000_000_007][rng.below(5) as usize];
    let start = rng.next() >> rng.below(64);
    let decimals = 10f64.powi(rng.below(12) as i32);
    let outliers = [0, 0, 3, 50, 400][rng.below(5) as usize];
    let mut sum = start;
    let mut words: Vec<u64> = (0..n as u64)
        .map(|i| {
            let noise = (rng.next() >> bits).wrapping_mul(scale);
            match kind {
                0 => noise,
                1 => start.wrapping_add(noise),
                2 => {
                    sum = sum.wrapping_add(noise);
                    sum
                }
                3 => start.wrapping_add(i.wrapping_mul(scale)),
                4 => ((rng.below(100_000) as f64 - 50_000.0) / decimals).to_bits(),
                5 => (rng.below(100_000) as f64 * (1.0 / decimals)).to_bits(),
                6 => (rng.unit() * 100.0 - 50.0).to_bits(),
                7 => ((rng.unit() as f32) * 100.0).to_f64(),
                8 => SPECIALS[(rng.below(3 + bits) % 20) as usize],
                _ => (i as f64 + start as f64).to_bits(),
            }
        })
        .collect();
    for word in &mut words {
        if outliers > 0 && rng.below(1024) < outliers {
            *word = rng.next() >> rng.below(64);
        }
    }
    words
}

trait Widen {
    fn to_f64(self) -> u64;
}

impl Widen for f32 {
    fn to_f64(self) -> u64 {
        f64::from(self).to_bits()
    }
}

#[test]
fn simple_columns_cost_nothing() {
    let ramp: Vec<u64> = (0..1024).map(|i| f64::from(i).to_bits()).collect();
    let (chunk, bytes) = column_round_trip(ColumnType::F64, &ramp, &mut EncoderState::default());
    assert_eq!((chunk.encoding, bytes.len()), (chunk::ALP_DELTA, 0));
    let (chunk, bytes) =
        column_round_trip(ColumnType::I64, &[7; 1024], &mut EncoderState::default());
    assert_eq!((chunk.encoding, bytes.len()), (chunk::CONSTANT, 0));
    let times: Vec<i64> = (0..1024).map(|i| 1_400_000_000 + i * 600).collect();
    assert!(times_round_trip(&times).1.is_empty());
    let gap: Vec<i64> = times
        .iter()
        .map(|&t| t + i64::from(t > 1_400_100_000) * 7200)
        .collect();
    assert!(times_round_trip(&gap).1.len() < 8);
    assert!(times_round_trip(&[i64::MIN]).1.is_empty());
    assert!(times_round_trip(&[i64::MAX, i64::MIN]).1.is_empty());
}

#[test]
fn expected_encodings() {
    let mut rng = Rng(3);
    let mut code = |of: &mut dyn FnMut(&mut Rng, usize) -> u64| {
        let words: Vec<u64> = (0..1024).map(|i| of(&mut rng, i)).collect();
        let (chunk, bytes) =
            column_round_trip(ColumnType::F64, &words, &mut EncoderState::default());
        (chunk.encoding, bytes.len())
    };
    let two_decimals = code(&mut |rng, _| (rng.below(10_000) as f64 / 100.0).to_bits());
    assert_eq!(two_decimals, (chunk::ALP_FOR, 14 * 128));
    let counted = code(&mut |rng, _| (rng.below(1024) as f64 * 0.001).to_bits());
    assert_eq!(counted, (chunk::ALP_FOR, 10 * 128));
    let single = code(&mut |rng, _| ((rng.unit() as f32) + 1.0).to_f64());
    assert_eq!(single.0, chunk::ORDERED_FOR);
    let odd: Vec<u64> = (0..16)
        .map(|i| (f64::from(i) + 0.1).sqrt().to_bits())
        .collect();
    let few = code(&mut |rng, _| odd[rng.below(16) as usize]);
    assert!(few.0 == chunk::LIST && few.1 < 16 * 8 + 4 * 128, "{few:?}");
    let noise = code(&mut |rng, _| rng.next());
    assert_eq!(noise, (chunk::RAW, 8192));
    let mut walk = 1000;
    let walk = code(&mut |rng, _| {
        walk += rng.below(8);
        (walk as f64 / 10.0).to_bits()
    });
    assert_eq!(walk, (chunk::ALP_DELTA, 3 * 128));
}

#[test]
fn missing_values_are_stored_once() {
    let words: Vec<u64> = (0..1024u32)
        .map(|i| {
            if i % 10 == 3 {
                f64::NAN
            } else {
                f64::from(i * i % 1021)
            }
            .to_bits()
        })
        .collect();
    let (_, bytes) = column_round_trip(ColumnType::F64, &words, &mut EncoderState::default());
    assert!(bytes.len() <= 10 * 128 + 103 * 2 + 8);
}

#[test]
fn computed_decimals_cost_a_bit_or_two_more() {
    let mut rng = Rng(21);
    // The words are computed sums that miss the nearest decimal by some units in the last place.
    let words: Vec<u64> = (0..1024)
        .map(|_| {
            let tenths = |n: u64| n as f64 * 0.1;
            (tenths(rng.below(1000)) + tenths(rng.below(1000)) + 100.0).to_bits()
        })
        .collect();
    let (chunk, bytes) = column_round_trip(ColumnType::F64, &words, &mut EncoderState::default());
    assert_eq!(chunk.encoding, chunk::ALP_FOR);
    assert!((1..=3).contains(&chunk.correction.width), "{chunk:?}");
    assert!(bytes.len() <= 14 * 128 + 100, "{chunk:?}");
}

#[test]
fn singles_on_both_sides_of_zero_are_split() {
    let mut rng = Rng(22);
    let words: Vec<u64> = (0..1024)
        .map(|_| ((rng.unit() as f32 - 0.5) * 0.01).to_f64())
        .collect();
    let (chunk, bytes) = column_round_trip(ColumnType::F64, &words, &mut EncoderState::default());
    assert_eq!((chunk.encoding, chunk.exponent), (chunk::SPLIT, 29));
    assert!(bytes.len() <= 28 * 128, "{chunk:?}");
}

#[test]
fn repeated_values_are_stored_once() {
    let mut rng = Rng(23);
    for ty in TYPES {
        let mut word = 0;
        let words: Vec<u64> = (0..1024)
            .map(|i| {
                if i % 8 == 0 || rng.below(8) == 0 {
                    word = ((rng.below(60) as f64).sqrt()).to_bits();
                }
                word
            })
            .collect();
        let (chunk, bytes) = column_round_trip(ty, &words, &mut EncoderState::default());
        assert_eq!(chunk.encoding, chunk::RUNS, "{ty:?}");
        assert!(bytes.len() <= 1024 * 2, "{chunk:?}");
    }
}

/// Values that are mostly zero: the others are outliers whose rows take a bit each, with or without a sign.
#[test]
fn values_that_are_mostly_one_value_cost_a_bit_a_row() {
    let mut rng = Rng(25);
    for (low, width) in [(0i64, 10), (-500, 11)] {
        for share in [3, 30, 40] {
            let values: Vec<i64> = (0..1024)
                .map(|_| match rng.below(100) < share {
                    true => low + rng.below(1000) as i64,
                    false => 0,
                })
                .collect();
            let others = values.iter().filter(|&&value| value != 0).count();
            let floats: Vec<u64> = values
                .iter()
                .map(|&value| (value as f64 / 10.0).to_bits())
                .collect();
            let integers: Vec<u64> = values.iter().map(|&value| value as u64).collect();
            for (ty, words) in [(ColumnType::F64, floats), (ColumnType::I64, integers)] {
                let (chunk, bytes) = column_round_trip(ty, &words, &mut EncoderState::default());
                let most = 128 + (others + 16) * width / 8 + 16 * 8;
                assert!(bytes.len() <= most, "{share} %: {chunk:?}");
                assert!(share < 10 || chunk.patches > 200, "{chunk:?}");
            }
        }
    }
}

#[test]
fn a_few_words_are_a_list_of_their_own() {
    let mut rng = Rng(24);
    let words: Vec<u64> = (0..1024)
        .map(|_| (rng.below(200) as f64 * 0.514_444).to_bits())
        .collect();
    let mut state = EncoderState::default();
    for _ in 0..3 {
        let (chunk, bytes) = column_round_trip(ColumnType::F64, &words, &mut state);
        assert_eq!(chunk.encoding, chunk::LIST);
        assert!(bytes.len() < 8 * 128 + 200 * 6, "{chunk:?}");
    }
}

#[test]
fn every_processor_writes_and_reads_the_same() {
    let mut expected: Option<Vec<Vec<u8>>> = None;
    crate::kernel::at_every_level(|level| {
        let mut states = [EncoderState::default(); 3];
        let mut found = Vec::new();
        for seed in 0..few(600) {
            let mut rng = Rng(seed);
            let n = if seed % 2 == 0 {
                1024
            } else {
                1 + rng.below(1024) as usize
            };
            let words = shape(&mut rng, n);
            let times: Vec<i64> = words.iter().map(|&w| w as i64).collect();
            let mut bytes = Vec::new();
            for (ty, state) in TYPES.iter().zip(&mut states) {
                let (chunk, payload) = column_round_trip(*ty, &words, state);
                chunk.put(&mut bytes);
                bytes.extend(payload);
                bytes.extend(Stats::of(*ty, &times, &words).to_bytes());
            }
            let (chunk, payload) = times_round_trip(&times);
            chunk.put(&mut bytes);
            bytes.extend(payload);
            found.push(bytes);
        }
        match &expected {
            None => expected = Some(found),
            Some(expected) => {
                for (seed, (a, b)) in expected.iter().zip(&found).enumerate() {
                    assert!(a == b, "{level}: seed {seed}");
                }
            }
        }
    });
}

#[test]
fn periodic_columns_do_not_fool_the_sample() {
    for period in [8, 16, 40, 64] {
        let words: Vec<u64> = (0..1024)
            .map(|i| (f64::from(i % period) / 10.0).to_bits())
            .collect();
        let (chunk, bytes) =
            column_round_trip(ColumnType::F64, &words, &mut EncoderState::default());
        assert!(bytes.len() <= 3 * 128, "period {period}: {chunk:?}");
    }
    // Two values alternate in long runs, so that deltas need one patch (outlier) per change.
    let words: Vec<u64> = (0..1024)
        .map(|i| u64::from(i / 100 % 2 == 0) * 4096)
        .collect();
    let (chunk, bytes) = column_round_trip(ColumnType::I64, &words, &mut EncoderState::default());
    assert!(bytes.len() <= 60, "{chunk:?}");
}

#[test]
fn words_that_barely_repeat_are_stored_as_they_are() {
    let mut rng = Rng(5);
    for distinct in 480..=593 {
        let few: Vec<u64> = (0..distinct).map(|_| rng.next()).collect();
        let words: Vec<u64> = (0..593).map(|row| few[row % distinct]).collect();
        // The payload must not be longer than a header and the words.
        column_round_trip(ColumnType::U64, &words, &mut EncoderState::default());
    }
}
