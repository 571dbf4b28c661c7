//! The command line and its help.

mod annotate;
mod candles;
mod changed;
mod common;
mod export;
pub(crate) mod figure_list;
mod filter;
mod functions;
mod import;
mod keep;
mod kv;
mod program;
mod query;
mod remove;
mod text_options;
mod window_width;

pub(crate) use annotate::*;
pub(crate) use candles::*;
pub(crate) use changed::*;
pub(crate) use common::*;
pub(crate) use export::*;
pub(crate) use figure_list::{Asked, Function};
pub(crate) use filter::*;
pub(crate) use functions::*;
pub(crate) use import::*;
pub(crate) use keep::*;
pub(crate) use kv::*;
pub(crate) use program::*;
pub(crate) use query::*;
pub(crate) use remove::*;
pub(crate) use text_options::NULL_WORDS;
#[cfg(test)]
pub(crate) use text_options::tag_value;
pub(crate) use window_width::*;

use crate::style::{ColorWhen, help_styles};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use std::path::PathBuf;

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
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorWhen,

    /// Lock file, if not FILE.tdl-lock beside the database; all processes must use the same one. Required for a block
    /// device
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub lock_path: Option<PathBuf>,

    /// Write to a database although durable commits are missing from it; without this option it can only be opened for
    /// reading
    #[arg(long, global = true)]
    pub accept_lost_commits: bool,
    /// Open the database exclusively: no other process may have it open. Required on a network file system
    #[arg(long, global = true)]
    pub exclusive: bool,

    /// Second file of the database, for large values, possibly on another disk. Created if it does not exist; later it
    /// is found without this option, unless it is moved
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub large: Option<PathBuf>,

    /// With --large: minimum length in bytes of values that are stored there
    #[arg(
        long,
        global = true,
        value_name = "BYTES",
        requires = "large",
        default_value_t = 65536
    )]
    pub large_from: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store CSV or JSON lines as series
    Import(ImportArgs),
    /// Write series as CSV or JSON lines
    Export(ExportArgs),
    /// List series with tags, count, span and size
    Series(SeriesArgs),
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

/// Parses the command line. An error prints a message and ends the program.
pub(crate) fn parse() -> Cli {
    let mut matches = with_negative_numbers(Cli::command()).get_matches();
    Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
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
