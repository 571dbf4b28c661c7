//! `queue purge` and `queue maintain`.

use super::place::{expect_group_in, queue_mut};
use crate::args::{QueueMaintainArgs, QueuePurgeArgs};
use crate::commands::messages::{Place, told};
use crate::exit::Outcome;
use crate::output::plural;
use crate::terminal::Terminal;
use tidalite::Database;
use tidalite::queue::QueueMut;

/// Number of messages that are removed in one transaction.
const REMOVED_AT_ONCE: usize = 50_000;

/// Repeats `work`, one transaction for each call, until it returns that nothing remains. Returns the number of messages
/// that were removed from the queue.
fn repeated(
    place: &Place<'_>,
    db: &Database,
    work: &mut dyn FnMut(&mut QueueMut<'_>) -> tidalite::Result<bool>,
) -> Outcome<u64> {
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut lost = 0;
    loop {
        let mut tx = place.begin(db)?;
        let mut queue = queue_mut(place, &mut tx)?;
        let before = queue.view().and_then(|view| view.stat()).map_err(fail)?;
        let more = work(&mut queue).map_err(fail)?;
        let after = queue.view().and_then(|view| view.stat()).map_err(fail)?;
        place.commit(tx)?;
        lost += before.messages.saturating_sub(after.messages);
        if !more {
            return Ok(lost);
        }
    }
}

/// Runs the command `tidalite queue purge`.
pub(super) fn purge(args: &QueuePurgeArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let Some(group) = &args.group else {
        let lost = repeated(&place, &db, &mut |queue| queue.purge(REMOVED_AT_ONCE))?;
        place.close(db)?;
        let messages = plural(lost, "message", "messages");
        return told(
            &format!("{messages} deleted from {}", place.table),
            terminal,
        );
    };
    let mut tx = place.begin(&db)?;
    expect_group_in(&place, &queue_mut(&place, &mut tx)?, group)?;
    drop(tx);
    repeated(&place, &db, &mut |queue| {
        queue.purge_group(group, REMOVED_AT_ONCE)
    })?;
    place.close(db)?;
    told(
        &format!(
            "all messages of the group {group} deleted from {}",
            place.table
        ),
        terminal,
    )
}

/// Runs the command `tidalite queue maintain`.
pub(super) fn maintain(args: &QueueMaintainArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let lost = repeated(&place, &db, &mut |queue| {
        queue.maintain(REMOVED_AT_ONCE as u64).map(|done| done.more)
    })?;
    place.close(db)?;
    let messages = plural(lost, "message", "messages");
    told(
        &format!("{} maintained: {messages} deleted", place.table),
        terminal,
    )
}
