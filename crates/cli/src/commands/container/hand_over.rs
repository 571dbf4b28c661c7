//! `container hand-over`: moves messages of a queue to containers.

use super::place::check_name;
use super::source::{Source, check_fields};
use crate::args::ContainerHandOverArgs;
use crate::commands::messages::{Place, told};
use crate::commands::queue::{expect_group, open_queue};
use crate::exit::Outcome;
use crate::output::plural;
use crate::terminal::Terminal;
use serde_json::json;
use tidalite::containers::{HandOver, Handed};
use tidalite::queue::{LeaseLimits, QueueMessage};
use tidalite::{TableLayout, WriteTxn};

/// Number of messages in one transaction.
const BATCH_MESSAGES: usize = 4_096;

/// Number of bytes of messages in one transaction.
const BATCH_BYTES: u64 = 16 << 20;

/// Number of messages from which the format of the times is detected.
const SAMPLED: usize = 1_000;

/// Runs the command `tidalite container hand-over`.
pub(super) fn run(args: &ContainerHandOverArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (path, group) = (&args.file.file, &*args.group);
    let queue = Place {
        path,
        table: &args.queue,
        layout: TableLayout::Queue,
    };
    let place = Place {
        path,
        table: &args.table,
        layout: TableLayout::Containers,
    };
    check_fields(&args.fields, None)?;
    if let Some(name) = &args.name {
        check_name(&place, name)?;
    }
    let db = queue.open_to_write()?;
    let snap = db.begin_read().map_err(|error| queue.fail(&error))?;
    place.exists(&snap)?;
    let opened = open_queue(&queue, &snap)?;
    expect_group(&queue, &opened, group)?;
    let now = snap.clock().now();
    let mut source = Source::new(&args.fields, &args.table, args.name.as_deref(), now);
    let sample = opened.peek(group, SAMPLED);
    let sample = sample.map_err(|error| queue.fail(&error))?;
    let read = sample.iter().filter_map(|(message, _)| {
        let text = std::str::from_utf8(&message.payload).ok()?;
        source.read(text).ok()?.time_text().map(str::to_owned)
    });
    let texts: Vec<String> = read.collect();
    source.detect(&texts.iter().map(|text| &**text).collect::<Vec<_>>())?;
    drop(snap);
    let (mut all, mut left) = (HandOver::default(), args.limit);
    while left > 0 {
        let limits = LeaseLimits {
            messages: usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(BATCH_MESSAGES),
            bytes: BATCH_BYTES,
        };
        let mut tx = place.begin(&db)?;
        let done = hand_over(&mut tx, args, &mut source, limits);
        let done = done.map_err(|error| place.fail(&error))?;
        place.commit(tx)?;
        let handled = done.done + done.dead + done.rejected;
        all.done += done.done;
        all.dead += done.dead;
        all.rejected += done.rejected;
        left = left.saturating_sub(handled);
        if handled == 0 {
            break;
        }
    }
    place.close(db)?;
    tell(args, all, terminal)
}

fn hand_over(
    tx: &mut WriteTxn,
    args: &ContainerHandOverArgs,
    source: &mut Source<'_>,
    limits: LeaseLimits,
) -> tidalite::Result<HandOver> {
    let given = source.time;
    let mut make = |message: &QueueMessage| {
        let text = std::str::from_utf8(&message.payload).ok()?;
        let unread = source.read(text).ok()?;
        source.time = match &source.args.time {
            Some(_) => given,
            None => given.or(Some(message.pushed)),
        };
        let taken = source.take(unread).ok()?;
        Some(Handed {
            container: taken.container,
            time: taken.time,
            document: taken.document,
        })
    };
    let done = tx.hand_over(&args.queue, &args.group, limits, &args.table, &mut make);
    source.time = given;
    done
}

fn tell(args: &ContainerHandOverArgs, all: HandOver, terminal: &mut Terminal<'_>) -> Outcome {
    if args.format.is_json() {
        let line = json!({"done": all.done, "dead": all.dead, "rejected": all.rejected});
        writeln!(terminal.out, "{line}")?;
        return Ok(terminal.out.flush()?);
    }
    let messages = plural(all.done, "message", "messages");
    let mut text = format!("{messages} of {} handed over to {}", args.queue, args.table);
    if all.dead > 0 {
        text += &format!(
            ", {} made dead letters: see `tidalite queue dead`",
            all.dead
        );
    }
    if all.rejected > 0 {
        text += &format!(
            ", {} rejected by their containers: they are ready again in a minute",
            all.rejected
        );
    }
    told(&text, terminal)
}
