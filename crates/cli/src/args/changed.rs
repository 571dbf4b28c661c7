//! `changed`.

use super::common::{AnyPatternArg, FormatArg, VersionArgs, ZoneArg};
use crate::time::width_nanos;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints one line for each time range in which points were stored, changed or removed since the pin:
its first and last time, and its number of points then and now. Parts that both versions share are
not read, so the cost depends on the changes alone. A series created or removed since is one range.

Examples:
  tidalite pins plant.tdl --add monday
  tidalite changed plant.tdl --since monday
  tidalite changed plant.tdl 'hb.*' --since monday --pin tuesday --format csv
  tidalite changed plant.tdl --since monday --resolution 1h")]
pub(crate) struct ChangedArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    #[command(flatten)]
    pub which: AnyPatternArg,

    /// Compare with the version of this pin
    #[arg(long, value_name = "NAME")]
    pub since: String,

    /// Approximate: merge changes closer than this; the result may include times without a change
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub resolution: Option<i64>,

    #[command(flatten)]
    pub zone: ZoneArg,

    #[command(flatten)]
    pub format: FormatArg,
}
