//! `container maintain`: does all maintenance that is due, and thins older messages. `container rebuild`: creates the
//! series of containers again.

use super::place::containers_mut;
use crate::args::ContainerUpkeepArgs;
use crate::commands::messages::told;
use crate::exit::Outcome;
use crate::output::plural;
use crate::terminal::Terminal;
use serde_json::json;

/// Number of rows that maintenance and thinning each read in one transaction.
const ROWS_AT_ONCE: u64 = 50_000;

/// Numbers of removed items.
#[derive(Default)]
struct Done {
    expired: u64,
    rotated: u64,
    thinned: u64,
    freed_messages: u64,
    freed_containers: u64,
    forgotten_keys: u64,
}

/// Runs the command `tidalite container maintain`.
pub(super) fn maintain(args: &ContainerUpkeepArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let fail = |error: tidalite::Error| place.fail(&error);
    let db = place.open_to_write()?;
    let mut all = Done::default();
    loop {
        let mut tx = place.begin(&db)?;
        let mut containers = containers_mut(&place, &mut tx)?;
        let done = containers.maintain(ROWS_AT_ONCE).map_err(fail)?;
        let thinned = containers.thin(ROWS_AT_ONCE).map_err(fail)?;
        place.commit(tx)?;
        all.expired += done.expired;
        all.rotated += done.rotated;
        all.freed_messages += done.freed_messages;
        all.freed_containers += done.freed_containers.len() as u64;
        all.forgotten_keys += done.forgotten_keys;
        all.thinned += thinned.removed;
        if !done.more && !thinned.more {
            break;
        }
    }
    place.close(db)?;
    if args.format.is_json() {
        let line = json!({
            "expired": all.expired,
            "rotated": all.rotated,
            "thinned": all.thinned,
            "freed_messages": all.freed_messages,
            "freed_containers": all.freed_containers,
            "forgotten_keys": all.forgotten_keys,
        });
        writeln!(terminal.out, "{line}")?;
        return Ok(terminal.out.flush()?);
    }
    let removed = plural(
        all.expired + all.rotated + all.thinned,
        "message",
        "messages",
    );
    let mut text = format!("{} maintained: {removed} removed", place.table);
    let parts = [
        (all.expired, "expired"),
        (all.rotated, "beyond the limits"),
        (all.thinned, "thinned"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, told)| format!("{count} {told}"))
        .collect();
    if !parts.is_empty() {
        text += &format!(" ({})", parts.join(", "));
    }
    for (count, one, many) in [
        (all.freed_messages, "deleted message", "deleted messages"),
        (
            all.freed_containers,
            "dropped container",
            "dropped containers",
        ),
    ] {
        if count > 0 {
            text += &format!("; {} freed", plural(count, one, many));
        }
    }
    told(&text, terminal)
}

/// Runs the command `tidalite container rebuild`.
pub(super) fn rebuild(args: &ContainerUpkeepArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let fail = |error: tidalite::Error| place.fail(&error);
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(&place, &mut tx)?;
    containers.rebuild_series().map_err(fail)?;
    let stat = containers.view().and_then(|view| view.stat());
    let count = stat.map_err(fail)?.containers;
    place.commit(tx)?;
    place.close(db)?;
    if args.format.is_json() {
        writeln!(terminal.out, "{}", json!({"containers": count}))?;
        return Ok(terminal.out.flush()?);
    }
    let made = plural(count, "container", "containers");
    told(
        &format!("the series of {made} of {} made anew", place.table),
        terminal,
    )
}
