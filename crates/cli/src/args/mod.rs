//! The command line and its help.

mod annotate;
mod candles;
mod changed;
mod common;
mod container;
mod container_changes;
mod container_options;
mod container_place;
mod container_read;
mod database_file;
mod export;
pub(crate) mod figure_list;
mod filter;
mod functions;
mod hash;
mod import;
mod keep;
mod kv;
mod messages;
mod object;
mod object_changes;
mod object_place;
mod object_uploads;
mod program;
mod put;
mod query;
mod queue;
mod queue_consumers;
mod queue_place;
mod remove;
mod sql;
mod tags;
mod text_options;
mod topic;
mod window_width;
mod wrapped;

pub(crate) use annotate::*;
pub(crate) use candles::*;
pub(crate) use changed::*;
pub(crate) use common::*;
pub(crate) use container::*;
pub(crate) use container_changes::*;
pub(crate) use container_options::*;
pub(crate) use container_place::*;
pub(crate) use container_read::*;
pub(crate) use database_file::TIDALITE_DB;
pub(crate) use export::*;
pub(crate) use figure_list::{Asked, Function};
pub(crate) use filter::*;
pub(crate) use functions::*;
pub(crate) use hash::*;
pub(crate) use import::*;
pub(crate) use keep::*;
pub(crate) use kv::*;
pub(crate) use messages::*;
pub(crate) use object::*;
pub(crate) use object_changes::*;
pub(crate) use object_place::*;
pub(crate) use object_uploads::*;
pub(crate) use program::*;
pub(crate) use put::*;
pub(crate) use query::*;
pub(crate) use queue::*;
pub(crate) use queue_consumers::*;
pub(crate) use queue_place::*;
pub(crate) use remove::*;
pub(crate) use sql::*;
pub(crate) use tags::*;
pub(crate) use text_options::NULL_WORDS;
#[cfg(test)]
pub(crate) use text_options::tag_value;
pub(crate) use topic::*;
pub(crate) use window_width::*;

use crate::style::{ColorWhen, help_styles};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Heading of the options that every command has; they stand at the end of its help.
const GLOBAL: &str = "Global options";

const ABOUT_LONG: &str = "\
An embedded database for measurements: time series and tables in one file.

A series has a name with tags, like weather.temp{origin=\"JFK\"}. Where a command expects
SERIES, give a whole name or a pattern: weather.temp selects all series of that name with
any tags, 'weather.*' all whose name begins with weather., and '*{origin=\"JFK\"}' all with
that tag. Conditions on tags are =, !=, =~ and !~ (regular expressions), in (...), not in (...)
and not (...); `tidalite series --help` shows them. Quote patterns, because the shell interprets
braces and stars.";

const AFTER_LONG: &str = "\
Examples:
  tidalite import plant.tdl scada.csv.gz --tag turbine
  tidalite series plant.tdl
  tidalite window plant.tdl wind_speed --by 1d --fn mean,max
  tidalite plot plant.tdl wind_speed --last 7d --svg wind.svg
  tidalite quickstart

Environment:
  TIDALITE_DB  database file, instead of the argument FILE.tdl
  NO_COLOR     no colours

Exit codes:
  0  done
  1  an error of the system: permission, disk full, I/O
  2  wrong command line
  3  not found: the file, the series, the column, or no point in the range
  4  damage found in the database, or durable commits are missing from it
  5  unusable input: not a database, a bad CSV file, a bad row
  6  the database is open in another process";

/// An embedded database for measurements: time series and tables in one file
#[derive(Debug, Parser)]
#[command(
    name = "tidalite",
    version,
    long_about = ABOUT_LONG,
    after_long_help = AFTER_LONG,
    styles = help_styles(),
    max_term_width = WIDTH_MAX,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// When to use colours
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorWhen,

    /// Database file of the command, instead of the argument FILE.tdl; the environment variable TIDALITE_DB does the
    /// same. The command then has no argument FILE.tdl
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub db: Option<PathBuf>,

    /// Lock file, if not FILE.tdl-lock beside the database; all processes must use the same one. Required for a block
    /// device
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub lock_path: Option<PathBuf>,

    /// Write to a database although durable commits are missing from it; without this option it can only be opened for
    /// reading
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub accept_lost_commits: bool,

    /// Open the database exclusively: no other process may have it open. Required on a network file system
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub exclusive: bool,

    /// Second file of the database, for large values, possibly on another disk. Created if it does not exist; later it
    /// is found without this option, unless it is moved
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub large: Option<PathBuf>,

    /// With --large: minimum length in bytes of values that are stored there
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_name = "BYTES",
        requires = "large",
        default_value_t = 65536
    )]
    pub large_from: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store files in CSV, JSON or line protocol as series
    Import(ImportArgs),
    /// Store one point
    Put(PutArgs),
    /// Write series as CSV or JSON lines
    Export(ExportArgs),
    /// List series with tags, count, span and size
    Series(SeriesArgs),
    /// Print the names of the series that a pattern selects
    Find(FindArgs),
    /// List metrics, tags and their values; set, drop and rename tags
    Tags(TagsArgs),
    /// Print points
    Scan(ScanArgs),
    /// Print the newest point of series
    Latest(LatestArgs),
    /// Aggregate a range: count, mean, extremes and their times
    Aggregate(AggregateArgs),
    /// Aggregate every hour, day or other width
    Window(WindowArgs),
    /// Print the first, lowest, highest and last value of stored chunks of a series
    Candles(CandlesArgs),
    /// Print several series side by side, joined on time
    Join(JoinArgs),
    /// Draw series in the terminal, as SVG or as PNG
    Plot(PlotArgs),
    /// Run SQL statements, in an interactive shell or from a script
    Sql(SqlArgs),
    /// Print the times at which series differ from an older version
    Changed(ChangedArgs),
    /// Delete points or whole series
    Remove(RemoveArgs),
    /// Rename a series
    Rename(RenameArgs),
    /// Show the contents of the file: pages, trees, bytes per point, free space
    Stat(StatArgs),
    /// Show all readers and writers, in all processes, and the space that each reader retains
    Readers(ReadersArgs),
    /// Verify every page and every structure
    Check(CheckArgs),
    /// Copy a database in use: one snapshot as a new, packed file
    Copy(CopyArgs),
    /// Make the file shorter: move used pages to the front and truncate free space
    Compact(CompactArgs),
    /// Read and change key-value tables
    Kv(KvArgs),
    /// Read and change hash tables: records under keys, with duplicates, history and counters
    Hash(HashArgs),
    /// Read and change topics with retained messages, as an MQTT broker keeps them
    Topic(TopicArgs),
    /// Push messages to queues, and lease, acknowledge and inspect them
    Queue(QueueArgs),
    /// Store, read and list objects: bytes of any length under a name
    Object(ObjectArgs),
    /// Store, read and aggregate JSON messages of many sources, such as devices
    Container(ContainerArgs),
    /// Print tables as text, in the format of mdb_dump and mdbx_dump
    Dump(DumpArgs),
    /// Load the output of dump, mdb_dump or mdbx_dump
    Load(LoadArgs),
    /// Write a backup: all pages, or those written since a pin
    Backup(BackupArgs),
    /// Create a database from a backup and its increments
    Restore(RestoreArgs),
    /// Recover the intact data of a damaged database
    Salvage(SalvageArgs),
    /// List, store and apply retention policies of series, by age and by size
    Retention(RetentionArgs),
    /// List, set and remove annotations of series; change their policy for points at equal times
    Annotate(AnnotateArgs),
    /// List, add and remove pins: versions that stay readable
    Pins(PinsArgs),
    /// Show one page: its header and its bytes
    Page(PageArgs),
    /// Demonstrate the program: real weather data, five queries, a picture, ten million points
    Quickstart(QuickstartArgs),
    /// Print a completion script for your shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(ManArgs),
}

/// Maximum width of help pages in characters.
const WIDTH_MAX: usize = 100;

/// Minimum width of help pages in characters.
const WIDTH_MIN: usize = 40;

/// Parses the command line. An error prints a message and ends the program.
pub(crate) fn parse() -> Cli {
    let words: Vec<_> = std::env::args_os().collect();
    let database = database_file::named(&words, std::env::var_os(TIDALITE_DB));
    let database = database.map(|path| &*Box::leak(path.into_os_string().into_boxed_os_str()));
    let command = definition(help_width(), database);
    let parsed = command.try_get_matches_from(words).map_err(|mut error| {
        let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
        if let Some(path) = database.filter(|_| unknown) {
            let path = crate::output::printable(&path.to_string_lossy());
            let told = format!(
                "the database is {path}, from --db or {TIDALITE_DB}, so there is no argument FILE.tdl"
            );
            let told = clap::builder::StyledStr::from(told);
            error.insert(
                clap::error::ContextKind::Suggested,
                clap::error::ContextValue::StyledStrs(vec![told]),
            );
        }
        error
    });
    let mut matches = parsed.unwrap_or_else(|error| error.exit());
    Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
}

/// The definition of the command line, with help pages of this width; if a database is given, without the arguments
/// that name it.
fn definition(width: usize, database: Option<&'static OsStr>) -> clap::Command {
    let command = wrap_helps(with_negative_numbers(Cli::command()), width).term_width(width);
    match database {
        Some(path) => database_file::fixed(command, path),
        None => command,
    }
}

/// The width of the terminal, or of the variable COLUMNS if there is none, within bounds.
fn help_width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = terminal.or_else(variable).unwrap_or(WIDTH_MAX);
    width.clamp(WIDTH_MIN, WIDTH_MAX)
}

/// Wraps the texts before and after the options of every help page.
fn wrap_helps(command: clap::Command, width: usize) -> clap::Command {
    let wrapped = |text: Option<&clap::builder::StyledStr>| {
        text.map(|text| wrapped::wrapped(&text.to_string(), width))
    };
    let (before, after) = (
        wrapped(command.get_long_about()),
        wrapped(command.get_after_long_help()),
    );
    let command = match before {
        Some(text) => command.long_about(text),
        None => command,
    };
    let command = match after {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.mut_subcommands(|command| wrap_helps(command, width))
}

/// Lets every option accept a value such as `-1`: if it is wrong, the option's parser reports this, instead of clap
/// reporting an unknown option.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| match arg.get_action().takes_values() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        })
        .mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            for line in joined
                .lines()
                .filter(|line| line.starts_with(" ") && line.contains("tidalite "))
            {
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

    /// Calls `check` with every command and its words.
    fn each_command(command: &clap::Command, check: &mut dyn FnMut(&clap::Command)) {
        check(command);
        for below in command.get_subcommands() {
            each_command(below, check);
        }
    }

    #[test]
    fn help_fits_the_terminal_and_is_wrapped_once() {
        for terminal in [60, 100, 140] {
            let width = terminal.min(WIDTH_MAX);
            let mut program = definition(width, None);
            program.build();
            each_command(&program, &mut |command| {
                let name = command.get_bin_name().unwrap_or_default().to_owned();
                let help = command.clone().term_width(width).render_long_help();
                for line in help.to_string().lines() {
                    // A line without a space at which it could be divided may be longer.
                    let fits = line.chars().count() <= width || !line.trim().contains(' ');
                    assert!(
                        fits || line.contains("Usage:") || line.contains("'"),
                        "{name} {width}: {line}"
                    );
                }
                let after = command.get_after_long_help().map(ToString::to_string);
                let after = after.unwrap_or_default();
                assert!(
                    help.to_string().contains(after.trim()),
                    "{name} at {width} is wrapped again"
                );
                for pair in after.lines().collect::<Vec<_>>().windows(2) {
                    let plain = pair
                        .iter()
                        .all(|line| !line.is_empty() && !line.starts_with(' '));
                    let next = pair[1].split(' ').next().unwrap_or_default();
                    let room = pair[0].chars().count() + 1 + next.chars().count();
                    assert!(!plain || room > width, "{name} at {width}: {pair:?}");
                }
            });
        }
    }

    /// If the database is named elsewhere, no command has an argument for it, and the other arguments keep their order.
    #[test]
    fn a_database_from_elsewhere_replaces_the_argument() {
        let parse = |line: &str| {
            let words = line.split(' ');
            let database = OsStr::new("other.tdl");
            let mut matches = definition(100, Some(database)).try_get_matches_from(words)?;
            Cli::from_arg_matches_mut(&mut matches)
        };
        let Command::Scan(scan) = parse("tidalite scan wind --limit 3").unwrap().command else {
            panic!("scan");
        };
        assert_eq!(scan.file.file, PathBuf::from("other.tdl"));
        assert_eq!(scan.which.pattern, "wind");
        let Command::Copy(copy) = parse("tidalite copy b.tdl").unwrap().command else {
            panic!("copy");
        };
        assert_eq!(
            (copy.file.file, copy.copy),
            ("other.tdl".into(), "b.tdl".into())
        );
        let Command::Kv(kv) = parse("tidalite kv put t k v").unwrap().command else {
            panic!("kv");
        };
        let KvCommand::Put {
            place, key, value, ..
        } = kv.command
        else {
            panic!("put");
        };
        assert_eq!(place.file.file, PathBuf::from("other.tdl"));
        assert_eq!(
            (place.table, key, value),
            ("t".into(), "k".into(), Some("v".into()))
        );
        assert!(parse("tidalite scan plant.tdl wind").is_err());
        let mut program = Cli::command();
        program.build();
        each_command(&program, &mut |command| {
            for arg in command.get_positionals() {
                let first = arg.get_index() == Some(1);
                let names = arg.get_value_names().unwrap_or_default();
                let file = first && names.iter().any(|name| name.as_str() == "FILE.tdl");
                assert_eq!(file, arg.get_id() == "file", "{:?}", command.get_bin_name());
            }
        });
    }

    #[test]
    fn a_letter_has_one_meaning() {
        let mut program = Cli::command();
        program.build();
        let mut known = std::collections::BTreeMap::new();
        each_command(&program, &mut |command| {
            // Letters of mdb_stat, mdb_load and psql, which these commands imitate.
            if ["stat", "dump", "load", "sql"].contains(&command.get_name()) {
                return;
            }
            for arg in command.get_arguments() {
                if let (Some(short), Some(long)) = (arg.get_short(), arg.get_long()) {
                    let before = known.insert(short, long.to_owned());
                    assert!(
                        before.is_none_or(|before| before == long),
                        "-{short}: --{long}"
                    );
                }
            }
        });
        assert_eq!(known[&'n'], "limit");
        assert_eq!(known[&'f'], "format");
    }

    #[test]
    fn options_that_choose_a_format_are_called_format() {
        let mut program = Cli::command();
        program.build();
        each_command(&program, &mut |command| {
            for arg in command.get_arguments() {
                let long = arg.get_long().unwrap_or_default();
                assert!(
                    !["form", "input-form", "json", "csv"].contains(&long),
                    "{:?}",
                    command.get_bin_name()
                );
            }
        });
    }

    #[test]
    fn wrong_values_are_explained() {
        let complaint = |words: &[&str]| Cli::try_parse_from(words).unwrap_err().to_string();
        let text = complaint(&["tidalite", "scan", "a.tdl", "x", "--last", "1mo"]);
        assert!(text.contains("months and years differ in length"), "{text}");
        let text = complaint(&["tidalite", "window", "a.tdl", "x", "--by", "0mo"]);
        assert!(text.contains("1mo, 1q or 1y"), "{text}");
        let text = complaint(&["tidalite", "scan", "a.tdl", "x", "--tz", "Mars"]);
        assert!(text.contains("Europe/Berlin"), "{text}");
        let text = complaint(&["tidalite", "import", "a.tdl", "x", "--delimiter", "ab"]);
        assert!(text.contains("one character"), "{text}");
    }
}
