//! `changed`.

use super::common::{AnyPatternArg, FormatArg, VersionArgs, ZoneArg};
use crate::time::width_nanos;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
One line for each range of times at which points were stored, changed or removed since the pin: its
first and last time, and how many points it had then and has now. What is the same in both versions
is not read, so it is quick however much there is. A series that came or went since is one range.

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
