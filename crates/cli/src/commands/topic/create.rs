//! `topic create`: creates a table of topics, or changes the options of an existing one.

use super::place::topics_mut;
use crate::args::TopicCreateArgs;
use crate::commands::messages::{Altered, alter};
use crate::exit::Outcome;
use crate::terminal::Terminal;
use tidalite::topics::TopicOptions;

/// `base`, changed by the options that the user has given.
fn wanted(args: &TopicCreateArgs, base: TopicOptions) -> TopicOptions {
    TopicOptions {
        levels_max: args.levels_max.unwrap_or(base.levels_max),
        topic_bytes_max: args.topic_bytes_max.unwrap_or(base.topic_bytes_max),
        payload_bytes_max: args.payload_bytes_max.unwrap_or(base.payload_bytes_max),
        messages_max: args.messages_max.or(base.messages_max),
        bytes_max: args.bytes_max.or(base.bytes_max),
        feed_changes: args.feed.unwrap_or(base.feed_changes),
    }
}

/// Runs the command `tidalite topic create`.
pub(super) fn run(args: &TopicCreateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let fail = |error: tidalite::Error| place.fail(&error);
    let (db, exists) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let stored = match exists {
        true => Some(topics_mut(&place, &mut tx)?.options().map_err(fail)?),
        false => None,
    };
    let wanted = wanted(args, stored.unwrap_or_default());
    let done = alter(&place, stored.as_ref(), &wanted, args.alter)?;
    match done {
        Altered::Created => tx
            .topics_with(place.table, &wanted)
            .map(drop)
            .map_err(fail)?,
        Altered::Changed => {
            let set = topics_mut(&place, &mut tx)?.set_options(&wanted);
            set.map_err(fail)?;
        }
        Altered::Unchanged => {}
    }
    place.finish(tx, db)?;
    done.tell(&place, terminal)
}
