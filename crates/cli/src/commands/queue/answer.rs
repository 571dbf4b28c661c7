//! `queue ack`, `queue nack`, `queue reject` and `queue extend`: responses to leased messages.

use super::place::{expect_group_in, queue_mut};
use crate::args::{QueueAnswerArgs, QueueExtendArgs, QueueNackArgs};
use crate::exit::{Failure, Outcome};
use crate::output::plural;
use crate::terminal::Terminal;
use std::time::Duration;
use tidalite::queue::{Answered, QueueMut};

/// Runs the command `tidalite queue ack`.
pub(super) fn ack(args: &QueueAnswerArgs, terminal: &mut Terminal<'_>) -> Outcome {
    answer(args, "acknowledged", terminal, |queue, group, consumer| {
        queue.ack(group, consumer, &args.ids)
    })
}

/// Runs the command `tidalite queue nack`.
pub(super) fn nack(args: &QueueNackArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let QueueNackArgs {
        answer: args,
        delay,
    } = args;
    let delay = Duration::from_nanos(delay.unsigned_abs());
    answer(args, "given back", terminal, |queue, group, consumer| {
        queue.nack(group, consumer, &args.ids, delay)
    })
}

/// Runs the command `tidalite queue reject`.
pub(super) fn reject(args: &QueueAnswerArgs, terminal: &mut Terminal<'_>) -> Outcome {
    answer(args, "rejected", terminal, |queue, group, consumer| {
        queue.reject(group, consumer, &args.ids)
    })
}

/// Runs the command `tidalite queue extend`.
pub(super) fn extend(args: &QueueExtendArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let QueueExtendArgs {
        answer: args,
        duration,
    } = args;
    let duration = Duration::from_nanos(duration.unsigned_abs());
    answer(args, "extended", terminal, |queue, group, consumer| {
        queue.extend(group, consumer, &args.ids, duration)
    })
}

fn answer(
    args: &QueueAnswerArgs,
    done: &str,
    terminal: &mut Terminal<'_>,
    answer: impl FnOnce(&mut QueueMut<'_>, &str, &str) -> tidalite::Result<Vec<Answered>>,
) -> Outcome {
    let place = args.place.place();
    let (group, consumer) = (&*args.consumer.group.group, &*args.consumer.consumer);
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut queue = queue_mut(&place, &mut tx)?;
    expect_group_in(&place, &queue, group)?;
    let answered = answer(&mut queue, group, consumer);
    let answered = answered.map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    tell(&args.ids, &answered, done, args.format.is_json(), terminal)
}

/// Prints the result for each id; returns a failure if not all results are `Done`.
pub(super) fn tell(
    ids: &[u64],
    answered: &[Answered],
    done: &str,
    json: bool,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let mut failed = 0;
    for (id, answered) in ids.iter().zip(answered) {
        failed += u64::from(*answered != Answered::Done);
        if json {
            let word = match answered {
                Answered::Done => "done",
                Answered::Lapsed => "lapsed",
                Answered::HeldByOther => "held_by_other",
                Answered::NotLeased => "not_leased",
                Answered::Unknown => "unknown",
            };
            let line = serde_json::json!({"id": id, "outcome": word});
            writeln!(terminal.out, "{line}")?;
            continue;
        }
        let text = match answered {
            Answered::Done => done,
            Answered::Lapsed => "unchanged: the lease has lapsed",
            Answered::HeldByOther => "unchanged: another consumer leases it",
            Answered::NotLeased => "unchanged: it is not leased, or not a dead letter",
            Answered::Unknown => "unchanged: the group does not have it",
        };
        writeln!(terminal.out, "{id}\t{text}")?;
    }
    terminal.out.flush()?;
    match failed {
        0 => Ok(()),
        failed => Err(Failure::not_found(format!(
            "not {done}: {failed} of {}",
            plural(ids.len() as u64, "message", "messages")
        ))
        .hint("--group and --consumer must be those of the lease; `tidalite queue peek --all` prints all messages")),
    }
}
