//! `container`: commands for containers of messages.
//!
//! ```text
//! place        the table and the container that a command names, ranges of times
//! line         values and messages as JSON
//! width        durations as text
//! options      create, options
//! list         ls, dropped
//! stat         stat
//! manage       mv, rm, restore
//! source       the time, the container and the key of a message, from its fields
//! outcomes     counts messages by their outcome
//! lines        messages of an input, in batches
//! put          put
//! get          get
//! latest       latest, fields
//! aggregate    aggregate
//! del          del, undelete
//! thin         thin
//! upkeep       maintain, rebuild
//! hand_over    hand-over
//! filter_test  filter-test
//! ```

mod aggregate;
mod del;
mod filter_test;
mod get;
mod hand_over;
mod latest;
mod line;
mod lines;
mod list;
mod manage;
mod options;
mod outcomes;
mod place;
mod put;
mod source;
mod stat;
mod thin;
mod upkeep;
mod width;

use crate::args::{ContainerArgs, ContainerCommand};
use crate::exit::Outcome;
use crate::terminal::Terminal;

/// Runs the command `tidalite container`.
pub(crate) fn run(args: &ContainerArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        ContainerCommand::Create(args) => options::create(args, terminal),
        ContainerCommand::Options(args) => options::options(args, terminal),
        ContainerCommand::Ls(args) => list::ls(args, terminal),
        ContainerCommand::Stat(args) => stat::run(args, terminal),
        ContainerCommand::Mv(args) => manage::mv(args, terminal),
        ContainerCommand::Rm(args) => manage::rm(args, terminal),
        ContainerCommand::Restore(args) => manage::restore(args, terminal),
        ContainerCommand::Dropped(args) => list::dropped(args, terminal),
        ContainerCommand::Put(args) => put::run(args, terminal),
        ContainerCommand::Get(args) => get::run(args, terminal),
        ContainerCommand::Latest(args) => latest::run(args, terminal),
        ContainerCommand::Fields(args) => latest::fields(args, terminal),
        ContainerCommand::Aggregate(args) => aggregate::run(args, terminal),
        ContainerCommand::Del(args) => del::run(args, terminal),
        ContainerCommand::Undelete(args) => del::undelete(args, terminal),
        ContainerCommand::Thin(args) => thin::run(args, terminal),
        ContainerCommand::Maintain(args) => upkeep::maintain(args, terminal),
        ContainerCommand::Rebuild(args) => upkeep::rebuild(args, terminal),
        ContainerCommand::HandOver(args) => hand_over::run(args, terminal),
        ContainerCommand::FilterTest(args) => filter_test::run(args, terminal),
    }
}
