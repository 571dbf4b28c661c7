//! Each loop beside the description of it, with every kind of code that this processor runs: on values that no encoder
//! makes as well, for a reader of damaged bytes gets the same everywhere.

use super::Rng;
use crate::float::{Alp, DIVIDE, EXPONENT_MAX};
use crate::kernel::{self, at_every_level};
use crate::pack::{self, Packed, packed_bytes};

/// Whole vectors, and lengths of every number of lanes.
const LENGTHS: [usize; 9] = [1024, 1023, 700, 512, 300, 130, 17, 8, 1];

/// Any bits of any width now and then, else few; so that whole words of lanes are full or empty.
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
    for seed in 0..4000 {
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
        crate::float::alp_decode::<false>(alp, &mut floats);
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

#[test]
fn decimals_are_the_same_bits_everywhere() {
    for seed in 0..4000 {
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
        crate::float::alp_decode::<false>(alp, &mut expected);
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
        // Lengths whose sum wraps to the number of rows.
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
