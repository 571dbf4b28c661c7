//! Double-double arithmetic: a number is the unevaluated sum of two floats, with a precision of about 106 bits.
//!
//! Invariant: if `hi` is not finite, `lo` is zero, and a NaN is `f64::NAN`. So the error term never turns an infinity
//! into NaN, and all processors write the same bits.

/// A double-double number: `hi + lo` with |lo| <= ulp(hi) / 2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dd {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

/// Returns the sum s and the rounding error e with a + b = s + e exactly (Knuth), unless s is not finite.
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let bb = s - a;
    (s, (a - (s - bb)) + (b - bb))
}

/// Like [`two_sum`], for |a| >= |b| or a = 0 (Dekker).
#[inline(always)]
pub(crate) fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// Returns the product p and the rounding error e with a * b = p + e exactly, unless p overflows or e underflows.
#[inline(always)]
pub(crate) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    (p, a.mul_add(b, -p))
}

impl Dd {
    /// Creates a number from a pair of floats; establishes the invariant at the head of this file.
    #[inline(always)]
    pub(crate) fn new(hi: f64, lo: f64) -> Self {
        if !hi.is_finite() {
            return Self {
                hi: if hi.is_nan() { f64::NAN } else { hi },
                lo: 0.0,
            };
        }
        let (s, e) = quick_two_sum(hi, lo);
        if s.is_finite() {
            Self { hi: s, lo: e }
        } else {
            Self { hi: s, lo: 0.0 }
        }
    }

    /// Converts a float to a double-double.
    pub(crate) fn from_f64(x: f64) -> Self {
        Self::new(x, 0.0)
    }

    /// Converts an integer with a relative error of at most 2^-106.
    pub(crate) fn from_i128(x: i128) -> Self {
        let magnitude = Self::from_u128(x.unsigned_abs());
        if x < 0 { magnitude.neg() } else { magnitude }
    }

    /// Converts an integer with a relative error of at most 2^-106.
    pub(crate) fn from_u128(x: u128) -> Self {
        if let Ok(small) = u64::try_from(x) {
            return Self::from_u64(small);
        }
        const HALF: u128 = u64::MAX as u128;
        const TWO_64: f64 = 18_446_744_073_709_551_616.0;
        let (high, low) = ((x >> 64) as u64, (x & HALF) as u64);
        Self::from_u64(high).scale(TWO_64).add(Self::from_u64(low))
    }

    /// Converts an integer exactly.
    pub(crate) fn from_u64(x: u64) -> Self {
        let high = (x >> 32) << 32;
        Self::new(high as f64, (x - high) as f64)
    }

    pub(crate) fn neg(self) -> Self {
        Self {
            hi: -self.hi,
            lo: -self.lo,
        }
    }

    /// Multiplies by `power`, a power of two. The result is exact unless it overflows or underflows.
    pub(crate) fn scale(self, power: f64) -> Self {
        Self::new(self.hi * power, self.lo * power)
    }

    /// Adds with a relative error below 2^-104, even if the operands cancel (the "accurate" sum of Li et al.).
    pub(crate) fn add(self, other: Self) -> Self {
        let (s, e) = two_sum(self.hi, other.hi);
        if !s.is_finite() {
            return Self::new(s, 0.0);
        }
        let (t, f) = two_sum(self.lo, other.lo);
        let (s, e) = quick_two_sum(s, e + t);
        Self::new(s, e + f)
    }

    pub(crate) fn mul(self, other: Self) -> Self {
        let (p, e) = two_product(self.hi, other.hi);
        if !p.is_finite() {
            return Self::new(p, 0.0);
        }
        Self::new(p, e + (self.hi * other.lo + self.lo * other.hi))
    }

    /// Divides by `by`, an integer.
    pub(crate) fn div(self, by: f64) -> Self {
        let first = self.hi / by;
        if !first.is_finite() {
            return Self::new(first, 0.0);
        }
        let (p, e) = two_product(first, by);
        if !p.is_finite() {
            // For very large floats the quotient was rounded up so far that the remainder cannot be computed.
            return Self::new(first, 0.0);
        }
        let rest = self.add(Self::new(p, e).neg());
        let second = rest.hi / by;
        let (p, e) = two_product(second, by);
        let rest = rest.add(Self::new(p, e).neg());
        let (s, e) = quick_two_sum(first, second);
        Self::new(s, e + rest.hi / by)
    }

    /// Divides by `by`, an integer, and rounds to one float. The remainder of the quotient of the high parts is exact.
    pub(crate) fn div_to_f64(self, by: f64) -> f64 {
        let first = self.hi / by;
        if !first.is_finite() {
            return first;
        }
        let (p, e) = two_product(first, by);
        if !p.is_finite() {
            return first;
        }
        first + (((self.hi - p) - e) + self.lo) / by
    }

    /// The float nearest to this number.
    pub(crate) fn to_f64(self) -> f64 {
        self.hi + self.lo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_integers_keep_106_bits() {
        let x = i128::from(i64::MAX) * 12_345;
        let dd = Dd::from_i128(x);
        assert_eq!(dd.hi as i128 + dd.lo as i128, x);
        assert_eq!(Dd::from_i128(-x), dd.neg());
        let third = Dd::from_f64(1.0).div(3.0);
        let one = third.add(third).add(third);
        assert!((one.hi - 1.0).abs() + one.lo.abs() < 1e-31);
        for by in [1.0, 3.0, 7.0, 360.0, 1e9] {
            for x in [x, -x, 1, i128::from(u64::MAX)] {
                let dd = Dd::from_i128(x);
                assert_eq!(dd.div_to_f64(by), dd.div(by).to_f64(), "{x} by {by}");
            }
        }
    }

    #[test]
    fn infinities_stay_infinities() {
        let inf = Dd::from_f64(f64::INFINITY);
        assert_eq!(inf.add(Dd::from_f64(1.0)), inf);
        assert_eq!(inf.mul(inf), inf);
        assert_eq!(inf.div(3.0), inf);
        assert_eq!(inf.div_to_f64(3.0), f64::INFINITY);
        assert!(inf.add(inf.neg()).hi.is_nan());
        let huge = Dd::from_f64(f64::MAX);
        assert_eq!(huge.add(huge), inf);
        for by in [1.0, 3.0, 5.0, 7.0, 11.0, 1e6 + 1.0] {
            assert_eq!(huge.div(by).to_f64(), f64::MAX / by, "by {by}");
            assert_eq!(huge.neg().div_to_f64(by), -f64::MAX / by, "by {by}");
        }
    }
}
