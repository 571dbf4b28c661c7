//! Finds the line near which times lie if a clock ticks evenly and each row is recorded a little late.
//!
//! The deltas between such times spread twice as far as the times around their line, which costs a bit per row. The
//! delays are noise, so a line fitted to the times never has the exact slope of the clock; and with a slope that is
//! slightly too steep, the times at the end of the vector are far from the line. But clocks tick in seconds and
//! tenths of them: of all slopes that the noise allows, the roundest number is taken. It is the same for the next
//! vector.
//!
//! The line is tried like any other layout, at its cost in bits; a wrong slope only costs time.

/// Approximate size in bits of a slope in the directory of a leaf: a line must save more than this.
pub(crate) const BITS: u64 = 64;
/// Minimum number of times for which a line is searched; from fewer times the slope would be too uncertain.
const ROWS_MIN: usize = 64;
/// Maximum distance of the clock's slope from the least-squares slope, in standard deviations.
const DEVIATIONS: f64 = 4.0;

/// The slope of a line through ascending times, as a multiple of `unit`; `None` if no line is worth trying.
pub(crate) fn of(times: &[u64], unit: u64) -> Option<u64> {
    let (first, last) = (*times.first()?, *times.last()?);
    let span = last.wrapping_sub(first);
    if times.len() < ROWS_MIN || span > i64::MAX as u64 {
        return None;
    }
    let (slope, deviation) = least_squares(times, first);
    let allowed = DEVIATIONS * deviation;
    let (least, most) = (slope - allowed, slope + allowed);
    // The condition is written so that NaN fails it, too.
    if !(least > 0.0 && most < span as f64) {
        return None;
    }
    let unit = unit.max(1);
    roundest(least, most, unit).or_else(|| {
        let units = (slope / unit as f64).round();
        Some((units as u64).saturating_mul(unit)).filter(|&slope| slope > 0)
    })
}

/// Fits a line to times; returns the slope of the line, and the standard deviation of this slope if the distances from
/// the line are noise.
fn least_squares(times: &[u64], first: u64) -> (f64, f64) {
    let rows = times.len() as f64;
    let middle = (rows - 1.0) / 2.0;
    let (mut sum, mut product, mut squares) = (0.0, 0.0, 0.0);
    for (row, time) in times.iter().enumerate() {
        let (x, y) = (row as f64 - middle, time.wrapping_sub(first) as f64);
        sum += y;
        product += x * y;
        squares += x * x;
    }
    let (slope, mean) = (product / squares, sum / rows);
    let mut left = 0.0;
    for (row, time) in times.iter().enumerate() {
        let (x, y) = (row as f64 - middle, time.wrapping_sub(first) as f64);
        let off = y - mean - slope * x;
        left += off * off;
    }
    (slope, (left / rows / squares).sqrt())
}

/// The roundest number between `least` and `most`: a multiple of `unit` times the largest possible power of ten. `None`
/// if only multiples of `unit` itself lie there.
fn roundest(least: f64, most: f64, unit: u64) -> Option<u64> {
    let (least, most) = (least.ceil() as u64, most.floor() as u64);
    let mut power = unit;
    let mut found = None;
    while let Some(next) = power.checked_mul(10).filter(|&next| next <= most) {
        power = next;
        let multiple = most / power * power;
        if multiple >= least {
            found = Some(multiple);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Rng, few};

    /// Creates times of a clock, each delayed by less than `late` units.
    fn late(rng: &mut Rng, tick: u64, late: u64, unit: u64, rows: u64) -> Vec<u64> {
        let begin = rng.next() >> 8;
        let time = |row| begin + row * tick + rng.below(late) * unit;
        (0..rows).map(time).collect()
    }

    #[test]
    fn the_slope_is_that_of_the_clock() {
        let mut rng = Rng(37);
        for _ in 0..few(200) {
            for (tick, noise, unit) in [
                (1_000_000_000, 1 << 20, 100),
                (1_000_000_000, 1000, 1000),
                (60_000, 500, 1),
                (10_000_000, 1 << 20, 1),
                (250_000_000, 3, 1_000_000),
            ] {
                let times = late(&mut rng, tick, noise, unit, 1024);
                assert_eq!(of(&times, unit), Some(tick), "{noise} times {unit}");
            }
        }
    }

    #[test]
    fn an_odd_clock_is_found_within_the_noise() {
        let mut rng = Rng(38);
        for _ in 0..few(200) {
            let tick = 1_000_003 + rng.below(1_000_000);
            let times = late(&mut rng, tick, 1 << 10, 1, 1024);
            let slope = of(&times, 1).expect("a slope");
            // The noise changes the fitted slope by about 2^10 / 1024^1.5.
            assert!(slope.abs_diff(tick) <= 1, "{slope} {tick}");
        }
    }

    #[test]
    fn a_slope_is_never_zero() {
        let ends = [0, 1, i64::MAX as u64, i64::MIN as u64, u64::MAX];
        let mut rng = Rng(39);
        for _ in 0..few(500) {
            let rows = rng.below(200);
            let mut word = |_| ends[rng.below(5) as usize].wrapping_add(rng.below(3));
            let words: Vec<u64> = (0..rows).map(&mut word).collect();
            for unit in [0, 1, 10, 1 << 62, u64::MAX] {
                assert_ne!(of(&words, unit), Some(0));
            }
        }
        assert_eq!(of(&[5; 100], 1), None);
    }
}
