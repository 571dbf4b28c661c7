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

    /// Since the version that this pin keeps
    #[arg(long, value_name = "NAME")]
    pub since: String,

    /// Rather quick than exact: what changed is told to so much, with times between that may not have changed
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub resolution: Option<i64>,

    #[command(flatten)]
    pub zone: ZoneArg,

    #[command(flatten)]
    pub format: FormatArg,
}
