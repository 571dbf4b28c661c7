//! Random calls with an advancing clock, several groups and consumers: the queue and the model must return the same
//! results. An auditor that is independent of both checks the guarantees to consumers.

use crate::queues::answer::Answered;
use crate::queues::groups::GroupStart;
use crate::queues::lease::{Delivery, LeaseLimits};
use crate::queues::message::NewMessage;
use crate::queues::options::{Overflow, QueueOptions};
use crate::queues::push::Pushed;
use crate::queues::read::QueueReader;
use crate::queues::tests::model::{Action, Model, Phase};
use crate::queues::tests::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tidalite_pager::{Error, PageRead};
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

const GROUPS: [&str; 4] = ["default", "a", "b", "c"];
const CONSUMERS: [&str; 3] = ["one", "two", ""];
const KEYS: [&[u8]; 4] = [b"", b"k1", b"k2", b"key 3"];

/// Deadline and ordering key of a leased message.
type Live = (i64, Option<Vec<u8>>);

/// Records the messages that were delivered and acknowledged.
#[derive(Default)]
struct Auditor {
    acked: BTreeSet<(String, u64)>,
    live: BTreeMap<(String, u64), Live>,
}

impl Auditor {
    fn delivered(&mut self, group: &str, deliveries: &[Delivery], now: i64) {
        self.live.retain(|_, (deadline, _)| *deadline > now);
        for delivery in deliveries {
            let message = &delivery.message;
            let place = (group.to_owned(), message.id);
            assert!(
                !self.acked.contains(&place),
                "{place:?} is delivered after its ack"
            );
            assert!(!self.live.contains_key(&place), "{place:?} has two leases");
            let same = self.live.iter().any(|((of, _), (_, key))| {
                of == group && message.key.is_some() && *key == message.key
            });
            assert!(!same, "{place:?}: two messages of one key");
            assert!(message.not_before.is_none_or(|time| time.0 <= now));
            assert!(message.expires.is_none_or(|time| time.0 > now));
            match delivery.deadline {
                Some(deadline) => {
                    self.live.insert(place, (deadline.0, message.key.clone()));
                }
                None => drop(self.acked.insert(place)),
            }
        }
        self.live.retain(|_, (deadline, _)| *deadline > now);
    }

    fn answered(
        &mut self,
        group: &str,
        ids: &[u64],
        answers: &[Answered],
        action: &Action,
        now: i64,
    ) {
        for (id, answer) in ids.iter().zip(answers) {
            let place = (group.to_owned(), *id);
            if *answer != Answered::Done {
                continue;
            }
            let (_, key) = self.live.remove(&place).expect("a live lease");
            match action {
                Action::Ack => drop(self.acked.insert(place)),
                Action::Extend(duration) => {
                    self.live.insert(place, (now + duration, key));
                }
                _ => {}
            }
        }
    }

    /// Messages that were removed by a purge, an expiry or an overflow are no longer leased.
    fn forget_removed(&mut self, model: &Model) {
        self.live.retain(|(group, id), _| {
            let group = model.groups.get(group);
            group.is_some_and(|group| group.open.contains_key(id))
        });
    }

    /// A group was dropped; another group with this name has no history.
    fn forget(&mut self, group: &str) {
        self.acked.retain(|(of, _)| of != group);
        self.live.retain(|(of, _), _| of != group);
    }
}

fn options(rng: &mut Rng) -> QueueOptions {
    QueueOptions {
        overflow: *rng.pick(&[Overflow::Reject, Overflow::DropOldest, Overflow::DropNewest]),
        deliveries_max: *rng.pick(&[None, Some(1), Some(3)]),
        messages_max: *rng.pick(&[None, None, Some(40), Some(200)]),
        bytes_max: *rng.pick(&[None, None, Some(1500), Some(9000)]),
        retention: rng
            .pick(&[None, None, Some(60), Some(300)])
            .map(Duration::from_nanos),
        idempotency_window: rng
            .pick(&[None, Some(25), Some(200)])
            .map(Duration::from_nanos),
    }
}

struct Run {
    rng: Rng,
    table: Table,
    model: Model,
    auditor: Auditor,
    now: i64,
    with_extras: u64,
}

impl Run {
    fn push(&mut self) {
        let rng = &mut self.rng;
        let count = match rng.below(4) {
            0 => 1,
            1 => rng.index(5),
            _ => rng.index(30),
        };
        let idempotency: Vec<String> = (0..20).map(|i| format!("push {i}")).collect();
        let payloads: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let long = rng.one_in(25);
                vec![rng.below(256) as u8; rng.index(if long { 900 } else { 30 })]
            })
            .collect();
        let extras = self.with_extras;
        let messages: Vec<NewMessage<'_>> = payloads
            .iter()
            .map(|payload| {
                let mut message = NewMessage::new(payload);
                if rng.below(10) < extras {
                    message.key = rng.one_in(2).then(|| *rng.pick(&KEYS));
                    if rng.one_in(4) {
                        message.priority = *rng.pick(&[0, 127, 128, 200, 255]);
                    }
                    let soon = self.now + rng.between(-5, 40);
                    message.not_before = rng.one_in(4).then_some(Timestamp(soon));
                    message.expires = rng
                        .one_in(6)
                        .then_some(Timestamp(self.now + rng.between(0, 90)));
                    if rng.one_in(4) {
                        message.headers = &[(b"name", b"value"), (b"", b"")];
                    }
                    if rng.one_in(4) {
                        message.idempotency_key = Some(rng.pick(&idempotency).as_bytes());
                    }
                }
                message
            })
            .collect();
        let too_large = |message: &NewMessage<'_>| {
            let bytes = message.check().unwrap();
            self.model.options.is_over(1, bytes)
        };
        let answers = self.table.write().push_many(&messages, self.now);
        if messages.iter().any(too_large) {
            assert!(matches!(answers, Err(Error::Limit { .. })));
            return;
        }
        if self.model.options.overflow == Overflow::Reject {
            // Either all messages are stored or none: the model determines whether all fit.
            let mut copy = self.model.copied();
            if messages
                .iter()
                .any(|message| copy.push(message, self.now).is_none())
            {
                assert!(matches!(answers, Err(Error::Limit { .. })));
                return;
            }
        }
        let expected: Vec<Pushed> = messages
            .iter()
            .map(|message| self.model.push(message, self.now).unwrap())
            .collect();
        assert_eq!(answers.unwrap(), expected);
    }

    fn limits(&mut self) -> LeaseLimits {
        LeaseLimits {
            messages: *self.rng.pick(&[0, 1, 3, 10, 100]),
            bytes: *self.rng.pick(&[0, 50, 500, u64::MAX]),
        }
    }

    fn lease(&mut self) {
        let limits = self.limits();
        let (group, consumer) = (*self.rng.pick(&GROUPS), *self.rng.pick(&CONSUMERS));
        let duration = self.rng.between(0, 30);
        let takes = self.rng.one_in(4);
        let mut queue = self.table.write();
        let found = match takes {
            true => queue.take(group, limits, self.now),
            false => queue.lease(group, consumer, duration, limits, self.now),
        };
        let consumer = (!takes).then_some((consumer, duration));
        let Some(expected) = self.model.lease(group, consumer, limits, self.now) else {
            assert!(matches!(found, Err(Error::Refused { .. })));
            return;
        };
        let found = found.unwrap();
        let ids: Vec<(u64, u32)> = found
            .iter()
            .map(|delivery| (delivery.message.id, delivery.deliveries))
            .collect();
        assert_eq!(ids, expected, "group {group}");
        self.auditor.forget_removed(&self.model);
        self.auditor.delivered(group, &found, self.now);
    }

    fn answer(&mut self) {
        let (group, consumer) = (*self.rng.pick(&GROUPS), *self.rng.pick(&CONSUMERS));
        let mut ids: Vec<u64> = match self.model.groups.get(group) {
            Some(group) => group
                .open
                .iter()
                .filter(|(_, open)| matches!(open.phase, Phase::Leased { .. }))
                .map(|(id, _)| *id)
                .filter(|_| !self.rng.one_in(4))
                .collect(),
            None => Vec::new(),
        };
        for _ in 0..self.rng.index(4) {
            ids.push(self.rng.below(self.model.next_id + 2));
        }
        if self.rng.one_in(2) {
            self.rng.shuffle(&mut ids);
            ids.truncate(self.rng.index(12));
        }
        let action = match self.rng.below(7) {
            0 => Action::Reject,
            1 => Action::Extend(self.rng.between(0, 40)),
            2 => Action::Nack(0),
            3 => Action::Nack(self.rng.between(1, 30)),
            _ => Action::Ack,
        };
        let (now, mut queue) = (self.now, self.table.write());
        let found = match action {
            Action::Ack => queue.ack(group, consumer, &ids, now),
            Action::Nack(delay) => queue.nack(group, consumer, &ids, delay, now),
            Action::Reject => queue.reject(group, consumer, &ids, now),
            Action::Extend(duration) => queue.extend(group, consumer, &ids, duration, now),
        };
        let Some(expected) = self.model.answer(group, consumer, &ids, &action, now) else {
            assert!(matches!(found, Err(Error::Refused { .. })));
            return;
        };
        let found = found.unwrap();
        assert_eq!(found, expected, "group {group}");
        self.auditor.answered(group, &ids, &found, &action, now);
    }

    fn dead(&mut self) {
        let group = *self.rng.pick(&GROUPS);
        let Some(known) = self.model.groups.get(group) else {
            return;
        };
        let mut ids: Vec<u64> = known
            .open
            .iter()
            .filter(|(_, open)| matches!(open.phase, Phase::Dead { .. }))
            .map(|(id, _)| *id)
            .collect();
        ids.push(self.rng.below(self.model.next_id + 1));
        self.rng.shuffle(&mut ids);
        ids.truncate(1 + self.rng.index(6));
        let (requeues, now) = (self.rng.one_in(2), self.now);
        let mut queue = self.table.write();
        let found = match requeues {
            true => queue.requeue_dead(group, &ids, now),
            false => queue.drop_dead(group, &ids, now),
        };
        let expected = self.model.change_dead(group, &ids, requeues, now);
        assert_eq!(found.unwrap(), expected);
    }

    fn rare(&mut self) {
        let (now, group) = (self.now, *self.rng.pick(&GROUPS));
        let mut queue = self.table.write();
        match self.rng.below(12) {
            0..3 => {
                let start = *self.rng.pick(&[GroupStart::Oldest, GroupStart::Newest]);
                let created = queue.create_group(group, start, now).unwrap();
                assert_eq!(created, self.model.create_group(group, start, now));
            }
            3 => {
                let dropped = queue.drop_group(group).unwrap();
                assert_eq!(dropped, self.model.drop_group(group));
                self.auditor.forget(group);
            }
            4 => {
                let limit = self.rng.index(20);
                let more = queue.purge(limit, now).unwrap();
                self.model.purge(limit, now);
                assert_eq!(more, !self.model.messages.is_empty());
            }
            5 if self.model.groups.contains_key(group) => {
                let limit = self.rng.index(20);
                let more = queue.purge_group(group, limit, now).unwrap();
                self.model.purge_group(group, limit, now);
                assert_eq!(more, !self.model.groups[group].open.is_empty());
            }
            _ => {
                let was_due = self.table.read().is_maintenance_due(now).unwrap();
                let before = self.model.clone();
                assert!(!self.table.write().maintain(10_000, now).unwrap().more);
                self.model.maintain(now);
                assert!(was_due || self.model == before);
                assert!(!self.table.read().is_maintenance_due(now).unwrap());
            }
        }
    }

    fn compare<R: PageRead>(&self, queue: &QueueReader<R>, is_full: bool) {
        let (model, stat) = (&self.model, queue.stat().unwrap());
        assert_eq!(stat.messages, model.messages.len() as u64);
        assert_eq!(stat.bytes, model.bytes());
        assert_eq!(stat.next_id, model.next_id);
        let dropped = (stat.dropped_oldest, stat.dropped_newest);
        assert_eq!(dropped, model.dropped);
        let totals = [stat.expired, stat.aged, stat.purged, stat.repeated];
        assert_eq!(
            totals,
            [model.expired, model.aged, model.purged, model.repeated]
        );
        let oldest = model.messages.values().next().map(|message| message.pushed);
        assert_eq!(stat.oldest, oldest.map(Timestamp));
        let named = |name: &&str| !name.is_empty() && !name.starts_with('\0');
        let names: Vec<&str> = model.groups.keys().map(String::as_str).collect();
        let names: Vec<&str> = names.into_iter().filter(named).collect();
        assert_eq!(queue.group_names(), names);
        for name in names {
            let (group, stat) = (&model.groups[name], queue.group_stat(name).unwrap());
            let count = |is: &dyn Fn(&Phase) -> bool| {
                let open = group.open.values();
                open.filter(|open| is(&open.phase)).count() as u64
            };
            let found = [
                stat.ready,
                stat.delayed,
                stat.leased,
                stat.waiting,
                stat.dead,
            ];
            let expected = [
                count(&|phase| *phase == Phase::Ready),
                count(&|phase| matches!(phase, Phase::Delayed { .. })),
                count(&|phase| matches!(phase, Phase::Leased { .. })),
                count(&|phase| *phase == Phase::Waiting),
                count(&|phase| matches!(phase, Phase::Dead { .. })),
            ];
            assert_eq!(found, expected, "group {name}");
            let totals = [stat.acked, stat.redelivered, stat.buried];
            assert_eq!(totals, [group.acked, group.redelivered, group.buried]);
            let oldest = group.open.keys().next();
            let pushed = oldest.map(|id| Timestamp(model.messages[id].pushed));
            assert_eq!(stat.oldest, pushed);
            if is_full {
                self.compare_group(queue, name);
            }
        }
        if is_full {
            let all = queue.messages(0, usize::MAX).unwrap();
            assert_eq!(all.len(), model.messages.len());
            for (found, (id, message)) in all.iter().zip(&model.messages) {
                assert_eq!((found.id, &found.payload), (*id, &message.payload));
                assert_eq!((&found.key, found.pushed.0), (&message.key, message.pushed));
                assert_eq!(queue.message(*id).unwrap().as_ref(), Some(found));
            }
        }
    }

    fn compare_group<R: PageRead>(&self, queue: &QueueReader<R>, name: &str) {
        let (model, group) = (&self.model, &self.model.groups[name]);
        let mut ready = model.ready(name);
        ready.retain(|id| {
            let expires = model.messages[id].expires;
            expires.is_none_or(|expires| expires > self.now)
        });
        let expected: Vec<(u64, u32)> = ready
            .into_iter()
            .map(|id| (id, group.open[&id].count))
            .collect();
        let peeked = queue.peek(name, usize::MAX, self.now).unwrap();
        let peeked: Vec<(u64, u32)> = peeked.iter().map(|(m, count)| (m.id, *count)).collect();
        assert_eq!(peeked, expected);
        let letters = queue.dead_letters(name, 0, 1000).unwrap();
        let letters: Vec<_> = letters
            .iter()
            .map(|letter| {
                (
                    letter.message.id,
                    letter.reason,
                    letter.deliveries,
                    letter.died.0,
                )
            })
            .collect();
        let expected: Vec<_> = group
            .open
            .iter()
            .filter_map(|(id, open)| match open.phase {
                Phase::Dead { reason, died } => Some((*id, reason, open.count, died)),
                _ => None,
            })
            .collect();
        assert_eq!(letters, expected);
    }
}

fn random_calls(seed: u64, steps: u64) {
    let mut rng = Rng::new(seed);
    let options = options(&mut rng);
    let page_size = *rng.pick(&[512, 1024, 4096]);
    let mut run = Run {
        table: Table::new(page_size, options),
        model: Model::new(options),
        auditor: Auditor::default(),
        now: 1000,
        with_extras: *rng.pick(&[0, 3, 10]),
        rng,
    };
    for step in 0..steps {
        match run.rng.below(20) {
            0..6 => run.push(),
            6..12 => run.lease(),
            12..17 => run.answer(),
            17 => run.dead(),
            _ => run.rare(),
        }
        run.auditor.forget_removed(&run.model);
        run.now += match run.rng.below(4) {
            0 => run.rng.between(0, 20),
            _ => run.rng.between(0, 2),
        };
        let is_full = step % 7 == 0;
        run.compare(&run.table.read(), is_full);
        if is_full {
            run.table.assert_whole();
        }
        if run.rng.one_in(5) {
            run.table.commit();
            let snapshot = run.table.pages.snapshot();
            let reader = QueueReader::open(&run.table.root, &snapshot).unwrap();
            run.compare(&reader, is_full);
        }
    }
    run.table.assert_whole();
}

#[test]
fn random_calls_agree_with_a_plain_queue() {
    tidalite_testkit::watch();
    for seed in 0..150 {
        println!("seed {seed}");
        random_calls(seed, 200);
    }
}

/// Without expiry, retention and overflow, every message reaches every group and is acknowledged once by each.
#[test]
fn no_message_is_lost() {
    tidalite_testkit::watch();
    for seed in 0..30 {
        println!("seed {seed}");
        let rng = &mut Rng::new(seed);
        let mut table = Table::new(512, QueueOptions::default());
        for group in ["a", "b"] {
            let start = GroupStart::Oldest;
            table.write().create_group(group, start, 0).unwrap();
        }
        let mut acked = [BTreeMap::new(), BTreeMap::new()];
        let mut order: [BTreeMap<Vec<u8>, u64>; 2] = Default::default();
        let (mut now, mut pushed) = (0, 0);
        while acked.iter().any(|acked| acked.len() < 600) {
            now += rng.between(0, 5);
            if pushed < 600 {
                let keys: Vec<Option<&[u8]>> = (0..30)
                    .map(|_| rng.one_in(2).then(|| *rng.pick(&KEYS)))
                    .collect();
                let messages: Vec<NewMessage<'_>> = keys
                    .iter()
                    .map(|key| NewMessage {
                        key: *key,
                        ..NewMessage::new(b"job")
                    })
                    .collect();
                table.write().push_many(&messages, now).unwrap();
                pushed += messages.len();
            }
            let which = rng.index(2);
            let group = ["a", "b"][which];
            let consumer = *rng.pick(&CONSUMERS);
            let limits = LeaseLimits::messages(1 + rng.index(60));
            let duration = rng.between(1, 20);
            let deliveries = table.write().lease(group, consumer, duration, limits, now);
            let deliveries = deliveries.unwrap();
            let ids: Vec<u64> = deliveries.iter().map(|d| d.message.id).collect();
            // A third of the consumers fail, and their leases lapse.
            if rng.one_in(3) {
                continue;
            }
            let answers = table.write().ack(group, consumer, &ids, now).unwrap();
            for (delivery, answer) in deliveries.iter().zip(answers) {
                assert_eq!(answer, Answered::Done);
                let message = &delivery.message;
                *acked[which].entry(message.id).or_insert(0) += 1;
                if let Some(key) = &message.key {
                    let last = order[which].insert(key.clone(), message.id);
                    assert!(last < Some(message.id), "the order of a key");
                }
            }
        }
        for acked in acked {
            assert_eq!(acked.len(), 600);
            assert!(acked.values().all(|times| *times == 1));
        }
        let stat = table.read().stat().unwrap();
        assert_eq!((stat.messages, stat.bytes), (0, 0));
        table.assert_whole();
    }
}
