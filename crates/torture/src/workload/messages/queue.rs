//! Random operations on a queue with several groups and consumers. One operation is a complete step of a consumer;
//! another consumer may take the next step, in the next transaction and perhaps after a crash.

use crate::model::Messages;
use crate::model::clock::UNIT;
use crate::model::messages::JOBS;
use crate::model::messages::queue::{Action, DELIVERIES_MAX, MESSAGES_MAX, Phase, Queue};
use std::sync::Arc;
use std::time::Duration;
use tidalite::queue::{
    Answered, GroupStart, LeaseLimits, NewMessage, Overflow, Pushed, QueueMut, QueueOptions,
};
use tidalite::{ErrorKind, Result, Timestamp, WriteTxn};
use tidalite_testkit::rng::Rng;

const GROUPS: [&str; 3] = ["default", "mail", "print"];
const CONSUMERS: [&str; 3] = ["one", "two", ""];
/// The headers of some messages: the first one, or both.
static HEADERS: [(&[u8], &[u8]); 2] = [(b"trace", b"7f"), (b"", b"a header without a name")];
const KEYS: [&[u8]; 3] = [b"k1", b"k2", b""];
/// Number of different idempotency keys.
const REPEATED: u64 = 12;
/// Age at which messages are removed.
const RETENTION: i64 = 300 * UNIT;
/// Time in which an idempotency key may not repeat.
const WINDOW: i64 = 40 * UNIT;

fn options() -> QueueOptions {
    QueueOptions {
        overflow: Overflow::DropOldest,
        deliveries_max: Some(DELIVERIES_MAX),
        messages_max: Some(MESSAGES_MAX),
        retention: Some(Duration::from_nanos(RETENTION as u64)),
        idempotency_window: Some(Duration::from_nanos(WINDOW as u64)),
        ..QueueOptions::default()
    }
}

fn units(count: i64) -> Duration {
    Duration::from_nanos((count * UNIT) as u64)
}

/// Performs a random operation on the queue.
pub(super) fn work(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    let mut one = One::open(tx, messages, rng)?;
    match one.rng.below(16) {
        0..=4 => one.push()?,
        5..=7 => one.lease()?,
        8..=11 => one.answer()?,
        12 => one.dead()?,
        13 => one.group()?,
        14 if one.rng.one_in(4) => one.purge()?,
        _ => one.maintain()?,
    }
    one.ask()
}

/// Maintains the queue to the end.
pub(super) fn maintain(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    One::open(tx, messages, rng)?.maintain()
}

/// The queue, its model, and the time of the operation.
struct One<'o, 't> {
    table: QueueMut<'t>,
    queue: &'o mut Queue,
    now: i64,
    rng: &'o mut Rng,
}

impl<'o, 't> One<'o, 't> {
    fn open(tx: &'t mut WriteTxn, messages: &'o mut Messages, rng: &'o mut Rng) -> Result<Self> {
        Ok(Self {
            table: tx.queue_with(JOBS, &options())?,
            now: messages.now,
            queue: Arc::make_mut(messages.queue.get_or_insert_default()),
            rng,
        })
    }
}

/// The result of a call; `None` if the group does not exist.
fn of_group<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl One<'_, '_> {
    fn push(&mut self) -> Result<()> {
        let (rng, now) = (&mut *self.rng, self.now);
        let payloads: Vec<Vec<u8>> = (0..1 + rng.index(12))
            .map(|_| {
                let long = rng.one_in(20);
                let mut payload = vec![0; rng.index(if long { 1_500 } else { 30 })];
                rng.fill(&mut payload);
                payload
            })
            .collect();
        let repeated: Vec<String> = (0..REPEATED).map(|i| format!("push {i}")).collect();
        let new: Vec<NewMessage<'_>> = payloads
            .iter()
            .map(|payload| {
                let mut message = NewMessage::new(payload);
                if payload.first().is_some_and(|byte| byte.is_multiple_of(4)) {
                    message.headers = &HEADERS[..1 + payload.len() % 2];
                }
                message.key = rng.one_in(4).then(|| *rng.pick(&KEYS));
                message.priority = *rng.pick(&[128, 128, 128, 0, 200]);
                let time = |after: i64| Timestamp(now + after * UNIT);
                message.not_before = rng.one_in(8).then(|| time(rng.between(-1, 20)));
                message.expires = rng.one_in(8).then(|| time(rng.between(0, 60)));
                if rng.one_in(5) {
                    message.idempotency_key = Some(rng.pick(&repeated).as_bytes());
                }
                message
            })
            .collect();
        let pushed = self.table.push_many(&new)?;
        let known: Vec<Pushed> = new
            .iter()
            .map(|message| self.queue.push(message, WINDOW, now))
            .collect();
        assert_eq!(pushed, known, "one batch");
        Ok(())
    }

    fn lease(&mut self) -> Result<()> {
        let group = *self.rng.pick(&GROUPS);
        let consumer = self.rng.index(CONSUMERS.len());
        let limit = *self.rng.pick(&[1, 3, 8, 30]);
        // A lease of no time lapses at once.
        let duration = *self.rng.pick(&[0, 5, 20, 10_000]);
        let limits = LeaseLimits::messages(limit);
        let takes = self.rng.one_in(5);
        let found = match takes {
            true => self.table.take(group, limits),
            false => {
                let consumer = CONSUMERS[consumer];
                self.table.lease(group, consumer, units(duration), limits)
            }
        };
        let found = of_group(found)?.map(|deliveries| {
            for one in &deliveries {
                let known = self.queue.messages.get(&one.message.id);
                let known = known.map(|known| (&known.payload, &known.headers));
                let found = (&one.message.payload, &one.message.headers);
                assert_eq!(Some(found), known, "a delivery to {group}");
            }
            let delivered = deliveries.iter();
            let delivered = delivered.map(|one| (one.message.id, one.deliveries));
            delivered.collect::<Vec<_>>()
        });
        let deadline = self.now + duration * UNIT;
        let to = (!takes).then_some((consumer as u8, deadline));
        let known = self.queue.lease(group, to, limit, self.now);
        assert_eq!(found, known, "deliveries to {group}");
        Ok(())
    }

    fn ids(&mut self, group: &str, is: fn(&Phase) -> bool) -> Vec<u64> {
        let open = self
            .queue
            .row(group)
            .map(|row| &self.queue.groups[row].open);
        let open = open.into_iter().flatten();
        let ids = open.filter(|(_, open)| is(&open.phase));
        let mut ids: Vec<u64> = ids.map(|(id, _)| *id).collect();
        if self.rng.one_in(3) {
            ids.push(self.rng.below(self.queue.next_id + 1));
        }
        if self.rng.one_in(2) {
            self.rng.shuffle(&mut ids);
            ids.truncate(1 + self.rng.index(6));
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn answer(&mut self) -> Result<()> {
        let group = *self.rng.pick(&GROUPS);
        let ids = self.ids(group, |phase| matches!(phase, Phase::Leased { .. }));
        let number = self.rng.index(CONSUMERS.len());
        let consumer = CONSUMERS[number];
        let delay = self.rng.between(1, 30);
        let (action, found) = match self.rng.below(8) {
            0 => (Action::Reject, self.table.reject(group, consumer, &ids)),
            1 => {
                let found = self.table.extend(group, consumer, &ids, units(delay));
                (Action::Extend(delay * UNIT), found)
            }
            2 => {
                let found = self.table.nack(group, consumer, &ids, Duration::ZERO);
                (Action::Nack(0), found)
            }
            3 => {
                let found = self.table.nack(group, consumer, &ids, units(delay));
                (Action::Nack(delay * UNIT), found)
            }
            _ => (Action::Ack, self.table.ack(group, consumer, &ids)),
        };
        let found = of_group(found)?;
        let known = (self.queue).answer(group, number as u8, &ids, &action, self.now);
        assert_eq!(found, known, "answers to {group} for {ids:?}");
        Ok(())
    }

    fn dead(&mut self) -> Result<()> {
        let group = *self.rng.pick(&GROUPS);
        let ids = self.ids(group, |phase| matches!(phase, Phase::Dead { .. }));
        let requeues = self.rng.one_in(2);
        let found: Result<Vec<Answered>> = match requeues {
            true => self.table.requeue_dead(group, &ids),
            false => self.table.drop_dead(group, &ids),
        };
        let found = of_group(found)?;
        let known = self.queue.change_dead(group, &ids, requeues, self.now);
        assert_eq!(found, known, "dead letters of {group}");
        Ok(())
    }

    fn group(&mut self) -> Result<()> {
        let group = *self.rng.pick(&GROUPS);
        if self.rng.one_in(4) {
            let found = self.table.drop_group(group)?;
            assert_eq!(found, self.queue.drop_group(group), "drop of {group}");
            return Ok(());
        }
        let start = *self.rng.pick(&[GroupStart::Oldest, GroupStart::Newest]);
        let found = self.table.create_group(group, start)?;
        let known = self.queue.create_group(group, start, self.now);
        assert_eq!(found, known, "creation of {group}");
        Ok(())
    }

    fn purge(&mut self) -> Result<()> {
        let limit = 1 + self.rng.index(20);
        if self.rng.one_in(2) {
            let more = self.table.purge(limit)?;
            self.queue.purge(limit, self.now);
            assert_eq!(
                more,
                !self.queue.messages.is_empty(),
                "purge tells the rest"
            );
            return Ok(());
        }
        let group = *self.rng.pick(&GROUPS);
        let found = of_group(self.table.purge_group(group, limit))?;
        let known = self.queue.purge_group(group, limit, self.now);
        assert_eq!(found.is_some(), known.is_some(), "purge of {group}");
        Ok(())
    }

    fn maintain(&mut self) -> Result<()> {
        assert!(!self.table.maintain(1_000)?.more, "everything is done");
        self.queue.maintain(RETENTION, self.now);
        Ok(())
    }

    /// Checks that a transaction sees its own messages.
    fn ask(&mut self) -> Result<()> {
        let view = self.table.view()?;
        assert_eq!(view.group_names(), self.queue.group_names());
        let id = self.rng.below(self.queue.next_id + 1);
        let (found, known) = (view.message(id)?, self.queue.messages.get(&id));
        let found = found.map(|message| message.payload);
        assert_eq!(found.as_ref(), known.map(|message| &message.payload));
        let stat = view.stat()?;
        assert_eq!(stat.messages, self.queue.messages.len() as u64);
        Ok(())
    }
}
