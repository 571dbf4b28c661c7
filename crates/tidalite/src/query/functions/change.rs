//! Functions of consecutive rows: differences, derivatives, rates of counters.

use super::dot::Dot;
use crate::types::error::Result;

macro_rules! adapters {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty),* } $step:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<I> {
            rows: I,
            before: Option<Dot>,
            $($field: $ty,)*
        }

        impl<I> $name<I> {
            pub(super) fn new(rows: I, $($field: $ty),*) -> Self {
                Self { rows, before: None, $($field),* }
            }
        }

        impl<I: Iterator<Item = Result<Dot>>> Iterator for $name<I> {
            type Item = Result<Dot>;

            fn next(&mut self) -> Option<Self::Item> {
                loop {
                    let dot = match self.rows.next()? {
                        Ok(dot) => dot,
                        Err(error) => return Some(Err(error)),
                    };
                    if let Some(before) = self.before.replace(dot) {
                        let step: fn(Dot, Dot, $($ty),*) -> Option<f64> = $step;
                        if let Some(value) = step(before, dot, $(self.$field),*) {
                            return Some(Ok(Dot { time: dot.time, value }));
                        }
                    }
                }
            }
        }
    )*};
}

adapters! {
    /// Iterator returned by [`DotFunctions::difference`](super::DotFunctions::difference).
    Difference {} |before, dot| Some(dot.value - before.value);
    /// Iterator returned by [`DotFunctions::derivative`](super::DotFunctions::derivative).
    Derivative { per: i64 } |before, dot, per| slope(dot.value - before.value, before, dot, per);
    /// Iterator returned by [`DotFunctions::rate`](super::DotFunctions::rate).
    Rate { per: i64 } |before, dot, per| {
        let risen = if dot.value < before.value {
            dot.value
        } else {
            dot.value - before.value
        };
        slope(risen, before, dot, per)
    };
}

/// Converts a change between two rows to a change per `per` steps of time; `None` if both rows have the same time.
fn slope(change: f64, before: Dot, dot: Dot, per: i64) -> Option<f64> {
    let steps = i128::from(dot.time) - i128::from(before.time);
    (steps != 0).then(|| change * (per as f64 / steps as f64))
}
