//! `topic set`, `topic rm` and `topic purge`.

use super::filters::filter;
use super::place::topics_mut;
use crate::args::{TopicPurgeArgs, TopicRmArgs, TopicSetArgs};
use crate::commands::messages::{Place, given, told};
use crate::exit::{Failure, Outcome};
use crate::output::plural;
use crate::terminal::Terminal;
use tidalite::topics::{Filter, Message, Properties, Published, Qos};

/// Number of messages that are removed in one transaction.
const REMOVED_AT_ONCE: u64 = 100_000;

/// Runs the command `tidalite topic set`.
pub(super) fn set(args: &TopicSetArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let payload = given(&args.payload)?;
    if args.text && std::str::from_utf8(&payload).is_err() {
        return Err(
            Failure::bad_input("--text: the payload is not UTF-8").hint("omit --text for bytes")
        );
    }
    let user = args.properties.iter();
    let mut message = Message {
        topic: &args.topic,
        payload: &payload,
        qos: Qos::of_number(args.qos).unwrap_or_default(),
        publisher: &args.publisher,
        expires: None,
        is_text: args.text,
        properties: Properties {
            content_type: args.content_type.as_deref(),
            response_topic: args.response_topic.as_deref(),
            correlation_data: args.correlation.as_deref().map(str::as_bytes),
            user: user.map(|(name, value)| (&**name, &**value)).collect(),
        },
    };
    let (db, _) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let now = tx.clock().now();
    message.expires = args.expires.map(|expires| expires.at(now));
    let published = topics_mut(&place, &mut tx)?.publish(&message, true);
    let published = published.map_err(|error| topic_failure(&place, &error))?;
    place.finish(tx, db)?;
    let (topic, table) = (&args.topic, place.table);
    let is_empty = match payload.is_empty() {
        true => "the payload is empty",
        false => "the message has expired already",
    };
    let text = match published {
        Published { created: 1.., .. } => format!("{topic} set in {table}"),
        Published { replaced: 1.., .. } => format!("{topic} replaced in {table}"),
        Published { removed: 1.., .. } => format!("{topic} removed from {table}: {is_empty}"),
        _ => format!("nothing stored: {is_empty}, and {topic} has no message"),
    };
    told(&text, terminal)
}

/// Converts an error like `Place::fail`. For a text that is not a topic, the failure contains advice.
pub(super) fn topic_failure(place: &Place<'_>, error: &tidalite::Error) -> Failure {
    let failure = place.fail(error);
    match error.kind() {
        tidalite::ErrorKind::InvalidName => Failure {
            hint: Some("a topic has levels with / between them, and neither + nor #".to_owned()),
            ..failure
        },
        _ => failure,
    }
}

/// The failure for a topic without a message.
pub(super) fn no_message(place: &Place<'_>, topic: &str) -> Failure {
    Failure::not_found(format!("topic {topic} has no message in {}", place.table)).hint(format!(
        "`tidalite topic match {} '#'` prints all messages",
        place.path.display()
    ))
}

/// Runs the command `tidalite topic rm`.
pub(super) fn rm(args: &TopicRmArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    if let Some(text) = &args.matching {
        return rm_matching(&place, &filter(text)?, args.dry_run, terminal);
    }
    let Some(topic) = &args.topic else {
        return Err(Failure::usage("a topic, or --matching"));
    };
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let removed = topics_mut(&place, &mut tx)?.remove(topic);
    if !removed.map_err(|error| topic_failure(&place, &error))? {
        return Err(no_message(&place, topic));
    }
    place.finish(tx, db)?;
    told(&format!("{topic} removed from {}", place.table), terminal)
}

/// Removes the messages that match a filter, many in one transaction.
fn rm_matching(
    place: &Place<'_>,
    filter: &Filter,
    is_dry_run: bool,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let db = place.open_to_write()?;
    let (mut messages, mut token) = (0, None);
    loop {
        let mut tx = place.begin(&db)?;
        let mut topics = topics_mut(place, &mut tx)?;
        let removed = topics.remove_matches(filter, token.as_deref(), REMOVED_AT_ONCE, is_dry_run);
        let removed = removed.map_err(|error| place.fail(&error))?;
        messages += removed.messages;
        if !is_dry_run {
            place.commit(tx)?;
        }
        match removed.next {
            Some(next) => token = Some(next),
            None => break,
        }
    }
    place.close(db)?;
    let messages = plural(messages, "message", "messages");
    let text = match is_dry_run {
        true => format!("{messages} of {} would be removed", place.table),
        false => format!("{messages} removed from {}", place.table),
    };
    told(&text, terminal)
}

/// Runs the command `tidalite topic purge`.
pub(super) fn purge(args: &TopicPurgeArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let mut removed = 0;
    loop {
        let mut tx = place.begin(&db)?;
        let done = topics_mut(&place, &mut tx)?.maintain(REMOVED_AT_ONCE);
        let done = done.map_err(|error| place.fail(&error))?;
        place.commit(tx)?;
        removed += done.expired;
        if !done.more {
            break;
        }
    }
    place.close(db)?;
    let messages = plural(removed, "expired message", "expired messages");
    told(
        &format!("{messages} deleted from {}", place.table),
        terminal,
    )
}
