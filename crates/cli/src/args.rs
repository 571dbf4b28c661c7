//! The command line: what can be said, and the help that teaches it.

use crate::output::Format;
use crate::style::{ColorWhen, help_styles};
use crate::time::{TimeFormat, width_nanos, zone_named};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use jiff::tz::TimeZone;
use std::path::PathBuf;

const ABOUT_LONG: &str = "\
An embedded database for measurements: time series and tables in one file.

A series has a name with tags, like weather.temp{origin=\"JFK\"}. Wherever a command wants
SERIES, give a whole name, or part of it: weather.temp means all series of that name
whatever their tags, 'weather.*' all whose name begins so, '*{origin=\"JFK\"}' all with that
tag. Quote it, or the shell takes the braces and stars for its own.";

const AFTER_LONG: &str = "\
Examples:
  tidalite import plant.tdl scada.csv.gz --tag turbine
  tidalite series plant.tdl
  tidalite window plant.tdl wind_speed --by 1d --fn mean,max
  tidalite plot plant.tdl wind_speed --last 7d --svg wind.svg
  tidalite quickstart

Exit codes:
  0  done
  1  the system refused something: permission, disk full, an I/O error
  2  wrong command line
  3  not found: the file, the series, the column, or no point in the range
  4  damage found in the database
  5  an input that cannot be used: not a database, a bad CSV file, a bad row
  6  the database is open in another process";

/// An embedded database for measurements: time series and tables in one file
#[derive(Debug, Parser)]
#[command(
    name = "tidalite",
    version,
    long_about = ABOUT_LONG,
    after_long_help = AFTER_LONG,
    styles = help_styles(),
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorWhen,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store a CSV file as series
    Import(ImportArgs),
    /// List series with tags, count, span and size
    Series(SeriesArgs),
    /// Print points
    Scan(ScanArgs),
    /// Print the newest point of series
    Latest(LatestArgs),
    /// Sum up a range: count, mean, extremes and when
    Aggregate(AggregateArgs),
    /// Sum up every hour, day or any other width
    Window(WindowArgs),
    /// Draw series in the terminal, as SVG or as PNG
    Plot(PlotArgs),
    /// Show what the file consists of: pages, trees, bytes per point, free space
    Stat(StatArgs),
    /// Show who reads and who writes now, in all processes, and what each reader holds
    Readers(ReadersArgs),
    /// Verify every page and every structure
    Check(CheckArgs),
    /// Copy a database while others use it: one snapshot as a new, packed file
    Copy(CopyArgs),
    /// Make the file shorter: move what is in use down, cut off what is free
    Compact(CompactArgs),
    /// Read and change tables of keys and values
    Kv(KvArgs),
    /// Print tables as text, in the format of mdb_dump and mdbx_dump
    Dump(DumpArgs),
    /// Store what dump, mdb_dump or mdbx_dump printed
    Load(LoadArgs),
    /// Write a backup: all pages, or those written since a pin
    Backup(BackupArgs),
    /// Make a database of a backup and its increments
    Restore(RestoreArgs),
    /// Save what is intact of a damaged database
    Salvage(SalvageArgs),
    /// List, add and remove pins: versions that stay readable
    Pins(PinsArgs),
    /// Show one page: what it says of itself, and its bytes
    Page(PageArgs),
    /// See it work: real weather, five questions, a picture, ten million points
    Quickstart(QuickstartArgs),
    /// Print a script that completes commands in your shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
}

/// The database file, which must be there.
#[derive(Debug, Args)]
pub(crate) struct FileArg {
    /// Database file
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
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

    /// Only the newest part of each series: 7d, 90m, 1h30m
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, conflicts_with_all = ["from", "to"])]
    pub last: Option<i64>,

    #[command(flatten)]
    pub zone: ZoneArg,
}

#[derive(Debug, Args)]
pub(crate) struct ZoneArg {
    /// Zone of times that are shown, and of times given without an offset:
    /// Europe/Berlin, local, UTC
    #[arg(long, value_name = "ZONE", value_parser = zone_named, default_value = "UTC")]
    pub tz: TimeZone,
}

#[derive(Debug, Args)]
pub(crate) struct FormatArg {
    /// How to print rows
    #[arg(long, short = 'f', value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Which column of a series; most have one value.
#[derive(Debug, Args)]
pub(crate) struct ColumnArg {
    /// Column to use, where a series has several; the last one if not given
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// Stop at the first bad row and store nothing
    #[default]
    Stop,
    /// Report bad rows, store the others
    Continue,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Each value column becomes a series PREFIXcolumn{tag=\"...\"}, one for every combination of tags.
Importing a file again changes nothing: a point with the same time replaces the old one.

The whole import is one transaction: it is stored completely or, after an error, not at all,
and readers see it all at once. With --commit-every ROWS there is a durable commit in between;
an import that stops then keeps what was committed.

Examples:
  Columns and the form of times are found by looking:
    tidalite import plant.tdl scada.csv.gz

  A tag, and some of the columns, one of them under another name:
    tidalite import plant.tdl scada.csv.gz --time Date_time --tag Wind_turbine_name=turbine \\
        --value P_avg=power --value Ws_avg --prefix hb.

  No header, columns by number, times in local German form:
    tidalite import plant.tdl old.csv --no-header --time 1 --value 2=level \\
        --time-format '%d.%m.%Y %H:%M' --tz Europe/Berlin

  From another program:
    curl -s https://example.org/data.csv | tidalite import plant.tdl -")]
pub(crate) struct ImportArgs {
    /// Database file; created if it is not there
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// CSV files, plain or gzipped; - is standard input
    #[arg(required = true, value_name = "CSV", value_hint = ValueHint::FilePath)]
    pub inputs: Vec<PathBuf>,

    /// Column with the time, by header or number; if not given, the first that reads as times
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,

    /// How times are written: iso, s, ms, us or ns since 1970, or a pattern such as
    /// '%d.%m.%Y %H:%M'; if not given, found by looking
    #[arg(long, value_name = "FORMAT", value_parser = TimeFormat::named)]
    pub time_format: Option<TimeFormat>,

    /// Zone of times without an offset
    #[arg(long, value_name = "ZONE", value_parser = zone_named, default_value = "UTC")]
    pub tz: TimeZone,

    /// Column that tells series apart; =NAME after it renames. Repeatable
    #[arg(long = "tag", value_name = "COLUMN[=NAME]")]
    pub tags: Vec<String>,

    /// Column with values; =NAME after it renames. Repeatable; if not given, all numeric columns
    #[arg(long = "value", value_name = "COLUMN[=NAME]")]
    pub values: Vec<String>,

    /// Put before the name of every series
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "PREFIX"
    )]
    pub prefix: String,

    /// Words that mean "no value", besides the empty field
    #[arg(
        long = "null",
        value_name = "WORD",
        value_delimiter = ',',
        default_value = "NA,NaN,nan,null,NULL"
    )]
    pub nulls: Vec<String>,

    /// What to do with a row that cannot be read
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub on_error: OnError,

    /// The first line holds data, not names
    #[arg(long)]
    pub no_header: bool,

    /// Separator of fields; if not given, the one that the first line uses: , ; | or tab
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub delimiter: Option<u8>,

    /// Commit after so many rows, instead of once at the end
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    pub commit_every: Option<u64>,

    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "\\t" || text == "tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'"' => Ok(*byte),
        _ => Err("give one character, such as ';' or tab".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite series plant.tdl
  tidalite series plant.tdl 'hb.*'
  tidalite series plant.tdl '*{turbine=\"R80711\"}' --format json")]
pub(crate) struct SeriesArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series; all if not given
    #[arg(default_value = "", hide_default_value = true, value_name = "SERIES")]
    pub pattern: String,

    #[command(flatten)]
    pub zone: ZoneArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite scan plant.tdl 'wind_speed{turbine=\"R80711\"}' --from 2014-06-01 --to 2014-06-02
  tidalite scan plant.tdl wind_speed --last 1h --format csv > hour.csv
  tidalite scan plant.tdl wind_speed --limit 10")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series
    #[arg(value_name = "SERIES")]
    pub pattern: String,

    #[command(flatten)]
    pub range: RangeArgs,

    /// At most so many points of each series
    #[arg(long, short = 'n', value_name = "POINTS")]
    pub limit: Option<u64>,

    /// Also print the flags of every point
    #[arg(long)]
    pub flags: bool,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite latest plant.tdl
  tidalite latest plant.tdl '*{turbine=\"R80711\"}' --tz local")]
pub(crate) struct LatestArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series; all if not given
    #[arg(default_value = "", hide_default_value = true, value_name = "SERIES")]
    pub pattern: String,

    #[command(flatten)]
    pub zone: ZoneArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The answer comes from the tree: a year of data takes no longer than a day.

Examples:
  tidalite aggregate plant.tdl wind_speed
  tidalite aggregate plant.tdl wind_speed --fn mean,max,max-time --from 2014-06-01 --to 2014-07-01")]
pub(crate) struct AggregateArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series
    #[arg(value_name = "SERIES")]
    pub pattern: String,

    #[command(flatten)]
    pub range: RangeArgs,

    /// What to compute
    #[arg(
        long = "fn",
        value_enum,
        value_delimiter = ',',
        value_name = "FUNCTIONS",
        default_value = "count,mean,min,min-time,max,max-time,stddev"
    )]
    pub functions: Vec<Function>,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A window begins at its time and ends before the next. Windows have one fixed width and are
aligned to midnight of 1970-01-01 in the zone of --tz (with its offset where the data begin),
or to --origin. Windows without a point are left out.

Examples:
  tidalite window plant.tdl wind_speed --by 1d --fn mean,max
  tidalite window plant.tdl wind_speed --by 15m --last 6h --format csv
  tidalite window plant.tdl power --by 1w --origin 2014-01-06 --fn count,sum")]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series
    #[arg(value_name = "SERIES")]
    pub pattern: String,

    /// Width of a window: 500ms, 10s, 15m, 1h, 1d, 1w
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub by: i64,

    /// What to compute
    #[arg(
        long = "fn",
        value_enum,
        value_delimiter = ',',
        value_name = "FUNCTIONS",
        default_value = "count,mean,min,max"
    )]
    pub functions: Vec<Function>,

    /// A time at which a window begins
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub origin: Option<String>,

    #[command(flatten)]
    pub range: RangeArgs,

    #[command(flatten)]
    pub column: ColumnArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Of every pixel column the first, lowest, highest and last value are drawn, so a spike of one
point among millions is seen. With --by, one value a window is drawn instead.

Examples:
  tidalite plot plant.tdl wind_speed --last 7d
  tidalite plot plant.tdl power --by 1d --fn mean
  tidalite plot plant.tdl 'wind_speed{turbine=\"R80711\"}' --svg wind.svg --png wind.png")]
pub(crate) struct PlotArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Which series; several share the picture
    #[arg(value_name = "SERIES", required = true)]
    pub patterns: Vec<String>,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Draw one value for every window of this width
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub by: Option<i64>,

    /// Which value of a window
    #[arg(
        long = "fn",
        value_enum,
        value_name = "FUNCTION",
        default_value = "mean",
        requires = "by"
    )]
    pub function: Function,

    #[command(flatten)]
    pub column: ColumnArg,

    /// Write an SVG file instead of drawing in the terminal; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    /// Write a PNG file instead of drawing in the terminal
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub png: Option<PathBuf>,

    /// Above the picture; the name of the series if not given
    #[arg(long)]
    pub title: Option<String>,

    /// Width in characters; in pixels for --svg and --png
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pub width: Option<u32>,

    /// Height in lines; in pixels for --svg and --png
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub height: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite stat plant.tdl
  tidalite stat plant.tdl --format json
  tidalite stat plant.tdl --weights")]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// What each structure takes, the heaviest first
    #[arg(long)]
    pub weights: bool,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A line for the write transaction under way, if there is one, and one for every snapshot that is
held. `behind` counts commits; `holds_bytes` could be used again without that reader, as of the
newest write transaction; `freed_since_bytes` bounds it. Numbers of processes are those of the
place where the process runs: another container has others.

Examples:
  tidalite readers plant.tdl
  tidalite readers plant.tdl --format json")]
pub(crate) struct ReadersArgs {
    #[command(flatten)]
    pub file: FileArg,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite kv put plant.tdl config hub_height 80
  tidalite kv get plant.tdl config hub_height
  tidalite kv scan plant.tdl config --from h --limit 10
  tidalite kv stat plant.tdl

Keys and values are printed as text; bytes that are not printable ASCII as \\ and two hex digits.
With --hex everything is read and printed as hex digits.")]
pub(crate) struct KvArgs {
    #[command(subcommand)]
    pub command: KvCommand,
}

/// A table of a file.
#[derive(Debug, Args)]
pub(crate) struct KvPlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Table
    #[arg(value_name = "TABLE")]
    pub table: String,

    /// Keys and values are hex digits
    #[arg(long)]
    pub hex: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KvCommand {
    /// Print the value of a key; of a table of multi-values all of them
    Get {
        #[command(flatten)]
        place: KvPlace,
        /// Key
        key: String,
    },
    /// Store a pair; the table is made if it is not there
    Put {
        #[command(flatten)]
        place: KvPlace,
        /// Key
        key: String,
        /// Value
        value: String,
        /// Only if the key is not there
        #[arg(long)]
        new: bool,
    },
    /// Remove a key
    Del {
        #[command(flatten)]
        place: KvPlace,
        /// Key
        key: String,
        /// Only if this is its value; of a table of multi-values this one
        value: Option<String>,
        /// All values of a key that has several
        #[arg(long, conflicts_with = "value")]
        all: bool,
    },
    /// Print pairs in order
    Scan {
        #[command(flatten)]
        place: KvPlace,
        /// Begin here, this key included
        #[arg(long, value_name = "KEY")]
        from: Option<String>,
        /// End before this key
        #[arg(long, value_name = "KEY")]
        to: Option<String>,
        /// Pairs at most
        #[arg(long, value_name = "PAIRS", default_value_t = u64::MAX, hide_default_value = true)]
        limit: u64,
        /// From the last to the first
        #[arg(long)]
        reverse: bool,
    },
    /// List tables and how much they hold
    Stat {
        #[command(flatten)]
        file: FileArg,
    },
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints each table as a section: a header (VERSION=3, format, database, type), then keys and
values, a line each: a space and hex digits, or with --print text. `mdb_load` reads it, once for each
table: tidalite dump plant.tdl config | mdb_load -n config.mdb

Examples:
  tidalite dump plant.tdl > plant.dump
  tidalite dump plant.tdl config --print")]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Table; all if not given
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,

    /// Printable characters as they are, other bytes as \ and two hex digits
    #[arg(long, short = 'p')]
    pub print: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Tables are made as the header says; with dupsort as tables of multi-values. Integer keys and keys in
reversed order get their bytes reversed, so that they keep their order. Committed every 32 MiB.

Examples:
  mdb_dump -a old/ | tidalite load plant.tdl
  tidalite load plant.tdl plant.dump")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// What a dump printed; standard input if not given, or -
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,

    /// Store everything in this table, whatever the header says
    #[arg(long, short = 't', value_name = "TABLE")]
    pub table: Option<String>,

    /// Keep the values of keys that are there
    #[arg(long, short = 'N')]
    pub no_overwrite: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Reads the whole file: every checksum, every order, every statistic, and that each page is used
exactly once or free. Exit code 0: clean, 4: damage found, described line by line.

Example:
  tidalite check plant.tdl")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Print nothing, only set the exit code
    #[arg(long, short)]
    pub quiet: bool,

    /// Print one JSON document: what is damaged by table and keys, or series, column and times
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,

    /// Read at most so many mebibytes a second
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub rate: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A full backup holds every page of one version. Pin a version and back that pin up, and later
backups can hold only what was written since: pin again, and give --since the pin before.
A pin holds the space of its version, so remove the old one when the new backup is safe.

Examples:
  tidalite backup plant.tdl monday.tdb --pin monday
  tidalite backup plant.tdl tuesday.tdb --pin tuesday --since monday
  tidalite pins plant.tdl --remove monday
  tidalite restore plant-new.tdl monday.tdb tuesday.tdb")]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// The backup; must not exist yet. - is standard output
    #[arg(value_name = "BACKUP", value_hint = ValueHint::FilePath)]
    pub to: PathBuf,

    /// Back up this pin; it is made if it is not there
    #[arg(long, value_name = "NAME")]
    pub pin: Option<String>,

    /// Only what was written since this pin: an increment on its backup
    #[arg(long, value_name = "NAME")]
    pub since: Option<String>,

    /// Write at most so many mebibytes a second
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub rate: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The new database has the content of the last backup given, an identity of its own and no pins.
Each increment must build on the one before it; otherwise nothing is made.

Example:
  tidalite restore plant.tdl monday.tdb tuesday.tdb && tidalite check plant.tdl")]
pub(crate) struct RestoreArgs {
    /// The new database; must not exist yet
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// A full backup, then its increments in order
    #[arg(required = true, value_name = "BACKUP", value_hint = ValueHint::FilePath)]
    pub backups: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Reads the damaged file only. Every page and block that is intact is found, by the trees or by its
header, also when the head of the file is lost; names that are lost are made up (series-17).
Exit code 0: everything was saved, 4: something is missing, described line by line.

Example:
  tidalite salvage broken.tdl saved.tdl")]
pub(crate) struct SalvageArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// The new database; must not exist yet
    #[arg(value_name = "SAVED.tdl", value_hint = ValueHint::FilePath)]
    pub to: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A pinned version stays readable, whatever is written later, and holds the space of what it sees.

Examples:
  tidalite pins plant.tdl
  tidalite pins plant.tdl --add 'before the rebuild'
  tidalite pins plant.tdl --remove 'before the rebuild'")]
pub(crate) struct PinsArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Pin the newest version under this name
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub add: Option<String>,

    /// Take this pin away
    #[arg(long, value_name = "NAME")]
    pub remove: Option<String>,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  tidalite page plant.tdl 6")]
pub(crate) struct PageArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Number of the page: its address divided by the bytes of a page
    #[arg(value_name = "NUMBER")]
    pub number: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The copy is one snapshot of the newest commit, a database of its own. It appears under its
name only when it is complete.

Example:
  tidalite copy plant.tdl /backup/plant-2014-06-01.tdl && tidalite check /backup/plant-2014-06-01.tdl")]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// The copy; must not exist yet
    #[arg(value_name = "COPY.tdl", value_hint = ValueHint::FilePath)]
    pub copy: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Others may read and write meanwhile. A reader keeps what it sees: the file gets shorter when it is done.

Example:
  tidalite compact plant.tdl --step 4194304")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Bytes that one write transaction moves
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES")]
    pub step: u64,
}

#[derive(Debug, Args)]
pub(crate) struct QuickstartArgs {
    /// Where to put quickstart.tdl
    #[arg(long, default_value = ".", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Points of the speed measurement
    #[arg(long, default_value_t = 10_000_000, value_name = "POINTS",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    pub points: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite completions bash > ~/.local/share/bash-completion/completions/tidalite
  tidalite completions zsh > ~/.zfunc/_tidalite
  tidalite completions fish > ~/.config/fish/completions/tidalite.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite man | man -l -
  tidalite man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write one page for the program and one for every command into this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_example_in_the_help_parses() {
        let mut program = Cli::command();
        program.build();
        let helps: Vec<String> = program
            .get_subcommands()
            .chain([&program])
            .filter_map(|command| command.get_after_long_help().map(ToString::to_string))
            .collect();
        let mut examples = 0;
        for help in helps {
            let joined = help.replace("\\\n", " ");
            for line in joined.lines().filter(|line| line.contains("tidalite ")) {
                let command = line[line.find("tidalite ").unwrap()..].to_owned();
                let command = command.split(" > ").next().unwrap();
                let command = command.split(" && ").next().unwrap();
                let command = command.split(" | ").next().unwrap();
                let words = shell_words(command);
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{command}: {error}");
                }
                examples += 1;
            }
        }
        assert!(examples > 20, "{examples}");
    }

    fn shell_words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
        for c in line.chars() {
            match c {
                '\'' => (quoted, any) = (!quoted, true),
                ' ' if !quoted => {
                    if any {
                        words.push(std::mem::take(&mut word));
                    }
                    any = false;
                }
                c => {
                    word.push(c);
                    any = true;
                }
            }
        }
        if any {
            words.push(word);
        }
        words
    }

    #[test]
    fn wrong_values_are_explained() {
        let complaint = |words: &[&str]| Cli::try_parse_from(words).unwrap_err().to_string();
        let text = complaint(&["tidalite", "window", "a.tdl", "x", "--by", "1mo"]);
        assert!(text.contains("months and years differ in length"), "{text}");
        let text = complaint(&["tidalite", "scan", "a.tdl", "x", "--tz", "Mars"]);
        assert!(text.contains("Europe/Berlin"), "{text}");
        let text = complaint(&["tidalite", "import", "a.tdl", "x", "--delimiter", "ab"]);
        assert!(text.contains("one character"), "{text}");
    }
}
