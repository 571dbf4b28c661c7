//! The queue that a command refers to, and its groups.

use crate::args::QueuePlace;
use crate::commands::messages::Place;
use crate::exit::{Failure, Outcome};
use tidalite::queue::{DEFAULT_GROUP, GroupStat, Queue, QueueMut};
use tidalite::{ReadTxn, TableLayout, WriteTxn};

impl QueuePlace {
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.file,
            table: &self.table,
            layout: TableLayout::Queue,
        }
    }
}

/// The queue of a snapshot, which must exist.
pub(in crate::commands) fn queue<'s>(place: &Place<'_>, snap: &'s ReadTxn) -> Outcome<Queue<'s>> {
    let queue = snap.queue(place.table);
    let queue = queue.map_err(|error| place.fail(&error))?;
    queue.ok_or_else(|| place.missing())
}

/// The queue of a transaction; it is created if it does not exist.
pub(super) fn queue_mut<'t>(place: &Place<'_>, tx: &'t mut WriteTxn) -> Outcome<QueueMut<'t>> {
    tx.queue(place.table).map_err(|error| place.fail(&error))
}

/// The groups of a queue with their counters. A queue without groups has the default group.
pub(super) fn groups_of(queue: &Queue<'_>) -> tidalite::Result<Vec<(String, GroupStat)>> {
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
pub(in crate::commands) fn expect_group(
    place: &Place<'_>,
    queue: &Queue<'_>,
    group: &str,
) -> Outcome {
    match queue.group_stat(group) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == tidalite::ErrorKind::NotFound => Err(Failure::not_found(
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
pub(super) fn expect_group_in(place: &Place<'_>, queue: &QueueMut<'_>, group: &str) -> Outcome {
    let view = queue.view().map_err(|error| place.fail(&error))?;
    expect_group(place, &view, group)
}
