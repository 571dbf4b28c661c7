//! `queue`: commands for queues of jobs.
//!
//! ```text
//! line      messages as lines of text and as JSON
//! create    a new queue, and its options
//! push      push
//! deliver   lease, take, peek
//! answer    ack, nack, reject, extend
//! dead      dead letters
//! groups    groups of consumers
//! stat      stat
//! upkeep    purge, maintain
//! ```

mod answer;
mod create;
mod dead;
mod deliver;
mod groups;
mod line;
mod push;
mod stat;
mod upkeep;

use super::messages::Place;
use crate::args::{QueueArgs, QueueCommand, QueueGroupCommand, QueuePlace};
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use tidalite::queue::{DEFAULT_GROUP, GroupStat};
use tidalite::{Queue, QueueMut, ReadTxn, TableLayout, WriteTxn};

impl QueuePlace {
    fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.file,
            table: &self.table,
            layout: TableLayout::Queue,
        }
    }
}

/// The queue of a snapshot, which must exist.
fn queue<'s>(place: &Place<'_>, snap: &'s ReadTxn) -> Outcome<Queue<'s>> {
    let queue = snap.queue(place.table);
    let queue = queue.map_err(|error| place.fail(&error))?;
    queue.ok_or_else(|| place.missing())
}

/// The queue of a transaction; it is created if it does not exist.
fn queue_mut<'t>(place: &Place<'_>, tx: &'t mut WriteTxn) -> Outcome<QueueMut<'t>> {
    tx.queue(place.table).map_err(|error| place.fail(&error))
}

/// The groups of a queue with their counters. A queue without groups has the default group.
fn groups_of(queue: &Queue<'_>) -> tidalite::Result<Vec<(String, GroupStat)>> {
    let mut names = queue.group_names();
    if names.is_empty() && queue.group_stat(DEFAULT_GROUP).is_ok() {
        names.push(DEFAULT_GROUP);
    }
    let groups = names.into_iter();
    groups
        .map(|name| Ok((name.to_owned(), queue.group_stat(name)?)))
        .collect()
}

/// Returns an error for a group that does not exist.
fn expect_group(place: &Place<'_>, queue: &Queue<'_>, group: &str) -> Outcome {
    match queue.group_stat(group) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == tidalite::ErrorKind::Unsupported => Err(Failure::not_found(
            format!("queue {} has no group {group}", place.table),
        )
        .hint(format!(
            "`tidalite queue group list {}` lists the groups; --group selects one",
            place.path.display()
        ))),
        Err(error) => Err(place.fail(&error)),
    }
}

/// Returns an error for a group that does not exist in the state of a transaction.
fn expect_group_in(place: &Place<'_>, queue: &QueueMut<'_>, group: &str) -> Outcome {
    let view = queue.view().map_err(|error| place.fail(&error))?;
    expect_group(place, &view, group)
}

/// Runs the command `tidalite queue`.
pub(crate) fn run(args: &QueueArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        QueueCommand::Create(args) => create::run(args, terminal),
        QueueCommand::Push(args) => push::run(args, terminal),
        QueueCommand::Lease(args) => deliver::lease(args, terminal),
        QueueCommand::Take(args) => deliver::take(args, terminal),
        QueueCommand::Ack(args) => answer::ack(args, terminal),
        QueueCommand::Nack(args) => answer::nack(args, terminal),
        QueueCommand::Reject(args) => answer::reject(args, terminal),
        QueueCommand::Extend(args) => answer::extend(args, terminal),
        QueueCommand::Peek(args) => deliver::peek(args, terminal),
        QueueCommand::Dead(args) => dead::run(args, terminal),
        QueueCommand::Group(args) => match &args.command {
            QueueGroupCommand::Create(args) => groups::create(args, terminal),
            QueueGroupCommand::Drop(args) => groups::drop_group(args, terminal),
            QueueGroupCommand::List(args) => groups::list(args, terminal),
        },
        QueueCommand::Stat(args) => stat::run(args, terminal),
        QueueCommand::Purge(args) => upkeep::purge(args, terminal),
        QueueCommand::Maintain(args) => upkeep::maintain(args, terminal),
    }
}
