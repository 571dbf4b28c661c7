//! `queue lease`, `queue take` and `queue peek`.

use super::line::{delivery_json, json_of, text_of};
use super::place::{expect_group, expect_group_in, queue, queue_mut};
use crate::args::{QueueLeaseArgs, QueueLimitArgs, QueuePeekArgs, QueueTakeArgs};
use crate::commands::messages::Place;
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use serde_json::Value;
use std::time::Duration;
use tidalite::queue::{Delivery, LeaseLimits};

impl QueueLimitArgs {
    fn limits(&self) -> LeaseLimits {
        LeaseLimits {
            messages: self.limit as usize,
            bytes: self.bytes,
        }
    }
}

/// The failure if a group gets no message.
fn none_ready(place: &Place<'_>, group: &str) -> Failure {
    Failure::not_found(format!(
        "no message of {} is ready for the group {group}",
        place.table
    ))
    .hint(format!(
        "`tidalite queue stat {} --table {}` shows the messages that are leased, delayed or dead",
        place.path.display(),
        place.table
    ))
}

fn print(delivery: &Delivery, json: bool, terminal: &mut Terminal<'_>) -> Outcome {
    match json {
        true => writeln!(terminal.out, "{}", delivery_json(delivery))?,
        false => writeln!(terminal.out, "{}", text_of(&delivery.message))?,
    }
    Ok(())
}

/// Runs the command `tidalite queue lease`.
pub(super) fn lease(args: &QueueLeaseArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (group, consumer) = (&*args.consumer.group.group, &*args.consumer.consumer);
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut queue = queue_mut(&place, &mut tx)?;
    expect_group_in(&place, &queue, group)?;
    let duration = Duration::from_nanos(args.duration.unsigned_abs());
    let leased = queue.lease(group, consumer, duration, args.limits.limits());
    let leased = leased.map_err(|error| place.fail(&error))?;
    // This commits even without a message, because lapsed leases were ended.
    place.finish(tx, db)?;
    if leased.is_empty() {
        return Err(none_ready(&place, group));
    }
    for delivery in &leased {
        print(delivery, args.format.is_json(), terminal)?;
    }
    Ok(terminal.out.flush()?)
}

/// Runs the command `tidalite queue take`.
pub(super) fn take(args: &QueueTakeArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let group = &*args.group.group;
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut queue = queue_mut(&place, &mut tx)?;
    expect_group_in(&place, &queue, group)?;
    let taken = queue.take(group, args.limits.limits());
    let taken = taken.map_err(|error| place.fail(&error))?;
    for delivery in &taken {
        match args.raw {
            true => terminal.out.write_all(&delivery.message.payload)?,
            false => print(delivery, args.format.is_json(), terminal)?,
        }
    }
    // The messages are written before the deletion is committed, so nothing is lost if standard output is closed.
    terminal.out.flush()?;
    place.finish(tx, db)?;
    match taken.is_empty() {
        true => Err(none_ready(&place, group)),
        false => Ok(()),
    }
}

/// Runs the command `tidalite queue peek`.
pub(super) fn peek(args: &QueuePeekArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let queue = queue(&place, &snap)?;
    let limit = args.limit as usize;
    let messages = match args.all {
        true => queue
            .messages(args.from, limit)
            .map(|messages| messages.into_iter().map(|one| (one, None)).collect()),
        false => {
            expect_group(&place, &queue, &args.group.group)?;
            let messages = queue.peek(&args.group.group, limit);
            messages.map(|messages| {
                let messages = messages.into_iter();
                messages.map(|(one, count)| (one, Some(count))).collect()
            })
        }
    };
    let messages: Vec<_> = messages.map_err(|error| place.fail(&error))?;
    for (message, deliveries) in &messages {
        if args.format.is_json() {
            let mut object = json_of(message);
            if let Some(deliveries) = deliveries {
                object.insert("deliveries".to_owned(), Value::from(*deliveries));
            }
            writeln!(terminal.out, "{}", Value::Object(object))?;
        } else {
            writeln!(terminal.out, "{}", text_of(message))?;
        }
    }
    Ok(terminal.out.flush()?)
}
