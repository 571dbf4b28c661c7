//! `candles`.

use super::common::{ColumnArg, FormatArg, PatternArg, RangeArgs, VersionArgs};
use crate::time::width_nanos;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
One line for each piece of a series: its first and last time, how many values it has, the first, lowest,
highest and last of them, and their mean. Pieces are those that the file has anyway, of neighbouring
points, so few points are read however many there are: a first look at billions. Candles of one fixed
width are windows: tidalite window plant.tdl price --by 1d --fn first,min,max,last

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
