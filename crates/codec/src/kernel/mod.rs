//! The hot loops, compiled in variants for AVX-512, AVX2, NEON, and for processors without them; the variant is chosen
//! once per process. All variants inline the same safe code (`loops`) into functions with different target features, so
//! all give the same bits: Rust never contracts or reorders floating-point operations.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_expand;
#[cfg(target_arch = "x86_64")]
mod avx512_fold;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::loops::dd::Dd;
use crate::loops::float::{self, Alp, AlpScan};
use crate::loops::fold;
use crate::loops::pack::{self, Packed};
use crate::loops::scan::{self, Extent};
use crate::loops::single;

/// The instruction sets for which kernels are compiled on x86-64.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Level {
    Portable = 1,
    Avx2 = 2,
    Avx512 = 3,
}

/// The instruction sets for which kernels are compiled on 64-bit ARM; NEON code may use fused multiply-add.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Level {
    Portable = 1,
    Neon = 2,
}

/// The detected [`Level`] as a number, or 0 before the detection.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static LEVEL: AtomicU8 = AtomicU8::new(0);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl Level {
    #[cfg(target_arch = "x86_64")]
    const ALL: &[Self] = &[Self::Portable, Self::Avx2, Self::Avx512];
    #[cfg(target_arch = "aarch64")]
    const ALL: &[Self] = &[Self::Portable, Self::Neon];

    #[inline]
    fn get() -> Self {
        match Self::ALL.get(usize::from(LEVEL.load(Relaxed)).wrapping_sub(1)) {
            Some(level) => *level,
            None => {
                let level = Self::first();
                LEVEL.store(level as u8, Relaxed);
                level
            }
        }
    }

    #[cfg(not(feature = "levels"))]
    fn first() -> Self {
        Self::detect()
    }

    /// The level that the environment variable names, but at most the best level that the processor has.
    #[cfg(feature = "levels")]
    fn first() -> Self {
        let best = Self::detect();
        match std::env::var(LEVEL_VARIABLE) {
            Ok(asked) => Self::named(&asked, best),
            Err(_) => best,
        }
    }

    #[cfg(feature = "levels")]
    fn named(asked: &str, best: Self) -> Self {
        let is = |level: &&Self| level.name() == asked;
        let Some(level) = Self::ALL.iter().find(is) else {
            let known: Vec<_> = Self::ALL.iter().map(|level| level.name()).collect();
            panic!("{LEVEL_VARIABLE} is {asked:?}, one of {known:?} was expected");
        };
        if *level as u8 > best as u8 {
            return best;
        }
        *level
    }

    #[cfg(feature = "levels")]
    fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[cold]
    fn detect() -> Self {
        use std::is_x86_feature_detected as has;
        if !(has!("avx2") && has!("fma") && has!("bmi2") && has!("popcnt")) {
            Self::Portable
        } else if has!("avx512f") && has!("avx512dq") && has!("avx512vl") && has!("avx512bw") {
            Self::Avx512
        } else {
            Self::Avx2
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[cold]
    fn detect() -> Self {
        if std::arch::is_aarch64_feature_detected!("neon") {
            Self::Neon
        } else {
            Self::Portable
        }
    }
}

/// Environment variable that selects the kernel variant in builds with the feature `levels` (used by tests):
/// `portable`, `avx2`, `avx512` or `neon`. If the processor lacks the variant, the best one that it has is used.
#[cfg(feature = "levels")]
pub const LEVEL_VARIABLE: &str = "TIDALITE_KERNEL";

/// The kernel variant in use: `portable`, `avx2`, `avx512` or `neon`.
///
/// # Panics
/// If the environment variable [`LEVEL_VARIABLE`] has another value.
#[cfg(feature = "levels")]
#[must_use]
pub fn level_name() -> &'static str {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        Level::get().name()
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        "portable"
    }
}

/// Runs `work` with each kernel variant that this processor supports. Tests that run concurrently are affected too,
/// which is harmless: all variants give the same bits.
#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn at_every_level(mut work: impl FnMut(&str)) {
    let best = Level::detect();
    for &level in Level::ALL {
        if level as u8 <= best as u8 {
            LEVEL.store(level as u8, Relaxed);
            work(&format!("{level:?}"));
        }
    }
    LEVEL.store(best as u8, Relaxed);
}

#[cfg(all(
    test,
    feature = "levels",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests {
    use super::Level;

    #[test]
    fn no_level_is_beyond_the_processor() {
        for &best in Level::ALL {
            for &asked in Level::ALL {
                let level = Level::named(asked.name(), best);
                assert_eq!(level as u8, (asked as u8).min(best as u8));
            }
        }
        let unknown = std::panic::catch_unwind(|| Level::named("sse9", Level::Portable));
        assert!(unknown.is_err());
    }
}

/// Runs `work` once, because there is only one kernel variant for this kind of processor.
#[cfg(all(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn at_every_level(mut work: impl FnMut(&str)) {
    work("Portable");
}

/// Reinterprets times as words, in place.
#[must_use]
#[inline]
pub fn words(times: &[i64]) -> &[u64] {
    bytemuck::cast_slice(times)
}

/// Reinterprets times as words, in place.
#[must_use]
#[inline]
pub fn words_mut(times: &mut [i64]) -> &mut [u64] {
    bytemuck::cast_slice_mut(times)
}

/// Reinterprets words as times, in place.
#[must_use]
#[inline]
pub fn times_mut(words: &mut [u64]) -> &mut [i64] {
    bytemuck::cast_slice_mut(words)
}

/// True if the times ascend strictly.
#[must_use]
pub fn is_ascending(times: &[i64]) -> bool {
    ascending(times)
}

/// The smallest and the largest time; `i64::MAX` and `i64::MIN` if there are no times.
#[must_use]
pub fn time_span(times: &[i64]) -> (i64, i64) {
    let Extent { low, high } = extent(words(times));
    (low, high)
}

/// Reinterprets the words of an i64 column as its values, in place.
#[must_use]
#[inline]
pub fn as_integers(words: &[u64]) -> &[i64] {
    bytemuck::cast_slice(words)
}

/// Reinterprets the words of an f64 column as its values, in place.
#[must_use]
#[inline]
pub fn as_floats(words: &[u64]) -> &[f64] {
    bytemuck::cast_slice(words)
}

/// The sum of floats by plain addition in 32 lanes, in an order that is the same on every processor. So the resulting
/// bits are equal on all processors, too, except for NaN payloads. NaN and infinities take part in this sum; the sum in
/// [`Stats`](crate::Stats) leaves NaN out, and is exact to 2^-50.
///
/// # Cost
/// A tenth of the cost of decoding the values, if they are in the L1 cache.
#[must_use]
pub fn sum_floats(values: &[f64]) -> f64 {
    float_sum(values)
}

/// Writes `first`, `first + step`, `first + 2 * step`, ..., with wrapping addition: times with a constant delta.
#[inline]
pub fn fill_steps(first: i64, step: u64, out: &mut [i64]) {
    ramp(first as u64, step, words_mut(out));
}

/// Expands to the first path, or to the second one if the first is absent.
macro_rules! first {
    ($first:path; $second:path) => {
        $first
    };
    (; $second:path) => {
        $second
    };
}

/// Compiles `$fast` for AVX2, AVX-512 and NEON, and `$any` for processors without them. Where the compiler generates
/// poor code, a hand-written version for AVX-512 or NEON replaces `$fast`.
macro_rules! dispatched {
    (
        $(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?, $fast:path, $any:path
        $(, avx512: $avx512:path)? $(, neon: $neon:path)?
    ) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,bmi2,popcnt")]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    $fast($($arg),*)
                }
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2,popcnt")]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    first!($($avx512)?; $fast)($($arg),*)
                }
                let level = Level::get();
                if level == Level::Avx512 {
                    // SAFETY: `detect` has found every processor feature that the called function enables.
                    #[expect(unsafe_code, reason = "calls code for a detected processor")]
                    return unsafe { avx512($($arg),*) };
                }
                if level == Level::Avx2 {
                    // SAFETY: `detect` has found every processor feature that the called function enables.
                    #[expect(unsafe_code, reason = "calls code for a detected processor")]
                    return unsafe { avx2($($arg),*) };
                }
            }
            #[cfg(target_arch = "aarch64")]
            {
                #[target_feature(enable = "neon")]
                fn neon($($arg: $ty),*) $(-> $ret)? {
                    first!($($neon)?; $fast)($($arg),*)
                }
                if Level::get() == Level::Neon {
                    // SAFETY: `detect` has found the processor feature that the called function enables.
                    #[expect(unsafe_code, reason = "calls code for a detected processor")]
                    return unsafe { neon($($arg),*) };
                }
            }
            $any($($arg),*)
        }
    };
}

dispatched!(
    /// See [`pack::unpack`].
    unpack(bytes: &[u8], width: u32, base: u64, scale: u64, out: &mut [u64]),
    pack::unpack, pack::unpack, neon: neon::unpack
);
dispatched!(
    /// See [`pack::pack`].
    pack(values: &[u64], width: u32, base: u64, out: &mut [u8]),
    pack::pack, pack::pack
);
dispatched!(
    /// See [`scan::ramp`].
    ramp(start: u64, step: u64, out: &mut [u64]),
    scan::ramp, scan::ramp
);
dispatched!(
    /// See [`scan::incline`].
    incline(slope: u64, out: &mut [u64]),
    scan::incline, scan::incline
);
dispatched!(
    /// See [`scan::level`].
    level(values: &[u64], slope: u64, out: &mut [u64]) -> Extent,
    scan::level, scan::level
);
dispatched!(
    /// See [`scan::prefix_sum`].
    prefix_sum(start: u64, out: &mut [u64]),
    scan::prefix_sum, scan::prefix_sum, avx512: avx512::prefix_sum
);
dispatched!(
    /// See [`scan::unpack_sums`].
    unpack_sums(steps: Packed<'_>, start: u64, out: &mut [u64]),
    scan::unpack_sums, scan::unpack_sums, avx512: avx512::unpack_sums, neon: neon::unpack_sums
);
dispatched!(
    /// See [`scan::ascending`].
    ascending(times: &[i64]) -> bool,
    scan::ascending, scan::ascending
);
dispatched!(
    /// See [`scan::all_equal`].
    all_equal(values: &[u64]) -> bool,
    scan::all_equal, scan::all_equal
);
dispatched!(
    /// See [`scan::constant_step`].
    constant_step(values: &[u64]) -> bool,
    scan::constant_step, scan::constant_step
);
dispatched!(
    /// See [`scan::sum_floats`].
    float_sum(values: &[f64]) -> f64,
    scan::sum_floats, scan::sum_floats
);
dispatched!(
    /// See [`scan::extent`].
    extent(values: &[u64]) -> Extent,
    scan::extent, scan::extent
);
dispatched!(
    /// See [`scan::deltas`].
    deltas(values: &[u64], out: &mut [u64]) -> Extent,
    scan::deltas, scan::deltas
);
dispatched!(
    /// See [`scan::all_divisible`].
    all_divisible(values: &[u64], base: u64, divisor: u64) -> bool,
    scan::all_divisible, scan::all_divisible
);
dispatched!(
    /// See [`scan::divide`].
    divide(values: &mut [u64], base: u64, divisor: u64),
    scan::divide, scan::divide
);
dispatched!(
    /// See [`scan::count_outside`].
    count_outside(values: &[u64], base: u64, reach: u64) -> usize,
    scan::count_outside, scan::count_outside
);
dispatched!(
    /// See [`scan::tiles_outside`].
    tiles_outside(values: &[u64], base: u64, reach: u64) -> u64,
    scan::tiles_outside, scan::tiles_outside
);
dispatched!(
    /// See [`scan::extent_within`].
    extent_within(values: &[u64], base: u64, reach: u64) -> [u64; 2],
    scan::extent_within, scan::extent_within
);
dispatched!(
    /// See [`float::alp_encode`].
    alp_encode(alp: Alp, values: &[u64], ints: &mut [u64], bad: &mut [u16]) -> AlpScan,
    float::alp_encode, float::alp_encode
);
dispatched!(
    /// See [`float::alp_decode`].
    alp_decode(alp: Alp, words: &mut [u64]),
    float::alp_decode::<true>, float::alp_decode::<false>
);
dispatched!(
    /// See [`float::alp_sums`].
    alp_sums(alp: Alp, start: u64, words: &mut [u64]),
    float::alp_sums::<true>, float::alp_sums::<false>, avx512: avx512::alp_sums
);
dispatched!(
    /// See [`float::alp_unpack_sums`].
    alp_unpack_sums(alp: Alp, steps: Packed<'_>, start: u64, out: &mut [u64]),
    float::alp_unpack_sums::<true>, float::alp_unpack_sums::<false>,
    avx512: avx512::alp_unpack_sums, neon: neon::alp_unpack_sums
);
dispatched!(
    /// See [`float::alp_ramp`].
    alp_ramp(alp: Alp, start: u64, step: u64, out: &mut [u64]),
    float::alp_ramp::<true>, float::alp_ramp::<false>
);
dispatched!(
    /// See [`float::alp_unpack`].
    alp_unpack(alp: Alp, values: Packed<'_>, out: &mut [u64]),
    float::alp_unpack::<true>, float::alp_unpack::<false>, neon: neon::alp_unpack
);
dispatched!(
    /// See [`float::ordered`].
    ordered(words: &mut [u64], zeros: u32),
    float::ordered, float::ordered
);
dispatched!(
    /// See [`float::unordered`].
    unordered(words: &mut [u64], zeros: u32),
    float::unordered, float::unordered
);
dispatched!(
    /// See [`single::round`].
    round_to_single(words: &mut [u64]),
    single::round, single::round
);
dispatched!(
    /// See [`single::all_single`].
    all_single(words: &[u64]) -> bool,
    single::all_single, single::all_single
);
dispatched!(
    /// See [`single::shorten`].
    shorten(words: &[u64], digits: usize, out: &mut [u64]) -> usize,
    single::shorten, single::shorten
);
dispatched!(
    /// See [`pack::unpack_onto`].
    unpack_onto(values: Packed<'_>, out: &mut [u64]),
    pack::unpack_onto, pack::unpack_onto, neon: neon::unpack_onto
);
dispatched!(
    /// See [`pack::join`].
    join(bytes: &[u8], width: u32, zeros: u32, out: &mut [u64]),
    pack::join, pack::join, neon: neon::join
);
dispatched!(
    /// See [`pack::unpack_lane`].
    unpack_lane(lane: &[u8], width: u32, base: u64, scale: u64, out: &mut [u64]),
    pack::unpack_lane, pack::unpack_lane
);
dispatched!(
    /// See [`scan::expand`].
    expand(bitmap: &[u8], values: &[u64], out: &mut [u64]),
    scan::expand, scan::expand, avx512: avx512_expand::expand
);
dispatched!(
    /// See [`scan::from_distances`].
    from_distances(base: u64, scale: u64, words: &mut [u64]),
    scan::from_distances, scan::from_distances
);
dispatched!(
    /// See [`scan::greatest`].
    greatest(values: &[u64]) -> u64,
    scan::greatest, scan::greatest
);
dispatched!(
    /// See [`scan::repeat`].
    repeat(words: &[u64], lengths: &[u64], out: &mut [u64]) -> bool,
    scan::repeat, scan::repeat
);
dispatched!(
    /// See [`scan::or`].
    or(values: &[u64]) -> u64,
    scan::or, scan::or
);
dispatched!(
    /// See [`fold::float_lanes`].
    float_lanes(values: &[u64]) -> fold::Lanes,
    fold::float_lanes::<true>, fold::float_lanes::<false>, avx512: avx512_fold::float_lanes
);
dispatched!(
    /// See [`fold::float_total`].
    float_total(values: &[u64]) -> fold::Total,
    fold::float_total, fold::float_total, avx512: avx512_fold::float_total
);
dispatched!(
    /// See [`fold::float_reach`].
    float_reach(values: &[u64]) -> fold::Reach,
    fold::float_reach, fold::float_reach, avx512: avx512_fold::float_reach
);
dispatched!(
    /// See [`fold::sums_of_halves`].
    sums_of_halves(values: &[u64], flip: u64) -> [u64; 2],
    fold::sums_of_halves, fold::sums_of_halves
);
dispatched!(
    /// See [`fold::key_extent`].
    key_extent(values: &[u64], flip: u64) -> Extent,
    fold::key_extent, fold::key_extent
);
dispatched!(
    /// See [`fold::gather`].
    gather(lanes: &fold::Lanes) -> [Dd; 2],
    fold::gather, fold::gather, avx512: avx512_fold::gather
);
dispatched!(
    /// See [`fold::integer_pass`].
    integer_pass(values: &[u64], flip: u64) -> fold::IntegerPass,
    fold::integer_pass, fold::integer_pass
);
dispatched!(
    /// See [`fold::positions`].
    positions(values: &[u64], words: [u64; 2]) -> [usize; 2],
    fold::positions, fold::positions, avx512: avx512_fold::positions
);
dispatched!(
    /// See [`fold::position`].
    position(values: &[u64], word: u64) -> Option<usize>,
    fold::position, fold::position
);
