//! Unpacks whole vectors with NEON intrinsics, two words per register; from the loops in pack.rs the compiler would
//! generate code that processes the lanes one by one.
//!
//! Integers and floats are computed as in pack.rs and float.rs, operation by operation, so the results are equal.
//! Partial vectors, and units other than one (NEON does not multiply 64-bit words), use the common code.

use core::arch::aarch64::*;

use crate::loops::float::{self, Alp, LIMIT, MAGIC, MAGIC_BITS, MANTISSA, Quotient, Rule};
use crate::loops::pack::{self, Packed};
use crate::loops::scan;
use tidalite_base::limits::VECTOR_ROWS;

/// Number of words in a register.
const TWO: usize = 2;
/// Number of values in a row of packed lanes of a whole vector.
const LANES: usize = 16;

#[expect(unsafe_code, reason = "loads a whole array into a register")]
#[target_feature(enable = "neon")]
#[inline]
fn load<T>(from: &[T; TWO]) -> uint64x2_t {
    const { assert!(size_of::<[T; TWO]>() == size_of::<uint64x2_t>()) };
    // SAFETY: the array has the 16 bytes that are read, at any alignment.
    unsafe { vreinterpretq_u64_u8(vld1q_u8(from.as_ptr().cast())) }
}

#[expect(unsafe_code, reason = "stores a register as a whole array")]
#[target_feature(enable = "neon")]
#[inline]
fn store(to: &mut [u64; TWO], values: uint64x2_t) {
    // SAFETY: the array has the 16 bytes that are written, and is aligned for words.
    unsafe { vst1q_u64(to.as_mut_ptr(), values) }
}

/// Unpacks values and combines each with the word in its place: `out[i] = finish(out[i], packed[i])`.
#[target_feature(enable = "neon")]
#[inline]
fn change_with(
    values: Packed<'_>,
    out: &mut [u64; VECTOR_ROWS],
    finish: impl Fn(uint64x2_t, uint64x2_t) -> uint64x2_t,
) {
    let width = values.width;
    let (words, _) = values.bytes.as_chunks::<8>();
    let (words, _) = words.as_chunks::<LANES>();
    let mask = vdupq_n_u64(u64::MAX >> (64 - width));
    let (rows, _) = out.as_chunks_mut::<LANES>();
    let mut bit = 0;
    for row in rows {
        let (k, shift) = ((bit / 64) as usize, bit % 64);
        bit += width;
        // NEON has no right shift by a variable; a left shift by a negative count does it.
        let right = vdupq_n_s64(-i64::from(shift));
        let (places, _) = row.as_chunks_mut::<TWO>();
        let (lows, _) = words[k].as_chunks::<TWO>();
        if shift + width <= 64 {
            for (place, low) in places.iter_mut().zip(lows) {
                let value = vshlq_u64(load(low), right);
                store(place, finish(load(place), vandq_u64(value, mask)));
            }
        } else {
            let left = vdupq_n_s64(i64::from(64 - shift));
            let (highs, _) = words[k + 1].as_chunks::<TWO>();
            for ((place, low), high) in places.iter_mut().zip(lows).zip(highs) {
                let value = vorrq_u64(vshlq_u64(load(low), right), vshlq_u64(load(high), left));
                store(place, finish(load(place), vandq_u64(value, mask)));
            }
        }
    }
}

/// NEON form of [`pack::unpack`].
#[target_feature(enable = "neon")]
pub(super) fn unpack(bytes: &[u8], width: u32, base: u64, scale: u64, out: &mut [u64]) {
    let values = Packed {
        bytes,
        width,
        base,
        scale,
    };
    match out.as_mut_array() {
        Some(whole) if scale == 1 => {
            let base = vdupq_n_u64(base);
            change_with(values, whole, |_, x| vaddq_u64(x, base));
        }
        _ => pack::unpack(bytes, width, base, scale, out),
    }
}

/// NEON form of [`pack::unpack_onto`].
#[target_feature(enable = "neon")]
pub(super) fn unpack_onto(values: Packed<'_>, out: &mut [u64]) {
    match out.as_mut_array() {
        Some(whole) => {
            let base = vdupq_n_u64(values.base);
            change_with(values, whole, |old, x| vaddq_u64(old, vaddq_u64(x, base)));
        }
        None => pack::unpack_onto(values, out),
    }
}

/// NEON form of [`pack::join`].
#[target_feature(enable = "neon")]
pub(super) fn join(bytes: &[u8], width: u32, zeros: u32, out: &mut [u64]) {
    match out.as_mut_array() {
        Some(whole) => {
            let values = Packed {
                bytes,
                width,
                base: 0,
                scale: 1,
            };
            let (up, zeros) = (vdupq_n_s64(i64::from(width)), vdupq_n_s64(i64::from(zeros)));
            let join = |old, x| vshlq_u64(vorrq_u64(vshlq_u64(old, up), x), zeros);
            change_with(values, whole, join);
        }
        None => pack::join(bytes, width, zeros, out),
    }
}

/// NEON form of [`float::alp_unpack`].
#[target_feature(enable = "neon")]
pub(super) fn alp_unpack(alp: Alp, values: Packed<'_>, out: &mut [u64]) {
    let base = vdupq_n_u64(values.base);
    match (out.as_mut_array(), Rule::of(alp)) {
        (Some(whole), Some(rule)) if values.scale == 1 => {
            change_with(values, whole, |_, x| products(rule, vaddq_u64(x, base)));
        }
        (Some(whole), None) if values.scale == 1 => {
            let by = Quotient::by(alp.exponent);
            change_with(values, whole, |_, x| quotients(by, vaddq_u64(x, base)));
        }
        _ => float::alp_unpack::<true>(alp, values, out),
    }
}

/// NEON form of [`scan::unpack_sums`].
#[target_feature(enable = "neon")]
pub(super) fn unpack_sums(steps: Packed<'_>, start: u64, out: &mut [u64]) {
    unpack(steps.bytes, steps.width, steps.base, steps.scale, out);
    // With two words per register, adding the deltas one after the other is as fast as a parallel sum.
    scan::prefix_sum(start, out);
}

/// NEON form of [`float::alp_unpack_sums`].
#[target_feature(enable = "neon")]
pub(super) fn alp_unpack_sums(alp: Alp, steps: Packed<'_>, start: u64, out: &mut [u64]) {
    unpack_sums(steps, start, out);
    float::alp_decode::<true>(alp, out);
}

/// Computes `Rule::product` of two integers at once.
#[target_feature(enable = "neon")]
#[inline]
fn products(rule: Rule, ints: uint64x2_t) -> uint64x2_t {
    let bits = vaddq_u64(ints, vdupq_n_u64(MAGIC_BITS));
    let d = vsubq_f64(vreinterpretq_f64_u64(bits), vdupq_n_f64(MAGIC));
    let up = vmulq_f64(d, vdupq_n_f64(rule.up));
    vreinterpretq_u64_f64(vmulq_f64(up, vdupq_n_f64(rule.down)))
}

/// Computes `Quotient::of` of two integers at once, by multiplication.
#[target_feature(enable = "neon")]
#[inline]
fn quotients(by: Quotient, ints: uint64x2_t) -> uint64x2_t {
    let moved = vaddq_u64(ints, vdupq_n_u64(LIMIT));
    let kept = vandq_u64(moved, vdupq_n_u64(MANTISSA));
    let bits = vorrq_u64(kept, vdupq_n_u64(MAGIC_BITS & !MANTISSA));
    let d = vsubq_f64(vreinterpretq_f64_u64(bits), vdupq_n_f64(MAGIC));
    let rest = vmulq_f64(d, vdupq_n_f64(by.rest));
    vreinterpretq_u64_f64(vfmaq_f64(rest, d, vdupq_n_f64(by.inverse)))
}
