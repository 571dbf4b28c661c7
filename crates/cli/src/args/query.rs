//! Commands that read series.

use super::common::{ColumnArg, FileArg, FormatArg, Function, RangeArgs, ZoneArg};
use crate::time::width_nanos;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite series plant.tdl
  tidalite series plant.tdl 'hb.*'
  tidalite series plant.tdl '*{turbine=\"R80711\"}' --format json")]
pub(crate) struct SeriesArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series; all if not given
    #[arg(default_value = "", hide_default_value = true, value_name = "SERIES")]
    pub pattern: String,

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
  tidalite scan plant.tdl wind_speed --limit 10")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series
    #[arg(value_name = "SERIES")]
    pub pattern: String,

    #[command(flatten)]
    pub range: RangeArgs,

    /// At most so many points of each series
    #[arg(long, short = 'n', value_name = "POINTS")]
    pub limit: Option<u64>,

    /// Also print the flags of every point
    #[arg(long)]
    pub flags: bool,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite latest plant.tdl
  tidalite latest plant.tdl '*{turbine=\"R80711\"}' --tz local")]
pub(crate) struct LatestArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series; all if not given
    #[arg(default_value = "", hide_default_value = true, value_name = "SERIES")]
    pub pattern: String,

    #[command(flatten)]
    pub zone: ZoneArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The answer comes from the tree: a year of data takes no longer than a day.

Examples:
  tidalite aggregate plant.tdl wind_speed
  tidalite aggregate plant.tdl wind_speed --fn mean,max,max-time --from 2014-06-01 --to 2014-07-01")]
pub(crate) struct AggregateArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series
    #[arg(value_name = "SERIES")]
    pub pattern: String,

    #[command(flatten)]
    pub range: RangeArgs,

    /// What to compute
    #[arg(
        long = "fn",
        value_enum,
        value_delimiter = ',',
        value_name = "FUNCTIONS",
        default_value = "count,mean,min,min-time,max,max-time,stddev"
    )]
    pub functions: Vec<Function>,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A window begins at its time and ends before the next. Windows have one fixed width and are
aligned to midnight of 1970-01-01 in the zone of --tz (with its offset where the data begin),
or to --origin. Windows without a point are left out.

Examples:
  tidalite window plant.tdl wind_speed --by 1d --fn mean,max
  tidalite window plant.tdl wind_speed --by 15m --last 6h --format csv
  tidalite window plant.tdl power --by 1w --origin 2014-01-06 --fn count,sum")]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series
    #[arg(value_name = "SERIES")]
    pub pattern: String,

    /// Width of a window: 500ms, 10s, 15m, 1h, 1d, 1w
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub by: i64,

    /// What to compute
    #[arg(
        long = "fn",
        value_enum,
        value_delimiter = ',',
        value_name = "FUNCTIONS",
        default_value = "count,mean,min,max"
    )]
    pub functions: Vec<Function>,

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

#[derive(Debug, Args)]
#[command(after_long_help = "\
Of every pixel column the first, lowest, highest and last value are drawn, so a spike of one
point among millions is seen. With --by, one value a window is drawn instead.

Examples:
  tidalite plot plant.tdl wind_speed --last 7d
  tidalite plot plant.tdl power --by 1d --fn mean
  tidalite plot plant.tdl 'wind_speed{turbine=\"R80711\"}' --svg wind.svg --png wind.png")]
pub(crate) struct PlotArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series; several share the picture
    #[arg(value_name = "SERIES", required = true)]
    pub patterns: Vec<String>,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Draw one value for every window of this width
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub by: Option<i64>,

    /// Which value of a window
    #[arg(
        long = "fn",
        value_enum,
        value_name = "FUNCTION",
        default_value = "mean",
        requires = "by"
    )]
    pub function: Function,

    #[command(flatten)]
    pub column: ColumnArg,

    /// Write an SVG file instead of drawing in the terminal; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    /// Write a PNG file instead of drawing in the terminal
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub png: Option<PathBuf>,

    /// Above the picture; the name of the series if not given
    #[arg(long)]
    pub title: Option<String>,

    /// Width in characters; in pixels for --svg and --png
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pub width: Option<u32>,

    /// Height in lines; in pixels for --svg and --png
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub height: Option<u32>,
}
