//! `export`.

use super::common::{RangeArgs, VersionArgs};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Comma-separated values with a header
    Csv,
    /// One JSON object per line
    Json,
    /// Apache Parquet; in builds with the feature sql
    Parquet,
    /// Arrow IPC, the file format (Feather); in builds with the feature sql
    Arrow,
}

/// Units of times as numbers since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EpochUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

impl EpochUnit {
    pub(crate) fn nanos(self) -> i128 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Writes one row for every row of every series: name, time, columns. With --wide it writes one row
for every time and combination of tags, with a column for each tag and each metric; `import` reads
this form. A metric whose series have several columns gets a column for each, called METRIC.COLUMN;
read it with import --into METRIC --columns METRIC.COLUMN=COLUMN:TYPE,... A file appears under its
name only when it is complete; files named .gz and .zst are compressed.

CSV contains NaN, inf and -inf as words, and an empty field for a missing value. JSON has no such
numbers, so they are the strings \"NaN\", \"Infinity\" and \"-Infinity\", and a missing value is null.
`import` restores all of these.

Parquet and Arrow have types: the times are timestamps in UTC in the finest unit of the series, and
each tag has a column of its own, also without --wide. A column whose series have different types
has doubles, or texts if one of them is a text.

Examples:
  tidalite export plant.tdl > all.csv
  tidalite export plant.tdl 'hb.*' --wide --output hb.csv.gz
  tidalite export plant.tdl wind_speed --last 30d --output wind.jsonl.zst --times ms
  tidalite export plant.tdl --wide --output hb.parquet
  tidalite export plant.tdl --pin monday --output monday.csv.gz")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub file: VersionArgs,

    /// Series to export; all if not given
    #[arg(value_name = "SERIES")]
    pub patterns: Vec<String>,

    /// File to write; standard output if not given, or if -
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long)]
    pub replace: bool,

    /// Format; if not given, JSON for file names with .json, .jsonl or .ndjson, Parquet for .parquet, Arrow for .arrow,
    /// .feather or .ipc, otherwise CSV
    #[arg(long, short = 'f', value_enum, value_name = "FORMAT")]
    pub format: Option<ExportFormat>,

    /// One row for each time and combination of tags; of several points of a series at one time the last to arrive
    #[arg(long)]
    pub wide: bool,

    /// Also write the flags of each point
    #[arg(long, conflicts_with = "wide")]
    pub flags: bool,

    /// Write times as numbers since 1970; as dates if not given
    #[arg(long, value_enum, value_name = "UNIT")]
    pub times: Option<EpochUnit>,

    #[command(flatten)]
    pub range: RangeArgs,
}
