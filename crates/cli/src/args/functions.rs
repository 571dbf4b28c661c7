//! Functions over rows, as they are written on the command line.

use crate::time::width_nanos;
use clap::ValueEnum;

/// One second.
const SECOND: i64 = 1_000_000_000;

/// A function over the rows of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFunction {
    Difference,
    /// In so many nanoseconds.
    Derivative(i64),
    Rate(i64),
    MeanOfRows(usize),
    MeanOver(i64),
    Sum,
}

impl RowFunction {
    /// `difference`, `derivative(1s)`, `rate(1s)`, `mean(10)`, `mean(10m)`, `sum`.
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
            ("mean", Some(argument)) => match argument.parse::<usize>() {
                Ok(0) => Err("a mean is of one row at least".to_owned()),
                Ok(rows) => Ok(Self::MeanOfRows(rows)),
                Err(_) => width_nanos(argument).map(Self::MeanOver),
            },
            ("sum", None) => Ok(Self::Sum),
            _ => Err(
                "give difference, derivative(1s), rate(1s), mean(ROWS), mean(WIDTH) or sum"
                    .to_owned(),
            ),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Difference => "difference",
            Self::Derivative(_) => "derivative",
            Self::Rate(_) => "rate",
            Self::MeanOfRows(_) | Self::MeanOver(_) => "mean",
            Self::Sum => "sum",
        }
    }
}

/// What becomes of the values of two series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arithmetic {
    /// The first and the second together
    Sum,
    /// The first less the second
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
            ("mean(10)", RowFunction::MeanOfRows(10)),
            ("mean(10s)", RowFunction::MeanOver(10 * SECOND)),
            ("sum", RowFunction::Sum),
        ] {
            assert_eq!(RowFunction::parse(text), Ok(function), "{text}");
        }
        for text in [
            "",
            "mean",
            "mean(0)",
            "mean()",
            "rate(x)",
            "sum(1)",
            "median(3)",
        ] {
            assert!(RowFunction::parse(text).is_err(), "{text}");
        }
    }
}
