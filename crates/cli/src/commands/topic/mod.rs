//! `topic`: commands for topics with retained messages.
//!
//! ```text
//! place     the table that a command names
//! line      messages as lines of text and as JSON, and back
//! filters   filters that the user has typed
//! create    a new table, and its options
//! write     set, rm, purge
//! read      get, match
//! watch     changes as they are committed
//! port      import, export
//! stat      stat
//! ```

mod create;
mod filters;
mod line;
mod place;
mod port;
mod read;
mod stat;
mod watch;
mod write;

use crate::args::{TopicArgs, TopicCommand};
use crate::exit::Outcome;
use crate::terminal::Terminal;

/// Runs the command `tidalite topic`.
pub(crate) fn run(args: &TopicArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        TopicCommand::Create(args) => create::run(args, terminal),
        TopicCommand::Set(args) => write::set(args, terminal),
        TopicCommand::Get(args) => read::get(args, terminal),
        TopicCommand::Match(args) => read::search(args, terminal),
        TopicCommand::Rm(args) => write::rm(args, terminal),
        TopicCommand::Watch(args) => watch::run(args, terminal),
        TopicCommand::Import(args) => port::import(args, terminal),
        TopicCommand::Export(args) => port::export(args, terminal),
        TopicCommand::Stat(args) => stat::run(args, terminal),
        TopicCommand::Purge(args) => write::purge(args, terminal),
    }
}
