//! The content of a table of containers.
//!
//! Invariants
//! 1. Numbers of containers and of deletions ascend and are never given again.
//! 2. No deletion is without messages. Deletions and dropped containers whose time is over cannot be restored, but stay
//!    until maintenance removes them.

use super::document::message_bytes;
use super::options;
use std::collections::BTreeMap;
use tidalite::containers::{ContainerOptions, ContainerOverflow, Document, FieldValue};

/// Time and tie of a message.
pub(crate) type Key = (i64, u32);

/// A stored message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) document: Document,
    pub(crate) received: i64,
    pub(crate) is_protected: bool,
    /// Number of messages for which it stands.
    pub(crate) stands_for: u32,
}

/// Messages that one call deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deletion {
    pub(crate) deleted_at: i64,
    pub(crate) free_at: i64,
    pub(crate) messages: BTreeMap<Key, Stored>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Container {
    pub(crate) number: u32,
    /// Number of its own options.
    pub(crate) own: Option<usize>,
    pub(crate) created: i64,
    pub(crate) messages: BTreeMap<Key, Stored>,
    /// Time and value of each field that a message had.
    pub(crate) latest: BTreeMap<String, (i64, FieldValue)>,
    pub(crate) deletions: BTreeMap<u64, Deletion>,
    /// Times of idempotency keys.
    pub(crate) seen: BTreeMap<Vec<u8>, i64>,
    /// Number of the set of thinning rules, and for each rule the time up to which messages are already thinned.
    pub(crate) thinning: Option<(usize, Vec<i64>)>,
    /// Numbers of messages that were rejected, have expired, and were rotated, and of changes of messages.
    pub(crate) totals: [u64; 4],
}

/// A container that was dropped and can be restored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dropped {
    pub(crate) name: String,
    pub(crate) dropped_at: i64,
    pub(crate) free_at: i64,
    pub(crate) container: Container,
}

/// The expected content of a table of containers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Containers {
    pub(crate) live: BTreeMap<String, Container>,
    /// Ordered by the time at which they were dropped, then by their numbers.
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) next_container: u32,
    pub(crate) next_deletion: u64,
}

impl Stored {
    /// A new message, which no thinning has combined with others.
    pub(crate) fn new(document: Document, received: i64, options: &ContainerOptions) -> Self {
        Self {
            is_protected: protects(options, &document) == Some(true),
            document,
            received,
            stands_for: 1,
        }
    }

    /// Number of bytes that the message counts with.
    pub(crate) fn bytes(&self) -> u64 {
        message_bytes(&self.document, self.stands_for)
    }

    /// Whether the message has expired at `now`.
    pub(crate) fn is_expired(&self, options: &ContainerOptions, time: i64, now: i64) -> bool {
        let ttl = options.ttl.map(|ttl| ttl.as_nanos() as i64);
        !self.is_protected && ttl.is_some_and(|ttl| time + ttl <= now)
    }
}

/// Whether a document protects its message; `None` if it does not have the field.
pub(crate) fn protects(options: &ContainerOptions, document: &Document) -> Option<bool> {
    let value = document.get(options.protect.as_deref()?)?;
    Some(*value == FieldValue::Bool(true))
}

/// Numbers of messages and their bytes.
pub(crate) fn sums<'m>(messages: impl Iterator<Item = &'m Stored>) -> (u64, u64) {
    messages.fold((0, 0), |(messages, bytes), message| {
        (messages + 1, bytes + message.bytes())
    })
}

impl Container {
    /// Counts messages that were stored, replaced, deleted, restored or removed.
    pub(crate) fn count_changes(&mut self, messages: usize) {
        self.totals[3] += messages as u64;
    }

    pub(crate) fn options(&self) -> ContainerOptions {
        options::own(self.own).unwrap_or_else(|| options::of_table().defaults)
    }

    /// Numbers of messages without protection and their bytes.
    pub(crate) fn unprotected(&self) -> (u64, u64) {
        let messages = self.messages.values();
        sums(messages.filter(|message| !message.is_protected))
    }

    /// Whether the container is too full and removes its oldest messages.
    pub(crate) fn rotates(&self) -> bool {
        let (options, (messages, bytes)) = (self.options(), self.unprotected());
        options.overflow == ContainerOverflow::DropOldest
            && (options.messages_max.is_some_and(|most| messages > most)
                || options.bytes_max.is_some_and(|most| bytes > most))
    }

    /// The last message with this time.
    pub(crate) fn last_of(&self, time: i64) -> Option<(Key, &Stored)> {
        let last = self
            .messages
            .range((time, 0)..=(time, u32::MAX))
            .next_back();
        last.map(|(key, message)| (*key, message))
    }

    /// The messages that are shown at `now`.
    pub(crate) fn shown(&self, now: i64) -> impl DoubleEndedIterator<Item = (&Key, &Stored)> {
        let options = self.options();
        let messages = self.messages.iter();
        messages.filter(move |(key, message)| !message.is_expired(&options, key.0, now))
    }

    /// A field takes the value of a message unless a later message has set it.
    pub(crate) fn set_latest(&mut self, time: i64, document: &Document) {
        for (field, value) in document.iter() {
            if self.latest.get(field).is_none_or(|old| old.0 <= time) {
                self.latest.insert(field.to_owned(), (time, value.clone()));
            }
        }
    }
}

impl Containers {
    /// A new container; returns its number.
    pub(crate) fn create(&mut self, name: &str, own: Option<usize>, now: i64) -> u32 {
        let number = self.next_container;
        self.next_container += 1;
        let container = Container {
            number,
            own,
            created: now,
            ..Container::default()
        };
        self.live.insert(name.to_owned(), container);
        number
    }

    /// The container with this name.
    ///
    /// # Panics
    /// It does not exist.
    pub(crate) fn get_mut(&mut self, name: &str) -> &mut Container {
        self.live.get_mut(name).expect("the container exists")
    }

    /// The kinds of states that the containers are in, to show that a workload reaches all of them.
    #[cfg(test)]
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static str> {
        let any = |is: fn(&Container) -> bool| self.live.values().any(is);
        let messages = |is: fn(&Stored) -> bool| {
            let live = self.live.values();
            live.flat_map(|one| one.messages.values()).any(is)
        };
        let kinds = [
            ("rejected", any(|one| one.totals[0] > 0)),
            ("expired", any(|one| one.totals[1] > 0)),
            ("rotated", any(|one| one.totals[2] > 0)),
            ("deleted", any(|one| !one.deletions.is_empty())),
            ("keys", any(|one| !one.seen.is_empty())),
            ("dropped", !self.dropped.is_empty()),
            ("protected", messages(|message| message.is_protected)),
            ("thinned", messages(|message| message.stands_for > 3)),
        ];
        kinds.into_iter().filter(|kind| kind.1).map(|kind| kind.0)
    }

    pub(super) fn sort_dropped(&mut self) {
        let order = |dropped: &Dropped| (dropped.dropped_at, dropped.container.number);
        self.dropped.sort_by_key(order);
    }
}
