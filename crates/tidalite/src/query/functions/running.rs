//! The iterator that yields running sums.

use super::dot::Dot;
use crate::types::error::Result;
use crate::types::sum::Sum;

/// Iterator returned by [`DotFunctions::cumulative_sum`](super::DotFunctions::cumulative_sum).
#[derive(Clone, Debug)]
pub struct CumulativeSum<I> {
    rows: I,
    sum: Sum,
}

impl<I> CumulativeSum<I> {
    pub(super) fn new(rows: I) -> Self {
        Self {
            rows,
            sum: Sum::default(),
        }
    }
}

impl<I: Iterator<Item = Result<Dot>>> Iterator for CumulativeSum<I> {
    type Item = Result<Dot>;

    fn next(&mut self) -> Option<Self::Item> {
        let dot = self.rows.next()?;
        Some(dot.map(|dot| {
            self.sum.add(dot.value);
            Dot {
                time: dot.time,
                value: self.sum.value(),
            }
        }))
    }
}
