//! `topic`: commands for topics with retained messages.
//!
//! ```text
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
mod port;
mod read;
mod stat;
mod watch;
mod write;

use super::messages::Place;
use crate::args::{TopicArgs, TopicCommand, TopicPlace};
use crate::exit::Outcome;
use crate::terminal::Terminal;
use tidalite::{ReadTxn, TableLayout, Topics, TopicsMut, WriteTxn};

impl TopicPlace {
    fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.file,
            table: &self.table,
            layout: TableLayout::Topics,
        }
    }
}

/// The topics of a snapshot, which must exist.
fn topics<'s>(place: &Place<'_>, snap: &'s ReadTxn) -> Outcome<Topics<'s>> {
    let topics = snap.topics(place.table);
    let topics = topics.map_err(|error| place.fail(&error))?;
    topics.ok_or_else(|| place.missing())
}

/// The topics of a transaction; they are created if they do not exist.
fn topics_mut<'t>(place: &Place<'_>, tx: &'t mut WriteTxn) -> Outcome<TopicsMut<'t>> {
    tx.topics(place.table).map_err(|error| place.fail(&error))
}

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
