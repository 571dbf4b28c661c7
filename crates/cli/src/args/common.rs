//! Arguments that several commands share.

use crate::output::Format;
use crate::time::{width_nanos, zone_named};
use clap::{Args, ValueEnum, ValueHint};
use jiff::tz::TimeZone;
use std::path::PathBuf;

/// The database file, which must be there.
#[derive(Debug, Args)]
pub(crate) struct FileArg {
    /// Database file
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// The database file, and which version of it is read.
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Database file
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Read the version that this pin keeps, instead of the newest
    #[arg(long, value_name = "NAME")]
    pub pin: Option<String>,
}

/// Which series: one at least.
#[derive(Debug, Args)]
pub(crate) struct PatternArg {
    /// Which series
    #[arg(value_name = "SERIES")]
    pub pattern: String,
}

/// Which series, or all.
#[derive(Debug, Args)]
pub(crate) struct AnyPatternArg {
    /// Which series; all if not given
    #[arg(default_value = "", hide_default_value = true, value_name = "SERIES")]
    pub pattern: String,
}

/// How fast a file is read or written beside other work.
#[derive(Debug, Args)]
pub(crate) struct RateArg {
    /// At most so many mebibytes a second
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub rate: u64,
}

impl RateArg {
    /// Bytes a second; 0: no bound.
    pub(crate) fn bytes(&self) -> u64 {
        self.rate << 20
    }
}

/// Which part of a series, and in which zone times are read and shown.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// Begin here, this time included: 2014-06-01, '2014-06-01 12:30', an RFC 3339 time,
    /// or a number since 1970
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,

    /// End before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,

    /// Only the newest part of each series, up to its newest point (in a join up to the newest point of all): 7d, 90m, 1h30m
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, conflicts_with_all = ["from", "to"])]
    pub last: Option<i64>,

    #[command(flatten)]
    pub zone: ZoneArg,
}

#[derive(Debug, Args)]
pub(crate) struct ZoneArg {
    /// Zone of times that are shown, and of times given without an offset:
    /// Europe/Berlin, local, UTC
    ///
    /// A time given without an offset that clocks repeat is the earlier of its two instants; one that clocks skip is the
    /// instant after the gap.
    #[arg(long, value_name = "ZONE", value_parser = zone_named, default_value = "UTC")]
    pub tz: TimeZone,
}

#[derive(Debug, Args)]
pub(crate) struct FormatArg {
    /// How to print rows
    #[arg(long, short = 'f', value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// What a file is like that a command creates.
#[derive(Debug, Args)]
pub(crate) struct CreatedArg {
    /// Bytes of a page of a file that is created: a power of two from 512 to 262144; 4096 if not given
    #[arg(long, value_name = "BYTES", value_parser = page_size)]
    pub page_size: Option<usize>,
}

fn page_size(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if bytes.is_power_of_two() && (512..=256 * 1024).contains(&bytes) => Ok(bytes),
        _ => Err("give a power of two from 512 to 262144".to_owned()),
    }
}

/// How commits become durable.
#[derive(Debug, Args)]
pub(crate) struct DurabilityArg {
    /// When a commit counts as done
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub durability: DurabilityName,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityName {
    /// It survives a power cut
    #[default]
    Durable,
    /// The same with one flush of the disk from the second small commit on; see the library's manual for the price
    OneFlush,
    /// It survives the program, and a power cut once a later commit is durable
    Lazy,
}

/// Which column of a series; most have one value.
#[derive(Debug, Args)]
pub(crate) struct ColumnArg {
    /// Column to use, where a series has several; if not given `value`, or else the last one that holds numbers (floats, integers, decimals,
    /// truth values)
    #[arg(long, short = 'c', value_name = "COLUMN")]
    pub column: Option<String>,
}

/// One figure of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Function {
    /// Points
    Count,
    /// Points whose value is NaN
    #[value(alias = "nan_count")]
    NanCount,
    /// Sum
    Sum,
    /// Mean
    Mean,
    /// Smallest value
    Min,
    /// When it was
    #[value(alias = "min_time")]
    MinTime,
    /// Largest value
    Max,
    /// When it was
    #[value(alias = "max_time")]
    MaxTime,
    /// Oldest value
    First,
    /// Newest value
    Last,
    /// Standard deviation of the population
    Stddev,
}
