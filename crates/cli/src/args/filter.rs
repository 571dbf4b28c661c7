//! Filters by value: the option `--where` of several commands.

use std::ops::Bound;

/// A range of values, with a lower and an upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Values {
    /// Lower bound of the values.
    pub low: Bound<f64>,
    /// Upper bound of the values.
    pub high: Bound<f64>,
}

impl Values {
    /// Parses a range such as `0..100`, `4..`, `..0` or `3`; with `<` next to the dots, that end is exclusive: `4<..`,
    /// `0..<100`.
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse::<f64>() {
            Ok(value) if !value.is_nan() => Ok(value),
            _ => Err(format!("`{text}` is not a number for comparisons")),
        };
        let Some((low, high)) = text.split_once("..") else {
            let value = Bound::Included(number(text)?);
            return Ok(Self {
                low: value,
                high: value,
            });
        };
        let (low, high) = (low.trim(), high.trim());
        let end = |text: &str, excluded: Option<&str>| match (text, excluded) {
            ("", _) => Ok(Bound::Unbounded),
            (_, Some(text)) => number(text).map(Bound::Excluded),
            (_, None) => number(text).map(Bound::Included),
        };
        Ok(Self {
            low: end(low, low.strip_suffix('<'))?,
            high: end(high, high.strip_prefix('<'))?,
        })
    }
}

/// A filter for the rows of a join: a series, and the range in which its values must lie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// Pattern that selects the series, as in other commands.
    pub pattern: String,
    /// Range in which the series' values must lie.
    pub values: Values,
}

impl Wanted {
    /// Parses a filter such as `power=0..100`, `power=..0`, `wind{mast="1"}=4<..` or `state=3`. Tags contain `=`, too,
    /// so the last `=` separates series and range.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((pattern, range)) = text.rsplit_once('=') else {
            return Err("give a series, =, and a range of values: power=0..100".to_owned());
        };
        Ok(Self {
            pattern: pattern.trim().to_owned(),
            values: Values::parse(range)?,
        })
    }
}

/// A filter for the points of a series: a column, and the range in which its values must lie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filter {
    /// Name of the column; `None` for the column that the command queries.
    pub column: Option<String>,
    /// Range in which the column's values must lie.
    pub values: Values,
}

impl Filter {
    /// Parses a filter such as `4..` or `temp=0<..100`.
    fn parse(text: &str) -> Result<Self, String> {
        let (column, range) = match text.rsplit_once('=') {
            Some((column, range)) => (Some(column.trim().to_owned()), range),
            None => (None, text),
        };
        Ok(Self {
            column,
            values: Values::parse(range)?,
        })
    }
}

/// Filters of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct FilterArgs {
    /// Only points with a value from LOW to HIGH, both inclusive, in COLUMN, or in the one of --column. Either end may
    /// be omitted, `<` next to the dots makes an end exclusive, and a single value selects that value: 4.., ..<0,
    /// temp=18<..21, state=3. If repeated, all conditions must hold
    #[arg(
        long = "where",
        value_name = "[COLUMN=]LOW..HIGH",
        value_parser = Filter::parse,
        allow_hyphen_values = true
    )]
    pub filters: Vec<Filter>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    #[test]
    fn ranges_have_ends_that_are_in_them_or_not() {
        for (text, low, high) in [
            ("0..100", Included(0.0), Included(100.0)),
            ("-5..", Included(-5.0), Unbounded),
            ("..-5.5", Unbounded, Included(-5.5)),
            (" 4<.. ", Excluded(4.0), Unbounded),
            ("4 <..< 1e2", Excluded(4.0), Excluded(100.0)),
            ("..<inf", Unbounded, Excluded(f64::INFINITY)),
            ("3", Included(3.0), Included(3.0)),
            ("..", Unbounded, Unbounded),
        ] {
            assert_eq!(Values::parse(text), Ok(Values { low, high }), "{text}");
        }
        for text in ["", "x..", "1..nan", "<..1", "1..2..3", "<4", "1>..2"] {
            assert!(Values::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_sign_parts_a_name_from_its_values() {
        let wanted = Wanted::parse(r#"wind{mast="1"}=4.."#).unwrap();
        assert_eq!(wanted.pattern, r#"wind{mast="1"}"#);
        assert!(Wanted::parse("4..").is_err());
        let filter = Filter::parse("temp = 18<..21").unwrap();
        assert_eq!(filter.column.as_deref(), Some("temp"));
        assert_eq!(filter.values.low, Excluded(18.0));
        assert_eq!(Filter::parse("4..").unwrap().column, None);
    }
}
