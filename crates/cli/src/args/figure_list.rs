//! The functions of `aggregate`, `window` and `plot`, as the user writes them: `mean,p95,integral(1h),max(high)`.
//!
//! ```text
//! list      = function { "," function }
//! function  = name [ "(" argument { "," argument } ")" ]
//! argument  = percentage | width of time | "linear" | "previous" | column | metric
//! ```
//!
//! A column or metric that reads as another argument, or contains a comma or a bracket, stands in double quotes.

use crate::time::width_nanos;
use clap::builder::{PossibleValue, TypedValueParser};
use tidalite::Figure;
use tidalite::query::Interpolation;

/// A figure of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    /// A figure of the library, times this factor.
    Figure(Figure, f64),
    /// Number of NaN values.
    NanCount,
    /// Time of the smallest value.
    MinTime,
    /// Time of the largest value.
    MaxTime,
}

impl Function {
    /// Whether the result is a time.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Self::MinTime | Self::MaxTime)
    }

    /// The figure of the library, if it is one.
    pub(crate) fn figure(self) -> Option<Figure> {
        match self {
            Self::Figure(figure, _) => Some(figure),
            Self::NanCount | Self::MinTime | Self::MaxTime => None,
        }
    }
}

/// A function in a list of functions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub function: Function,
    /// The function as the output names it, without the column.
    pub name: String,
    /// The column, or with --by-metric the metric, if one is given.
    pub of: Option<String>,
}

impl Asked {
    /// The function without arguments.
    pub(crate) fn plain(function: Function, name: &str) -> Self {
        Self {
            function,
            name: name.to_owned(),
            of: None,
        }
    }

    /// The name of the output column.
    pub(crate) fn title(&self) -> String {
        match &self.of {
            Some(of) => format!("{}({of})", self.name),
            None => self.name.clone(),
        }
    }
}

/// A list of functions, from one `--fn`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FunctionList(pub Vec<Asked>);

/// The functions of all lists.
pub(crate) fn all(lists: &[FunctionList]) -> Vec<Asked> {
    lists.iter().flat_map(|list| list.0.clone()).collect()
}

const fn figure(figure: Figure) -> Function {
    Function::Figure(figure, 1.0)
}

/// The functions with a name of their own, and their help texts.
const NAMES: [(&str, &str); 20] = [
    ("count", "points with a value"),
    ("nan_count", "points whose value is NaN"),
    ("sum", "sum"),
    ("mean", "mean"),
    ("min", "smallest value"),
    ("min_time", "time of the smallest value"),
    ("max", "largest value"),
    ("max_time", "time of the largest value"),
    ("first", "oldest value"),
    ("last", "newest value"),
    ("stddev", "standard deviation of the population"),
    ("spread", "largest minus smallest value"),
    (
        "median",
        "value in the middle; p95, p99.9, percentile(95) are others",
    ),
    ("distinct", "number of distinct values"),
    ("mode", "most frequent value"),
    (
        "time_mean",
        "mean weighted by time; time_mean(previous) if values hold until the next",
    ),
    (
        "integral",
        "integral over time in seconds; integral(1h) in hours, integral(previous)",
    ),
    ("delta", "change since the last value before"),
    ("increase", "rise of a counter that may restart at 0"),
    ("rate", "increase per second; rate(1h) per hour"),
];

/// The function with this name of the output; `None` if there is none.
fn named(name: &str) -> Option<Function> {
    Some(match name {
        "nan_count" => Function::NanCount,
        "min_time" => Function::MinTime,
        "max_time" => Function::MaxTime,
        _ => figure(Figure::named(name)?),
    })
}

/// The name in the output of a function that may be written otherwise.
fn canonical(name: &str) -> &str {
    match name {
        "nan-count" => "nan_count",
        "min-time" => "min_time",
        "max-time" => "max_time",
        "twa" => "time_mean",
        _ => name,
    }
}

const NANOS_PER_SECOND: f64 = 1e9;

/// The parts of a list between commas, or between two pairs of brackets, outside of brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut begin) = (0_usize, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        // The output writes rate(1h)(power) for rate(1h,power).
        let separator = match c {
            ',' => 1,
            ')' if text[at..].starts_with(")(") => 2,
            _ => 0,
        };
        match c {
            '"' => quoted = !quoted,
            _ if quoted || at < begin => {}
            _ if separator > 0 && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + separator;
            }
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// The number of `95` or `95%`.
fn percentage(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number
        .parse()
        .ok()
        .filter(|percent: &f64| percent.is_finite())
}

/// Parses one function.
fn one(text: &str) -> Result<Asked, String> {
    let text = text.trim();
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => {
            let inner = rest
                .strip_suffix(')')
                .ok_or_else(|| format!("`{text}`: the closing bracket is missing"))?;
            (name.trim(), split(inner))
        }
        None => (text, Vec::new()),
    };
    let lower = name.to_ascii_lowercase();
    let own = canonical(&lower);
    let mut asked = match (named(own), lower.strip_prefix('p').and_then(percentage)) {
        (_, Some(percent)) => percentile(percent)?,
        (Some(function), None) => Asked::plain(function, own),
        (None, None) if own == "percentile" => {
            Asked::plain(figure(Figure::Percentile(f64::NAN)), "")
        }
        (None, None) => return Err(format!("`{name}` is no function: give {}", names(|_| true))),
    };
    let mut given = Given::default();
    for argument in arguments {
        apply(&mut asked, argument.trim(), &mut given)
            .map_err(|problem| format!("`{text}`: {problem}"))?;
    }
    match asked.function {
        Function::Figure(Figure::Percentile(percent), _) if percent.is_nan() => Err(format!(
            "`{text}`: give the percentage, as in percentile(95)"
        )),
        _ => Ok(asked),
    }
}

/// The names of functions, to choose from.
fn names(chosen: impl Fn(Function) -> bool) -> String {
    let own = NAMES.iter().map(|(name, _)| *name);
    let names: Vec<&str> = own
        .filter(|name| named(name).is_some_and(&chosen))
        .collect();
    format!("{}, or a percentile such as p95", names.join(", "))
}

fn percentile(percent: f64) -> Result<Asked, String> {
    if !(0.0..=100.0).contains(&percent) {
        return Err(format!(
            "percentile {percent}: give a percentage from 0 to 100"
        ));
    }
    Ok(Asked::plain(
        figure(Figure::Percentile(percent)),
        &format!("p{percent}"),
    ))
}

/// The kinds of arguments that a function already has.
#[derive(Default)]
struct Given {
    between: bool,
    width: bool,
}

/// Applies an argument in the brackets of a function.
fn apply(asked: &mut Asked, argument: &str, given: &mut Given) -> Result<(), String> {
    let between = match argument {
        "linear" => Some(Interpolation::Linear),
        "previous" => Some(Interpolation::Previous),
        _ => None,
    };
    match (asked.function, between) {
        _ if argument.is_empty() => return Err("an argument is empty".to_owned()),
        (Function::Figure(Figure::Percentile(old), _), _) if old.is_nan() => {
            let percent =
                percentage(argument).ok_or_else(|| format!("`{argument}` is no percentage"))?;
            *asked = percentile(percent)?;
        }
        (Function::Figure(Figure::TimeMean(_) | Figure::Integral(_), _), Some(_))
            if std::mem::replace(&mut given.between, true) =>
        {
            return Err(format!("`{argument}` is one argument too many"));
        }
        (Function::Figure(Figure::TimeMean(_), _), Some(between)) => {
            asked.function = figure(Figure::TimeMean(between));
            asked.name = format!("{}({argument})", asked.name);
        }
        (Function::Figure(Figure::Integral(_), factor), Some(between)) => {
            asked.function = Function::Figure(Figure::Integral(between), factor);
            asked.name = format!("{}({argument})", asked.name);
        }
        (Function::Figure(of @ (Figure::Integral(_) | Figure::Rate), _), None)
            if argument.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            if std::mem::replace(&mut given.width, true) {
                return Err(format!("`{argument}` is one argument too many"));
            }
            #[expect(clippy::cast_precision_loss, reason = "a unit of time")]
            let seconds = width_nanos(argument)? as f64 / NANOS_PER_SECOND;
            let factor = if of == Figure::Rate {
                seconds
            } else {
                1.0 / seconds
            };
            asked.function = Function::Figure(of, factor);
            asked.name = format!("{}({argument})", asked.name);
        }
        _ if asked.of.is_some() => return Err(format!("`{argument}` is one argument too many")),
        _ => {
            let quoted = argument
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            asked.of = Some(quoted.unwrap_or(argument).to_owned());
        }
    }
    Ok(())
}

/// A parser of functions for the command line, which names those to choose from.
#[derive(Clone)]
pub(crate) struct FunctionParser<T> {
    read: fn(&str) -> Result<T, String>,
    chosen: fn(Function) -> bool,
}

/// The parser of a list of functions.
pub(crate) fn list_parser() -> FunctionParser<FunctionList> {
    let read = |text: &str| {
        let each = split(text).into_iter().map(one);
        each.collect::<Result<_, _>>().map(FunctionList)
    };
    FunctionParser {
        read,
        chosen: |_| true,
    }
}

/// The parser of a single function whose value is a number.
pub(crate) fn drawn_parser() -> FunctionParser<Asked> {
    let read = |text: &str| {
        let asked = one(text)?;
        match &asked.of {
            _ if asked.function.is_time() => Err(format!(
                "{text} is a time, which cannot be drawn: give {}",
                names(|function| !function.is_time())
            )),
            Some(of) => Err(format!("`{text}`: give the column with --column {of}")),
            None => Ok(asked),
        }
    };
    FunctionParser {
        read,
        chosen: |function| !function.is_time(),
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for FunctionParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        self.read.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let own = NAMES.iter();
        let own = own.filter(|(name, _)| named(name).is_some_and(self.chosen));
        Some(Box::new(
            own.map(|(name, help)| PossibleValue::new(*name).help(*help)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Asked>, String> {
        split(text).into_iter().map(one).collect()
    }

    #[test]
    fn functions_are_read_with_their_arguments() {
        tidalite_testkit::watch();
        let linear = Interpolation::Linear;
        for (text, function, title) in [
            ("mean", figure(Figure::Mean), "mean"),
            ("min-time", Function::MinTime, "min_time"),
            ("min_time", Function::MinTime, "min_time"),
            ("P95", figure(Figure::Percentile(95.0)), "p95"),
            (
                "percentile(99.9)",
                figure(Figure::Percentile(99.9)),
                "p99.9",
            ),
            (
                "percentile(5, open)",
                figure(Figure::Percentile(5.0)),
                "p5(open)",
            ),
            ("twa", figure(Figure::TimeMean(linear)), "time_mean"),
            (
                "time_mean(previous)",
                figure(Figure::TimeMean(Interpolation::Previous)),
                "time_mean(previous)",
            ),
            (
                "integral(1h)",
                Function::Figure(Figure::Integral(linear), 1.0 / 3600.0),
                "integral(1h)",
            ),
            ("rate(1m)", Function::Figure(Figure::Rate, 60.0), "rate(1m)"),
            ("rate(power)", figure(Figure::Rate), "rate(power)"),
            ("rate(\"1m\")", figure(Figure::Rate), "rate(1m)"),
            ("max(a.b)", figure(Figure::Max), "max(a.b)"),
            ("max(\"a)(b\")", figure(Figure::Max), "max(a)(b)"),
            (
                "rate(1m)(power)",
                Function::Figure(Figure::Rate, 60.0),
                "rate(1m)(power)",
            ),
        ] {
            let asked = read(text);
            let Ok([asked]) = asked.as_deref() else {
                panic!("{text}: {asked:?}");
            };
            assert_eq!(
                (asked.function, asked.title()),
                (function, title.to_owned())
            );
        }
        let list = read("mean,rate(1h,power), max(\"a,b(\")");
        let titles: Vec<String> = list.unwrap_or_default().iter().map(Asked::title).collect();
        assert_eq!(titles, ["mean", "rate(1h)(power)", "max(a,b()"]);
        for text in [
            "",
            "mean,",
            "avg",
            "p101",
            "p",
            "percentile",
            "percentile(x)",
            "max(",
            "max()",
            "max(a,b)",
            "integral(1h,30m)",
            "time_mean(linear,previous)",
            "rate(1h",
            "percentile(200)",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
