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

/// A function by its name: the name in the output, another accepted name, the function, and the help text.
struct Named(&'static str, &'static str, Function, &'static str);

const fn figure(figure: Figure) -> Function {
    Function::Figure(figure, 1.0)
}

/// Functions whose names say everything; `percentile`, and `p95` and the like, have a number.
const NAMED: [Named; 19] = [
    Named("count", "", figure(Figure::Count), "points with a value"),
    Named(
        "nan_count",
        "nan-count",
        Function::NanCount,
        "points whose value is NaN",
    ),
    Named("sum", "", figure(Figure::Sum), "sum"),
    Named("mean", "", figure(Figure::Mean), "mean"),
    Named("min", "", figure(Figure::Min), "smallest value"),
    Named(
        "min_time",
        "min-time",
        Function::MinTime,
        "time of the smallest value",
    ),
    Named("max", "", figure(Figure::Max), "largest value"),
    Named(
        "max_time",
        "max-time",
        Function::MaxTime,
        "time of the largest value",
    ),
    Named("first", "", figure(Figure::First), "oldest value"),
    Named("last", "", figure(Figure::Last), "newest value"),
    Named(
        "stddev",
        "",
        figure(Figure::Stddev),
        "standard deviation of the population",
    ),
    Named(
        "spread",
        "",
        figure(Figure::Spread),
        "largest minus smallest value",
    ),
    Named(
        "median",
        "",
        figure(Figure::Median),
        "value in the middle; p95, p99.9, percentile(95) are others",
    ),
    Named(
        "distinct",
        "",
        figure(Figure::Distinct),
        "number of distinct values",
    ),
    Named("mode", "", figure(Figure::Mode), "most frequent value"),
    Named(
        "time_mean",
        "twa",
        figure(Figure::TimeMean(Interpolation::Linear)),
        "mean weighted by time; time_mean(previous) if values hold until the next",
    ),
    Named(
        "integral",
        "",
        figure(Figure::Integral(Interpolation::Linear)),
        "integral over time in seconds; integral(1h) in hours, integral(previous)",
    ),
    Named(
        "delta",
        "",
        figure(Figure::Delta),
        "change since the last value before",
    ),
    Named(
        "increase",
        "",
        figure(Figure::Increase),
        "rise of a counter that may restart at 0",
    ),
];

/// `rate`, which has an argument of its own kind.
const RATE: Named = Named(
    "rate",
    "",
    figure(Figure::Rate),
    "increase per second; rate(1h) per hour",
);

const NANOS_PER_SECOND: f64 = 1e9;

/// The parts of a list between commas that stand in no brackets and no quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut quoted, mut begin) = (0_usize, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            c if c == separator && !quoted && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + c.len_utf8();
            }
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
            // The output writes rate(1h)(power) for rate(1h,power).
            let inner: Vec<&str> = inner.split(")(").collect();
            let parts = inner.into_iter().flat_map(|part| split(part, ','));
            (name.trim(), parts.collect())
        }
        None => (text, Vec::new()),
    };
    let lower = name.to_ascii_lowercase();
    let named = NAMED.iter().chain([&RATE]);
    let mut found = None;
    for Named(own, other, function, _) in named {
        if lower == *own || (!other.is_empty() && lower == *other) {
            found = Some(Asked::plain(*function, own));
        }
    }
    let short = lower.strip_prefix('p').and_then(percentage);
    let mut asked = match (found, short) {
        (Some(asked), _) => asked,
        (None, Some(percent)) => percentile(percent)?,
        (None, None) if lower == "percentile" => {
            Asked::plain(figure(Figure::Percentile(f64::NAN)), "")
        }
        (None, None) => return Err(format!("`{name}` is no function: give {}", names(|_| true))),
    };
    for argument in arguments {
        apply(&mut asked, argument.trim()).map_err(|problem| format!("`{text}`: {problem}"))?;
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
    let named = NAMED.iter().chain([&RATE]);
    let names: Vec<&str> = named
        .filter(|named| chosen(named.2))
        .map(|named| named.0)
        .collect();
    format!("{}, or a percentile such as p95", names.join(", "))
}

/// Whether the result of a function is a time.
fn is_time(function: Function) -> bool {
    matches!(function, Function::MinTime | Function::MaxTime)
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

/// Applies an argument in the brackets of a function.
fn apply(asked: &mut Asked, argument: &str) -> Result<(), String> {
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
            *asked = Asked {
                of: asked.of.take(),
                ..percentile(percent)?
            };
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

/// The parser of a list of functions, for the command line.
#[derive(Clone)]
pub(crate) struct ListParser;

impl TypedValueParser for ListParser {
    type Value = FunctionList;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<FunctionList, clap::Error> {
        let parse = |text: &str| {
            let each = split(text, ',').into_iter().map(one);
            each.collect::<Result<_, _>>().map(FunctionList)
        };
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(possible_values(NAMED.iter().chain([&RATE]))))
    }
}

/// The parser of a single function whose value is a number.
#[derive(Clone)]
pub(crate) struct DrawnParser;

impl TypedValueParser for DrawnParser {
    type Value = Asked;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Asked, clap::Error> {
        let parse = |text: &str| {
            let asked = one(text)?;
            match (asked.function, &asked.of) {
                (function, _) if is_time(function) => Err(format!(
                    "{text} is a time, which cannot be drawn: give {}",
                    names(|function| !is_time(function))
                )),
                (_, Some(of)) => Err(format!("`{text}`: give the column with --column {of}")),
                _ => Ok(asked),
            }
        };
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let is_time = |named: &&Named| matches!(named.2, Function::MinTime | Function::MaxTime);
        let drawn = NAMED.iter().chain([&RATE]);
        Some(Box::new(possible_values(
            drawn.filter(move |named| !is_time(named)),
        )))
    }
}

fn possible_values<'a>(
    named: impl Iterator<Item = &'a Named>,
) -> impl Iterator<Item = PossibleValue> {
    named.map(|Named(name, _, _, help)| PossibleValue::new(*name).help(*help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Asked>, String> {
        split(text, ',').into_iter().map(one).collect()
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
            "rate(1h",
            "percentile(200)",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
