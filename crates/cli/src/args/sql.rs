//! `sql`.

use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlMode {
    /// A table, for reading
    #[default]
    Box,
    /// Comma-separated values
    Csv,
    /// One JSON array of objects
    Json,
    /// One JSON object in each line
    Jsonl,
    /// A Markdown table
    Markdown,
    /// One line for each value
    Line,
    /// A Parquet file: one result, redirected or to the file of .output
    Parquet,
    /// A file of Arrow IPC, like parquet
    Arrow,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
On a terminal this is an interactive shell: a statement ends with a semicolon, Tab completes names,
Ctrl-C cancels a statement, Ctrl-D ends the shell, and .help lists its commands. A result that is
taller than the screen is shown with the pager that the variable PAGER names. The history of
statements is in $XDG_STATE_HOME/tidalite or ~/.local/state/tidalite.

With --command, or with statements on standard input, they run one after the other, and the first
error ends the program. A transaction that is still open at the end is rolled back.

Statements may change the database: INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, COPY, and BEGIN,
COMMIT, ROLLBACK, SAVEPOINT. Reading never waits for another process, and never makes one wait. One
process writes at a time: a statement that writes, or BEGIN, waits until the transaction of the
other process has ended, and tells so after a second. With --readonly, or if the file cannot be
opened for writing, statements that write are errors.

The command is part of builds with the feature sql: cargo build --release --features sql

Examples:
  tidalite sql plant.tdl
  tidalite sql plant.tdl -c 'SELECT 1' --mode csv
  tidalite sql plant.tdl -c .tables -c '.schema wind_speed'
  tidalite sql plant.tdl -c 'SELECT * FROM wind_speed' --mode parquet > wind.parquet
  tidalite sql plant.tdl -c '.import turbines.csv turbines'
  cat report.sql | tidalite sql plant.tdl --mode jsonl --keep-going")]
pub(crate) struct SqlArgs {
    /// Database file
    #[arg(value_name = "FILE.tdl", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Statements or commands to run instead of the standard input; if repeated, all run in order
    #[arg(
        long = "command",
        short = 'c',
        value_name = "SQL",
        allow_hyphen_values = true
    )]
    pub commands: Vec<String>,

    /// Format of results
    #[arg(
        long,
        visible_alias = "format",
        value_enum,
        default_value_t,
        value_name = "MODE"
    )]
    pub mode: SqlMode,

    /// Do not print the names of columns
    #[arg(long)]
    pub no_header: bool,

    /// Continue with the next statement after an error; the first error determines the exit code
    #[arg(long)]
    pub keep_going: bool,

    /// Create the database if it does not exist
    #[arg(long, conflicts_with = "readonly")]
    pub create: bool,

    /// Open the database for reading only. This happens by itself if it cannot be opened for writing
    #[arg(long)]
    pub readonly: bool,
}
