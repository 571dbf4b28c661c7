//! Exponentially weighted means of all values so far.
//!
//! The weight of a value falls with its age: by a factor per row, or to 1/e in each time constant. The mean is the sum
//! of the weighted values, divided by the sum of the weights, so the first value has no extra weight. (The recursion
//! `mean += a * (value - mean)`, which begins at the first value, converges to the same.)
//!
//! Invariant: `weight` is the sum of the weights of the finite values so far, where the newest has weight 1; `mean` is
//! the weighted mean of these values.

use super::dot::Dot;
use super::mean::Mean;
use crate::types::error::Result;

/// An exponentially weighted mean: the mean so far, and the sum of the weights.
#[derive(Clone, Copy, Debug, Default)]
struct Weighted {
    mean: f64,
    weight: f64,
}

impl Weighted {
    /// Adds a value with weight 1, after the earlier weights have fallen by `factor`.
    fn push(&mut self, factor: f64, value: f64) {
        let before = self.weight * factor;
        self.weight = before + 1.0;
        // While the value does not change, the mean stays exact, to the bit.
        if self.mean != value {
            // Each term is smaller than the larger of both values, so the sum does not overflow.
            self.mean = self.mean * (before / self.weight) + value / self.weight;
        }
    }

    fn mean(&self) -> f64 {
        if self.weight > 0.0 {
            self.mean
        } else {
            f64::NAN
        }
    }
}

/// Iterator returned by [`DotFunctions::exponential_mean`](super::DotFunctions::exponential_mean).
#[derive(Clone, Debug)]
pub struct ExponentialMean<I> {
    rows: I,
    factor: f64,
    sum: Weighted,
}

impl<I> ExponentialMean<I> {
    pub(super) fn new(rows: I, span: usize) -> Self {
        let span = span.max(1) as f64;
        Self {
            rows,
            factor: (span - 1.0) / (span + 1.0),
            sum: Weighted::default(),
        }
    }
}

impl<I: Iterator<Item = Result<Dot>>> Mean for ExponentialMean<I> {
    fn step(&mut self) -> Option<Result<(Dot, f64)>> {
        let dot = match self.rows.next()? {
            Ok(dot) => dot,
            Err(error) => return Some(Err(error)),
        };
        if dot.value.is_finite() {
            self.sum.push(self.factor, dot.value);
        }
        Some(Ok((dot, self.sum.mean())))
    }
}

/// Iterator returned by [`DotFunctions::exponential_mean_over`](super::DotFunctions::exponential_mean_over).
#[derive(Clone, Debug)]
pub struct ExponentialMeanOver<I> {
    rows: I,
    time_constant: i64,
    /// Time of the newest finite value.
    at: i64,
    sum: Weighted,
}

impl<I> ExponentialMeanOver<I> {
    pub(super) fn new(rows: I, time_constant: i64) -> Self {
        Self {
            rows,
            time_constant,
            at: 0,
            sum: Weighted::default(),
        }
    }

    fn factor(&self, time: i64) -> f64 {
        if self.time_constant < 1 {
            return 0.0;
        }
        let age = i128::from(time) - i128::from(self.at);
        (-(age.max(0) as f64) / self.time_constant as f64).exp()
    }
}

impl<I: Iterator<Item = Result<Dot>>> Mean for ExponentialMeanOver<I> {
    fn step(&mut self) -> Option<Result<(Dot, f64)>> {
        let dot = match self.rows.next()? {
            Ok(dot) => dot,
            Err(error) => return Some(Err(error)),
        };
        if dot.value.is_finite() {
            self.sum.push(self.factor(dot.time), dot.value);
            self.at = dot.time;
        }
        Some(Ok((dot, self.sum.mean())))
    }
}
