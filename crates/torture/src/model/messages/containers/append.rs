//! Messages arrive ordered by container and time; messages with the same time arrive in the order of the call.

use super::table::{Container, Containers, Stored, protects};
use tidalite::containers::{
    Append, AppendOutcome, ContainerOptions, ContainerOverflow, Document, FieldNames, OnDuplicate,
    Rejection, RemovalReason, RemovedMessage, StoredMessage,
};

/// A message as it was: time of reception, protection, number of messages for which it stood, its bytes, and its
/// document as JSON.
pub(crate) type Before = (i64, bool, u32, u64, String);

/// The outcome of a message, with its tie and with the message that it replaced. A merged message also has the new
/// document as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Stored(u32),
    Replaced(u32, Before),
    Merged(u32, Before, String),
    Ignored,
    Repeated,
    NotStored,
    Full,
}

impl Outcome {
    /// The outcome that the table reports.
    pub(crate) fn of(outcome: &AppendOutcome, names: &FieldNames) -> Self {
        let before = |old| before_of(old, names);
        match outcome {
            AppendOutcome::Stored { key } => Self::Stored(key.tie),
            AppendOutcome::Replaced { old } => Self::Replaced(old.key.tie, before(old)),
            AppendOutcome::Merged { old, document } => {
                Self::Merged(old.key.tie, before(old), text_of(document, names))
            }
            AppendOutcome::Ignored => Self::Ignored,
            AppendOutcome::Repeated => Self::Repeated,
            AppendOutcome::NotStored => Self::NotStored,
            AppendOutcome::Rejected(Rejection::ContainerFull) => Self::Full,
            AppendOutcome::Rejected(other) => panic!("{other:?} does not occur"),
        }
    }
}

/// A stored document as JSON.
fn text_of(document: &[u8], names: &FieldNames) -> String {
    let document = names.decode(document);
    let text = document.and_then(|document| document.to_json());
    text.unwrap_or_else(|error| format!("not decoded: {error}"))
}

/// A document of the model as JSON.
fn text(document: &Document) -> String {
    let text = document.to_json();
    text.unwrap_or_else(|error| format!("not a document: {error}"))
}

pub(crate) fn before_of(old: &StoredMessage, names: &FieldNames) -> Before {
    let head = if old.stands_for > 1 { 29 } else { 25 };
    let bytes = head + old.document.len() as u64;
    let document = text_of(&old.document, names);
    (
        old.received.0,
        old.is_protected,
        old.stands_for,
        bytes,
        document,
    )
}

impl Stored {
    pub(crate) fn before(&self) -> Before {
        let (received, bytes) = (self.received, self.bytes());
        (
            received,
            self.is_protected,
            self.stands_for,
            bytes,
            text(&self.document),
        )
    }
}

/// Whether a container has room for a change of its messages without protection.
fn has_room(options: &ContainerOptions, before: (u64, u64), after: (u64, u64), new: u64) -> bool {
    let grows = (after.0 > before.0, after.1 > before.1);
    match options.overflow {
        ContainerOverflow::DropOldest => {
            !grows.1 || options.bytes_max.is_none_or(|most| new <= most)
        }
        ContainerOverflow::Reject => {
            (!grows.0 || options.messages_max.is_none_or(|most| after.0 <= most))
                && (!grows.1 || options.bytes_max.is_none_or(|most| after.1 <= most))
        }
    }
}

impl Container {
    /// Puts a message in its place if there is room for it.
    pub(super) fn put(&mut self, key: (i64, u32), new: Stored) -> bool {
        let (options, before) = (self.options(), self.unprotected());
        let (is_protected, bytes) = (new.is_protected, new.bytes());
        let old = self.messages.insert(key, new);
        if is_protected || has_room(&options, before, self.unprotected(), bytes) {
            self.count_changes(1);
            return true;
        }
        match old {
            Some(old) => self.messages.insert(key, old),
            None => self.messages.remove(&key),
        };
        false
    }

    fn arrive(&mut self, item: &Append<'_>, window: i64, now: i64) -> Outcome {
        let seen = item.idempotency_key.and_then(|key| self.seen.get(key));
        if seen.is_some_and(|seen| seen + window > now) {
            return Outcome::Repeated;
        }
        let outcome = self.place(item, now);
        if outcome == Outcome::Full {
            self.totals[0] += 1;
            return outcome;
        }
        if outcome != Outcome::Ignored {
            self.set_latest(item.time.0, item.document);
        }
        if let Some(key) = item.idempotency_key {
            self.seen.insert(key.to_vec(), now);
        }
        outcome
    }

    fn place(&mut self, item: &Append<'_>, now: i64) -> Outcome {
        let options = self.options();
        let mut new = Stored::new(item.document.clone(), now, &options);
        if options.ttl.is_some_and(|ttl| ttl.is_zero())
            || new.is_expired(&options, item.time.0, now)
        {
            return Outcome::NotStored;
        }
        let last = self.last_of(item.time.0);
        let Some(((_, tie), old)) = last else {
            return match self.put((item.time.0, 0), new) {
                true => Outcome::Stored(0),
                false => Outcome::Full,
            };
        };
        let before = old.before();
        // An expired message is no longer visible, so the new one takes its place.
        let (tie, outcome) = match options.on_duplicate {
            _ if old.is_expired(&options, item.time.0, now) => {
                (tie, Outcome::Replaced(tie, before))
            }
            OnDuplicate::KeepFirst => return Outcome::Ignored,
            OnDuplicate::Replace => (tie, Outcome::Replaced(tie, before)),
            OnDuplicate::KeepAll => (tie + 1, Outcome::Stored(tie + 1)),
            OnDuplicate::Merge => {
                new.document = old.document.clone();
                for (field, value) in item.document.iter() {
                    new.document.set(field, value.clone());
                }
                if options.protect.is_some() {
                    let own = protects(&options, item.document);
                    new.is_protected = own.unwrap_or(old.is_protected);
                }
                new.stands_for = old.stands_for;
                let merged = text(&new.document);
                (tie, Outcome::Merged(tie, before, merged))
            }
        };
        match self.put((item.time.0, tie), new) {
            true => outcome,
            false => Outcome::Full,
        }
    }
}

impl Containers {
    /// Creates the containers of messages that do not exist, in the order of their names.
    pub(crate) fn create_for(&mut self, items: &[Append<'_>], now: i64) -> Vec<(String, u32)> {
        let mut names: Vec<&str> = items.iter().map(|item| item.container).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !self.live.contains_key(*name));
        let create = |name: &str| (name.to_owned(), self.create(name, None, now));
        names.into_iter().map(create).collect()
    }

    /// Adds messages to their containers, which exist.
    pub(crate) fn append(&mut self, items: &[Append<'_>], now: i64) -> Vec<Outcome> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|at| (items[*at].container, items[*at].time));
        let mut outcomes = vec![Outcome::Ignored; items.len()];
        for at in order {
            let container = self.get_mut(items[at].container);
            outcomes[at] = container.arrive(&items[at], super::options::WINDOW, now);
        }
        outcomes
    }

    /// Removes messages that the table has removed by itself, which must be the oldest ones and due.
    pub(crate) fn remove(&mut self, removed: &[RemovedMessage], now: i64) {
        for RemovedMessage { message, reason } in removed {
            let key = message.key;
            let mut live = self.live.values_mut();
            let container = live.find(|container| container.number == key.container);
            let container = container.expect("messages are of live containers");
            let (found, is_expired) = container.remove_due(now).expect("a message is due");
            assert_eq!(found, (key.time.0, key.tie), "the oldest goes first");
            assert_eq!(*reason == RemovalReason::Expired, is_expired, "{found:?}");
        }
    }
}
