//! Chooses a layout for integers (near a base, by deltas, or, for times, near a line) and remembers the last choice.
//!
//! A search evaluates both values and deltas, each with outliers, and takes 3 ns per value. The layout that it found is
//! tried first for the next vector, in passes that take a tenth of that time, and is kept while the number of bits
//! stays about equal.

use crate::encode::fit::{Fit, scattered};
use crate::kernel;
use crate::loops::scan::Extent;
use crate::loops::slope;

/// A layout of integers: near a base, or by deltas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) fit: Fit,
    pub(crate) delta: bool,
}

/// Which layout is chosen if values and deltas take nearly the same space.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preference {
    Smallest,
    /// Prefers values near a base. Deltas are slower to decode, so they must save an eighth of the space to be chosen.
    Bases,
}

/// The layout that the last search found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayoutMemory {
    /// Number of vectors since the last search for a layout; 0 if there has been no search yet.
    age: u8,
    delta: bool,
    /// The window of the layout, and its cost in bits.
    fit: Fit,
    /// Number of rows of the vector for which the last search ran.
    rows: u16,
    /// Slope of the line near which the times lie; `fit` then applies to the distances from the line. 0 if the layout
    /// is no line.
    slope: u64,
}

impl LayoutMemory {
    /// Number of vectors after which a new search runs, because the data may have become simpler.
    const AGE_MAX: u8 = 32;

    /// Maximum number of deltas that may differ from the common delta without a new search. The vector of series ids in
    /// a block of a run has few such deltas.
    const JUMPS_FEW: usize = 8;

    /// Minimum number of rows of a vector whose layout is remembered; the cost of a shorter vector does not predict the
    /// cost of others.
    const ROWS_MIN: usize = 128;

    /// The slope of the line near which the times of the last vectors lay. `Some(None)`: the times do not lie near a
    /// line, and no new search is due. `None`: unknown, so the caller must search.
    pub(crate) fn line(&self) -> Option<Option<u64>> {
        match self.slope {
            0 if self.age == 0 || self.age >= Self::AGE_MAX => None,
            0 => Some(None),
            slope => Some(Some(slope)),
        }
    }

    /// Chooses between values and deltas, and writes the deltas to `steps`. Requires at least two values.
    pub(crate) fn lay_out(
        &mut self,
        ints: &[u64],
        steps: &mut [u64],
        preference: Preference,
    ) -> Layout {
        let step_extent = kernel::deltas(ints, steps);
        if step_extent.span() == 0 {
            let fit = Fit::find(steps, step_extent);
            return Layout { fit, delta: true };
        }
        if let Some(layout) = self.again(ints, steps, step_extent) {
            return layout;
        }
        let layout = search(ints, steps, step_extent, preference);
        if ints.len() >= Self::ROWS_MIN {
            *self = Self {
                age: 1,
                delta: layout.delta,
                fit: layout.fit,
                rows: ints.len() as u16,
                slope: 0,
            };
        }
        layout
    }

    /// Like `lay_out`, for times, which may lie near a line. Returns the slope of the line, or 0 if the layout is a
    /// layout of `lay_out`. If there is a slope, `rest` receives the distances from the line, to which the layout
    /// applies. Requires at least two times.
    pub(crate) fn lay_out_times(
        &mut self,
        times: &[u64],
        steps: &mut [u64],
        rest: &mut [u64],
    ) -> (Layout, u64) {
        if self.slope != 0 {
            if self.age < Self::AGE_MAX {
                let extent = kernel::level(times, self.slope, rest);
                let fit = self.fit.again(rest, extent);
                if let Some(fit) = fit.filter(|fit| self.keeps(fit.bits, times.len())) {
                    self.age += 1;
                    return (Layout { fit, delta: false }, self.slope);
                }
            }
            // The remembered layout applies only to distances from the line, so it is not valid without the slope.
            self.age = 0;
        }
        let by_steps = self.lay_out(times, steps, Preference::Smallest);
        // The line was searched together with the remembered layout; if that layout was only kept, searching a line
        // again is useless.
        let searched = self.age <= 1 && times.len() >= Self::ROWS_MIN;
        if !searched || !by_steps.delta {
            return (by_steps, 0);
        }
        let Some(slope) = slope::of(times, by_steps.fit.scale) else {
            return (by_steps, 0);
        };
        let extent = kernel::level(times, slope, rest);
        let fit = Fit::find(rest, extent);
        if fit.bits + slope::BITS >= by_steps.fit.bits {
            return (by_steps, 0);
        }
        *self = Self {
            age: 1,
            delta: false,
            fit,
            rows: times.len() as u16,
            slope,
        };
        (Layout { fit, delta: false }, slope)
    }

    /// The remembered layout, if it is recent and would cost about as much as when it was found.
    fn again(&mut self, ints: &[u64], steps: &[u64], step_extent: Extent) -> Option<Layout> {
        if self.age == 0 || self.age >= Self::AGE_MAX {
            return None;
        }
        let fit = if self.delta {
            self.fit.again(steps, step_extent)
        } else {
            let extent = kernel::extent(ints);
            self.fit.again(ints, extent)
        }?;
        // If only a few deltas differ from the common delta, they take so few bits that their number may vary.
        if fit.width == 0 && self.fit.width == 0 && self.delta && fit.outliers <= Self::JUMPS_FEW {
            self.age += 1;
            return Some(Layout { fit, delta: true });
        }
        if !self.keeps(fit.bits, ints.len()) {
            return None;
        }
        self.age += 1;
        let delta = self.delta;
        Some(Layout { fit, delta })
    }

    /// True if a cost of `bits` is close to the cost that the last search found.
    fn keeps(&self, bits: u64, rows: usize) -> bool {
        // Both costs are scaled to 2^20 rows. A much lower cost also triggers a search, because the data has changed.
        let found = (bits << 20) / rows as u64;
        let promised = (self.fit.bits << 20) / u64::from(self.rows);
        found <= promised + promised / 16 && found >= promised - promised / 4
    }
}

/// Finds the best layout for values whose deltas are not constant.
fn search(ints: &[u64], steps: &[u64], step_extent: Extent, preference: Preference) -> Layout {
    if preference == Preference::Smallest && step_extent.low >= 0 {
        // If the values ascend, two deltas cannot differ by more than the first and the last value do, so only deltas
        // are tried.
        let fit = Fit::find(steps, step_extent);
        return Layout { fit, delta: true };
    }
    let extent = kernel::extent(ints);
    let near = Fit::find(ints, extent);
    // If deltas spread as far as values, they are evaluated only if a few deltas cause the spread: in values that
    // change now and then, in a counter that restarts, or where another series begins in a block of a run.
    let spread = step_extent.span() / 2 >= extent.span() / 2;
    if preference == Preference::Bases && spread && !mostly_close(steps, extent.span()) {
        return Layout {
            fit: near,
            delta: false,
        };
    }
    let step = Fit::find(steps, step_extent);
    let delta = match preference {
        Preference::Smallest => step.bits < near.bits,
        Preference::Bases => step.bits + step.bits / 8 < near.bits,
    };
    let fit = if delta { step } else { near };
    Layout { fit, delta }
}

/// True if most deltas of a small sample are equal, or closer together than an eighth of the spread of the values.
fn mostly_close(steps: &[u64], spread: u64) -> bool {
    const SAMPLE: usize = 9;
    /// Number of values dropped at each end of the sorted sample, because a value there may be a jump.
    const ENDS: usize = 1;
    let mut sample = [0i64; SAMPLE];
    for (i, place) in sample.iter_mut().enumerate() {
        *place = steps[scattered(i) % steps.len()] as i64;
    }
    sample.sort_unstable();
    let middle = sample[SAMPLE / 2];
    if sample.iter().filter(|&&step| step == middle).count() >= SAMPLE / 2 {
        return true;
    }
    let most = (sample[SAMPLE - 1 - ENDS] as u64).wrapping_sub(sample[ENDS] as u64);
    most < spread / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Rng, few};

    fn laid(layouts: &mut LayoutMemory, values: &[u64]) -> Layout {
        layouts.lay_out(values, &mut vec![0; values.len()], Preference::Smallest)
    }

    /// Creates times whose deltas are a second plus up to a millisecond, in units of `unit`, with occasional gaps.
    fn times(rng: &mut Rng, unit: u64, gaps: usize) -> Vec<u64> {
        let mut at = rng.next() >> 20;
        let mut values: Vec<u64> = (0..1024)
            .map(|_| {
                at += (1_000_000 + rng.below(1000)) * unit;
                at
            })
            .collect();
        for _ in 0..gaps {
            let from = 1 + rng.below(1023) as usize;
            let gap = (1 + rng.below(1 << 30)) * unit;
            values[from..].iter_mut().for_each(|value| *value += gap);
        }
        values
    }

    #[test]
    fn a_remembered_layout_costs_as_few_bits_as_a_search() {
        let mut rng = Rng(5);
        for unit in [1, 10, 1000, 60_000_000] {
            for gaps in [0, 5] {
                let mut state = LayoutMemory::default();
                for _ in 0..few(100) {
                    let values = times(&mut rng, unit, gaps);
                    let found = laid(&mut state, &values);
                    let best = laid(&mut LayoutMemory::default(), &values);
                    assert!(found.delta && found.fit.scale == best.fit.scale);
                    let most = best.fit.bits + best.fit.bits / 16;
                    assert!(found.fit.bits <= most, "{found:?} {best:?}");
                }
                assert!(state.age > 0);
            }
        }
    }

    /// Concatenated random walks of a few series, as in a block of a run: the deltas from one series to the next are as
    /// wide as the whole range of values, the other deltas are small.
    #[test]
    fn a_few_wide_steps_do_not_hide_the_small_ones() {
        let mut rng = Rng(8);
        for _ in 0..few(200) {
            let mut values = Vec::new();
            while values.len() < 1024 {
                let mut at = (1 << 30) + rng.below(40_000);
                values.extend((0..400).map(|_| {
                    at += rng.below(101);
                    at -= 50;
                    at
                }));
            }
            values.truncate(1024);
            let mut steps = vec![0; values.len()];
            let found = LayoutMemory::default().lay_out(&values, &mut steps, Preference::Bases);
            assert!(found.delta && found.fit.width == 7, "{found:?}");
        }
        // The deltas of noise spread twice as far as the values, so deltas are not evaluated.
        let noise: Vec<u64> = (0..1024).map(|_| rng.below(1000)).collect();
        let mut steps = vec![0; noise.len()];
        assert!(
            !LayoutMemory::default()
                .lay_out(&noise, &mut steps, Preference::Bases)
                .delta
        );
        let sampled = kernel::deltas(&noise, &mut steps);
        assert!(sampled.span() > 1000 && !mostly_close(&steps, 1000));
    }

    #[test]
    fn an_unsuitable_layout_is_searched_for_again() {
        let mut rng = Rng(6);
        let (coarse, fine) = (times(&mut rng, 1000, 0), times(&mut rng, 7, 0));
        let mut state = LayoutMemory::default();
        assert_eq!(laid(&mut state, &coarse).fit.scale, 1000);
        assert_eq!(laid(&mut state, &coarse).fit.scale, 1000);
        assert_eq!(state.age, 2);
        assert_eq!(laid(&mut state, &fine).fit.scale, 7);
        assert_eq!(state.age, 1);
        // Values with only two distinct deltas, which need far fewer bits than the last search found.
        let simple: Vec<u64> = (0..1024).map(|i| 70_000 * i + i % 2 * 7).collect();
        assert_eq!(laid(&mut state, &simple).fit.width, 1);
        assert_eq!(state.age, 1);
    }

    #[test]
    fn windows_at_the_ends_of_the_range_are_correct() {
        let ends = [0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64];
        let mut rng = Rng(7);
        for _ in 0..few(300) {
            // Any remembered window gives a layout for any values. Other tests check that encoding with it round-trips;
            // this test checks only that there is a layout and that its unit divides the values.
            let fit = Fit {
                base: ends[rng.below(5) as usize].wrapping_add(rng.below(3)),
                scale: [1, 2, 10, 1 << 40, 1 << 62][rng.below(5) as usize],
                width: rng.below(65) as u32,
                outliers: rng.below(2) as usize,
                bits: rng.below(1 << 16),
            };
            let values: Vec<u64> = (0..50)
                .map(|_| ends[rng.below(5) as usize].wrapping_add(rng.below(4)))
                .collect();
            let extent = crate::loops::scan::extent(&values);
            if let Some(found) = fit.again(&values, extent) {
                assert!(crate::loops::scan::all_divisible(
                    &values,
                    extent.low as u64,
                    found.scale
                ));
            }
        }
    }
}
