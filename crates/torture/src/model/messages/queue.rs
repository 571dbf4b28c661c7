//! A queue in memory with the rules of a queue, without any index: every question is answered by looking at all
//! messages.
//!
//! Invariant: an id that is open in a group has a message, and is in exactly one phase there. An id that the group has
//! acknowledged or removed is not open.

use std::collections::BTreeMap;
use tidalite::queue::{Answered, DeadReason, NewMessage, Pushed};

/// Name of the row of the default group before its first use.
pub(crate) const NAMELESS: &str = "";
/// After this number of deliveries a message becomes a dead letter.
pub(crate) const DELIVERIES_MAX: u32 = 3;
/// Maximum number of messages; a push removes the oldest ones.
pub(crate) const MESSAGES_MAX: u64 = 40;

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) payload: Vec<u8>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) idempotency_key: Option<Vec<u8>>,
    pub(crate) priority: u8,
    pub(crate) pushed: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) expires: Option<i64>,
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The state of a message in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Ready,
    Leased { deadline: i64, consumer: u8 },
    Delayed { until: i64 },
    Waiting,
    Dead { is_rejected: bool, died: i64 },
}

/// A message that a group still needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) phase: Phase,
    /// Number of deliveries.
    pub(crate) count: u32,
}

/// A group of consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) open: BTreeMap<u64, Open>,
    pub(crate) is_dropped: bool,
    pub(crate) acked: u64,
    pub(crate) redelivered: u64,
    pub(crate) buried: u64,
}

/// Counters of a queue, in the order of [`Queue::totals`].
pub(crate) const TOTALS: usize = 6;

/// The expected content of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub(crate) next_id: u64,
    /// Number of groups that were dropped.
    pub(crate) dropped_groups: u64,
    /// Messages that were repeated, dropped as the oldest, expired, removed by age, purged and pushed.
    pub(crate) totals: [u64; TOTALS],
    pub(crate) messages: BTreeMap<u64, Message>,
    pub(crate) groups: BTreeMap<String, Group>,
    /// Time and id of the newest push with each idempotency key.
    pub(crate) seen: BTreeMap<Vec<u8>, (i64, u64)>,
}

/// An answer of a consumer.
pub(crate) enum Action {
    Ack,
    Nack(i64),
    Reject,
    Extend(i64),
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            next_id: 1,
            dropped_groups: 0,
            totals: [0; TOTALS],
            messages: BTreeMap::new(),
            groups: BTreeMap::from([(NAMELESS.to_owned(), Group::default())]),
            seen: BTreeMap::new(),
        }
    }
}

impl Message {
    /// Number of bytes that a stored message counts.
    pub(crate) fn bytes(&self) -> u64 {
        let times = [self.not_before, self.expires];
        let keys = [&self.key, &self.idempotency_key];
        let keys = keys.iter().filter_map(|key| key.as_ref());
        let bytes = 10
            + 8 * times.iter().flatten().count()
            + keys.map(|key| 2 + key.len()).sum::<usize>()
            + self.payload.len();
        let lengths = self.headers.iter();
        let headers: usize = lengths
            .map(|(name, value)| 4 + name.len() + value.len())
            .sum();
        let bytes = match headers {
            0 => bytes,
            headers => bytes + 2 + headers,
        };
        bytes as u64
    }

    /// The initial phase of a message that does not wait for an earlier one.
    fn first(&self, now: i64) -> Phase {
        match self.not_before {
            Some(until) if until > now => Phase::Delayed { until },
            _ => Phase::Ready,
        }
    }
}

impl Queue {
    fn has_head(messages: &BTreeMap<u64, Message>, group: &Group, key: &[u8]) -> bool {
        group.open.iter().any(|(id, open)| {
            messages[id].key.as_deref() == Some(key)
                && !matches!(open.phase, Phase::Waiting | Phase::Dead { .. })
        })
    }

    pub(super) fn arrive(&mut self, name: &str, id: u64, now: i64) {
        let Some(group) = self.groups.get_mut(name) else {
            return;
        };
        let message = &self.messages[&id];
        group.open.remove(&id);
        let key = message.key.as_deref();
        let phase = match key.is_some_and(|key| Self::has_head(&self.messages, group, key)) {
            true => Phase::Waiting,
            false => message.first(now),
        };
        group.open.insert(id, Open { phase, count: 0 });
    }

    /// Lets the first waiting message of each key follow a message that has left, and removes messages that no group
    /// needs.
    pub(super) fn settle(&mut self, now: i64) {
        let messages = &mut self.messages;
        for group in self.groups.values_mut() {
            let waiting = |(id, open): (&u64, &Open)| (open.phase == Phase::Waiting).then_some(*id);
            let waiting: Vec<u64> = group.open.iter().filter_map(waiting).collect();
            for id in waiting {
                let message = &messages[&id];
                let key = message.key.as_deref().unwrap_or_default();
                if !Self::has_head(messages, group, key)
                    && let Some(open) = group.open.get_mut(&id)
                {
                    open.phase = message.first(now);
                }
            }
        }
        let groups = &self.groups;
        messages.retain(|id, _| groups.values().any(|group| group.open.contains_key(id)));
    }

    pub(super) fn remove(&mut self, ids: &[u64], now: i64) {
        for group in self.groups.values_mut() {
            group.open.retain(|id, _| !ids.contains(id));
        }
        self.settle(now);
    }

    /// Pushes a message; `window` is the time in which an idempotency key may not repeat.
    pub(crate) fn push(&mut self, new: &NewMessage<'_>, window: i64, now: i64) -> Pushed {
        if let Some(key) = new.idempotency_key
            && let Some((time, id)) = self.seen.get(key)
            && time + window > now
        {
            self.totals[0] += 1;
            return Pushed::Repeated(*id);
        }
        while self.messages.len() as u64 >= MESSAGES_MAX {
            let oldest: Vec<u64> = self.messages.keys().copied().take(1).collect();
            self.remove(&oldest, now);
            self.totals[1] += 1;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.totals[5] += 1;
        if let Some(key) = new.idempotency_key {
            self.seen.insert(key.to_vec(), (now, id));
        }
        let message = Message {
            payload: new.payload.to_vec(),
            key: new.key.map(<[u8]>::to_vec),
            idempotency_key: new.idempotency_key.map(<[u8]>::to_vec),
            priority: new.priority,
            pushed: now,
            not_before: new.not_before.map(|time| time.0),
            expires: new.expires.map(|time| time.0),
            headers: (new.headers.iter())
                .map(|(name, value)| (name.to_vec(), value.to_vec()))
                .collect(),
        };
        self.messages.insert(id, message);
        let names: Vec<String> = self.groups.keys().cloned().collect();
        for name in names {
            if !self.groups[&name].is_dropped {
                self.arrive(&name, id, now);
            }
        }
        Pushed::Stored(id)
    }

    fn ids_that(&self, is_over: impl Fn(&Message) -> bool) -> Vec<u64> {
        let all = self.messages.iter();
        all.filter(|(_, message)| is_over(message))
            .map(|(id, _)| *id)
            .collect()
    }

    pub(super) fn expire(&mut self, now: i64) {
        let ids = self.ids_that(|message| message.expires.is_some_and(|time| time <= now));
        self.totals[2] += ids.len() as u64;
        self.remove(&ids, now);
    }

    pub(super) fn fall_due(&mut self, name: &str, now: i64) {
        if let Some(group) = self.groups.get_mut(name) {
            for open in group.open.values_mut() {
                match open.phase {
                    Phase::Leased { deadline, .. } if deadline <= now => {
                        open.phase = if open.count >= DELIVERIES_MAX {
                            group.buried += 1;
                            Phase::Dead {
                                is_rejected: false,
                                died: now,
                            }
                        } else {
                            Phase::Ready
                        };
                    }
                    Phase::Delayed { until } if until <= now => open.phase = Phase::Ready,
                    _ => {}
                }
            }
        }
        self.settle(now);
    }

    /// The ids that can be leased, in the order of their delivery.
    pub(crate) fn ready(&self, name: &str) -> Vec<u64> {
        let ready = self.groups[name].open.iter();
        let ready = ready.filter(|(_, open)| open.phase == Phase::Ready);
        let mut ids: Vec<u64> = ready.map(|(id, _)| *id).collect();
        ids.sort_by_key(|id| (u8::MAX - self.messages[id].priority, *id));
        ids
    }

    /// Name of the row of a group; `None` if it does not exist.
    pub(crate) fn row<'n>(&self, name: &'n str) -> Option<&'n str> {
        match name {
            _ if self.groups.contains_key(name) => Some(name),
            "default" if self.groups.contains_key(NAMELESS) => Some(NAMELESS),
            _ => None,
        }
    }

    /// Leases messages to a consumer until a deadline, or takes them without one. Returns ids and numbers of
    /// deliveries; `None` if the group does not exist.
    pub(crate) fn lease(
        &mut self,
        name: &str,
        to: Option<(u8, i64)>,
        limit: usize,
        now: i64,
    ) -> Option<Vec<(u64, u32)>> {
        if self.row(name)? == NAMELESS
            && let Some(group) = self.groups.remove(NAMELESS)
        {
            self.groups.insert(name.to_owned(), group);
        }
        self.expire(now);
        self.fall_due(name, now);
        let mut delivered = Vec::new();
        let ids = self.ready(name);
        let group = self.groups.get_mut(name)?;
        for id in ids.into_iter().take(limit) {
            let open = group.open.get_mut(&id)?;
            group.redelivered += u64::from(open.count > 0);
            open.count += 1;
            delivered.push((id, open.count));
            if let Some((consumer, deadline)) = to {
                open.phase = Phase::Leased { deadline, consumer };
            } else {
                group.open.remove(&id);
                group.acked += 1;
            }
        }
        self.settle(now);
        Some(delivered)
    }

    /// Applies an answer of a consumer to ids; `None` if the group does not exist.
    pub(crate) fn answer(
        &mut self,
        name: &str,
        by: u8,
        ids: &[u64],
        action: &Action,
        now: i64,
    ) -> Option<Vec<Answered>> {
        let row = self.row(name)?;
        let group = self.groups.get_mut(row)?;
        let mut answers = Vec::new();
        for id in ids {
            let Some(open) = group.open.get_mut(id) else {
                answers.push(Answered::Unknown);
                continue;
            };
            let answer = match &open.phase {
                Phase::Leased { deadline, .. } if *deadline <= now => Answered::Lapsed,
                Phase::Leased { consumer, .. } if *consumer != by => Answered::HeldByOther,
                Phase::Leased { .. } => Answered::Done,
                _ => Answered::NotLeased,
            };
            answers.push(answer);
            if answer != Answered::Done {
                continue;
            }
            let dead = |is_rejected| Phase::Dead {
                is_rejected,
                died: now,
            };
            open.phase = match action {
                Action::Ack => {
                    group.open.remove(id);
                    group.acked += 1;
                    continue;
                }
                Action::Nack(_) if open.count >= DELIVERIES_MAX => dead(false),
                Action::Nack(delay) if *delay > 0 => Phase::Delayed { until: now + delay },
                Action::Nack(_) => Phase::Ready,
                Action::Reject => dead(true),
                Action::Extend(duration) => Phase::Leased {
                    deadline: now + duration,
                    consumer: by,
                },
            };
            group.buried += u64::from(matches!(open.phase, Phase::Dead { .. }));
        }
        self.settle(now);
        Some(answers)
    }

    /// Delivers dead letters again, or drops them; `None` if the group does not exist.
    pub(crate) fn change_dead(
        &mut self,
        name: &str,
        ids: &[u64],
        requeues: bool,
        now: i64,
    ) -> Option<Vec<Answered>> {
        let row = self.row(name)?;
        let mut answers = vec![Answered::Unknown; ids.len()];
        let mut sorted: Vec<(u64, usize)> = ids.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        for (id, at) in sorted {
            let open = self.groups[row].open.get(&id);
            if !open.is_some_and(|open| matches!(open.phase, Phase::Dead { .. })) {
                continue;
            }
            answers[at] = Answered::Done;
            if requeues {
                self.arrive(row, id, now);
            } else {
                self.groups.get_mut(row)?.open.remove(&id);
            }
        }
        self.settle(now);
        Some(answers)
    }
}

/// The reason of a dead letter.
pub(crate) fn reason(is_rejected: bool) -> DeadReason {
    match is_rejected {
        true => DeadReason::Rejected,
        false => DeadReason::TooManyDeliveries,
    }
}
