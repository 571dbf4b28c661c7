//! A value at a time, and sums of them.

/// A value at a time. In the series' unit; of several series together, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// When.
    pub time: i64,
    /// How much.
    pub value: f64,
}

/// A sum that keeps what additions round away (Neumaier).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        // Of infinities nothing is lost, and their difference is NaN.
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
