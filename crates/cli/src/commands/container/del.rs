//! `container del` and `container undelete`.

use super::place::{containers, containers_mut, expect, expect_in, filter_failure};
use crate::args::{ContainerDelArgs, ContainerUndeleteArgs};
use crate::commands::messages::{Place, time_text, told};
use crate::exit::{Failure, Outcome};
use crate::output::plural;
use crate::terminal::Terminal;
use serde_json::json;
use tidalite::Timestamp;
use tidalite::containers::{DeleteRange, RestoreRange};

/// Number of messages that are read in one transaction.
const EXAMINED_AT_ONCE: u64 = 50_000;

/// Number of deletions that are read at a time.
const DELETIONS_AT_ONCE: usize = 1_000;

/// Runs the command `tidalite container del`.
pub(super) fn run(args: &ContainerDelArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    let (from, to) = args.range.span()?;
    let mut range = DeleteRange {
        from,
        to,
        after: None,
        examined_max: EXAMINED_AT_ONCE,
        dry_run: args.dry_run,
    };
    let db = place.open_to_write()?;
    let (mut messages, mut can_be_restored) = (0, false);
    loop {
        let mut tx = place.begin(&db)?;
        let mut containers = containers_mut(&place, &mut tx)?;
        expect_in(&place, &containers, name)?;
        let deleted = containers.delete_messages(name, &range, args.filter.filter.as_ref());
        let deleted = deleted.map_err(|error| {
            let failure = filter_failure(&place, &args.filter, &error);
            match messages {
                0 => failure,
                messages => failure.about(format!("after {messages} were deleted")),
            }
        })?;
        match args.dry_run {
            true => drop(tx),
            false => place.commit(tx)?,
        }
        messages += deleted.messages;
        can_be_restored |= deleted.deletion.is_some();
        match deleted.next {
            Some(next) => range.after = Some(next),
            None => break,
        }
    }
    place.close(db)?;
    let messages = plural(messages, "message", "messages");
    let text = match (args.dry_run, can_be_restored) {
        (true, _) => format!("{messages} of {name} would be deleted"),
        (false, true) => {
            format!("{messages} of {name} deleted; `tidalite container undelete` restores them")
        }
        (false, false) => format!("{messages} of {name} deleted"),
    };
    told(&text, terminal)
}

/// Runs the command `tidalite container undelete`.
pub(super) fn undelete(args: &ContainerUndeleteArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    if args.list {
        return list(args, &place, terminal);
    }
    let (from, to) = args.range.span()?;
    let db = place.open_to_write()?;
    let mut range = RestoreRange {
        from,
        to,
        deleted_from: Timestamp::MIN,
        after: None,
        examined_max: EXAMINED_AT_ONCE,
    };
    let (mut restored, mut skipped) = (0, 0);
    loop {
        let mut tx = place.begin(&db)?;
        if let Some(since) = args.deleted_since {
            range.deleted_from = since.at(tx.clock().now());
        }
        let mut containers = containers_mut(&place, &mut tx)?;
        expect_in(&place, &containers, name)?;
        let done = containers.restore_messages(name, &range);
        let done = done.map_err(|error| place.fail(&error))?;
        place.commit(tx)?;
        restored += done.messages.len() as u64;
        skipped += done.skipped;
        match done.next {
            Some(next) => range.after = Some(next),
            None => break,
        }
    }
    place.close(db)?;
    if args.format.is_json() {
        let line = json!({"restored": restored, "skipped": skipped});
        writeln!(terminal.out, "{line}")?;
        terminal.out.flush()?;
    }
    if restored + skipped == 0 {
        return Err(Failure::not_found(format!(
            "{name} has no deleted messages that can be restored"
        ))
        .hint(
            "with the option --keep-deleted of `tidalite container options` a container keeps them",
        ));
    }
    if args.format.is_json() {
        return Ok(());
    }
    let mut text = format!(
        "{} of {name} restored",
        plural(restored, "message", "messages")
    );
    if skipped > 0 {
        text += &format!(", {skipped} left: expired, or there is another message in their place");
    }
    told(&text, terminal)
}

/// Prints deletions, the newest first.
fn list(args: &ContainerUndeleteArgs, place: &Place<'_>, terminal: &mut Terminal<'_>) -> Outcome {
    let name = &args.of.name;
    let (_db, snap) = place.open()?;
    let containers = containers(place, &snap)?;
    expect(place, &containers, name)?;
    let mut before = None;
    loop {
        let deletions = containers.deletions(name, before, DELETIONS_AT_ONCE);
        let deletions = deletions.map_err(|error| place.fail(&error))?;
        let Some(last) = deletions.last() else { break };
        before = Some(last.number);
        for deletion in &deletions {
            let (deleted, free) = (time_text(deletion.deleted_at), time_text(deletion.free_at));
            if args.format.is_json() {
                let line = json!({
                    "number": deletion.number,
                    "deleted": deleted,
                    "kept_until": free,
                    "messages": deletion.messages,
                    "bytes": deletion.bytes,
                });
                writeln!(terminal.out, "{line}")?;
                continue;
            }
            let messages = plural(deletion.messages, "message", "messages");
            writeln!(terminal.out, "{deleted}\t{messages}\tkept until {free}")?;
        }
    }
    Ok(terminal.out.flush()?)
}
