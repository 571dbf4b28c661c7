//! Functions over the rows of a series, as the user writes them on the command line.

use crate::time::width_nanos;
use clap::ValueEnum;

/// One second in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// A function over the rows of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFunction {
    Difference,
    /// Change of the value per this many nanoseconds.
    Derivative(i64),
    Rate(i64),
    Mean(Mean),
    /// Difference between a value and the mean of the values before it.
    Error(Mean),
    Sum,
}

/// A moving mean of previous rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mean {
    OfRows(usize),
    /// Mean of the values in the last this many nanoseconds.
    Over(i64),
    Exponential(usize),
    ExponentialOver(i64),
}

impl Mean {
    /// Parses the argument of `mean` and `ewma`: a number of rows, or a width in time.
    fn parse(exponential: bool, argument: &str) -> Result<Self, String> {
        match (argument.parse::<usize>(), exponential) {
            (Ok(0), _) => Err("a mean needs at least one row".to_owned()),
            (Ok(rows), false) => Ok(Self::OfRows(rows)),
            (Ok(rows), true) => Ok(Self::Exponential(rows)),
            (Err(_), false) => width_nanos(argument).map(Self::Over),
            (Err(_), true) => width_nanos(argument).map(Self::ExponentialOver),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::OfRows(_) | Self::Over(_) => "mean",
            Self::Exponential(_) | Self::ExponentialOver(_) => "ewma",
        }
    }
}

impl RowFunction {
    /// Parses a function such as `difference`, `derivative(1s)`, `rate(1s)`, `mean(10)`, `mean(10m)`, `ewma(10)`,
    /// `mean_error(10)` or `sum`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, argument) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let width = || argument.map_or(Ok(SECOND), width_nanos);
        match (name, argument) {
            ("difference", None) => Ok(Self::Difference),
            ("derivative", _) => width().map(Self::Derivative),
            ("rate", _) => width().map(Self::Rate),
            ("mean" | "ewma", Some(argument)) => Mean::parse(name == "ewma", argument).map(Self::Mean),
            // The names with a dash are accepted, too.
            ("mean_error" | "ewma_error" | "mean-error" | "ewma-error", Some(argument)) => {
                Mean::parse(name.starts_with("ewma"), argument).map(Self::Error)
            }
            ("sum", None) => Ok(Self::Sum),
            _ => Err(
                "give difference, derivative(1s), rate(1s), mean(ROWS), mean(WIDTH), ewma(ROWS), ewma(WIDTH), mean_error or ewma_error of the same, or sum"
                    .to_owned(),
            ),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Difference => "difference",
            Self::Derivative(_) => "derivative",
            Self::Rate(_) => "rate",
            Self::Mean(mean) => mean.name(),
            Self::Error(Mean::OfRows(_) | Mean::Over(_)) => "mean_error",
            Self::Error(Mean::Exponential(_) | Mean::ExponentialOver(_)) => "ewma_error",
            Self::Sum => "sum",
        }
    }
}

/// Arithmetic on the values of two series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arithmetic {
    /// The sum of the first and the second
    Sum,
    /// The first minus the second
    Difference,
    /// The first times the second
    Product,
    /// The first divided by the second
    Ratio,
}

impl Arithmetic {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Difference => "difference",
            Self::Product => "product",
            Self::Ratio => "ratio",
        }
    }

    pub(crate) fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Sum => a + b,
            Self::Difference => a - b,
            Self::Product => a * b,
            Self::Ratio => a / b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_with_their_arguments() {
        for (text, function) in [
            ("difference", RowFunction::Difference),
            ("rate", RowFunction::Rate(SECOND)),
            ("derivative(1m)", RowFunction::Derivative(60 * SECOND)),
            ("mean(10)", RowFunction::Mean(Mean::OfRows(10))),
            ("mean(10s)", RowFunction::Mean(Mean::Over(10 * SECOND))),
            ("ewma(10)", RowFunction::Mean(Mean::Exponential(10))),
            ("mean_error(3)", RowFunction::Error(Mean::OfRows(3))),
            ("mean-error(3)", RowFunction::Error(Mean::OfRows(3))),
            (
                "ewma-error(1m)",
                RowFunction::Error(Mean::ExponentialOver(60 * SECOND)),
            ),
            ("sum", RowFunction::Sum),
        ] {
            assert_eq!(RowFunction::parse(text), Ok(function), "{text}");
            // The output has the name that the user may type.
            let typed = text.split('(').next().unwrap().replace('-', "_");
            assert_eq!(function.name(), typed);
        }
        for text in [
            "",
            "mean",
            "mean(0)",
            "ewma",
            "mean-error(0)",
            "ewma-error(x)",
            "mean()",
            "rate(x)",
            "sum(1)",
            "median(3)",
        ] {
            assert!(RowFunction::parse(text).is_err(), "{text}");
        }
    }
}
