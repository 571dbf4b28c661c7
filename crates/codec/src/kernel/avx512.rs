//! Prefix sums with AVX-512 intrinsics. The compiler does not generate such code from the loops in scan.rs, because it
//! splits their vectors into single values.
//!
//! Integers and floats are computed as in scan.rs, pack.rs and float.rs, operation by operation, so the results are
//! equal.

use core::arch::x86_64::*;

use crate::loops::float::{Alp, LIMIT, MAGIC, MAGIC_BITS, MANTISSA, Quotient, Rule};
use crate::loops::pack::{self, Packed};
use tidalite_base::limits::VECTOR_ROWS;

/// Number of values in a register.
pub(super) const EIGHT: usize = 8;
/// Number of values in a row of packed lanes of a whole vector.
const LANES: usize = 16;

#[expect(unsafe_code, reason = "loads a whole array into a register")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load<T>(from: &[T; EIGHT]) -> __m512i {
    const { assert!(size_of::<[T; EIGHT]>() == size_of::<__m512i>()) };
    // SAFETY: the array has the 64 bytes that are read, at any alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[expect(unsafe_code, reason = "stores a register as a whole array")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store<T>(to: &mut [T; EIGHT], values: __m512i) {
    const { assert!(size_of::<[T; EIGHT]>() == size_of::<__m512i>()) };
    // SAFETY: the array has the 64 bytes that are written, at any alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), values) }
}

/// Loads the first eight words. If there are fewer (at least one), the other lanes of the register are taken from
/// `fill`. (A plain masked load that faults is slow on these processors.)
#[expect(unsafe_code, reason = "loads a part of a register")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load_some(from: &[u64], fill: __m512i) -> __m512i {
    let there = (1u32 << from.len().min(EIGHT)) - 1;
    // SAFETY: only the words in the mask are read; these words exist, and any alignment is allowed.
    unsafe { _mm512_mask_loadu_epi64(fill, there as u8, from.as_ptr().cast()) }
}

/// Computes the prefix sums of eight values.
#[target_feature(enable = "avx512f")]
#[inline]
fn sums_of(ones: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let twos = _mm512_add_epi64(ones, _mm512_alignr_epi64::<7>(ones, zero));
    let fours = _mm512_add_epi64(twos, _mm512_alignr_epi64::<6>(twos, zero));
    _mm512_add_epi64(fours, _mm512_alignr_epi64::<4>(fours, zero))
}

/// Copies the last of eight values to all eight lanes.
#[target_feature(enable = "avx512f")]
#[inline]
fn last_of(values: __m512i) -> __m512i {
    _mm512_permutexvar_epi64(_mm512_set1_epi64(7), values)
}

/// AVX-512 form of `scan::prefix_sum_with`; `one` is the scalar form of `finish`, for the values after the last whole
/// register.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
#[inline]
fn prefix_sum_with(
    start: u64,
    out: &mut [u64],
    finish: impl Fn(__m512i) -> __m512i,
    one: impl Fn(u64) -> u64 + Copy,
) {
    let Some(first) = out.first_mut() else {
        return;
    };
    *first = start;
    let (blocks, rest) = out.as_chunks_mut::<EIGHT>();
    let mut sum = _mm512_setzero_si512();
    for block in blocks {
        let sums = sums_of(load(block));
        store(block, finish(_mm512_add_epi64(sums, sum)));
        sum = _mm512_add_epi64(sum, last_of(sums));
    }
    let mut sum = _mm512_reduce_add_epi64(_mm512_maskz_mov_epi64(1, sum)) as u64;
    for place in rest {
        sum = sum.wrapping_add(*place);
        *place = one(sum);
    }
}

/// Unpacks a whole vector of deltas and sums them in one pass, so that only final values are written to memory.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
#[inline]
fn unpack_sums_with(
    steps: Packed<'_>,
    start: u64,
    out: &mut [u64; VECTOR_ROWS],
    finish: impl Fn(__m512i) -> __m512i,
) {
    let width = steps.width;
    let (words, _) = steps.bytes.as_chunks::<8>();
    let (words, _) = words.as_chunks::<LANES>();
    let mask = _mm512_set1_epi64((u64::MAX >> (64 - width)) as i64);
    let scale = _mm512_set1_epi64(steps.scale as i64);
    // The delta of row 0 is ignored: the sum begins at the value for which the first result is `start`.
    let first = u64::from_le_bytes(words[0][0]) & (u64::MAX >> (64 - width));
    let first = first.wrapping_mul(steps.scale).wrapping_add(steps.base);
    // The part of the sums that comes from `steps.base` does not depend on the data, so it is computed in advance.
    let bases = |from: u64| -> __m512i {
        let mut bases = [0u64; EIGHT];
        for (i, place) in bases.iter_mut().enumerate() {
            *place = steps.base.wrapping_mul(from + i as u64);
        }
        load(&bases)
    };
    let (bases_a, bases_b) = (bases(1), bases(9));
    let bases_row = _mm512_set1_epi64(steps.base.wrapping_mul(LANES as u64) as i64);
    let mut sum = _mm512_set1_epi64(start.wrapping_sub(first) as i64);
    let (rows, _) = out.as_chunks_mut::<LANES>();
    let mut bit = 0;
    for row in rows {
        let (k, shift) = ((bit / 64) as usize, bit % 64);
        bit += width;
        // Shifts the packed values as pack::unpack_row does.
        let right = _mm_cvtsi32_si128(shift as i32);
        let halves = words[k].as_chunks::<EIGHT>().0;
        let mut low = [0, 1].map(|i| _mm512_srl_epi64(load(&halves[i]), right));
        if shift + width > 64 {
            let left = _mm_cvtsi32_si128(64 - shift as i32);
            let halves = words[k + 1].as_chunks::<EIGHT>().0;
            for (low, half) in low.iter_mut().zip(halves) {
                *low = _mm512_or_si512(*low, _mm512_sll_epi64(load(half), left));
            }
        }
        let [a, b] = low.map(|value| sums_of(_mm512_and_si512(value, mask)));
        let (all_a, all_b) = (last_of(a), last_of(b));
        let (mut a, mut b, mut all) = (
            a,
            _mm512_add_epi64(b, all_a),
            _mm512_add_epi64(all_a, all_b),
        );
        if steps.scale != 1 {
            a = _mm512_mullo_epi64(a, scale);
            b = _mm512_mullo_epi64(b, scale);
            all = _mm512_mullo_epi64(all, scale);
        }
        let (out_a, out_b) = row.split_at_mut(EIGHT);
        let (Some(out_a), Some(out_b)) = (out_a.as_mut_array(), out_b.as_mut_array()) else {
            return;
        };
        store(
            out_a,
            finish(_mm512_add_epi64(a, _mm512_add_epi64(sum, bases_a))),
        );
        store(
            out_b,
            finish(_mm512_add_epi64(b, _mm512_add_epi64(sum, bases_b))),
        );
        sum = _mm512_add_epi64(sum, _mm512_add_epi64(all, bases_row));
    }
}

/// Maximum width of deltas for which the sums of four rows fit 16 bits each.
const FEW_BITS: u32 = 10;
/// Number of rows whose sums share a 64-bit word.
const BESIDE: usize = 4;
/// Number of bits for each of the sums that share a word.
const SUM_BITS: u32 = 64 / BESIDE as u32;
const _: () = assert!((BESIDE * LANES) as u64 * ((1 << FEW_BITS) - 1) < 1 << SUM_BITS);

/// Like `unpack_sums_with`, for deltas of at most `FEW_BITS` bits and scale 1: four rows are summed at once, each in a
/// quarter of the words, which takes three quarters of the instructions.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
#[inline]
fn unpack_few_sums_with(
    steps: Packed<'_>,
    start: u64,
    out: &mut [u64; VECTOR_ROWS],
    finish: impl Fn(__m512i) -> __m512i,
) {
    let width = steps.width;
    let (words, _) = steps.bytes.as_chunks::<8>();
    let (words, _) = words.as_chunks::<LANES>();
    let set = |word: u64| _mm512_set1_epi64(word as i64);
    let mask = u64::MAX >> (64 - width);
    let of_row = set(u64::MAX >> (64 - SUM_BITS));
    // The delta of row 0 is ignored: the sum begins at the value for which the first result is `start`.
    let first = (u64::from_le_bytes(words[0][0]) & mask).wrapping_add(steps.base);
    let begin = set(start.wrapping_sub(first));
    // The part of the sums that comes from `steps.base` is known in advance: row i of a half contains i + 1 bases.
    let ones = _mm512_set_epi64(8, 7, 6, 5, 4, 3, 2, 1);
    let bases = _mm512_mullo_epi64(ones, set(steps.base));
    let mut sum_a = _mm512_add_epi64(begin, bases);
    let mut sum_b = _mm512_add_epi64(sum_a, set(steps.base.wrapping_mul(EIGHT as u64)));
    let bases_row = set(steps.base.wrapping_mul(LANES as u64));
    // From row to row, the position of a delta moves up by the width of a delta, and its destination by the width of a
    // sum. The difference is a rotation; a rotation by 64 changes nothing.
    let mut turn = _mm512_setzero_si512();
    let turn_row = set(u64::from(width).wrapping_sub(u64::from(SUM_BITS)));
    let (groups, _) = out.as_chunks_mut::<{ BESIDE * LANES }>();
    let mut bit = 0;
    for group in groups {
        let (mut a, mut b) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for row in 0..BESIDE as u32 {
            let (k, shift) = ((bit / 64) as usize, bit % 64);
            bit += width;
            let place = set(mask << (SUM_BITS * row));
            let halves = words[k].as_chunks::<EIGHT>().0;
            let mut own = [0, 1].map(|i| _mm512_rorv_epi64(load(&halves[i]), turn));
            if shift + width > 64 {
                // The upper bits of the deltas are in the next word, where the same rotation moves them to their
                // destination; the mask selects them.
                let upper = place_of_upper(mask, 64 - shift, SUM_BITS * row);
                let halves = words[k + 1].as_chunks::<EIGHT>().0;
                for (own, half) in own.iter_mut().zip(halves) {
                    let next = _mm512_rorv_epi64(load(half), turn);
                    *own = _mm512_or_si512(
                        _mm512_andnot_si512(upper, *own),
                        _mm512_and_si512(upper, next),
                    );
                }
            }
            turn = _mm512_add_epi64(turn, turn_row);
            a = _mm512_or_si512(a, _mm512_and_si512(own[0], place));
            b = _mm512_or_si512(b, _mm512_and_si512(own[1], place));
        }
        let (a, b) = (sums_of(a), sums_of(b));
        let (all_a, all_b) = (last_of(a), last_of(b));
        let all = _mm512_add_epi64(all_a, all_b);
        // Adds to each of the four rows the sum of the rows before it.
        let before = _mm512_mullo_epi64(all, set(0x0001_0001_0001_0000));
        let mut a = _mm512_add_epi64(a, before);
        let mut b = _mm512_add_epi64(b, _mm512_add_epi64(all_a, before));
        for row in group.as_chunks_mut::<LANES>().0 {
            let (out_a, out_b) = row.split_at_mut(EIGHT);
            let (Some(out_a), Some(out_b)) = (out_a.as_mut_array(), out_b.as_mut_array()) else {
                return;
            };
            let own = |sums| _mm512_and_si512(sums, of_row);
            store(out_a, finish(_mm512_add_epi64(own(a), sum_a)));
            store(out_b, finish(_mm512_add_epi64(own(b), sum_b)));
            a = _mm512_srli_epi64::<SUM_BITS>(a);
            b = _mm512_srli_epi64::<SUM_BITS>(b);
            sum_a = _mm512_add_epi64(sum_a, bases_row);
            sum_b = _mm512_add_epi64(sum_b, bases_row);
        }
        let total = _mm512_srli_epi64::<{ 64 - SUM_BITS }>(_mm512_add_epi64(before, all));
        sum_a = _mm512_add_epi64(sum_a, total);
        sum_b = _mm512_add_epi64(sum_b, total);
    }
}

/// Mask, at the destination of a delta, of the bits above its `lower` lowest bits.
#[target_feature(enable = "avx512f")]
#[inline]
fn place_of_upper(mask: u64, lower: u32, place: u32) -> __m512i {
    _mm512_set1_epi64(((mask >> lower << lower) << place) as i64)
}

/// Unpacks and sums deltas with the faster of the two functions above.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
#[inline]
fn whole_sums_with(
    steps: Packed<'_>,
    start: u64,
    out: &mut [u64; VECTOR_ROWS],
    finish: impl Fn(__m512i) -> __m512i,
) {
    if steps.width <= FEW_BITS && steps.scale == 1 {
        unpack_few_sums_with(steps, start, out, finish);
    } else {
        unpack_sums_with(steps, start, out, finish);
    }
}

/// `Rule::product` of eight integers, each already increased by `MAGIC_BITS`.
#[target_feature(enable = "avx512f")]
#[inline]
fn products(rule: Rule, moved: __m512i) -> __m512i {
    let floats = _mm512_sub_pd(_mm512_castsi512_pd(moved), _mm512_set1_pd(MAGIC));
    let up = _mm512_mul_pd(floats, _mm512_set1_pd(rule.up));
    _mm512_castpd_si512(_mm512_mul_pd(up, _mm512_set1_pd(rule.down)))
}

/// `Quotient::of` of eight integers, each already increased by `LIMIT`, by multiplication.
#[target_feature(enable = "avx512f")]
#[inline]
fn quotients(by: Quotient, moved: __m512i) -> __m512i {
    let kept = _mm512_and_si512(moved, _mm512_set1_epi64(MANTISSA as i64));
    let bits = _mm512_or_si512(kept, _mm512_set1_epi64((MAGIC_BITS & !MANTISSA) as i64));
    let d = _mm512_sub_pd(_mm512_castsi512_pd(bits), _mm512_set1_pd(MAGIC));
    let rest = _mm512_mul_pd(d, _mm512_set1_pd(by.rest));
    _mm512_castpd_si512(_mm512_fmadd_pd(d, _mm512_set1_pd(by.inverse), rest))
}

/// AVX-512 form of [`scan::prefix_sum`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn prefix_sum(start: u64, out: &mut [u64]) {
    prefix_sum_with(start, out, |sums| sums, |sum| sum);
}

/// AVX-512 form of [`crate::loops::float::alp_sums`]. The sums begin with the offset that the rule expects.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn alp_sums(alp: Alp, start: u64, words: &mut [u64]) {
    if let Some(rule) = Rule::of(alp) {
        let finish = |sums| products(rule, sums);
        let one = |sum: u64| rule.product(sum.wrapping_sub(MAGIC_BITS));
        prefix_sum_with(start.wrapping_add(MAGIC_BITS), words, finish, one);
    } else {
        let by = Quotient::by(alp.exponent);
        let finish = |sums| quotients(by, sums);
        let one = |sum: u64| by.word::<true>(sum.wrapping_sub(LIMIT));
        prefix_sum_with(start.wrapping_add(LIMIT), words, finish, one);
    }
}

/// AVX-512 form of [`scan::unpack_sums`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn unpack_sums(steps: Packed<'_>, start: u64, out: &mut [u64]) {
    match out.as_mut_array() {
        Some(whole) => whole_sums_with(steps, start, whole, |sums| sums),
        None => {
            pack::unpack(steps.bytes, steps.width, steps.base, steps.scale, out);
            prefix_sum(start, out);
        }
    }
}

/// AVX-512 form of [`crate::loops::float::alp_unpack_sums`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2")]
pub(super) fn alp_unpack_sums(alp: Alp, steps: Packed<'_>, start: u64, out: &mut [u64]) {
    match (out.as_mut_array(), Rule::of(alp)) {
        (Some(whole), Some(rule)) => {
            let start = start.wrapping_add(MAGIC_BITS);
            whole_sums_with(steps, start, whole, |sums| products(rule, sums));
        }
        (Some(whole), None) => {
            let (by, start) = (Quotient::by(alp.exponent), start.wrapping_add(LIMIT));
            whole_sums_with(steps, start, whole, |sums| quotients(by, sums));
        }
        (None, _) => {
            pack::unpack(steps.bytes, steps.width, steps.base, steps.scale, out);
            alp_sums(alp, start, out);
        }
    }
}
