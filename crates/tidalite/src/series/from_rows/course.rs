//! A column as a function of time: its integral and its time-weighted mean.
//!
//! The function is defined from the first row of the series to the last. Between two rows it keeps the value of the
//! earlier row, or runs straight from one to the other ([`Interpolation`]). The rows before and after a window count as
//! well: the integral of a day is the sum of the integrals of its hours, if each hour has a row.

use crate::types::interpolation::Interpolation;
use crate::types::sum::Sum;

/// An integral over time, and the time over which it was taken, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Area {
    area: Sum,
    seconds: f64,
}

impl Area {
    pub(super) fn merge(&mut self, other: &Self) {
        self.area.add(other.area.value());
        self.seconds += other.seconds;
    }

    /// The integral in value times seconds; `None` if the function is not defined at two times of the window.
    pub(crate) fn integral(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.area.value())
    }

    /// The integral, divided by the time.
    pub(crate) fn mean(&self) -> Option<f64> {
        Some(self.integral()? / self.seconds)
    }
}

/// A value at a time, in steps of the series' unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct At {
    pub(super) time: i64,
    pub(super) value: f64,
}

/// The integral of a window while its rows are read, with times in steps of the series' unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    area: Sum,
    steps: i128,
}

impl Course {
    /// Adds the course from one row to the next, as far as it lies in `low .. high`.
    pub(super) fn add(
        &mut self,
        between: Interpolation,
        (a, b): (At, At),
        (low, high): (i128, i128),
    ) {
        let (begin, end) = (i128::from(a.time), i128::from(b.time));
        let (from, to) = (begin.max(low), end.min(high));
        if from >= to {
            return;
        }
        let width = (to - from) as f64;
        let value = match between {
            Interpolation::Previous => a.value,
            // The mean of a straight line is its value in the middle.
            Interpolation::Linear => {
                let middle = ((from - begin) as f64 + width / 2.0) / (end - begin) as f64;
                interpolate(a.value, b.value, middle)
            }
        };
        self.area.add(value * width);
        self.steps += to - from;
    }

    /// Returns the integral, if one step of the series' time unit takes this many seconds.
    pub(super) fn close(self, unit_seconds: f64) -> Area {
        let mut area = Sum::default();
        area.add(self.area.value() * unit_seconds);
        Area {
            area,
            seconds: self.steps as f64 * unit_seconds,
        }
    }
}

/// The value of a straight line from `a` to `b` after this part of the way.
pub(crate) fn interpolate(a: f64, b: f64, part: f64) -> f64 {
    if a == b {
        return a;
    }
    a * (1.0 - part) + b * part
}
