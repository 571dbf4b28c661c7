//! Numbers that describe the course of a value between the first and the last row.
//!
//! The definitions equal the library's figures `TimeMean`, `Integral`, `Delta`, `Increase` and `Rate`, except
//! that an aggregate knows only the rows of its group: the course does not include the row before the group or the row
//! after it. So each figure needs at least two rows.

use super::points::Point;

/// The course of a value between two rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Between {
    /// The value of the earlier row is held.
    Previous,
    /// A straight line connects the two values.
    Linear,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Figure {
    /// The integral divided by the length of time.
    Mean(Between),
    /// The area below the course. The second field is the unit of time in seconds.
    Integral(Between, f64),
    /// The last value minus the first.
    Delta,
    /// The sum of the rises of a counter; a fall means that the counter restarted at 0.
    Increase,
    /// The increase per second.
    Rate,
}

impl Figure {
    /// The figure for rows in order of time; a step of their times is this many seconds. `None` if there are fewer than
    /// two rows; for means, integrals and rates also if all rows have the same time.
    pub(super) fn of(self, points: &[Point], step_seconds: f64) -> Option<f64> {
        let ([first, .., last], 2..) = (points, points.len()) else {
            return None;
        };
        let steps = i128::from(last.time) - i128::from(first.time);
        let has_duration = steps > 0;
        let seconds = steps as f64 * step_seconds;
        match self {
            Self::Mean(between) => has_duration.then(|| area(points, between) / steps as f64),
            Self::Integral(between, unit_seconds) => {
                has_duration.then(|| area(points, between) * step_seconds / unit_seconds)
            }
            Self::Delta => Some(last.value - first.value),
            Self::Increase => Some(increase(points)),
            Self::Rate => has_duration.then(|| increase(points) / seconds),
        }
    }
}

/// The area below the course, in units of value times steps.
fn area(points: &[Point], between: Between) -> f64 {
    let mut area = Sum::default();
    for (a, b) in points.iter().zip(&points[1..]) {
        let width = (i128::from(b.time) - i128::from(a.time)) as f64;
        let value = match between {
            Between::Previous => a.value,
            Between::Linear if a.value == b.value => a.value,
            Between::Linear => a.value * 0.5 + b.value * 0.5,
        };
        if width > 0.0 {
            area.add(value * width);
        }
    }
    area.value()
}

fn increase(points: &[Point]) -> f64 {
    let mut increase = Sum::default();
    for (a, b) in points.iter().zip(&points[1..]) {
        increase.add(if b.value < a.value {
            b.value
        } else {
            b.value - a.value
        });
    }
    increase.value()
}

/// A sum that compensates for rounding errors (Neumaier), like the sums of the library.
#[derive(Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        // If the sum is infinite, there is no rounding error to keep.
        if sum.is_finite() {
            self.lost += if self.sum.abs() >= value.abs() {
                (self.sum - sum) + value
            } else {
                (value - sum) + self.sum
            };
        }
        self.sum = sum;
    }

    fn value(&self) -> f64 {
        self.sum + self.lost
    }
}
