//! Percentiles of values: exact up to [`EXACT_MAX`] values, or [`KEPT_MAX`] in windows that are kept; estimated beyond.
//!
//! Beyond that number the values go into a t-digest (T. Dunning and O. Ertl, "Computing Extremely Accurate Quantiles
//! Using t-Digests", 2019), which keeps clusters that are small near the ends and larger in the middle. A percentile is
//! then the value of a rank that is off by about q (1 - q) / 100 of the rows at most; minimum and maximum stay exact.
//!
//! Invariants
//! 1. All values are in `exact`, or all are in the digest and the two counts of infinite ones.
//! 2. No value is NaN.

use datasketches::tdigest::TDigestMut;

/// Number of values up to which the percentiles of one window are exact: a value for each second of a day, 0.8 MB. It
/// takes a sixth of the time of the digest.
const EXACT_MAX: usize = 100_000;

/// Number of exact values in a window that is kept for merging, because then there are many of them: 128 KiB.
const KEPT_MAX: usize = 16_384;

/// Compression of the t-digest: about 1,000 clusters, 16 KiB.
const COMPRESSION: u16 = 500;

/// Values whose percentiles are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quantiles {
    exact: Vec<f64>,
    digest: Option<Box<Digest>>,
}

#[derive(Clone, Debug)]
struct Digest {
    /// The finite values.
    sketch: TDigestMut,
    below: u64,
    above: u64,
}

impl Digest {
    fn add(&mut self, value: f64) {
        match value {
            f64::NEG_INFINITY => self.below += 1,
            f64::INFINITY => self.above += 1,
            _ => self.sketch.update(value),
        }
    }
}

impl Quantiles {
    pub(super) fn extend(&mut self, values: &[f64]) {
        if self.digest.is_none() && self.exact.len() + values.len() <= EXACT_MAX {
            self.exact.extend_from_slice(values);
            return;
        }
        let digest = self.digest();
        for &value in values {
            digest.add(value);
        }
    }

    /// Returns the digest; if there is none yet, creates it and moves all values into it.
    fn digest(&mut self) -> &mut Digest {
        let exact = &mut self.exact;
        self.digest.get_or_insert_with(|| {
            let mut digest = Digest {
                sketch: TDigestMut::new(COMPRESSION).unwrap_or_default(),
                below: 0,
                above: 0,
            };
            for value in std::mem::take(exact) {
                digest.add(value);
            }
            Box::new(digest)
        })
    }

    /// Limits the memory of a window that is kept.
    pub(super) fn keep(&mut self) {
        if self.exact.len() > KEPT_MAX {
            self.digest();
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        match &other.digest {
            None => self.extend(&other.exact),
            Some(theirs) => {
                let own = self.digest();
                own.sketch.merge(&theirs.sketch);
                own.below += theirs.below;
                own.above += theirs.above;
            }
        }
    }

    /// The value at `percent` (0 to 100) of the ranks, interpolated linearly between neighbouring values: the default
    /// of numpy and pandas, `quantile_cont` of SQL. `None` without values.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let part = percent / 100.0;
        match &self.digest {
            Some(digest) => digest.quantile(part),
            None => exact(&mut self.exact.clone(), part),
        }
    }
}

impl Digest {
    fn quantile(&self, part: f64) -> Option<f64> {
        let finite = self.sketch.total_weight();
        let last = (finite + self.below + self.above - 1) as f64;
        let rank = part * last;
        if rank < self.below as f64 {
            return Some(f64::NEG_INFINITY);
        }
        if last - rank < self.above as f64 {
            return Some(f64::INFINITY);
        }
        let among = (rank - self.below as f64) / (finite - 1).max(1) as f64;
        let mut sketch = self.sketch.clone();
        sketch.quantile(among.clamp(0.0, 1.0)).ok().flatten()
    }
}

/// The value at this part of the ranks; reorders the values.
fn exact(values: &mut [f64], part: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let rank = part * last as f64;
    let below = (rank.floor() as usize).min(last);
    let (_, &mut low, rest) = values.select_nth_unstable_by(below, f64::total_cmp);
    let high = rest.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    let weight = rank - below as f64;
    // Between equal values nothing is computed: the difference of two infinite ones would be NaN.
    if weight == 0.0 || low == high {
        return Some(low);
    }
    Some(low * (1.0 - weight) + high * weight)
}

/// Compares the values and digests, on which percentiles depend.
impl PartialEq for Quantiles {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |digest: &Option<Box<Digest>>| {
            let digest = digest.as_deref()?;
            Some((
                digest.sketch.clone().serialize(),
                digest.below,
                digest.above,
            ))
        };
        self.exact == other.exact && bytes(&self.digest) == bytes(&other.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Quantiles {
        let mut all = Quantiles::default();
        all.extend(values);
        all
    }

    #[test]
    fn few_values_are_exact() {
        tidalite_testkit::watch();
        assert_eq!(of(&[]).percentile(50.0), None);
        assert_eq!(of(&[7.0]).percentile(99.0), Some(7.0));
        // numpy.percentile([3, 1, 2, 10], [0, 25, 50, 90, 100])
        let all = of(&[3.0, 1.0, 2.0, 10.0]);
        let percents = [0.0, 25.0, 50.0, 90.0, 100.0];
        let found = percents.map(|percent| all.percentile(percent));
        let expected = [1.0, 1.75, 2.5, 7.9, 10.0];
        for (found, expected) in found.into_iter().zip(expected) {
            let found = found.unwrap_or(f64::NAN);
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn infinite_values_have_ranks() {
        tidalite_testkit::watch();
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        let few = of(&[high, 1.0, low, high]);
        assert_eq!(few.percentile(0.0), Some(low));
        assert_eq!(few.percentile(100.0), Some(high));
        assert_eq!(few.percentile(90.0), Some(high));
        let mut many = of(&vec![low; 10_000]);
        many.extend(&vec![5.0; 20_000]);
        many.extend(&vec![high; 10_000]);
        many.keep();
        let found = [10.0, 50.0, 90.0].map(|percent| many.percentile(percent));
        assert_eq!(found, [Some(low), Some(5.0), Some(high)]);
    }

    #[test]
    fn many_values_are_close_in_rank() {
        tidalite_testkit::watch();
        // Ranks and values coincide, in a scrambled order; parts are merged.
        const N: u64 = 200_003;
        let value = |i: u64| (i * 77_773 % N) as f64;
        let mut all = Quantiles::default();
        for part in 0..4 {
            let rows: Vec<f64> = (0..N).filter(|i| i % 4 == part).map(value).collect();
            let mut own = Quantiles::default();
            for some in rows.chunks(1000) {
                own.extend(some);
            }
            own.keep();
            all.merge(&own);
        }
        for percent in [0.0, 0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let q = percent / 100.0;
            let found = all.percentile(percent).unwrap_or(f64::NAN);
            let off = (found - q * (N - 1) as f64).abs() / N as f64;
            let allowed = q * (1.0 - q) / 100.0 + 1e-5;
            assert!(
                off <= allowed,
                "{percent}: {found}, off {off}, allowed {allowed}"
            );
        }
    }
}
