//! Compares each loop with its definition, in every kernel variant that this processor supports. The tests include
//! values that no encoder produces, because damaged bytes must decode equally on every processor.

use super::{Rng, few};
use crate::ColumnType;
use crate::kernel::{self, at_every_level};
use crate::loops::dd::Dd;
use crate::loops::float::{Alp, DIVIDE, EXPONENT_MAX};
use crate::loops::fold;
use crate::loops::pack::{self, Packed, packed_bytes};
use crate::loops::scan::EXPAND_BEHIND;

/// Lengths of vectors to test: whole vectors, and at least one length for every number of lanes.
const LENGTHS: [usize; 9] = [1024, 1023, 700, 512, 300, 130, 17, 8, 1];

/// Returns a random width, and random packed bits of this width; sometimes only few bits are set or clear, so that
/// whole words of lanes are full or empty.
fn random(rng: &mut Rng, n: usize) -> (u32, Vec<u8>) {
    let width = 1 + rng.below(64) as u32;
    let few = rng.below(3) == 0;
    let byte = |rng: &mut Rng| if few { rng.below(2) } else { rng.next() } as u8;
    let bytes = (0..packed_bytes(n, width)).map(|_| byte(rng)).collect();
    (width, bytes)
}

fn rule(rng: &mut Rng) -> Alp {
    let below = u64::from(EXPONENT_MAX) + 1;
    let factor = [rng.below(below) as u8, DIVIDE][rng.below(2) as usize];
    Alp {
        exponent: rng.below(below) as u8,
        factor,
    }
}

#[test]
fn steps_are_summed_up_as_they_are_written() {
    for seed in 0..few(4000) {
        let mut rng = Rng(seed);
        let n = LENGTHS[rng.below(9) as usize];
        let (width, bytes) = random(&mut rng, n);
        let steps = Packed {
            bytes: &bytes,
            width,
            base: rng.next() >> rng.below(64),
            scale: [1, 1000, rng.next()][rng.below(3) as usize],
        };
        let (start, alp) = (rng.next() >> rng.below(64), rule(&mut rng));
        let mut unpacked = vec![0; n];
        pack::unpack(&bytes, width, steps.base, steps.scale, &mut unpacked);
        let mut sum = start.wrapping_sub(unpacked[0]);
        let expected: Vec<u64> = unpacked
            .iter()
            .map(|step| {
                sum = sum.wrapping_add(*step);
                sum
            })
            .collect();
        let mut floats = expected.clone();
        crate::loops::float::alp_decode::<false>(alp, &mut floats);
        at_every_level(|level| {
            let mut out = vec![7; n];
            kernel::unpack_sums(steps, start, &mut out);
            assert_eq!(out, expected, "{level} seed {seed} n {n} {width} bits");
            kernel::alp_unpack_sums(alp, steps, start, &mut out);
            assert_eq!(out, floats, "{level} seed {seed} n {n} {alp:?}");
            out.copy_from_slice(&unpacked);
            kernel::prefix_sum(start, &mut out);
            assert_eq!(out, expected, "{level} seed {seed} n {n}");
            out.copy_from_slice(&unpacked);
            kernel::alp_sums(alp, start, &mut out);
            assert_eq!(out, floats, "{level} seed {seed} n {n} {alp:?}");
        });
    }
}

/// Replaces every NaN by one bit pattern.
fn one_nan(words: &mut [u64]) {
    let is_nan = |word: &&mut u64| f64::from_bits(**word).is_nan();
    let nans = words.iter_mut().filter(is_nan);
    nans.for_each(|word| *word = f64::NAN.to_bits());
}

/// Sums of narrow deltas share a word while they are computed. The largest deltas leave no bits of these words unused.
#[test]
fn steps_of_few_bits_do_not_run_into_each_other() {
    const ROWS: usize = 1024;
    for width in 1..=12 {
        let most = u64::MAX >> (64 - width);
        for style in 0..4 {
            let mut rng = Rng(u64::from(width));
            let values: Vec<u64> = (0..ROWS as u64)
                .map(|i| match style {
                    0 => most,
                    1 => rng.next() & most,
                    2 => most * (i / 16 % 2),
                    _ => most * (rng.below(2)),
                })
                .collect();
            let mut bytes = vec![0; packed_bytes(ROWS, width)];
            pack::pack(&values, width, 0, &mut bytes);
            let base = [0, 0u64.wrapping_sub(100), rng.next()][style % 3];
            let steps = Packed {
                bytes: &bytes,
                width,
                base,
                scale: 1,
            };
            let start = rng.next() >> 20;
            let mut sum = start.wrapping_sub(values[0].wrapping_add(base));
            let next = |step: &u64| {
                sum = sum.wrapping_add(step.wrapping_add(base));
                sum
            };
            let expected: Vec<u64> = values.iter().map(next).collect();
            let alp = rule(&mut rng);
            let mut floats = expected.clone();
            crate::loops::float::alp_decode::<false>(alp, &mut floats);
            at_every_level(|level| {
                let mut out = vec![7; ROWS];
                kernel::unpack_sums(steps, start, &mut out);
                assert_eq!(out, expected, "{level} style {style} {width} bits");
                kernel::alp_unpack_sums(alp, steps, start, &mut out);
                if cfg!(miri) {
                    // Under Miri infinity times zero is an arbitrary NaN, a different one each time, so all NaNs are
                    // made equal.
                    one_nan(&mut out);
                    one_nan(&mut floats);
                }
                assert_eq!(out, floats, "{level} style {style} {width} bits {alp:?}");
            });
        }
    }
}

#[test]
fn decimals_are_the_same_bits_everywhere() {
    for seed in 0..few(4000) {
        let mut rng = Rng(seed);
        let n = LENGTHS[rng.below(9) as usize];
        let (width, bytes) = random(&mut rng, n);
        let alp = rule(&mut rng);
        let values = Packed {
            bytes: &bytes,
            width,
            base: rng.next() >> rng.below(64),
            scale: [1, 25, rng.next()][rng.below(3) as usize],
        };
        let mut expected = vec![0; n];
        pack::unpack(&bytes, width, values.base, values.scale, &mut expected);
        crate::loops::float::alp_decode::<false>(alp, &mut expected);
        at_every_level(|level| {
            let mut out = vec![7; n];
            kernel::alp_unpack(alp, values, &mut out);
            assert_eq!(out, expected, "{level} seed {seed} n {n} {alp:?}");
        });
    }
}

#[test]
fn runs_that_do_not_fill_the_rows_are_refused() {
    let words: Vec<u64> = (0..9).collect();
    at_every_level(|_| {
        let mut out = [0; 40];
        let mut lengths = [1, 2, 3, 4, 5, 6, 7, 8, 4];
        assert!(kernel::repeat(&words, &lengths, &mut out));
        let mut expected = Vec::new();
        for (&word, &length) in words.iter().zip(&lengths) {
            expected.extend(std::iter::repeat_n(word, length as usize));
        }
        assert_eq!(out[..], expected);
        for wrong in [0, 3, 5, 41, 1 << 63, u64::MAX] {
            lengths[8] = wrong;
            assert!(!kernel::repeat(&words, &lengths, &mut out), "{wrong}");
        }
        // Run lengths whose sum wraps to the number of rows.
        lengths[0] = 1u64.wrapping_sub(lengths[8]).wrapping_add(4);
        assert!(!kernel::repeat(&words, &lengths, &mut out));
    });
}

#[test]
fn floats_are_summed_in_the_same_order_everywhere() {
    for n in [0, 1, 31, 32, 33, 1000, 1024, 5000] {
        let mut rng = Rng(n);
        let values: Vec<f64> = (0..n)
            .map(|_| (rng.unit() - 0.5) * 10f64.powi(rng.below(30) as i32))
            .collect();
        let mut lanes = [0.0; 32];
        for (i, value) in values.iter().enumerate() {
            lanes[i % 32] += value;
        }
        for half in [16, 8, 4, 2, 1] {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
        }
        at_every_level(|level| {
            let sum = crate::sum_floats(&values);
            assert_eq!(sum.to_bits(), lanes[0].to_bits(), "{level} {n}");
        });
    }
}

/// Creates floats of one of several kinds: a few distinct values, values with NaN and infinities, or many values of
/// similar size.
fn floats(rng: &mut Rng, n: usize) -> Vec<u64> {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        -0.0,
        0.0,
        5e-324,
    ];
    let style = rng.below(5);
    let value = |rng: &mut Rng| match style {
        0 => rng.below(100) as f64 / 100.0,
        1 => (rng.unit() - 0.5) * 10f64.powi(rng.below(600) as i32 - 300),
        2 => odd[rng.below(7) as usize],
        3 => f64::from_bits(rng.next()),
        _ => -1e300 * rng.unit(),
    };
    (0..n).map(|_| value(rng).to_bits()).collect()
}

#[test]
fn statistics_are_the_same_bits_everywhere() {
    for seed in 0..few(3000) {
        let mut rng = Rng(seed);
        let n = [1024, 1000, 77, 64, 33, 32, 17, 9, 8, 7, 2, 1][rng.below(12) as usize];
        let values = floats(&mut rng, n);
        let bits = |lanes: &fold::Lanes, sums: [Dd; 2]| {
            let sums = sums.map(|sum| [sum.hi.to_bits(), sum.lo.to_bits()]);
            // Either zero may be returned as an extreme, so -0.0 is converted to +0.0.
            let extremes = [lanes.low, lanes.high].map(|x| (x + 0.0).to_bits());
            (sums, extremes, lanes.nan_count)
        };
        let lanes = fold::float_lanes::<false>(&values);
        let expected = bits(&lanes, fold::gather(&lanes));
        let ints: Vec<u64> = values.iter().map(|word| word >> rng.below(64)).collect();
        let pass = fold::integer_pass(&ints, seed << 63);
        let wanted = [rng.below(n as u64), rng.below(n as u64)].map(|i| values[i as usize]);
        let rows = wanted.map(|word| values.iter().position(|&w| w == word).unwrap());
        let absent = (0..).find(|word| !values.contains(word)).unwrap();
        let distances: Vec<u64> = values.iter().map(|x| x.wrapping_sub(values[0])).collect();
        // Chooses one of the distances at random as the limit, so that few or many values exceed it.
        let rare = distances[rng.below(n as u64) as usize];
        let outside = distances
            .chunks(64)
            .enumerate()
            .fold(0, |bits, (tile, tiled)| {
                bits | u64::from(tiled.iter().any(|&distance| distance > rare)) << tile
            });
        at_every_level(|level| {
            let lanes = kernel::float_lanes(&values);
            let own = bits(&lanes, kernel::gather(&lanes));
            assert_eq!(own, expected, "{level} seed {seed} n {n}");
            assert_eq!(
                kernel::integer_pass(&ints, seed << 63),
                pass,
                "{level} seed {seed}"
            );
            assert_eq!(
                kernel::positions(&values, wanted),
                rows,
                "{level} seed {seed} n {n}"
            );
            let one = kernel::positions(&values, [absent, wanted[1]]);
            assert_eq!(one, [0, rows[1]], "{level} seed {seed} n {n}");
            let tiles = kernel::tiles_outside(&values, values[0], rare);
            assert_eq!(tiles, outside, "{level} seed {seed} n {n}");
        });
    }
}

/// The halves of the sum of squares are computed from a sum that wraps.
#[test]
fn sums_of_the_widest_squares_are_exact() {
    for words in [[i32::MIN as i64 as u64; 1024], [(1 << 31) - 1; 1024]] {
        let square = u128::from((words[0] as i64).unsigned_abs()).pow(2);
        let stats = crate::Stats::of(crate::ColumnType::I64, &[0; 1024], &words);
        assert_eq!(stats.square_sum(), (square * 1024) as f64);
        assert_eq!(stats.int_sum(), Some(i128::from(words[0] as i64) * 1024));
    }
    let words: Vec<u64> = (0..1024).map(|i| (1 << 31) - 1 - i).collect();
    let squares: u128 = words.iter().map(|&word| u128::from(word).pow(2)).sum();
    let stats = crate::Stats::of(crate::ColumnType::I64, &[0; 1024], &words);
    assert_eq!(stats.square_sum(), squares as f64);
}

#[test]
fn singles_round_and_shorten_as_defined() {
    for seed in 0..few(500) {
        let mut rng = Rng(seed);
        let n = LENGTHS[rng.below(9) as usize];
        let words: Vec<u64> = (0..n)
            .map(|_| match rng.below(8) {
                0 => rng.next(),
                1 => ColumnType::widen(f32::from_bits(rng.next() as u32)),
                2 => [f64::NAN, f64::INFINITY, -0.0, 1e300][rng.below(4) as usize].to_bits(),
                _ => ColumnType::widen(rng.below(1 << 20) as f32 / 100.0),
            })
            .collect();
        let single = |word: u64| ColumnType::widen(ColumnType::narrow(word));
        let rounded = |word: u64| match f64::from_bits(word).is_nan() {
            true => word,
            false => single(word),
        };
        let digits = rng.below(11) as usize;
        let power = 10f64.powi(digits as i32);
        at_every_level(|level| {
            let mut out = words.clone();
            kernel::round_to_single(&mut out);
            let expected: Vec<u64> = words.iter().map(|&word| rounded(word)).collect();
            assert_eq!(out, expected, "{level}, seed {seed}");
            let all = words.iter().all(|&word| single(word) == word);
            assert_eq!(kernel::all_single(&words), all, "{level}, seed {seed}");
            assert!(kernel::all_single(
                &words.iter().map(|&word| single(word)).collect::<Vec<_>>()
            ));
            let kept = kernel::shorten(&words, digits, &mut out);
            let mut same = 0;
            for (&short, &word) in out.iter().zip(&words) {
                let whole = f64::from_bits(short) * power;
                let is_decimal = (whole - whole.round()).abs() <= whole.abs() * 1e-15;
                assert!(
                    short == word || (is_decimal && rounded(short) == word),
                    "{level}"
                );
                same += usize::from(short == word);
            }
            assert!(kept <= same, "{level}, seed {seed}");
        });
    }
}

#[test]
fn patches_are_unpacked_and_written_to_their_rows() {
    for seed in 0..few(2000) {
        let mut rng = Rng(seed);
        let n = LENGTHS[rng.below(9) as usize];
        let share = [0, 50, 500, 1000][rng.below(4) as usize];
        let mut bitmap = vec![0u8; n.div_ceil(8)];
        let rows: Vec<usize> = (0..n).filter(|_| rng.below(1000) < share).collect();
        rows.iter()
            .for_each(|row| bitmap[row / 8] |= 1 << (row % 8));
        let mut values: Vec<u64> = rows.iter().map(|_| rng.next()).collect();
        let mut expected: Vec<u64> = (0..n as u64).collect();
        for (&row, &value) in rows.iter().zip(&values) {
            expected[row] = value;
        }
        values.resize(values.len() + EXPAND_BEHIND, 7);
        let (base, scale) = (rng.next(), [1, 10, rng.next()][rng.below(3) as usize]);
        let few = 1 + rng.below(pack::LANE_MAX as u64) as usize;
        let width = 1 + rng.below(64) as u32;
        let mut lane = vec![0; 8 * few + pack::LANE_BEHIND];
        let stored = pack::units_bytes(few, width);
        lane[..stored].fill_with(|| rng.next() as u8);
        let distances: Vec<u64> = (0..few).map(|_| rng.next() >> rng.below(64)).collect();
        at_every_level(|level| {
            let mut out: Vec<u64> = (0..n as u64).collect();
            kernel::expand(&bitmap, &values, &mut out);
            assert_eq!(out, expected, "{level}, seed {seed}");
            let mut out = vec![0; few];
            kernel::unpack_lane(&lane, width, base, scale, &mut out);
            let of = Packed {
                bytes: &lane,
                width,
                base,
                scale,
            };
            let one: Vec<u64> = (0..few).map(|i| of.at(i, few)).collect();
            assert_eq!(out, one, "{level}, seed {seed}, width {width}");
            out.copy_from_slice(&distances);
            kernel::from_distances(base, scale, &mut out);
            for (value, &distance) in out.iter().zip(&distances) {
                let units = crate::short::unzigzag(distance);
                assert_eq!(
                    *value,
                    base.wrapping_add(units.wrapping_mul(scale)),
                    "{level}"
                );
            }
        });
    }
}
