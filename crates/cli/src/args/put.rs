//! `put`.

use super::common::{DurabilityArg, ZoneArg};
use super::import::UnitName;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = "\
A new series stores numbers as doubles, true and false as such, and whole numbers that need more
than the 53 bits of a double as 64-bit whole numbers. A series with several columns takes a value
for each of them, in their order; null is a missing value. A time relative to the present (now,
today, -1d) is rounded down to the unit of the series.

A point replaces the one at the same time, unless the merge policy of the series says otherwise
(tidalite annotate --merge). Each call is a durable commit; for many points, import is faster.

Examples:
  tidalite put plant.tdl tank.level now 21.5
  tidalite put plant.tdl 'pump.on{pump=\"2\"}' '2014-06-01 12:30' true --tz Europe/Berlin
  tidalite put plant.tdl log now 3 'valve opened' null")]
pub(crate) struct PutArgs {
    /// Database file; created if it does not exist
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Full name of the series with its tags; created if it does not exist
    #[arg(value_name = "SERIES")]
    pub series: String,

    /// Time of the point: now, -1d, 2014-06-01, '2014-06-01 12:30', an RFC 3339 time, or a number since 1970
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    pub time: String,

    /// Value of the point, or a value for each column of the series
    #[arg(required = true, value_name = "VALUE", allow_negative_numbers = true)]
    pub values: Vec<String>,

    #[command(flatten)]
    pub zone: ZoneArg,

    /// Unit of the times if the series is created
    #[arg(long, value_enum, default_value_t, value_name = "UNIT")]
    pub unit: UnitName,

    #[command(flatten)]
    pub durability: DurabilityArg,
}
