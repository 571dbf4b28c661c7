//! Commands that read series.

use super::common::{
    AnyPatternArg, ColumnArg, FollowArg, FormatArg, PatternArg, RangeArgs, VersionArgs, ZoneArg,
};
use super::figure_list::{Asked, FunctionList, drawn_parser, list_parser};
use super::filter::{FilterArgs, Wanted};
use super::functions::{Arithmetic, RowFunction};
use super::window_width::{WindowWidth, window_width};
use crate::time::age_nanos;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use tidalite::query::{Fill, Interpolation};

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite series plant.tdl
  tidalite series plant.tdl 'hb.*'
  tidalite series plant.tdl '*{turbine=\"R80711\"}' --format json
  tidalite series plant.tdl '*{turbine in (\"R80711\",\"R80712\")}'
  tidalite series plant.tdl 'wind*{farm=\"hb\",state!=\"VIC\",turbine=~\"R8.*\"}'
  tidalite series plant.tdl '{site=\"north\"*,not (farm=\"hb\",turbine=\"R80711\")}'
  tidalite series plant.tdl '{farm=\"hb\"}{turbine=\"R80711\"}'
  tidalite series plant.tdl --names

Patterns:
  In a metric `*` matches any characters and `?` one; in quotes they are literal. Conditions on
  tags stand in braces, and all must hold; if there are several sets in braces, one must match.

  tag=\"value\"           the value; outside quotes * and ? are wildcards: site=\"north\"*
  tag!=\"value\"          another value, or none
  tag=~\"regex\"          the regular expression matches the whole value
  tag!~\"regex\"          it does not
  tag in (\"a\",\"b\")     one of the values
  tag not in (\"a\",\"b\") none of them
  not (CONDITIONS)      the conditions do not all hold

  A missing tag has the empty value: tag=\"\" selects series without the tag, tag!=\"\" those with it.
  Simple values need no quotes: '*{origin=JFK}'.")]
pub(crate) struct SeriesArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    #[command(flatten)]
    pub which: AnyPatternArg,

    /// List the metrics, tags, values and units of the series instead, with the number of series that have each
    #[arg(long)]
    pub names: bool,

    #[command(flatten)]
    pub zone: ZoneArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite scan plant.tdl 'wind_speed{turbine=\"R80711\"}' --from 2014-06-01 --to 2014-06-02
  tidalite scan plant.tdl wind_speed --last 1h --format csv > hour.csv
  tidalite scan plant.tdl wind_speed --limit 10
  tidalite scan plant.tdl wind_speed --limit 10 --offset 20
  tidalite scan plant.tdl wind_speed --tail 10
  tidalite scan plant.tdl wind_speed --reverse --limit 10
  tidalite scan plant.tdl wind_speed --where '25<..' --last 30d
  tidalite scan plant.tdl wind_speed --pin 'before the rebuild'
  tidalite scan plant.tdl alarms --regex '^pump [0-9]+: (timeout|leak)'
  tidalite scan plant.tdl energy --fn 'rate(1h)' --last 1d
  tidalite scan plant.tdl wind_speed --fn 'mean(10m)'
  tidalite scan plant.tdl alarms --frequent 10
  tidalite scan plant.tdl alarms --tail 10 --follow")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    #[command(flatten)]
    pub which: PatternArg,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Maximum number of points of each series
    #[arg(
        long,
        short = 'n',
        value_name = "POINTS",
        allow_negative_numbers = true,
        conflicts_with = "follow"
    )]
    pub limit: Option<u64>,

    /// Number of points of each series to skip: the second page of --limit 10 has --offset 10
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "POINTS",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with = "follow"
    )]
    pub offset: u64,

    /// Newest first, within each series
    #[arg(long, conflicts_with_all = ["function", "frequent", "follow"])]
    pub reverse: bool,

    /// Only the newest points, at most this many; for several series the newest of all together, in the order of their
    /// times
    #[arg(
        long,
        value_name = "POINTS",
        allow_negative_numbers = true,
        conflicts_with_all = ["limit", "offset", "function", "frequent"]
    )]
    pub tail: Option<usize>,

    /// Also print the flags of each point
    #[arg(long)]
    pub flags: bool,

    #[command(flatten)]
    pub follow: FollowArg,

    #[command(flatten)]
    pub wanted: FilterArgs,

    /// Only points whose text matches, in --column or in the last column of strings
    #[arg(long, value_name = "REGEX", conflicts_with_all = ["function", "filters"])]
    pub regex: Option<regex::Regex>,

    /// Print a function of a column instead of its values: difference, derivative(WIDTH) or rate(WIDTH) (of a counter
    /// that may restart; 1s if no width is given), mean(ROWS) or mean(WIDTH) of the last rows, ewma(ROWS) or
    /// ewma(WIDTH) of all rows, with smaller weights for older ones, mean_error or ewma_error, the difference from the
    /// mean before, or the running sum
    #[arg(long = "fn", value_name = "FUNCTION", value_parser = RowFunction::parse, conflicts_with_all = ["flags", "filters", "follow"])]
    pub function: Option<RowFunction>,

    /// Print the VALUES most frequent values and their counts instead of the points. If a series has more distinct
    /// values than fit in 256 MiB, the counts are estimates, from at_least to at_most, and count is empty
    #[arg(long, value_name = "VALUES", allow_negative_numbers = true, conflicts_with_all = ["function", "flags", "regex", "filters", "limit", "offset", "follow"])]
    pub frequent: Option<usize>,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite latest plant.tdl
  tidalite latest plant.tdl '*{turbine=\"R80711\"}' --tz local
  tidalite latest plant.tdl --pin monday
  tidalite latest plant.tdl --follow --every 5s --format json
  tidalite latest plant.tdl wind_speed --at 2014-06-01T12:07
  tidalite latest plant.tdl wind_speed --at 2014-06-01T12:07 --between linear

Series with different columns share the table; the cell of a column that a series lacks is empty.")]
pub(crate) struct LatestArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    #[command(flatten)]
    pub which: AnyPatternArg,

    /// Print the last point at or before this time instead of the newest one
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        conflicts_with = "follow"
    )]
    pub at: Option<String>,

    /// Print the values at exactly the time of --at: linear (between the points before and after) or previous (the
    /// value of the point before)
    #[arg(long, value_name = "HOW", value_parser = interpolation_named, requires = "at")]
    pub between: Option<Interpolation>,

    #[command(flatten)]
    pub follow: FollowArg,

    #[command(flatten)]
    pub zone: ZoneArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The result is computed from statistics in the tree: a year of data takes no longer than a day. Only
the functions from median on, without spread, read the points.

Percentiles are interpolated and exact up to 100,000 points. time_mean and integral take the values
as straight lines from point to point, or with (previous) as steps. delta, increase and rate count
from the last point before the range.

Examples:
  tidalite aggregate plant.tdl wind_speed
  tidalite aggregate plant.tdl wind_speed --fn mean,max,max_time --from 2014-06-01 --to 2014-07-01
  tidalite aggregate plant.tdl 'cpu.*' --fn mean,max --top 10 --last 1h
  tidalite aggregate plant.tdl wind_speed --fn 'median,p95,percentile(99.9)'
  tidalite aggregate plant.tdl wind_speed --where '4..25' --fn count,mean")]
pub(crate) struct AggregateArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    #[command(flatten)]
    pub which: PatternArg,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Functions to compute, separated by commas; max(high) reads the column high
    #[arg(
        long = "fn",
        value_parser = list_parser(),
        value_name = "FUNCTIONS",
        default_value = "count,mean,min,min_time,max,max_time,stddev"
    )]
    pub functions: Vec<FunctionList>,

    #[command(flatten)]
    pub wanted: FilterArgs,

    /// Only this many series: those with the largest first figure, in descending order
    #[arg(long, value_name = "SERIES", conflicts_with = "bottom")]
    pub top: Option<usize>,

    /// Only this many series: those with the smallest first figure, in ascending order
    #[arg(long, value_name = "SERIES")]
    pub bottom: Option<usize>,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A window begins at its time and ends before the next window. Windows without a point are omitted.

Days (d), weeks (w), months (mo), quarters (q) and years (y) follow the calendar in the zone of
--tz: they begin at midnight there, weeks on Monday, and a day has 23 or 25 hours where clocks are
set. --origin makes weeks begin on another weekday, and years and quarters in another month. Hours and
shorter widths are fixed, and so is 24h; they are aligned to midnight of 1970-01-01 in the zone of
--tz (with its offset at the beginning of the data), or to --origin.

Examples:
  tidalite window plant.tdl wind_speed --by 1d --fn mean,max
  tidalite window plant.tdl wind_speed --by 15m --last 6h --format csv
  tidalite window plant.tdl power --by 1mo --tz Europe/Berlin --fn count,sum
  tidalite window plant.tdl power --by 1y --origin 2013-04-01 --fn sum
  tidalite window plant.tdl power --by 1d --where '0<..' --fn count,mean
  tidalite window plant.tdl power --by 1d --fn 'p95,time_mean,integral(1h)'
  tidalite window plant.tdl requests --by 1h --fn 'increase,rate(1m)'
  tidalite window plant.tdl candle --by 1d --fn 'first(open),max(high),min(low),last(close),sum(volume)'

Percentiles are interpolated and exact up to 100,000 points of a window. time_mean and integral take
the values as straight lines from point to point, also across the ends of a window, or with
(previous) as steps. delta, increase and rate count from the last point before the window.

With --group-by the series of a metric are aggregated together: one line for each window and each
combination of values of these tags. Series of several metrics are refused unless --by-metric
separates them or --mix-metrics mixes them. --fill also prints windows without a value; their count
is 0.
  tidalite window plant.tdl power --by 1h --fn mean,max --group-by park
  tidalite window plant.tdl power --by 1h --fn mean --group-by '' --fill linear

With --by-metric the metrics are printed side by side, with a column for each figure; max(power) is
a function of the metric power only:
  tidalite window plant.tdl '*' --by 1h --fn mean,max --group-by turbine --by-metric
  tidalite window plant.tdl '*' --by 1d --fn 'last(price),sum(volume)' --group-by isin --by-metric")]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    #[command(flatten)]
    pub which: PatternArg,

    /// Width of a window: 500ms, 10s, 15m, 1h, 1d, 1w, 1mo, 1q, 1y
    #[arg(long, value_name = "WIDTH", value_parser = window_width)]
    pub by: WindowWidth,

    /// Functions to compute, separated by commas; max(high) reads the column high
    #[arg(
        long = "fn",
        value_parser = list_parser(),
        value_name = "FUNCTIONS",
        default_value = "count,mean,min,max"
    )]
    pub functions: Vec<FunctionList>,

    #[command(flatten)]
    pub wanted: FilterArgs,

    /// Aggregate series together that have the same values of these tags; '' aggregates all of them together
    #[arg(
        long,
        value_name = "TAGS",
        value_delimiter = ',',
        conflicts_with = "filters"
    )]
    pub group_by: Option<Vec<String>>,

    /// One line for each window and group with the figures of every metric, `mean(power)` next to `mean(wind_speed)`
    #[arg(long, requires = "group_by")]
    pub by_metric: bool,

    /// Aggregate the values of different metrics together, which --group-by rejects otherwise
    #[arg(long, requires = "group_by", conflicts_with = "by_metric")]
    pub mix_metrics: bool,

    /// Value of a window that has none: null, previous, linear, or a number. Its count is always 0
    #[arg(long, value_name = "WHAT", value_parser = fill_named, allow_hyphen_values = true, conflicts_with = "filters")]
    pub fill: Option<Fill>,

    /// A time at which a window begins
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub origin: Option<String>,

    #[command(flatten)]
    pub range: RangeArgs,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

fn interpolation_named(text: &str) -> Result<Interpolation, String> {
    match text {
        "linear" => Ok(Interpolation::Linear),
        "previous" => Ok(Interpolation::Previous),
        _ => Err(format!("`{text}`: give linear or previous")),
    }
}

fn fill_named(text: &str) -> Result<Fill, String> {
    match text {
        "null" => Ok(Fill::Null),
        "previous" => Ok(Fill::Previous),
        "linear" => Ok(Fill::Linear),
        _ => text
            .parse()
            .map(Fill::Value)
            .map_err(|_| format!("`{text}`: give null, previous, linear, or a number")),
    }
}

/// Selects the rows of several series to join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum JoinKind {
    /// Times at which any series has a point
    #[default]
    Outer,
    /// Times at which every series has a point
    Inner,
    /// Each point of the first series, with the last point at or before it of each other series
    AsOf,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints one line for each time, with a column for each series. If a series has several points at one
time, the last to arrive is used.

Examples:
  tidalite join plant.tdl wind_speed power --last 1h
  tidalite join plant.tdl power power_limit --combine ratio --kind inner
  tidalite join plant.tdl power wind_speed --kind inner --where 'power=..0' --where 'wind_speed=4..'
  tidalite join plant.tdl trades quotes --kind as-of --tolerance 500ms --format csv")]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    /// Series to join
    #[arg(value_name = "SERIES", required = true)]
    pub patterns: Vec<String>,

    /// Points to join
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    pub kind: JoinKind,

    /// For two series: print one result for each pair of points, instead of both values
    #[arg(long, value_enum, value_name = "WHAT")]
    pub combine: Option<Arithmetic>,

    /// Only rows in which this series has a value from LOW to HIGH, both inclusive. Either end may be omitted, `<` next
    /// to the dots makes an end exclusive, and a single value selects that value. If repeated, all conditions must hold
    #[arg(long = "where", value_name = "SERIES=LOW..HIGH", value_parser = Wanted::parse, conflicts_with = "combine")]
    pub wanted: Vec<Wanted>,

    /// With as-of: maximum age of a joined point
    #[arg(long, value_name = "WIDTH", value_parser = age_nanos)]
    pub tolerance: Option<i64>,

    #[command(flatten)]
    pub range: RangeArgs,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The first, lowest, highest and last value of every pixel column are drawn, so a spike of one point
among millions is visible. With --by, one value per window is drawn instead. With --band, and in SVG
and PNG pictures of very many points, a pale band reaches from the lowest to the highest value of
each column, and the line is the mean. These come from the tree, so a billion points take no longer.

The axes show units from the annotation `unit`; series of two units get an axis each:
  tidalite annotate plant.tdl wind_speed --set unit=m/s

Examples:
  tidalite plot plant.tdl wind_speed --last 7d
  tidalite plot plant.tdl power --by 1d --fn mean
  tidalite plot plant.tdl power --band --png power.png
  tidalite plot plant.tdl 'wind_speed{turbine=\"R80711\"}' --svg wind.svg --png wind.png")]
pub(crate) struct PlotArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    /// Series to draw; several share the picture
    #[arg(value_name = "SERIES", required = true)]
    pub patterns: Vec<String>,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Draw one value for each window of this width: 15m, 1h, 1d, 1mo
    #[arg(long, value_name = "WIDTH", value_parser = window_width)]
    pub by: Option<WindowWidth>,

    /// Draw the mean, and behind it a pale band from the lowest to the highest value
    #[arg(long, conflicts_with = "by")]
    pub band: bool,

    /// Function to draw for each window
    #[arg(
        long = "fn",
        value_name = "FUNCTION",
        default_value = "mean",
        value_parser = drawn_parser(),
        requires = "by"
    )]
    pub function: Asked,

    #[command(flatten)]
    pub column: ColumnArg,

    /// Write an SVG file instead of drawing in the terminal; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    /// Write a PNG file instead of drawing in the terminal; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub png: Option<PathBuf>,

    /// Overwrite existing files
    #[arg(long)]
    pub replace: bool,

    /// Title of the picture; the name of the series if not given
    #[arg(long)]
    pub title: Option<String>,

    /// Width in characters; in pixels for --svg and --png, at least 160
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pub width: Option<u32>,

    /// Height in lines; in pixels for --svg and --png, at least 90
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub height: Option<u32>,
}
