//! How far values are from what a mean would have foretold.
//!
//! ```text
//! rows ──> Mean::step ──> (row, mean)  ──> the mean                     Iterator of each kind of mean
//!                                      └─> row less the mean before it  Errors
//! ```

use super::dot::Dot;
use super::exponential::{ExponentialMean, ExponentialMeanOver};
use super::mean::Mean;
use super::moving::{MovingMean, MovingMeanOver};
use crate::types::error::Result;

/// Values less the mean of those before them; `errors` of a mean, such as [`MovingMean::errors`].
#[derive(Clone, Debug)]
pub struct Errors<M> {
    mean: M,
    before: Option<f64>,
}

impl<M: Mean> Iterator for Errors<M> {
    type Item = Result<Dot>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (dot, mean) = match self.mean.step()? {
                Ok(told) => told,
                Err(error) => return Some(Err(error)),
            };
            if let Some(before) = self.before.replace(mean) {
                let (time, value) = (dot.time, dot.value - before);
                return Some(Ok(Dot { time, value }));
            }
        }
    }
}

macro_rules! means {
    ($($name:ident)*) => {$(
        impl<I: Iterator<Item = Result<Dot>>> Iterator for $name<I> {
            type Item = Result<Dot>;

            fn next(&mut self) -> Option<Self::Item> {
                let told = self.step()?;
                Some(told.map(|(dot, value)| Dot { time: dot.time, value }))
            }
        }

        impl<I> $name<I> {
            /// In place of the mean, the error of taking it for the next value: each value less the mean that was told at the row
            /// before. Nothing for the first row.
            pub fn errors(self) -> Errors<Self> {
                Errors { mean: self, before: None }
            }
        }
    )*};
}

means!(MovingMean MovingMeanOver ExponentialMean ExponentialMeanOver);
