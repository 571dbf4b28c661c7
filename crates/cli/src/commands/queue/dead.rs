//! `queue dead`: prints dead letters, makes them ready again, or drops them.

use super::answer::tell;
use super::line::{dead_json, dead_text};
use super::place::{expect_group, expect_group_in, queue, queue_mut};
use crate::args::QueueDeadArgs;
use crate::commands::messages::{Place, told};
use crate::exit::{Failure, Outcome};
use crate::output::plural;
use crate::terminal::Terminal;
use tidalite::queue::{Answered, QueueMut};

/// Number of dead letters that are changed in one transaction.
const CHANGED_AT_ONCE: usize = 10_000;

/// Runs the command `tidalite queue dead`.
pub(super) fn run(args: &QueueDeadArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let is_change = args.requeue || args.drop;
    match (is_change, args.all, args.ids.is_empty()) {
        (false, false, true) => list(&place, args, terminal),
        (false, ..) => Err(
            Failure::usage("ids and --all: what to do with these dead letters")
                .hint("--requeue makes them ready again, --drop removes them"),
        ),
        (true, false, true) => Err(Failure::usage("ids of dead letters, or --all")
            .hint("`tidalite queue dead` prints them")),
        (true, true, _) => change_all(&place, args, terminal),
        (true, false, false) => change(&place, args, terminal),
    }
}

fn list(place: &Place<'_>, args: &QueueDeadArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (_db, snap) = place.open()?;
    let queue = queue(place, &snap)?;
    expect_group(place, &queue, &args.group.group)?;
    let letters = queue.dead_letters(&args.group.group, args.from, args.limit as usize);
    for letter in letters.map_err(|error| place.fail(&error))? {
        match args.format.is_json() {
            true => writeln!(terminal.out, "{}", dead_json(&letter))?,
            false => writeln!(terminal.out, "{}", dead_text(&letter))?,
        }
    }
    Ok(terminal.out.flush()?)
}

/// The participle that describes the change that the user has requested.
fn done(args: &QueueDeadArgs) -> &'static str {
    match args.requeue {
        true => "requeued",
        false => "dropped",
    }
}

fn apply(
    queue: &mut QueueMut<'_>,
    args: &QueueDeadArgs,
    ids: &[u64],
) -> tidalite::Result<Vec<Answered>> {
    match args.requeue {
        true => queue.requeue_dead(&args.group.group, ids),
        false => queue.drop_dead(&args.group.group, ids),
    }
}

fn change(place: &Place<'_>, args: &QueueDeadArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut queue = queue_mut(place, &mut tx)?;
    expect_group_in(place, &queue, &args.group.group)?;
    let answered = apply(&mut queue, args, &args.ids).map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    let json = args.format.is_json();
    tell(&args.ids, &answered, done(args), json, terminal)
}

/// Changes all dead letters of a group, many in one transaction.
fn change_all(place: &Place<'_>, args: &QueueDeadArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let fail = |error: tidalite::Error| place.fail(&error);
    let db = place.open_to_write()?;
    let mut changed = 0;
    loop {
        let mut tx = place.begin(&db)?;
        let mut queue = queue_mut(place, &mut tx)?;
        expect_group_in(place, &queue, &args.group.group)?;
        let view = queue.view().map_err(fail)?;
        let letters = view.dead_letters(&args.group.group, 0, CHANGED_AT_ONCE);
        let letters = letters.map_err(fail)?;
        let ids: Vec<u64> = letters.iter().map(|letter| letter.message.id).collect();
        drop(view);
        let answered = apply(&mut queue, args, &ids).map_err(fail)?;
        place.commit(tx)?;
        let now = answered.iter().filter(|one| **one == Answered::Done);
        let now = now.count();
        changed += now as u64;
        if now == 0 || letters.len() < CHANGED_AT_ONCE {
            break;
        }
    }
    place.close(db)?;
    if args.format.is_json() {
        writeln!(terminal.out, "{}", serde_json::json!({done(args): changed}))?;
        return Ok(terminal.out.flush()?);
    }
    let letters = plural(changed, "dead letter", "dead letters");
    told(
        &format!("{letters} of {} {}", place.table, done(args)),
        terminal,
    )
}
