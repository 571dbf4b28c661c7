//! `queue`: commands for queues of jobs.
//!
//! ```text
//! place     the table that a command names
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
mod place;
mod push;
mod stat;
mod upkeep;

pub(super) use place::{expect_group, queue as open_queue};

use crate::args::{QueueArgs, QueueCommand, QueueGroupCommand};
use crate::exit::Outcome;
use crate::terminal::Terminal;

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
