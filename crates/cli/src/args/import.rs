//! `import`.

use super::common::{CreatedArg, DurabilityArg};
use super::text_options::{
    NULL_WORDS, decimal_separator, encoding_named, tag_value, thousands_separator,
};
use crate::time::{TimeFormat, zone_named};
use clap::{Args, ValueEnum, ValueHint};
use jiff::tz::TimeZone;
use std::path::PathBuf;
use tidalite::{ColumnType, MergePolicy, Unit};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// Stop at the first bad value or row and store nothing
    #[default]
    Stop,
    /// Report bad rows and rows with a bad value, and store the others
    Skip,
    /// Report bad values and store the other values of their rows; report and skip rows without a time or with a wrong
    /// number of fields
    Null,
}

/// Format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Comma-separated values, or separated by another character
    Csv,
    /// JSON: one object per line, objects over several lines, or an array of objects or arrays
    Json,
    /// Line protocol of InfluxDB: measurement,tag=text field=value time
    Line,
    /// Apache Parquet; in builds with the feature sql
    Parquet,
    /// Arrow IPC, file or stream (Feather); in builds with the feature sql
    Arrow,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Each value column becomes a series PREFIXcolumn{tag=\"...\"}, one for every combination of tags.
Importing a file again changes nothing: a point replaces an existing one at the same time. An import
fails if it would replace more than one in a thousand of its own points: either a --tag is missing,
or --merge must state the intended policy.

An existing series keeps its unit of time; a time between two of its steps is a bad row. Single
values can be stored in series with the columns flags:i64 value:f64 (the flags are 0), and in series
with only value:i64 or value:u64. For series with other columns use --into or --series, and
--columns.

If local times (--tz) occur twice because clocks were set back, the order of the rows with the same
tags determines their instants. In a file with ascending times, the second pass begins at the first
time that is not after the previous one; in a file with descending times, the first pass does. If
each time occurs only once, the second pass is assumed to begin where most steps between rows are as
long as the last step before that hour, otherwise where the longest step is shortest. If neither
decides, the earlier instant is used, and the summary counts it as guessed. Rows without an order,
and an hour that occurs three times, are bad rows. 24:00 is 0:00 of the next day; a leap second
(23:59:60) is a bad row.

A column holds values if half of the cells in the first rows are numbers, or if all are true or
false (stored as value:bool). Values are stored as doubles. If a whole number among the first values of a new series needs more than the 53 bits of a
double, the series stores 64-bit whole numbers (value:i64 or value:u64). A value that its series
cannot store exactly, or that exceeds the range of doubles, is a bad value.

Each field of the line protocol becomes a series MEASUREMENT.FIELD with the tags of its line. A new
series has the type of its first value: doubles, value:i64, value:u64, value:bool or value:string.
The times are nanoseconds unless --time-format names another unit; a line without one is a bad row.

Parquet and Arrow files (.parquet, .arrow, .feather, .ipc) have types: the first column of times or
dates is the time, all columns of numbers and truth values are values, and whole numbers are stored as
value:i64 or value:u64 in a new series. Decimals become doubles unless --columns names their digits.
Nested columns are not used. A time without a zone is in the zone of --tz.

The whole import is one transaction: it is stored completely or, after an error, not at all, and
readers see all of it at once. --commit-every ROWS adds durable commits in between; an import that
stops then keeps the committed rows.

Examples:
  Columns and the format of times are detected:
    tidalite import plant.tdl scada.csv.gz

  A tag and some of the columns, one of them renamed:
    tidalite import plant.tdl scada.csv.gz --time Date_time --tag Wind_turbine_name=turbine \\
        --value P_avg=power --value Ws_avg --prefix hb.

  No header, columns by number, times in local German form:
    tidalite import plant.tdl old.csv --no-header --time 1 --value 2=level \\
        --time-format '%d.%m.%Y %H:%M' --tz Europe/Berlin

  A date and a time of day in two columns, decimal commas, one file for each device:
    tidalite import plant.tdl pump1.csv pump2.csv --time date,time --decimal , \\
        --tag-value 'device={file}' --skip remark

  JSON, one object per line; a dot separates the keys of nested objects:
    tidalite import plant.tdl log.jsonl.zst --tag site --value wind.speed

  Parquet, as pandas, DuckDB or export --format parquet write it:
    tidalite import plant.tdl wind.parquet --tag turbine

  Line protocol, exported by influx_inspect or influxd inspect, with times in seconds:
    tidalite import plant.tdl export.lp.gz --time-format s

  Several columns of several types in one series:
    tidalite import plant.tdl log.csv --into log --tag site \\
        --columns 'level:i64,message:string,took=seconds:decimal(3)?'

  Output of export, in which a column names the series:
    tidalite export plant.tdl --output all.csv && tidalite import copy.tdl all.csv --series series

  Series that store their times in milliseconds:
    tidalite import plant.tdl fast.csv --unit ms

  Lines such as 2014-06-01T00:10:00Z,21.5 into a series that exists:
    my-sensor | tidalite import plant.tdl - --into 'temp{site=\"A\"}'

  From another program:
    curl -s https://example.org/data.csv | tidalite import plant.tdl -")]
pub(crate) struct ImportArgs {
    /// Database file; created if it does not exist
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Files in CSV, JSON or line protocol, plain, gzipped or in zstd, or in Parquet or Arrow; - is standard input
    #[arg(required = true, value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub inputs: Vec<PathBuf>,

    /// Column with the time, by header or number, or several with commas in between, such as date,time or
    /// year,month,day,hour; if not given, the first column that parses as times
    #[arg(long, value_name = "COLUMN[,COLUMN]...")]
    pub time: Option<String>,

    /// Format of times: iso; s, ms, us, ns, min, h or d since 1970; excel for its day numbers; or a pattern such as
    /// '%d.%m.%Y %H:%M'. Detected if not given
    #[arg(long, value_name = "FORMAT", value_parser = TimeFormat::named)]
    pub time_format: Option<TimeFormat>,

    /// Zone of times without an offset
    #[arg(long, value_name = "ZONE", value_parser = zone_named, default_value = "UTC")]
    pub tz: TimeZone,

    /// Meaning of a local time that occurs twice because clocks were set back
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub ambiguous: AmbiguousName,

    /// Handling of a local time that clocks skipped because they were set forward
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub nonexistent: NonexistentName,

    /// Column that distinguishes series; =NAME after it renames. Repeatable
    #[arg(long = "tag", value_name = "COLUMN[=NAME]")]
    pub tags: Vec<String>,

    /// Column with values; =NAME after it renames. Repeatable; if not given, all numeric columns
    #[arg(long = "value", value_name = "COLUMN[=NAME]")]
    pub values: Vec<String>,

    /// Tag of all rows; {file} in the text is the name of the file without its endings, {folder} the name of its
    /// folder. Repeatable
    #[arg(long = "tag-value", value_name = "NAME=TEXT", value_parser = tag_value, conflicts_with = "series")]
    pub tag_values: Vec<(String, String)>,

    /// Tags from the names of the files, such as '{site}_{year}'; {} stands for a text that is not a tag
    #[arg(long, value_name = "PATTERN", conflicts_with = "series")]
    pub file_tags: Option<String>,

    /// Column that is not used. Repeatable
    #[arg(long, value_name = "COLUMN")]
    pub skip: Vec<String>,

    /// Columns of one series that has all of them, instead of a series for each; with --into or --series. TYPE is f64,
    /// f32, i64, u64, bool, decimal(DIGITS), string, bytes (hexadecimal) or guid; a ? after it allows rows without a
    /// value
    #[arg(
        long,
        value_name = "COLUMN[=NAME]:TYPE[?]",
        value_delimiter = ',',
        value_parser = TypedColumn::parse,
        requires = "Target",
        conflicts_with = "values"
    )]
    pub columns: Vec<TypedColumn>,

    #[command(flatten)]
    pub target: Target,

    /// Policy of every series that receives points, from now on, for a second point at the same time; unchanged if not
    /// given
    #[arg(long, value_enum, value_name = "POLICY")]
    pub merge: Option<MergeName>,

    /// Unit of the times of series that are created; existing series keep theirs
    #[arg(long, value_enum, default_value_t, value_name = "UNIT")]
    pub unit: UnitName,

    /// Prefix of the name of every series
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "PREFIX"
    )]
    pub prefix: String,

    /// Words that mean "no value", in addition to the empty field; NaN is a value of floats unless it is listed here
    #[arg(
        long = "null",
        value_name = "WORD",
        value_delimiter = ',',
        default_value = NULL_WORDS
    )]
    pub nulls: Vec<String>,

    /// Handling of a value or a row that cannot be read
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub on_error: OnError,

    /// The first line holds data, not names
    #[arg(long)]
    pub no_header: bool,

    /// Separator of fields; if not given, the most frequent in the first line: , ; | or tab
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub delimiter: Option<u8>,

    /// Separator of decimals: comma or point. If not given, the cells in the first rows show it
    #[arg(long, value_name = "CHARACTER", value_parser = decimal_separator)]
    pub decimal: Option<char>,

    /// Separator of thousands: comma, point, apostrophe or blank. If not given, the cells in the first rows show it
    #[arg(long, value_name = "CHARACTER", value_parser = thousands_separator)]
    pub thousands: Option<char>,

    /// Encoding of the text, such as windows-1252, latin1, utf-16le or shift_jis; UTF-8 if not given, or UTF-16 if the
    /// input begins with its byte order mark
    #[arg(long, value_name = "NAME", value_parser = encoding_named)]
    pub encoding: Option<&'static encoding_rs::Encoding>,

    /// Number of lines to leave out at the beginning
    #[arg(
        long,
        value_name = "LINES",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub skip_lines: u64,

    /// Character with which lines of comments begin; # if the lines before the names of the columns begin so
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub comment: Option<u8>,

    /// The line after the names of the columns holds units; detected if it holds neither numbers nor times
    #[arg(long, conflicts_with = "no_header")]
    pub units: bool,

    /// Format of the inputs; if not given, the line protocol if the name ends in .lp, Parquet and Arrow by their names
    /// and first bytes, and JSON if the first character is a bracket
    #[arg(long, visible_alias = "format", value_enum, value_name = "FORMAT")]
    pub input_format: Option<InputFormat>,

    /// Print how the columns of the inputs would be read, and store nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Commit after this many rows, instead of once at the end
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    pub commit_every: Option<u64>,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,

    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Selects the series of each row if it does not follow from tags.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Target {
    /// Name of the series of --columns; tags and prefix are added to it. Without --columns, the full name of a series
    /// that exists: lines without names of columns have the time and then a value for each of its columns
    #[arg(long, value_name = "NAME")]
    pub into: Option<String>,

    /// Column with the full name of each row's series, as export writes it; with one column of values, or --columns
    #[arg(long, value_name = "COLUMN", conflicts_with = "tags")]
    pub series: Option<String>,
}

/// Policy of a series for a point at a time that already has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MergeName {
    /// The new point replaces the old one
    Replace,
    /// The old point stays
    KeepFirst,
    /// A second point is an error
    Error,
    /// Both stay, in the order in which they arrive
    KeepAll,
    /// Both stay if they differ; an equal point is kept once
    KeepDistinct,
}

impl MergeName {
    pub(crate) fn policy(self) -> MergePolicy {
        match self {
            Self::Replace => MergePolicy::Replace,
            Self::KeepFirst => MergePolicy::KeepFirst,
            Self::Error => MergePolicy::Error,
            Self::KeepAll => MergePolicy::KeepAll,
            Self::KeepDistinct => MergePolicy::KeepDistinct,
        }
    }
}

/// Selects one of the two instants of a local time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AmbiguousName {
    /// The order of the rows decides, for each series; a row that it does not decide is a bad row
    #[default]
    Infer,
    /// The instant before clocks were set back
    Earlier,
    /// The instant after clocks were set back
    Later,
    /// The row is a bad row
    Refuse,
}

/// Handling of a local time that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NonexistentName {
    /// The row is a bad row
    #[default]
    Refuse,
    /// Move it forward by the length of the gap: 02:30 becomes 03:30
    Shift,
}

/// Unit of the times of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitName {
    /// Nanoseconds since 1970
    #[default]
    Ns,
    /// Microseconds since 1970
    Us,
    /// Milliseconds since 1970
    Ms,
    /// Seconds since 1970
    S,
    /// 100 nanoseconds since the year 1, as .NET counts them
    Ticks,
}

impl UnitName {
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Ns => Unit::Nanos,
            Self::Us => Unit::Micros,
            Self::Ms => Unit::Millis,
            Self::S => Unit::Seconds,
            Self::Ticks => Unit::Ticks,
        }
    }
}

/// A column of `--columns` with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedColumn {
    /// The column as the user writes it: `COLUMN[=NAME]`.
    pub wish: String,
    /// Type of the column's values.
    pub ty: ColumnType,
    /// Whether a row may have no value in this column.
    pub nullable: bool,
}

impl TypedColumn {
    fn parse(text: &str) -> Result<Self, String> {
        let (wish, ty) = text
            .rsplit_once(':')
            .ok_or("a column and its type, such as price:decimal(2) or note:string?")?;
        let (ty, nullable) = match ty.strip_suffix('?') {
            Some(ty) => (ty, true),
            None => (ty, false),
        };
        let known = "f64, f32, i64, u64, bool, decimal(DIGITS), string, bytes or guid";
        Ok(Self {
            wish: wish.to_owned(),
            ty: ColumnType::named(ty).ok_or_else(|| format!("no type `{ty}`: {known}"))?,
            nullable,
        })
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "\\t" || text == "tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'"' => Ok(*byte),
        _ => Err("give one character, such as ';' or tab".to_owned()),
    }
}
