//! Prediction errors: deviations of values from a preceding mean.
//!
//! ```text
//! rows ──> Mean::step ──> (row, mean)  ──> the mean                     Iterator of each kind of mean
//!                                      └─> row minus the mean before it  Errors
//! ```

use super::dot::Dot;
use super::exponential::{ExponentialMean, ExponentialMeanOver};
use super::mean::Mean;
use super::moving::{MovingMean, MovingMeanOver};
use crate::types::error::Result;

/// Iterator of prediction errors: each value minus the mean of the values before it. Returned by methods such as
/// [`MovingMean::errors`].
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
            /// Turns the means into prediction errors: each value minus the mean at the previous row. Yields nothing
            /// for the first row.
            pub fn errors(self) -> Errors<Self> {
                Errors { mean: self, before: None }
            }
        }
    )*};
}

means!(MovingMean MovingMeanOver ExponentialMean ExponentialMeanOver);
