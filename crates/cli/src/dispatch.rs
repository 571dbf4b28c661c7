//! Runs the command selected on the command line.

use crate::args::{Cli, Command};
use crate::commands::{
    aggregate, annotate, candles, changed, container, dump, export, hash, import, integrity, join,
    kv, load, object, pages, plot, put, queue, readers, remove, retention, scan, series, sql, tags,
    topic, upkeep, window,
};
use crate::exit::Outcome;
use crate::quickstart;
use crate::terminal::Terminal;

/// Runs a parsed command line.
pub(crate) fn dispatch(cli: &Cli, terminal: &mut Terminal<'_>) -> Outcome {
    match &cli.command {
        Command::Import(args) => import::run(args, terminal),
        Command::Put(args) => put::run(args, terminal),
        Command::Export(args) => export::run(args, terminal),
        Command::Series(args) => series::run(args, terminal),
        Command::Find(args) => tags::find(args, terminal),
        Command::Tags(args) => tags::tags(args, terminal),
        Command::Scan(args) => scan::run(args, terminal),
        Command::Latest(args) => scan::latest(args, terminal),
        Command::Aggregate(args) => aggregate::run(args, terminal),
        Command::Window(args) => window::run(args, terminal),
        Command::Candles(args) => candles::run(args, terminal),
        Command::Join(args) => join::run(args, terminal),
        Command::Plot(args) => plot::run(args, terminal),
        Command::Changed(args) => changed::run(args, terminal),
        Command::Sql(args) => sql::run(args, terminal),
        Command::Remove(args) => remove::run(args, terminal),
        Command::Rename(args) => remove::rename(args, terminal),
        Command::Readers(args) => readers::run(args, terminal),
        Command::Stat(args) => upkeep::stat(args, terminal),
        Command::Check(args) => upkeep::check(args, terminal),
        Command::Copy(args) => upkeep::copy(args, terminal),
        Command::Compact(args) => upkeep::compact(args, terminal),
        Command::Kv(args) => kv::run(args, terminal),
        Command::Hash(args) => hash::run(args, terminal),
        Command::Topic(args) => topic::run(args, terminal),
        Command::Queue(args) => queue::run(args, terminal),
        Command::Object(args) => object::run(args, terminal),
        Command::Container(args) => container::run(args, terminal),
        Command::Dump(args) => dump::dump(args, terminal),
        Command::Load(args) => load::load(args, terminal),
        Command::Backup(args) => integrity::backup(args, terminal),
        Command::Restore(args) => integrity::restore(args, terminal),
        Command::Salvage(args) => integrity::salvage(args, terminal),
        Command::Retention(args) => retention::run(args, terminal),
        Command::Annotate(args) => annotate::run(args, terminal),
        Command::Pins(args) => integrity::pins(args, terminal),
        Command::Page(args) => integrity::page(args, terminal),
        Command::Quickstart(args) => quickstart::run(args, dispatch, terminal),
        Command::Completions(args) => pages::completions(args, terminal.out),
        Command::Man(args) => pages::man(args, terminal.out),
    }
}
