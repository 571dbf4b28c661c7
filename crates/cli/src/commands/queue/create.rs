//! `queue create`: creates a queue, or changes the options of an existing one.

use super::place::queue_mut;
use crate::args::{QueueCreateArgs, QueueOverflow};
use crate::commands::messages::{Altered, alter};
use crate::exit::Outcome;
use crate::terminal::Terminal;
use crate::time::duration;
use tidalite::queue::{Overflow, QueueOptions};

/// The value of an option: the one that the user has given (0 for no value), otherwise the stored one.
fn given<T: Default + PartialEq>(given: Option<T>, stored: Option<T>) -> Option<T> {
    match given {
        Some(value) => (value != T::default()).then_some(value),
        None => stored,
    }
}

/// `base`, changed by the options that the user has given.
fn wanted(args: &QueueCreateArgs, base: QueueOptions) -> QueueOptions {
    let overflow = args.overflow.map(|overflow| match overflow {
        QueueOverflow::Reject => Overflow::Reject,
        QueueOverflow::DropOldest => Overflow::DropOldest,
        QueueOverflow::DropNewest => Overflow::DropNewest,
    });
    QueueOptions {
        overflow: overflow.unwrap_or(base.overflow),
        deliveries_max: given(args.deliveries_max, base.deliveries_max),
        messages_max: given(args.messages_max, base.messages_max),
        bytes_max: given(args.bytes_max, base.bytes_max),
        retention: given(args.retention.map(duration), base.retention),
        idempotency_window: given(
            args.idempotency_window.map(duration),
            base.idempotency_window,
        ),
    }
}

/// Runs the command `tidalite queue create`.
pub(super) fn run(args: &QueueCreateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let fail = |error: tidalite::Error| place.fail(&error);
    let (db, exists) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let stored = match exists {
        true => Some(queue_mut(&place, &mut tx)?.options().map_err(fail)?),
        false => None,
    };
    let wanted = wanted(args, stored.unwrap_or_default());
    let done = alter(&place, stored.as_ref(), &wanted, args.alter)?;
    match done {
        Altered::Created => tx
            .queue_with(place.table, &wanted)
            .map(drop)
            .map_err(fail)?,
        Altered::Changed => queue_mut(&place, &mut tx)?
            .set_options(&wanted)
            .map_err(fail)?,
        Altered::Unchanged => {}
    }
    place.finish(tx, db)?;
    done.tell(&place, terminal)
}
