//! Means of the last rows, by number of rows or by time.
//!
//! Invariant: `sum` is the sum of the finite values in `rows`, `odd` counts the other values. The sum is recomputed
//! when as many values have been removed as remain, so that rounding errors do not accumulate.

use super::dot::Dot;
use super::mean::Mean;
use crate::types::error::Result;
use crate::types::sum::Sum;
use std::collections::VecDeque;

/// The last rows, and the sum of their values.
#[derive(Clone, Debug, Default)]
struct Last {
    rows: VecDeque<Dot>,
    sum: Sum,
    odd: usize,
    left: usize,
}

impl Last {
    fn push(&mut self, dot: Dot) {
        self.rows.push_back(dot);
        if dot.value.is_finite() {
            self.sum.add(dot.value);
        } else {
            self.odd += 1;
        }
    }

    fn pop(&mut self) {
        let Some(dot) = self.rows.pop_front() else {
            return;
        };
        if dot.value.is_finite() {
            self.sum.add(-dot.value);
        } else {
            self.odd -= 1;
        }
        self.left += 1;
    }

    fn mean(&mut self) -> f64 {
        if self.left >= self.rows.len() || !self.sum.value().is_finite() {
            self.left = 0;
            self.sum = Sum::default();
            let finite = self.rows.iter().filter(|dot| dot.value.is_finite());
            finite.for_each(|dot| self.sum.add(dot.value));
        }
        let odd: f64 = if self.odd == 0 {
            0.0
        } else {
            let odd = self.rows.iter().filter(|dot| !dot.value.is_finite());
            odd.map(|dot| dot.value).sum()
        };
        (self.sum.value() + odd) / self.rows.len() as f64
    }
}

macro_rules! means {
    ($($(#[$doc:meta])* $name:ident, $bound:ident: $ty:ty, $stays:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<I> {
            rows: I,
            last: Last,
            $bound: $ty,
        }

        impl<I> $name<I> {
            pub(super) fn new(rows: I, $bound: $ty) -> Self {
                Self { rows, last: Last::default(), $bound }
            }
        }

        impl<I: Iterator<Item = Result<Dot>>> Mean for $name<I> {
            fn step(&mut self) -> Option<Result<(Dot, f64)>> {
                let dot = match self.rows.next()? {
                    Ok(dot) => dot,
                    Err(error) => return Some(Err(error)),
                };
                self.last.push(dot);
                let stays: fn(&VecDeque<Dot>, Dot, $ty) -> bool = $stays;
                while self.last.rows.len() > 1 && !stays(&self.last.rows, dot, self.$bound) {
                    self.last.pop();
                }
                Some(Ok((dot, self.last.mean())))
            }
        }
    )*};
}

means! {
    /// Iterator returned by [`DotFunctions::moving_mean`](super::DotFunctions::moving_mean).
    MovingMean, count: usize, |rows, _, count| rows.len() <= count;
    /// Iterator returned by [`DotFunctions::moving_mean_over`](super::DotFunctions::moving_mean_over).
    MovingMeanOver, width: i64, |rows, dot, width| {
        i128::from(dot.time) - i128::from(rows[0].time) < i128::from(width)
    };
}
