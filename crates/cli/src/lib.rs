//! The `tidalite` program.
//!
//! It is a library, so that its tests can depend on it with the feature `sql`, which a default build leaves out.
//!
//! ```text
//! exit        exit codes, failures with their next step
//! bytes       keys and values of tables as text
//! style       colours
//! time        times and widths, in and out
//! wording     numbers and names as text
//! output      rows as table, CSV or JSON lines
//! progress    bars on standard error
//! export      files for CSV and JSON lines
//! plot        drawing series
//! args        the command line and its help
//! terminal    output of a command
//! store       options for every file that is opened
//! database    access to the library for commands
//! columns     selects columns of a series
//! import      CSV and JSON lines as input
//! commands    one file per command
//! quickstart  the first minute with the program
//! dispatch    runs the selected command
//! ```

mod args;
mod bytes;
mod columns;
mod commands;
mod database;
mod dispatch;
mod exit;
mod export;
mod import;
mod output;
mod plot;
mod progress;
mod quickstart;
mod store;
mod style;
mod terminal;
mod time;
mod wording;

use args::Cli;
use exit::{Failure, Outcome};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use style::Palette;
use terminal::Terminal;

/// Runs the program: parses the command line, runs the command, and reports its failure.
#[must_use]
pub fn main() -> ExitCode {
    let cli = args::parse();
    store::listen(&cli);
    let palette = Palette::of(cli.color, &io::stderr());
    match run(&cli, palette) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure, palette);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn run(cli: &Cli, messages: Palette) -> Outcome {
    let stdout = io::stdout();
    let palette = Palette::of(cli.color, &stdout);
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let mut out = BufWriter::with_capacity(64 * 1024, stdout.lock());
    let mut terminal = Terminal {
        out: &mut out,
        palette,
        messages,
        columns,
    };
    dispatch::dispatch(cli, &mut terminal)
}

/// Prints a failure to standard error; errors of this writing are ignored.
fn report(failure: &Failure, palette: Palette) {
    let mut stderr = io::stderr().lock();
    // The SQL shell has printed its errors already.
    if !failure.message.is_empty() {
        let message = output::printable(&failure.message);
        let _ = writeln!(stderr, "{} {message}", palette.error("error:"));
    }
    if let Some(hint) = &failure.hint {
        let _ = writeln!(
            stderr,
            "{} {}",
            palette.good("next:"),
            output::printable(hint)
        );
    }
}
