//! `candles`.

use super::common::{ColumnArg, FormatArg, PatternArg, RangeArgs, VersionArgs};
use crate::time::width_nanos;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints one line for each chunk of adjacent points: first and last time, number of values, first,
lowest, highest and last value, and mean. The chunks are the parts in which the file stores the
series with their statistics, so hardly any points are read: a quick overview of billions of points.
For candles of a fixed width use windows:
  tidalite window plant.tdl price --by 1d --fn first,min,max,last

Examples:
  tidalite candles plant.tdl price --level 1
  tidalite candles plant.tdl price --width 1d --from 2014 --to 2015 --format csv")]
pub(crate) struct CandlesArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    #[command(flatten)]
    pub which: PatternArg,

    #[command(flatten)]
    pub size: CandleSizeArg,

    #[command(flatten)]
    pub range: RangeArgs,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

/// Size of a candle.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct CandleSizeArg {
    /// Use chunks of the tree at this height: 0 up to 1024 points, 1 up to 16 times as many, from 2 on up to 64 times
    /// as many as the level below
    #[arg(long, value_name = "HEIGHT")]
    pub level: Option<u8>,

    /// Use the largest chunks whose first and last point are less than this time apart: 1h, 1d
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub width: Option<i64>,
}
