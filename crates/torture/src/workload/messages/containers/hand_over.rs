//! Messages of the queue go to containers in the transaction that acknowledges them.

use super::document::NAMES;
use crate::model::Messages;
use crate::model::clock::UNIT;
use crate::model::messages::containers::append::Outcome;
use crate::model::messages::containers::options;
use crate::model::messages::queue::Action;
use crate::model::messages::{DEVICES, JOBS};
use std::sync::Arc;
use tidalite::containers::{Append, Document, FieldValue, HandOver, Handed};
use tidalite::queue::LeaseLimits;
use tidalite::{Result, Timestamp, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Number of the consumer that leases the messages; no other consumer has this number.
const CONSUMER: u8 = 9;
/// Duration of a lease in nanoseconds, and (below) the delay before a message that had no room is delivered again.
const HELD: i64 = 3_600_000_000_000;
const AGAIN_AFTER: i64 = 60_000_000_000;
/// Number of messages that are removed in one step of maintenance.
const BUDGET: u64 = 10_000;

/// The message that a container gets for a message of the queue; `None` for some messages.
fn made_of(payload: &[u8], now: i64) -> Option<Handed> {
    let (first, rest) = payload.split_first()?;
    let mut document = Document::default();
    document.set("n", FieldValue::Integer(rest.len() as i128));
    document.set("mix", FieldValue::Bool(true));
    let number = usize::from(*first);
    (number % 7 != 0).then(|| Handed {
        container: NAMES[number % NAMES.len()].to_owned(),
        time: Timestamp(now - i64::from(first / 8) * UNIT),
        document,
    })
}

/// Hands messages of a group over, if there is one.
pub(super) fn work(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    let (now, group) = (messages.now, *rng.pick(&["default", "mail"]));
    let limit = 1 + rng.index(12);
    let Some(queue) = &mut messages.queue else {
        return Ok(());
    };
    if queue.row(group).is_none() {
        return Ok(());
    }
    let queue = Arc::make_mut(queue);
    let all = Arc::make_mut(messages.containers.get_or_insert_default());
    // The result does not show which expired messages were removed to make room, so there are none.
    let mut table = tx.containers_with(DEVICES, &options::of_table())?;
    while table.maintain(BUDGET)?.more {}
    all.maintain(now);
    let limits = LeaseLimits::messages(limit);
    let done = tx.hand_over(JOBS, group, limits, DEVICES, &mut |message| {
        made_of(&message.payload, now)
    })?;
    let leased = queue.lease(group, Some((CONSUMER, now + HELD)), limit, now);
    let (mut dead, mut ids, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for (id, _) in leased.into_iter().flatten() {
        match made_of(&queue.messages[&id].payload, now) {
            Some(handed) => {
                ids.push(id);
                made.push(handed);
            }
            None => dead.push(id),
        }
    }
    let items: Vec<Append<'_>> = made
        .iter()
        .map(|handed| Append::new(&handed.container, handed.time, &handed.document))
        .collect();
    all.create_for(&items, now);
    let outcomes = all.append(&items, now);
    all.maintain(now);
    let is_full = |at: &usize| outcomes[*at] == Outcome::Full;
    let (full, stored): (Vec<usize>, Vec<usize>) = (0..ids.len()).partition(is_full);
    let [full, stored] = [full, stored].map(|of| of.iter().map(|at| ids[*at]).collect::<Vec<_>>());
    let known = HandOver {
        done: stored.len() as u64,
        dead: dead.len() as u64,
        rejected: full.len() as u64,
    };
    assert_eq!(done, known, "messages of {group} are handed over");
    queue.answer(group, CONSUMER, &stored, &Action::Ack, now);
    queue.answer(group, CONSUMER, &dead, &Action::Reject, now);
    queue.answer(group, CONSUMER, &full, &Action::Nack(AGAIN_AFTER), now);
    Ok(())
}
