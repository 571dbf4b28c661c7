//! Arguments that several commands share.

use crate::output::Format;
use crate::time::{width_nanos, zone_named};
use clap::{Args, ValueEnum, ValueHint};
use jiff::tz::TimeZone;
use std::path::PathBuf;

/// The database file, which must exist.
#[derive(Debug, Args)]
pub(crate) struct FileArg {
    /// Database file
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// The database file, and the version to read.
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Database file
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Read the version of this pin instead of the newest
    #[arg(long, value_name = "NAME")]
    pub pin: Option<String>,
}

/// Selects at least one series.
#[derive(Debug, Args)]
pub(crate) struct PatternArg {
    /// Series to select
    #[arg(value_name = "SERIES")]
    pub pattern: String,
}

/// Selects some series, or all.
#[derive(Debug, Args)]
pub(crate) struct AnyPatternArg {
    /// Series to select; all if not given
    #[arg(default_value = "", hide_default_value = true, value_name = "SERIES")]
    pub pattern: String,
}

/// Bounds the I/O rate of a command that runs beside other work.
#[derive(Debug, Args)]
pub(crate) struct RateArg {
    /// Maximum rate in MiB per second
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub rate: u64,
}

impl RateArg {
    /// Bytes per second; 0 for no limit.
    pub(crate) fn bytes(&self) -> u64 {
        self.rate << 20
    }
}

/// Selects a time range, and the zone in which times are parsed and shown.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// Start time, inclusive: 2014-06-01, '2014-06-01 12:30', an RFC 3339 time, a number since 1970, or relative to the
    /// present: now, today, -1d, now-6h, today+8h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,

    /// End time, exclusive
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,

    /// Only the newest part of each series, up to its newest point (in a join up to the newest point of all series):
    /// 7d, 90m, 1h30m
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, conflicts_with_all = ["from", "to"])]
    pub last: Option<i64>,

    #[command(flatten)]
    pub zone: ZoneArg,
}

#[derive(Debug, Args)]
pub(crate) struct ZoneArg {
    /// Zone of the times shown, and of times given without an offset:
    /// Europe/Berlin, local, UTC
    ///
    /// A time given without an offset that clocks repeat is the earlier of its two instants; one that clocks skip is
    /// the instant after the gap.
    #[arg(long, value_name = "ZONE", value_parser = zone_named, default_value = "UTC")]
    pub tz: TimeZone,
}

#[derive(Debug, Args)]
pub(crate) struct FormatArg {
    /// Format of rows
    #[arg(long, short = 'f', value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Keeps a command running.
#[derive(Debug, Args)]
pub(crate) struct FollowArg {
    /// Then wait for further commits and print the points that they add or change, until interrupted
    #[arg(long, conflicts_with = "pin")]
    pub follow: bool,

    /// With --follow: time between two looks at the database; the version printed last is retained meanwhile
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, default_value = "500ms", requires = "follow")]
    pub every: i64,
}

/// Format of a report that is not made of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Lines of text, for reading
    #[default]
    Text,
    /// JSON, every figure exact
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ReportFormatArg {
    /// Format of the output
    #[arg(long, short = 'f', value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,
}

impl ReportFormatArg {
    pub(crate) fn is_json(&self) -> bool {
        self.format == ReportFormat::Json
    }
}

/// Properties of a file that a command creates.
#[derive(Debug, Args)]
pub(crate) struct CreatedArg {
    /// Page size in bytes of a file that is created: a power of two from 512 to 262144; 4096 if not given
    #[arg(long, value_name = "BYTES", value_parser = page_size)]
    pub page_size: Option<usize>,
}

fn page_size(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if bytes.is_power_of_two() && (512..=256 * 1024).contains(&bytes) => Ok(bytes),
        _ => Err("give a power of two from 512 to 262144".to_owned()),
    }
}

/// Durability of commits.
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
    /// As durable, with one disk flush from the second small commit on; see the library's manual for the price
    OneFlush,
    /// It survives a crash of the program, and a power cut once a later commit is durable
    Lazy,
}

/// Selects a column of a series; most series have one.
#[derive(Debug, Args)]
pub(crate) struct ColumnArg {
    /// Column to use if a series has several; if not given `value`, or else the last one that holds numbers (floats,
    /// integers, decimals, truth values)
    #[arg(long, short = 'c', value_name = "COLUMN")]
    pub column: Option<String>,
}
