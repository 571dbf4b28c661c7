//! The `tidalite` program.
//!
//! ```text
//! args        what can be said on the command line, and its help
//! exit        exit codes, failures with their next step
//! style       colours
//! output      rows as table, CSV or JSON lines
//! time        times and widths, in and out
//! import      CSV in
//! plot        pictures
//! commands    one file a command
//! ```

#![allow(
    dead_code,
    reason = "the commands that use the rest follow with the library"
)]

mod args;
mod commands;
mod exit;
mod import;
mod output;
mod plot;
mod style;
mod time;

use args::{Cli, Command};
use clap::Parser;
use exit::{Exit, Failure, Outcome};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use style::Palette;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let palette = Palette::of(cli.color, &io::stderr());
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure, palette);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn run(cli: &Cli) -> Outcome {
    let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    match &cli.command {
        Command::Completions(args) => commands::pages::completions(args, &mut out),
        Command::Man(args) => commands::pages::man(args, &mut out),
        _ => Err(Failure::new(Exit::Failure, "this command is not there yet")),
    }
}

/// Errors of writing to standard error have nowhere to go.
fn report(failure: &Failure, palette: Palette) {
    if failure.exit == Exit::Ok {
        return;
    }
    let mut stderr = io::stderr().lock();
    let message = output::printable(&failure.message);
    let _ = writeln!(stderr, "{} {message}", palette.error("error:"));
    if let Some(hint) = &failure.hint {
        let _ = writeln!(
            stderr,
            "{} {}",
            palette.good("next:"),
            output::printable(hint)
        );
    }
}
