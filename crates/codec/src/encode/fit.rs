//! Chooses base, unit and width for the integers of a vector, and the outliers that are stored separately.
//!
//! A fit has a window `base ..= base + (2^width - 1) * scale`; each value outside the window costs extra bits. The
//! window that contains all values is always tried. If a sample of the values spans a much smaller range than all
//! values, narrower windows around the middle of the sample are tried, too.

use crate::kernel;
use crate::loops::pack::{packed_bytes, units_bytes};
use crate::loops::scan::{Extent, bits};
use crate::places;

/// A window of integers, and the cost of the vector if it is encoded with this window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) base: u64,
    pub(crate) scale: u64,
    pub(crate) width: u32,
    /// Number of values outside the window.
    pub(crate) outliers: usize,
    /// Length of the payload in bits.
    pub(crate) bits: u64,
}

/// Number of bits by which the cost of an outlier exceeds its size, because decoding it takes time.
const CHARGE: u64 = 2;

/// A window that leaves values outside must save at least 1/`SAVING` of the space.
const SAVING: u64 = 12;

/// Minimum number of values for which narrower windows are searched; for fewer the search takes more time than the
/// space is worth.
const ROWS_MIN: usize = 20;

/// Number of values in the sample that a search examines.
const SAMPLE: usize = 96;

impl Fit {
    /// The largest distance from the base that the window covers.
    pub(crate) fn reach(&self) -> u64 {
        if self.width == 0 {
            0
        } else {
            (u64::MAX >> (64 - self.width)).saturating_mul(self.scale)
        }
    }

    /// Finds the best window for one or more values whose least and greatest value are in `extent`.
    pub(crate) fn find(values: &[u64], extent: Extent) -> Self {
        let all = Self::all(values.len(), extent, unit(values, extent));
        if all.width == 0 || values.len() < ROWS_MIN {
            return all;
        }
        all.narrowed(values, extent)
    }

    /// The window that contains all values.
    fn all(rows: usize, extent: Extent, scale: u64) -> Self {
        let all = Self {
            base: extent.low as u64,
            scale,
            width: bits(extent.span() / scale),
            outliers: 0,
            bits: 0,
        };
        all.priced(rows, extent)
    }

    /// Reuses this window, which was found for other values, without a search. Returns the cheaper of this window and
    /// the window of all values; `None` if the unit of this window does not divide the given values.
    pub(crate) fn again(mut self, values: &[u64], extent: Extent) -> Option<Self> {
        if self.scale > 1 {
            let low = extent.low as u64;
            let fits = extent.span() <= i64::MAX as u64
                && extent.span().is_multiple_of(self.scale)
                && kernel::all_divisible(values, low, self.scale);
            if !fits {
                return None;
            }
        }
        let all = Self::all(values.len(), extent, self.scale);
        if self.outliers == 0 || self.width >= all.width {
            return Some(all);
        }
        if self.scale > 1 {
            // Values outside the window are stored as a signed number of units from the base, so each distance must be
            // a multiple of the unit.
            let base = self.base as i64;
            let (low, high) = (extent.low.checked_sub(base), extent.high.checked_sub(base));
            if high.is_none() || low.is_none_or(|low| low % self.scale as i64 != 0) {
                return Some(all);
            }
        }
        self.outliers = kernel::count_outside(values, self.base, self.reach());
        let same = self.priced(values.len(), extent);
        Some(if same.bits < all.bits - all.bits / SAVING {
            same
        } else {
            all
        })
    }

    /// Computes the cost of this window.
    fn priced(mut self, rows: usize, extent: Extent) -> Self {
        self.bits = 8 * packed_bytes(rows, self.width) as u64
            + if self.scale == 1 { 0 } else { 64 }
            + self.outlier_bits(rows, self.outliers, extent);
        self
    }

    /// Size in bits of this many values outside the window: their row numbers, and their distances from the base. The
    /// widest distance determines the width of all, which includes a sign bit if the base is not the smallest value.
    fn outlier_bits(&self, rows: usize, outliers: usize, extent: Extent) -> u64 {
        if outliers == 0 {
            return 0;
        }
        // A window found for other values may begin outside the extent of these.
        let base = i128::from(self.base as i64);
        let distance = |from: i128, to: i128| (to - from).max(0) as u64 / self.scale;
        let below = distance(extent.low.into(), base);
        let above = distance(base, extent.high.into());
        let width = match below {
            0 => bits(above).max(1),
            _ => (bits(below.max(above)) + 1).min(64),
        };
        8 * (places::bytes(rows, outliers) + units_bytes(outliers, width)) as u64
            + CHARGE * outliers as u64
    }

    fn narrowed(self, values: &[u64], extent: Extent) -> Self {
        let mut sample = [0i64; SAMPLE];
        let count = sample.len().min(values.len());
        for (i, place) in sample[..count].iter_mut().enumerate() {
            let (from, to) = (i * values.len() / count, (i + 1) * values.len() / count);
            *place = values[from + scattered(i) % (to - from)] as i64;
        }
        let sample = &mut sample[..count];
        sample.sort_unstable();
        // The two most promising windows of different widths: estimated bits, width, and the ends of the values of the
        // sample that are in the window.
        let mut best = [(self.bits - self.bits / SAVING, 64, [0; 2]); 2];
        for width in 0..self.width {
            let trial = Self { width, ..self };
            if 8 * packed_bytes(values.len(), width) as u64 >= best[1].0 {
                break;
            }
            let (covered, ends) = fullest(sample, trial.reach());
            // A sample without outliers does not mean that there are none among the other values, so at least a few
            // outliers are assumed.
            let dropped = 4 * (count - covered) + 1;
            let outside = (dropped * values.len() / (4 * count)).max(1);
            let trial = Self {
                base: ends[0] as u64,
                outliers: outside,
                ..trial
            };
            let estimate = trial.priced(values.len(), extent).bits;
            if estimate < best[0].0 {
                best[1] = best[0];
                best[0] = (estimate, width, ends);
            } else if estimate < best[1].0 {
                best[1] = (estimate, width, ends);
            }
        }
        let mut chosen = self;
        let mut most = self.bits - self.bits / SAVING;
        for (_, width, ends) in best {
            if width < self.width {
                let fit = self.window(values, extent, width, ends);
                if fit.bits < most {
                    most = fit.bits;
                    chosen = fit;
                }
            }
        }
        chosen
    }

    /// A window of `width` bits around the values `ends`, kept inside the extent as far as possible.
    fn window(self, values: &[u64], extent: Extent, width: u32, ends: [i64; 2]) -> Self {
        let mut fit = Self { width, ..self };
        let reach = fit.reach();
        // Distances from the lowest value are computed as unsigned 64-bit numbers, which cannot wrap.
        let low = (ends[0] as u64).wrapping_sub(extent.low as u64);
        let high = (ends[1] as u64).wrapping_sub(extent.low as u64);
        let slack = reach.saturating_sub(high - low);
        let offset = low
            .saturating_sub(slack / 2)
            .min(extent.span().saturating_sub(reach));
        fit.base = (extent.low as u64).wrapping_add(offset - offset % self.scale);
        // Every window of this width that contains `ends` lies in this range. If the values in the range are close
        // enough together, a single window contains them all.
        let near = low.saturating_sub(slack);
        let near_reach = high.saturating_add(slack).min(extent.span()) - near;
        let from = (extent.low as u64).wrapping_add(near);
        let within = kernel::extent_within(values, from, near_reach);
        if within[1] - within[0] <= reach {
            fit.base = from.wrapping_add(within[0]);
        }
        fit.outliers = kernel::count_outside(values, fit.base, reach);
        fit.priced(values.len(), extent)
    }
}

/// A pseudo-random number for `i`, which is the same at every call.
pub(crate) fn scattered(i: usize) -> usize {
    ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & 0xffff) as usize
}

/// The window with this reach that contains most of the sorted values: their number, the least and the greatest.
fn fullest(sorted: &[i64], reach: u64) -> (usize, [i64; 2]) {
    let mut best = (0, [0; 2]);
    let mut from = 0;
    for (i, &high) in sorted.iter().enumerate() {
        while (high as u64).wrapping_sub(sorted[from] as u64) > reach {
            from += 1;
        }
        let covered = i + 1 - from;
        if covered > best.0 {
            best = (covered, [sorted[from], high]);
        }
    }
    best
}

/// The greatest common divisor of all distances between the values. Returns 1 if the span of the values needs more than
/// 63 bits, because a distance between two values would then not fit a signed number.
fn unit(values: &[u64], extent: Extent) -> u64 {
    /// Number of values whose distances are tested one by one. If their common divisor is 1, the other values need no
    /// test; otherwise one call of `kernel::all_divisible` tests whether the divisor also divides all other distances.
    const AHEAD: usize = 48;
    if extent.span() == 0 || extent.span() > i64::MAX as u64 {
        return 1;
    }
    let base = extent.low as u64;
    let (ahead, rest) = values.split_at(AHEAD.min(values.len()));
    let mut unit = extent.span();
    for &value in ahead {
        unit = common_divisor(unit, value.wrapping_sub(base));
        if unit == 1 {
            return 1;
        }
    }
    if kernel::all_divisible(rest, base, unit) {
        return unit;
    }
    for &value in rest {
        unit = common_divisor(unit, value.wrapping_sub(base));
        if unit == 1 {
            break;
        }
    }
    unit
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(values: &[u64]) -> Fit {
        Fit::find(values, crate::loops::scan::extent(values))
    }

    #[test]
    fn a_unit_is_found() {
        let values: Vec<u64> = (0..1024).map(|i| 7 + (i * i % 97) * 250).collect();
        let fit = find(&values);
        assert_eq!((fit.base, fit.scale, fit.width), (7, 250, 7));
        assert_eq!(find(&[0, i64::MIN as u64, 1]).width, 64);
        assert_eq!(find(&[5; 3]).width, 0);
    }

    #[test]
    fn a_window_that_begins_below_all_values_is_used_again() {
        let mut values: Vec<u64> = (0..1024).map(|i| i * 37 % 16).collect();
        values[7] = 1_000_000;
        let first = find(&values);
        assert_eq!((first.base, first.outliers), (0, 1));
        for value in &mut values {
            *value = (*value).max(1);
        }
        let again = first.again(&values, crate::loops::scan::extent(&values));
        assert_eq!(again, Some(first));
    }

    #[test]
    fn outliers_on_both_sides_are_left_out() {
        let mut values: Vec<u64> = (0..1024).map(|i| 10_000 + i * 37 % 256).collect();
        values[100] = 0;
        values[900] = 1 << 40;
        values[901] = u64::MAX;
        let fit = find(&values);
        assert!(fit.width <= 9 && fit.outliers == 3, "{fit:?}");
    }
}
