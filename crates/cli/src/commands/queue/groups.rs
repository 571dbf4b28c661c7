//! `queue group`: groups of consumers.

use super::place::{groups_of, queue, queue_mut};
use crate::args::{QueueGroupCreateArgs, QueueGroupDropArgs, QueueGroupListArgs, QueueStart};
use crate::commands::messages::{time_text, told};
use crate::exit::{Failure, Outcome};
use crate::output::printable;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use tidalite::queue::{GroupStart, GroupStat};

/// Runs the command `tidalite queue group create`.
pub(super) fn create(args: &QueueGroupCreateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let start = match args.start {
        QueueStart::Oldest => GroupStart::Oldest,
        QueueStart::Newest => GroupStart::Newest,
    };
    let is_new = queue_mut(&place, &mut tx)?.create_group(&args.name, start);
    let is_new = is_new.map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    let done = match is_new {
        true => "created",
        false => "exists already",
    };
    told(
        &format!("group {} of {} {done}", args.name, place.table),
        terminal,
    )
}

/// Runs the command `tidalite queue group drop`.
pub(super) fn drop_group(args: &QueueGroupDropArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let dropped = queue_mut(&place, &mut tx)?.drop_group(&args.name);
    if !dropped.map_err(|error| place.fail(&error))? {
        return Err(Failure::not_found(format!(
            "queue {} has no group {}",
            place.table, args.name
        ))
        .hint("`tidalite queue group list` lists the groups"));
    }
    place.finish(tx, db)?;
    told(
        &format!(
            "group {} of {} dropped; `tidalite queue maintain` frees its messages",
            args.name, place.table
        ),
        terminal,
    )
}

/// Counters of a group as JSON.
pub(super) fn group_json(name: &str, stat: &GroupStat) -> Value {
    json!({
        "group": name,
        "ready": stat.ready,
        "delayed": stat.delayed,
        "leased": stat.leased,
        "waiting": stat.waiting,
        "dead": stat.dead,
        "acked": stat.acked,
        "redelivered": stat.redelivered,
        "buried": stat.buried,
        "oldest": stat.oldest.map(time_text),
    })
}

/// Counters of a group as a line of text.
pub(super) fn group_text(name: &str, stat: &GroupStat) -> String {
    format!(
        "{}\t{} ready\t{} delayed\t{} leased\t{} waiting\t{} dead\t{} acknowledged",
        printable(name),
        stat.ready,
        stat.delayed,
        stat.leased,
        stat.waiting,
        stat.dead,
        stat.acked
    )
}

/// Runs the command `tidalite queue group list`.
pub(super) fn list(args: &QueueGroupListArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let queue = queue(&place, &snap)?;
    let groups = groups_of(&queue).map_err(|error| place.fail(&error))?;
    for (name, stat) in &groups {
        match args.format.is_json() {
            true => writeln!(terminal.out, "{}", group_json(name, stat))?,
            false => writeln!(terminal.out, "{}", group_text(name, stat))?,
        }
    }
    Ok(terminal.out.flush()?)
}
