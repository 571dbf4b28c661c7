//! Sums of floats.

/// A compensated sum, which carries the rounding errors of its additions along (Neumaier).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, value: f64) {
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

    pub(crate) fn value(self) -> f64 {
        self.sum + self.lost
    }
}
