//! Commands for maintenance of a file.

use super::common::{FileArg, FormatArg, RateArg, ReportFormatArg};
use super::figure_list::{FunctionList, list_parser};
use super::window_width::{WindowWidth, window_width};
use crate::time::{width_nanos, zone_named};
use clap::{Args, ValueEnum, ValueHint};
use jiff::tz::TimeZone;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite stat plant.tdl
  tidalite stat plant.tdl --format json
  tidalite stat plant.tdl --weights
  tidalite stat plant.tdl --head")]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Size of each structure, the largest first
    #[arg(long)]
    pub weights: bool,

    /// Contents of the head of the file, read without opening the database: both superblocks and the four slots of
    /// commit records, or the errors in them. Nothing is locked, written or repaired; also works for a damaged file
    #[arg(long, conflicts_with = "weights")]
    pub head: bool,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints one line for the open write transaction, if there is one, and one for every snapshot.
`behind` is a number of commits. `holds_bytes` is the space that could be reused without this
reader, as of the newest write transaction; `freed_since_bytes` is an upper bound of it. Process ids
are those of the namespace in which the process runs; in another container they differ.

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
Reads the whole file and verifies every checksum, every order, every statistic, and that each page
is used exactly once or free. Exit code 0: no damage; 4: damage found, described line by line.
Remains of a crash are not damage: they are printed as notes, and the next command that writes
removes them.

Missing durable commits are a finding: the redo log or the newest commit record is damaged in all
its copies. Other commands print a warning about them on standard error. Commands that write refuse
such a database without --accept-lost-commits, because their next commit overwrites the evidence.

With --format json one JSON document describes the damage by table and keys, or by series, column and
times. `lost_commits` is null, or an object with the commit `found`, the `newest_known` one
and the number of `missing` commits. Every finding has a `place`:
  table, catalog  with from_key and to_key (the first key after it; null: up to the last key)
  series          with column, from_time and to_time (both inclusive)
  delta           rows not yet in leaves: the same for each of its `series` (null: any row), up to
                  1,024, and the number of `more_series` (null: unknown, the catalog is damaged)
  file
Keys are complete and can be typed for kv: printable ASCII is unchanged, any other byte and the
backslash are written as \\ and two hex digits. If the file cannot be opened or read to the end, `error` has its kind and a
message, and for damage the damaged item, its address, the value found and the value expected.

Examples:
  tidalite check plant.tdl
  tidalite check plant.tdl --format json")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Print nothing, only set the exit code
    #[arg(long, short, conflicts_with = "format")]
    pub quiet: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,

    /// Print progress on standard error even if that is not a terminal
    #[arg(long, conflicts_with = "quiet")]
    pub progress: bool,

    #[command(flatten)]
    pub rate: RateArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A full backup contains every page of one version. If it is made of a pin (--pin), a later backup
can be an increment with only the pages written since: use a new pin, and give the previous one to
--since. A pin retains the space of its version, so remove the old pin when the new backup is safe.

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

    /// Back up the version of this pin; the pin is created if it does not exist
    #[arg(long, value_name = "NAME")]
    pub pin: Option<String>,

    /// Only pages written since this pin: an increment on its backup
    #[arg(long, value_name = "NAME")]
    pub since: Option<String>,

    #[command(flatten)]
    pub rate: RateArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The new database has the content of the last backup, a new identity and no pins. Each increment
must follow the backup before it; otherwise nothing is created. If the original has a second file
for large values, so has the new database: at --large FILE, or at the new name with `-large`
appended.

Example:
  tidalite restore plant.tdl monday.tdb tuesday.tdb && tidalite check plant.tdl
  tidalite backup plant.tdl - | ssh other tidalite restore plant.tdl -")]
pub(crate) struct RestoreArgs {
    /// The new database; must not exist yet
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// A full backup, then its increments in order; - is standard input
    #[arg(required = true, value_name = "BACKUP", value_hint = ValueHint::FilePath)]
    pub backups: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The damaged file is only read. Every intact page and block is found, through the trees or by its
header, even if the head of the file is lost. Lost names are replaced by invented ones (series-17).
Large values from a second file are stored in the new file; --large FILE gives the path of the
second file. Exit code 0: all data was saved; 4: some data is missing, described line by line.

Example:
  tidalite salvage broken.tdl saved.tdl")]
pub(crate) struct SalvageArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// The new database; must not exist yet
    #[arg(value_name = "SAVED.tdl", value_hint = ValueHint::FilePath)]
    pub to: PathBuf,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A pinned version stays readable whatever is written later, and retains the space of its pages.

Examples:
  tidalite pins plant.tdl
  tidalite pins plant.tdl --add 'before the rebuild'
  tidalite pins plant.tdl --remove 'before the rebuild'")]
pub(crate) struct PinsArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Pin the newest version under this name; an existing pin of this name moves to it
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub add: Option<String>,

    /// Remove this pin
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

    /// Number of the page: its address divided by the page size
    #[arg(value_name = "NUMBER")]
    pub number: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The copy is a separate, packed database with the content of the newest commit. It appears under
its name only when it is complete, and needs no additional space. With --image the file is copied
page by page instead, with its free space, its pins and its identity, at the speed of the disk.

A packed copy to standard output is first written to a temporary file, beside FILE or in the folder
of --temporary, which needs as much space as the copy. The temporary file has no name, so no other
program can read it, and it disappears when this program ends for any reason. An image needs no such
file.

Examples:
  tidalite copy plant.tdl /backup/plant-2014-06-01.tdl && tidalite check /backup/plant-2014-06-01.tdl
  tidalite copy plant.tdl /backup/plant-as-it-is.tdl --image
  tidalite copy plant.tdl - --temporary /big | ssh backup 'cat > plant.tdl'")]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// The copy; must not exist yet. - is standard output
    #[arg(value_name = "COPY.tdl", value_hint = ValueHint::FilePath)]
    pub copy: PathBuf,

    /// Copy page by page, with pins and free space, instead of packing
    #[arg(long)]
    pub image: bool,

    /// Folder for the temporary file of a packed copy to standard output [default: beside FILE]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, conflicts_with = "image")]
    pub temporary: Option<PathBuf>,

    #[command(flatten)]
    pub rate: RateArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Other processes may read and write meanwhile. Readers retain their pages; the file gets shorter when
they end.

Example:
  tidalite compact plant.tdl --step 4194304
  tidalite compact plant.tdl --cold 90d --series 'raw.*'")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Bytes moved by each write transaction
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES")]
    pub step: u64,

    /// First rewrite rows older than this in cold form, where that saves a tenth: smaller, and slower to
    /// read [default: 30d]
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub cold: Option<i64>,

    /// Rewrite no rows in cold form
    #[arg(long, conflicts_with = "cold")]
    pub no_cold: bool,

    /// Series whose rows are rewritten in cold form; all if not given
    #[arg(
        long,
        value_name = "SERIES",
        default_value = "",
        hide_default_value = true,
        conflicts_with = "no_cold"
    )]
    pub series: String,
}

/// Reference time for the age of rows.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KeepFromName {
    /// The computer's clock
    Now,
    /// The newest row of the series
    Newest,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A policy limits the rows of the series that it selects, by age or by size; the oldest rows are
removed first. A policy can also give old rows the cold form: smaller, and slower to read. Policies
are stored in the file. They take effect with --apply, and in a program that maintains the file in
the background. --apply --dry-run shows the rows that would be removed.

--apply also removes expired messages and objects, messages that are older than the retention of
their queue, and messages beyond a maximum of their container; --dry-run does not show these.

--max-bytes limits the bytes in use, which `stat` shows too: pages that are neither free nor
retained only by pins and readers. Below the limit nothing is removed, however long the file is.
Afterwards the file is shortened as far as possible; about 2 MiB stay free for deleting and growing.
A cap is refused if the file would exceed it even with only the newest row of each series.

The age of a row is measured with the computer's clock as far as the times of the commits confirm
it. If the clock is more than an hour ahead of the newest commit plus the time that has passed
since, rows that only this clock makes too old stay until --yes confirms the clock. After a restart
of the computer the time that has passed is unknown, so a correct clock needs --yes too if there was
no commit for more than an hour.

Examples:
  tidalite retention plant.tdl
  tidalite retention plant.tdl --set short --series 'raw.*' --keep 30d
  tidalite retention plant.tdl --set archive --series 'old.*' --keep 365d --keep-from newest
  tidalite retention plant.tdl --apply --dry-run
  tidalite retention plant.tdl --set cap --max-bytes 10737418240 --apply
  tidalite retention plant.tdl --set old --cold 90d
  tidalite retention plant.tdl --set hours --series 'raw.*' --keep 30d --downsample 1h --fn count,mean,p95
  tidalite retention plant.tdl --remove short

With --downsample the rows that are removed are replaced: for each window there is a row with the
functions as columns, in a series whose name has the width at its end. raw.temp{site=\"a\"} becomes
raw.temp.1h{site=\"a\"}. Rows are removed up to the end of a window, in the commit that stores the
windows; the last of them stays. `window` reads windows and points together. A second policy with
wider windows fills a second series: --keep 30d --downsample 1d. To remove windows after a time, set a
policy for their series: --series '*.1h' --keep 365d.")]
pub(crate) struct RetentionArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Store a policy under this name, replacing an existing one
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub set: Option<String>,

    /// Remove this policy
    #[arg(long, value_name = "NAME")]
    pub remove: Option<String>,

    /// With --set: series of the policy; all if not given
    #[arg(
        long,
        value_name = "SERIES",
        default_value = "",
        hide_default_value = true,
        requires = "set"
    )]
    pub series: String,

    /// With --set: remove rows older than this
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, requires = "set")]
    pub keep: Option<i64>,

    /// With --keep: count the age of rows from now, or from the newest row of their series
    #[arg(long, value_enum, value_name = "WHEN", requires = "keep")]
    pub keep_from: Option<KeepFromName>,

    /// With --keep: replace removed rows by windows of this width, such as 1h, 1d or 1mo
    #[arg(long, value_name = "WIDTH", value_parser = window_width, requires = "keep")]
    pub downsample: Option<WindowWidth>,

    /// With --downsample: functions of a window
    #[arg(
        long = "fn",
        value_parser = list_parser(),
        value_name = "FUNCTIONS",
        default_value = "count,mean,min,max",
        requires = "downsample"
    )]
    pub functions: Vec<FunctionList>,

    /// With --downsample: last part of the names of series with windows [default: the width, such as 1h]
    #[arg(long, value_name = "NAME", requires = "downsample")]
    pub suffix: Option<String>,

    /// With --downsample: zone of days, weeks and months: Europe/Berlin, local, +02:00
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone_named, requires = "downsample")]
    pub tz: TimeZone,

    /// With --set: maximum bytes of the series; for all series, maximum bytes in use in the whole file
    #[arg(long, value_name = "BYTES", requires = "set")]
    pub max_bytes: Option<u64>,

    /// With --set: keep rows older than this in cold form: smaller, and slower to read
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, requires = "set")]
    pub cold: Option<i64>,

    /// Remove data that the policies do not keep, and rewrite old rows in cold form, now
    #[arg(long)]
    pub apply: bool,

    /// With --apply: show rows that would be removed, and change nothing
    #[arg(long, requires = "apply", conflicts_with_all = ["set", "remove"])]
    pub dry_run: bool,

    /// With --apply: the computer's clock is right, although it is ahead of the newest commit
    #[arg(long, short, requires = "apply")]
    pub yes: bool,

    /// With --apply: number of seconds after which no further commit begins
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 3600,
        requires = "apply"
    )]
    pub budget: u64,

    #[command(flatten)]
    pub format: FormatArg,
}
