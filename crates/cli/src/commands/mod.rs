//! One file a command.

pub(crate) mod aggregate;
pub(crate) mod annotate;
pub(crate) mod candles;
pub(crate) mod changed;
mod damage;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod figures;
mod filters;
mod foreign;
pub(crate) mod frequent;
pub(crate) mod functions;
pub(crate) mod groups;
mod head;
pub(crate) mod import;
pub(crate) mod integrity;
pub(crate) mod join;
pub(crate) mod kv;
mod kv_stat;
pub(crate) mod load;
mod maintain;
pub(crate) mod pages;
pub(crate) mod plot;
pub(crate) mod readers;
pub(crate) mod remove;
pub(crate) mod retention;
pub(crate) mod scan;
pub(crate) mod series;
pub(crate) mod unfinished;
pub(crate) mod upkeep;
mod walk;
pub(crate) mod window;

use crate::args::{Cli, Command};
use crate::exit::Outcome;
use crate::output::{Column, Format, Sheet};
use crate::style::Palette;
use std::io::Write;

/// Where a command prints.
pub(crate) struct Terminal<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Colours of results.
    pub palette: Palette,
    /// Colours of messages on standard error.
    pub messages: Palette,
    /// Columns of the terminal, where there is one.
    pub columns: Option<usize>,
}

impl Terminal<'_> {
    /// Rows of these columns to where results go.
    pub(crate) fn sheet(&mut self, format: Format, columns: Vec<Column>) -> Sheet<&mut dyn Write> {
        Sheet::new(&mut *self.out, format, self.palette, columns)
    }
}

/// Runs a parsed command line.
pub(crate) fn run(cli: &Cli, terminal: &mut Terminal<'_>) -> Outcome {
    match &cli.command {
        Command::Import(args) => import::run(args, terminal),
        Command::Export(args) => export::run(args, terminal),
        Command::Series(args) => series::run(args, terminal),
        Command::Scan(args) => scan::run(args, terminal),
        Command::Latest(args) => scan::latest(args, terminal),
        Command::Aggregate(args) => aggregate::run(args, terminal),
        Command::Window(args) => window::run(args, terminal),
        Command::Candles(args) => candles::run(args, terminal),
        Command::Join(args) => join::run(args, terminal),
        Command::Plot(args) => plot::run(args, terminal),
        Command::Changed(args) => changed::run(args, terminal),
        Command::Remove(args) => remove::run(args, terminal),
        Command::Rename(args) => remove::rename(args, terminal),
        Command::Readers(args) => readers::run(args, terminal),
        Command::Stat(args) => upkeep::stat(args, terminal),
        Command::Check(args) => upkeep::check(args, terminal),
        Command::Copy(args) => upkeep::copy(args, terminal),
        Command::Compact(args) => upkeep::compact(args, terminal),
        Command::Kv(args) => kv::run(args, terminal),
        Command::Dump(args) => dump::dump(args, terminal),
        Command::Load(args) => load::load(args, terminal),
        Command::Backup(args) => integrity::backup(args, terminal),
        Command::Restore(args) => integrity::restore(args, terminal),
        Command::Salvage(args) => integrity::salvage(args, terminal),
        Command::Retention(args) => retention::run(args, terminal),
        Command::Annotate(args) => annotate::run(args, terminal),
        Command::Pins(args) => integrity::pins(args, terminal),
        Command::Page(args) => integrity::page(args, terminal),
        Command::Quickstart(args) => crate::quickstart::run(args, terminal),
        Command::Completions(args) => pages::completions(args, terminal.out),
        Command::Man(args) => pages::man(args, terminal.out),
    }
}
