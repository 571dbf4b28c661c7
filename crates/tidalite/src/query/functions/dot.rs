//! A value with its time, and sums of values.

/// A value with its time, in the series' unit or, in functions of several series, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Time of the row.
    pub time: i64,
    /// Value of the column in this row.
    pub value: f64,
}

/// A compensated sum, which carries the rounding errors of its additions along (Neumaier).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        // An infinite sum has no rounding error to keep, and the difference of two infinities would be NaN.
        if sum.is_finite() {
            self.lost += if self.sum.abs() >= value.abs() {
                (self.sum - sum) + value
            } else {
                (value - sum) + self.sum
            };
        }
        self.sum = sum;
    }

    pub(super) fn value(self) -> f64 {
        self.sum + self.lost
    }
}
