//! A plain queue in memory with the same rules but without any index: every operation examines all messages.

use crate::queues::answer::Answered;
use crate::queues::due::DeadReason;
use crate::queues::groups::GroupStart;
use crate::queues::lease::LeaseLimits;
use crate::queues::message::NewMessage;
use crate::queues::options::{Overflow, QueueOptions};
use crate::queues::push::Pushed;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) payload: Vec<u8>,
    pub(super) key: Option<Vec<u8>>,
    pub(super) priority: u8,
    pub(super) pushed: i64,
    pub(super) not_before: Option<i64>,
    pub(super) expires: Option<i64>,
    pub(super) bytes: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phase {
    Ready,
    Leased { deadline: i64, consumer: String },
    Delayed { until: i64 },
    Waiting,
    Dead { reason: DeadReason, died: i64 },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Open {
    pub(super) phase: Phase,
    pub(super) count: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Group {
    pub(super) open: BTreeMap<u64, Open>,
    pub(super) is_dropped: bool,
    pub(super) acked: u64,
    pub(super) redelivered: u64,
    pub(super) buried: u64,
}

#[derive(Clone, PartialEq)]
pub(super) struct Model {
    pub(super) options: QueueOptions,
    pub(super) next_id: u64,
    pub(super) messages: BTreeMap<u64, Message>,
    pub(super) groups: BTreeMap<String, Group>,
    seen: BTreeMap<Vec<u8>, (i64, u64)>,
    hidden: u32,
    pub(super) dropped: (u64, u64),
    pub(super) expired: u64,
    pub(super) aged: u64,
    pub(super) purged: u64,
    pub(super) repeated: u64,
}

pub(super) enum Action {
    Ack,
    Nack(i64),
    Reject,
    Extend(i64),
}

impl Model {
    pub(super) fn new(options: QueueOptions) -> Self {
        Self {
            options,
            next_id: 1,
            messages: BTreeMap::new(),
            groups: BTreeMap::from([(String::new(), Group::default())]),
            seen: BTreeMap::new(),
            hidden: 0,
            dropped: (0, 0),
            expired: 0,
            aged: 0,
            purged: 0,
            repeated: 0,
        }
    }

    /// A copy on which calls can be tried.
    pub(super) fn copied(&self) -> Self {
        Self {
            options: self.options,
            messages: self.messages.clone(),
            groups: self.groups.clone(),
            seen: self.seen.clone(),
            ..*self
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.messages.values().map(|message| message.bytes).sum()
    }

    /// The first phase of a message that is not blocked by another message.
    fn first(message: &Message, now: i64) -> Phase {
        match message.not_before {
            Some(until) if until > now => Phase::Delayed { until },
            _ => Phase::Ready,
        }
    }

    fn has_head(messages: &BTreeMap<u64, Message>, group: &Group, key: &[u8]) -> bool {
        group.open.iter().any(|(id, open)| {
            messages[id].key.as_deref() == Some(key)
                && !matches!(open.phase, Phase::Waiting | Phase::Dead { .. })
        })
    }

    fn arrive(&mut self, name: &str, id: u64, now: i64) {
        let group = self.groups.get_mut(name).unwrap();
        let message = &self.messages[&id];
        group.open.remove(&id);
        let blocked = message
            .key
            .as_deref()
            .is_some_and(|key| Self::has_head(&self.messages, group, key));
        let phase = match blocked {
            true => Phase::Waiting,
            false => Self::first(message, now),
        };
        group.open.insert(id, Open { phase, count: 0 });
    }

    /// Assigns new heads to lanes without a head, and removes messages that no group needs.
    fn settle(&mut self, now: i64) {
        let messages = &mut self.messages;
        for group in self.groups.values_mut() {
            let waiting: Vec<u64> = group
                .open
                .iter()
                .filter(|(_, open)| open.phase == Phase::Waiting)
                .map(|(id, _)| *id)
                .collect();
            for id in waiting {
                let key = messages[&id].key.clone().unwrap();
                if !Self::has_head(messages, group, &key) {
                    group.open.get_mut(&id).unwrap().phase = Self::first(&messages[&id], now);
                }
            }
        }
        let groups = &self.groups;
        messages.retain(|id, _| groups.values().any(|group| group.open.contains_key(id)));
    }

    fn remove(&mut self, ids: &[u64], now: i64) {
        for group in self.groups.values_mut() {
            group.open.retain(|id, _| !ids.contains(id));
        }
        self.settle(now);
    }

    pub(super) fn push(&mut self, new: &NewMessage<'_>, now: i64) -> Option<Pushed> {
        let window = self.options.window_ns();
        if let Some(key) = new.idempotency_key.filter(|_| window > 0)
            && let Some((time, id)) = self.seen.get(key)
            && time + window > now
        {
            self.repeated += 1;
            return Some(Pushed::Repeated(*id));
        }
        let bytes = new.check().unwrap();
        loop {
            let messages = self.messages.len() as u64 + 1;
            if !self.options.is_over(messages, self.bytes() + bytes) {
                break;
            }
            match self.options.overflow {
                Overflow::Reject => return None,
                Overflow::DropNewest => {
                    self.dropped.1 += 1;
                    return Some(Pushed::Dropped);
                }
                Overflow::DropOldest => {
                    let oldest = *self.messages.keys().next().unwrap();
                    self.remove(&[oldest], now);
                    self.dropped.0 += 1;
                }
            }
        }
        let id = self.next_id;
        self.next_id += 1;
        if let Some(key) = new.idempotency_key.filter(|_| window > 0) {
            self.seen.insert(key.to_vec(), (now, id));
        }
        let message = Message {
            payload: new.payload.to_vec(),
            key: new.key.map(<[u8]>::to_vec),
            priority: new.priority,
            pushed: now,
            not_before: new.not_before.map(|time| time.0),
            expires: new.expires.map(|time| time.0),
            bytes,
        };
        self.messages.insert(id, message);
        let names: Vec<String> = self.groups.keys().cloned().collect();
        for name in names {
            if !self.groups[&name].is_dropped {
                self.arrive(&name, id, now);
            }
        }
        Some(Pushed::Stored(id))
    }

    fn expire(&mut self, now: i64) {
        let is_over = |message: &Message| message.expires.is_some_and(|expires| expires <= now);
        let ids = self.ids_that(is_over);
        self.expired += ids.len() as u64;
        self.remove(&ids, now);
    }

    fn ids_that(&self, is_over: impl Fn(&Message) -> bool) -> Vec<u64> {
        let all = self.messages.iter();
        all.filter(|(_, message)| is_over(message))
            .map(|(id, _)| *id)
            .collect()
    }

    fn fall_due(&mut self, name: &str, now: i64) {
        let group = self.groups.get_mut(name).unwrap();
        let most = self.options.deliveries_max.unwrap_or(0);
        for open in group.open.values_mut() {
            open.phase = match open.phase {
                Phase::Leased { deadline, .. } if deadline <= now => {
                    if most > 0 && open.count >= most {
                        group.buried += 1;
                        let reason = DeadReason::TooManyDeliveries;
                        Phase::Dead { reason, died: now }
                    } else {
                        Phase::Ready
                    }
                }
                Phase::Delayed { until } if until <= now => Phase::Ready,
                ref phase => phase.clone(),
            };
        }
        self.settle(now);
    }

    pub(super) fn ready(&self, name: &str) -> Vec<u64> {
        let group = &self.groups[name];
        let ready = group.open.iter();
        let mut ids: Vec<u64> = ready
            .filter(|(_, open)| open.phase == Phase::Ready)
            .map(|(id, _)| *id)
            .collect();
        ids.sort_by_key(|id| (u8::MAX - self.messages[id].priority, *id));
        ids
    }

    /// The row of a group that is in use: the default group gets its name.
    fn used(&mut self, name: &str) -> bool {
        if name == "default"
            && !self.groups.contains_key(name)
            && let Some(group) = self.groups.remove("")
        {
            self.groups.insert(name.into(), group);
        }
        self.groups.contains_key(name)
    }

    /// Leases messages, or takes them if `consumer` is `None`. Returns ids and numbers of deliveries.
    pub(super) fn lease(
        &mut self,
        name: &str,
        consumer: Option<(&str, i64)>,
        limits: LeaseLimits,
        now: i64,
    ) -> Option<Vec<(u64, u32)>> {
        if !self.used(name) {
            return None;
        }
        self.expire(now);
        self.fall_due(name, now);
        let mut delivered = Vec::new();
        let mut bytes = 0_u64;
        for id in self.ready(name) {
            bytes += self.messages[&id].bytes;
            let full = delivered.len() == limits.messages;
            if full || bytes > limits.bytes && !delivered.is_empty() {
                break;
            }
            let group = self.groups.get_mut(name).unwrap();
            let open = group.open.get_mut(&id).unwrap();
            group.redelivered += u64::from(open.count > 0);
            open.count += 1;
            delivered.push((id, open.count));
            match consumer {
                Some((consumer, duration)) => {
                    let (deadline, consumer) = (now + duration, consumer.into());
                    open.phase = Phase::Leased { deadline, consumer };
                }
                None => {
                    group.open.remove(&id);
                    group.acked += 1;
                }
            }
        }
        self.settle(now);
        Some(delivered)
    }

    pub(super) fn answer(
        &mut self,
        name: &str,
        consumer: &str,
        ids: &[u64],
        action: &Action,
        now: i64,
    ) -> Option<Vec<Answered>> {
        let name = match self.groups.contains_key(name) {
            false if name == "default" => "",
            _ => name,
        };
        let group = self.groups.get_mut(name)?;
        let most = self.options.deliveries_max.unwrap_or(0);
        let mut answers = Vec::new();
        for id in ids {
            let Some(open) = group.open.get_mut(id) else {
                answers.push(Answered::Unknown);
                continue;
            };
            answers.push(match &open.phase {
                Phase::Leased { deadline, .. } if *deadline <= now => Answered::Lapsed,
                Phase::Leased { consumer: by, .. } if by != consumer => Answered::HeldByOther,
                Phase::Leased { .. } => Answered::Done,
                _ => Answered::NotLeased,
            });
            if answers.last() != Some(&Answered::Done) {
                continue;
            }
            let dead = |reason| Phase::Dead { reason, died: now };
            open.phase = match action {
                Action::Ack => {
                    group.open.remove(id);
                    group.acked += 1;
                    continue;
                }
                Action::Nack(_) if most > 0 && open.count >= most => {
                    dead(DeadReason::TooManyDeliveries)
                }
                Action::Nack(delay) if *delay > 0 => Phase::Delayed { until: now + delay },
                Action::Nack(_) => Phase::Ready,
                Action::Reject => dead(DeadReason::Rejected),
                Action::Extend(duration) => Phase::Leased {
                    deadline: now + duration,
                    consumer: consumer.into(),
                },
            };
            group.buried += u64::from(matches!(open.phase, Phase::Dead { .. }));
        }
        self.settle(now);
        Some(answers)
    }

    pub(super) fn change_dead(
        &mut self,
        name: &str,
        ids: &[u64],
        requeues: bool,
        now: i64,
    ) -> Vec<Answered> {
        let mut sorted: Vec<(u64, usize)> = ids.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let mut answers = vec![Answered::Unknown; ids.len()];
        for (id, at) in sorted {
            let open = self.groups[name].open.get(&id);
            if open.is_some_and(|open| matches!(open.phase, Phase::Dead { .. })) {
                answers[at] = Answered::Done;
                if requeues {
                    self.arrive(name, id, now);
                } else {
                    self.groups.get_mut(name).unwrap().open.remove(&id);
                }
            }
        }
        self.settle(now);
        answers
    }

    pub(super) fn maintain(&mut self, now: i64) {
        self.expire(now);
        if self.options.retention_ns() > 0 {
            let retention = self.options.retention_ns();
            let mut ids = self.ids_that(|message| message.pushed + retention <= now);
            // Only the oldest messages are removed; a younger one ends the removal.
            let oldest: Vec<u64> = self.messages.keys().copied().take(ids.len()).collect();
            ids.retain(|id| oldest.contains(id));
            self.aged += ids.len() as u64;
            self.remove(&ids, now);
        }
        let names: Vec<String> = self.groups.keys().cloned().collect();
        for name in names {
            if self.groups[&name].is_dropped {
                self.groups.remove(&name);
            } else {
                self.fall_due(&name, now);
            }
        }
        self.settle(now);
    }

    pub(super) fn purge(&mut self, limit: usize, now: i64) {
        let ids: Vec<u64> = self.messages.keys().copied().take(limit).collect();
        self.purged += ids.len() as u64;
        self.remove(&ids, now);
    }

    pub(super) fn purge_group(&mut self, name: &str, limit: usize, now: i64) {
        let group = self.groups.get_mut(name).unwrap();
        let ids: Vec<u64> = group.open.keys().copied().take(limit).collect();
        group.open.retain(|id, _| !ids.contains(id));
        self.settle(now);
    }

    pub(super) fn create_group(&mut self, name: &str, start: GroupStart, now: i64) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        if self.groups.contains_key("") {
            if start == GroupStart::Oldest {
                let group = self.groups.remove("").unwrap();
                self.groups.insert(name.into(), group);
                return true;
            }
            self.hide("");
        }
        self.groups.insert(name.into(), Group::default());
        if start == GroupStart::Oldest {
            for id in self.messages.keys().copied().collect::<Vec<_>>() {
                self.arrive(name, id, now);
            }
        }
        true
    }

    fn hide(&mut self, name: &str) {
        let mut group = self.groups.remove(name).unwrap();
        group.is_dropped = true;
        self.hidden += 1;
        self.groups.insert(format!("\0{}", self.hidden), group);
    }

    pub(super) fn drop_group(&mut self, name: &str) -> bool {
        let name = match self.groups.contains_key(name) {
            false if name == "default" => "",
            _ => name,
        };
        let is_unused = |group: &Group| name.is_empty() && group.open.is_empty();
        if self.groups.get(name).is_none_or(is_unused) {
            return false;
        }
        self.hide(name);
        if self.groups.keys().all(|name| name.starts_with('\0')) {
            self.groups.insert(String::new(), Group::default());
        }
        true
    }
}
