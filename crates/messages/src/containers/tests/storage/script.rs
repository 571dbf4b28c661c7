//! A model of a table of containers, built from the standard library; it predicts the result of each call.

use super::{Table, decode};
use crate::containers::append::{Append, AppendOutcome, Appended, Rejection};
use crate::containers::codec;
use crate::containers::document::Document;
use crate::containers::options::{ContainerOptions, ContainerOverflow, OnDuplicate};
use crate::containers::sweep::{RemovalReason, RemovedMessage};
use crate::containers::value::FieldValue;
use crate::options::most;
use std::collections::{BTreeMap, HashMap};
use tidalite_time::Timestamp;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelMessage {
    pub(super) document: Document,
    pub(super) received: i64,
    pub(super) is_protected: bool,
}

/// A deletion: its time, the time from which it cannot be restored, and its messages.
pub(super) type ModelDeletion = (i64, i64, BTreeMap<(i64, u32), ModelMessage>);

#[derive(Clone, Debug)]
pub(super) struct ModelContainer {
    pub(super) number: u32,
    pub(super) own: Option<ContainerOptions>,
    pub(super) messages: BTreeMap<(i64, u32), ModelMessage>,
    pub(super) latest: BTreeMap<String, (i64, FieldValue)>,
    pub(super) deletions: BTreeMap<u64, ModelDeletion>,
    pub(super) seen: HashMap<Vec<u8>, i64>,
}

pub(super) struct Model {
    pub(super) containers: BTreeMap<String, ModelContainer>,
    /// Name, time from which the container is gone, and the container.
    pub(super) dropped: Vec<(String, i64, ModelContainer)>,
    pub(super) defaults: ContainerOptions,
    pub(super) window: i64,
    pub(super) numbers: HashMap<String, u32>,
}

impl ModelContainer {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            own: None,
            messages: BTreeMap::new(),
            latest: BTreeMap::new(),
            deletions: BTreeMap::new(),
            seen: HashMap::new(),
        }
    }

    pub(super) fn set_latest(&mut self, time: i64, document: &Document) {
        for (field, value) in document.iter() {
            let is_newer = self.latest.get(field).is_none_or(|old| old.0 <= time);
            if is_newer {
                self.latest.insert(field.to_owned(), (time, value.clone()));
            }
        }
    }

    pub(super) fn last_of(&self, time: i64) -> Option<((i64, u32), ModelMessage)> {
        let mut found = self.messages.range((time, 0)..=(time, u32::MAX));
        let (key, message) = found.next_back()?;
        Some((*key, message.clone()))
    }
}

/// Whether a message is no longer visible.
pub(super) fn is_expired(
    options: &ContainerOptions,
    time: i64,
    is_protected: bool,
    now: i64,
) -> bool {
    !is_protected && options.ttl.is_some() && time.saturating_add(options.ttl_ns()) <= now
}

pub(super) fn protects(options: &ContainerOptions, document: &Document) -> Option<bool> {
    let field = document.get(options.protect.as_deref()?)?;
    Some(*field == FieldValue::Bool(true))
}

impl Model {
    pub(super) fn new(defaults: ContainerOptions, window: i64) -> Self {
        Self {
            containers: BTreeMap::new(),
            dropped: Vec::new(),
            defaults,
            window,
            numbers: HashMap::new(),
        }
    }

    pub(super) fn options(&self, name: &str) -> ContainerOptions {
        let own = self
            .containers
            .get(name)
            .and_then(|found| found.own.clone());
        own.unwrap_or_else(|| self.defaults.clone())
    }

    /// The size of a message as counted in limits and totals.
    pub(super) fn size(&self, document: &Document) -> u64 {
        let mut bytes = Vec::new();
        codec::encode(document, &mut |name| Ok(self.numbers[name]), &mut bytes).unwrap();
        bytes.len() as u64 + 25
    }

    /// Numbers of unprotected messages and bytes.
    pub(super) fn unprotected(&self, name: &str) -> (u64, u64) {
        let messages = &self.containers[name].messages;
        let counted = messages.values().filter(|message| !message.is_protected);
        counted.fold((0, 0), |sum, message| {
            (sum.0 + 1, sum.1 + self.size(&message.document))
        })
    }

    pub(super) fn name_of(&self, number: u32) -> String {
        let found = self.containers.iter();
        let mut found = found.filter(|(_, container)| container.number == number);
        found.next().unwrap().0.clone()
    }

    /// Removes messages that the table has removed by itself; these must be the oldest ones.
    pub(super) fn remove(&mut self, removed: &[RemovedMessage], now: i64) {
        for RemovedMessage { message, reason } in removed {
            let name = self.name_of(message.key.container);
            let options = self.options(&name);
            let key = (message.key.time.0, message.key.tie);
            let oldest = self.containers[&name].messages.iter();
            let mut oldest = oldest.filter(|(_, message)| !message.is_protected);
            assert_eq!(
                oldest.next().unwrap().0,
                &key,
                "{name}: the oldest goes first"
            );
            let expired = is_expired(&options, key.0, message.is_protected, now);
            match reason {
                RemovalReason::Expired => assert!(expired, "{name} {key:?}"),
                RemovalReason::Rotated => {
                    let (messages, bytes) = self.unprotected(&name);
                    assert!(
                        !expired && options.is_over(messages, bytes),
                        "{name} {key:?}"
                    );
                    assert_eq!(options.overflow, ContainerOverflow::DropOldest);
                }
            }
            let container = self.containers.get_mut(&name).unwrap();
            container.messages.remove(&key).unwrap();
        }
    }

    /// Stores the numbers of new fields.
    pub(super) fn learn(&mut self, table: &Table) {
        for (number, name) in table.names().by_number() {
            self.numbers.insert(name.to_owned(), number);
        }
    }

    /// Applies an append and compares the outcomes.
    pub(super) fn append(
        &mut self,
        table: &Table,
        now: i64,
        items: &[Append<'_>],
        appended: &Appended,
    ) {
        self.learn(table);
        for (name, number) in &appended.created {
            let new = ModelContainer::new(*number);
            assert!(self.containers.insert(name.clone(), new).is_none());
        }
        self.remove(&appended.expired, now);
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|at| (items[*at].container, items[*at].time));
        for at in order {
            let item = &items[at];
            let outcome = self.append_one(now, item);
            let found = &appended.outcomes[at];
            assert_eq!(outcome.0, *found, "message {at}: {item:?}");
            if let AppendOutcome::Merged { document, .. } = found {
                assert_eq!(decode(&table.names(), document), outcome.1.unwrap());
            }
        }
        self.remove(&appended.rotated, now);
        for name in items.iter().map(|item| item.container) {
            let options = self.options(name);
            let (messages, bytes) = self.unprotected(name);
            let rotates = options.overflow == ContainerOverflow::DropOldest;
            // One call removes a bounded number of messages from each container.
            let is_bounded = appended.rotated.len() >= 64;
            let is_over = options.is_over(messages, bytes);
            assert!(!rotates || !is_over || is_bounded, "{name} is too full");
        }
    }

    /// The outcome of one message, and the document that is stored.
    fn append_one(&mut self, now: i64, item: &Append<'_>) -> (AppendOutcome, Option<Document>) {
        let name = item.container;
        let options = self.options(name);
        let window = self.window;
        let before = self.unprotected(name);
        let (size, container) = (self.size(item.document), &self.containers[name]);
        let key = item.idempotency_key.filter(|_| window > 0);
        let seen = key.and_then(|key| container.seen.get(key));
        if seen.is_some_and(|seen| seen + window > now) {
            return (AppendOutcome::Repeated, None);
        }
        let mut is_protected = protects(&options, item.document) == Some(true);
        let mut document = item.document.clone();
        let expired = is_expired(&options, item.time.0, is_protected, now);
        let last = container.last_of(item.time.0);
        let stored_old =
            |old: &((i64, u32), ModelMessage)| crate::containers::message::StoredMessage {
                key: crate::containers::keys::MessageKey::new(container.number, old.0.0, old.0.1),
                received: Timestamp(old.1.received),
                is_protected: old.1.is_protected,
                stands_for: 1,
                document: {
                    let mut bytes = Vec::new();
                    codec::encode(
                        &old.1.document,
                        &mut |name| Ok(self.numbers[name]),
                        &mut bytes,
                    )
                    .unwrap();
                    bytes
                },
            };
        let number = container.number;
        let stored = |tie| AppendOutcome::Stored {
            key: crate::containers::keys::MessageKey::new(number, item.time.0, tie),
        };
        let outcome = if options.ttl_ns() == 0 || expired {
            AppendOutcome::NotStored
        } else {
            match &last {
                None => stored(0),
                Some(old) if is_expired(&options, item.time.0, old.1.is_protected, now) => {
                    AppendOutcome::Replaced {
                        old: stored_old(old),
                    }
                }
                Some(old) => match options.on_duplicate {
                    OnDuplicate::KeepFirst => AppendOutcome::Ignored,
                    OnDuplicate::KeepAll => stored(old.0.1 + 1),
                    OnDuplicate::Replace => AppendOutcome::Replaced {
                        old: stored_old(old),
                    },
                    OnDuplicate::Merge => {
                        document = old.1.document.clone();
                        for (field, value) in item.document.iter() {
                            document.set(field, value.clone());
                        }
                        is_protected =
                            protects(&options, item.document).unwrap_or(match options.protect {
                                Some(_) => old.1.is_protected,
                                None => false,
                            });
                        let mut bytes = Vec::new();
                        codec::encode(&document, &mut |name| Ok(self.numbers[name]), &mut bytes)
                            .unwrap();
                        AppendOutcome::Merged {
                            old: stored_old(old),
                            document: bytes,
                        }
                    }
                },
            }
        };
        let place = match &outcome {
            AppendOutcome::Stored { key } => Some((key.time.0, key.tie)),
            AppendOutcome::Replaced { old } | AppendOutcome::Merged { old, .. } => {
                Some((old.key.time.0, old.key.tie))
            }
            _ => None,
        };
        let size = match &outcome {
            AppendOutcome::Merged { .. } => self.size(&document),
            _ => size,
        };
        if let Some(place) = place {
            let old = self.containers[name].messages.get(&place).cloned();
            let new = ModelMessage {
                document: document.clone(),
                received: now,
                is_protected,
            };
            let container = self.containers.get_mut(name).unwrap();
            container.messages.insert(place, new);
            let after = self.unprotected(name);
            let fits = match options.overflow {
                ContainerOverflow::DropOldest => {
                    after.1 <= before.1 || size <= most(options.bytes_max)
                }
                ContainerOverflow::Reject => {
                    (after.0 <= before.0 || after.0 <= most(options.messages_max))
                        && (after.1 <= before.1 || after.1 <= most(options.bytes_max))
                }
            };
            if !fits {
                let container = self.containers.get_mut(name).unwrap();
                match old {
                    Some(old) => container.messages.insert(place, old),
                    None => container.messages.remove(&place),
                };
                return (AppendOutcome::Rejected(Rejection::ContainerFull), None);
            }
        }
        let container = self.containers.get_mut(name).unwrap();
        if outcome != AppendOutcome::Ignored {
            container.set_latest(item.time.0, item.document);
        }
        if let Some(key) = key {
            container.seen.insert(key.to_vec(), now);
        }
        (outcome, Some(document))
    }
}
