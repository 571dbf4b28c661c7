//! Topics in memory: the retained message of each topic, and the feed of changes.

use std::collections::BTreeMap;
use tidalite::Timestamp;
use tidalite::topics::{Message, Published, Qos};

/// Number of changes that the feed keeps.
pub(crate) const FEED_CHANGES: u64 = 30;

/// A retained message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retained {
    pub(crate) payload: Vec<u8>,
    pub(crate) qos: u8,
    pub(crate) publisher: String,
    pub(crate) content_type: Option<String>,
    pub(crate) expires: Option<i64>,
    /// Number of the change that set the message.
    pub(crate) sequence: u64,
    /// Time of publication.
    pub(crate) time: i64,
}

/// The expected content of a table of topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    pub(crate) messages: BTreeMap<String, Retained>,
    /// The newest changes by number: the topic, and whether its message was removed.
    pub(crate) feed: BTreeMap<u64, (String, bool)>,
    /// Number of the newest change.
    pub(crate) sequence: u64,
}

/// The order in which a batch changes topics: `/` sorts before all other characters.
fn order(topic: &str) -> Vec<u8> {
    let bytes = topic.bytes();
    bytes
        .map(|byte| if byte == b'/' { 0 } else { byte })
        .collect()
}

/// Whether a topic matches a filter, level by level.
pub(crate) fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['#', '+']) {
        return false;
    }
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        if wanted == "#" {
            return true;
        }
        match levels.next() {
            Some(level) if wanted == "+" || wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

impl Retained {
    /// The message in the form that the library's calls expect.
    pub(crate) fn message<'m>(&'m self, topic: &'m str) -> Message<'m> {
        let mut message = Message::new(topic, &self.payload);
        message.qos = Qos::of_number(self.qos).unwrap_or_default();
        message.publisher = &self.publisher;
        message.expires = self.expires.map(Timestamp);
        message.properties.content_type = self.content_type.as_deref();
        message
    }

    /// Whether publishing the message at `now` removes the message of its topic.
    fn removes(&self, now: i64) -> bool {
        self.payload.is_empty() || self.expires.is_some_and(|time| time <= now)
    }
}

impl Topics {
    fn change(&mut self, topic: &str, to: Option<&Retained>, now: i64, done: &mut Published) {
        let before = match to {
            None => self.messages.remove(topic),
            Some(to) => {
                let retained = Retained {
                    sequence: self.sequence + 1,
                    time: now,
                    ..to.clone()
                };
                self.messages.insert(topic.to_owned(), retained)
            }
        };
        match (before, to) {
            (None, None) => return,
            (Some(_), None) => done.removed += 1,
            (Some(_), Some(_)) => done.replaced += 1,
            (None, Some(_)) => done.created += 1,
        }
        self.sequence += 1;
        let change = (topic.to_owned(), to.is_none());
        self.feed.insert(self.sequence, change);
        while self.feed.len() as u64 > FEED_CHANGES {
            self.feed.pop_first();
        }
    }

    /// Publishes messages with the RETAIN flag in one batch.
    pub(crate) fn publish(&mut self, batch: &[(String, Retained)], now: i64) -> Published {
        let last: BTreeMap<Vec<u8>, &(String, Retained)> =
            batch.iter().map(|one| (order(&one.0), one)).collect();
        let mut done = Published::default();
        for (topic, retained) in last.into_values() {
            let to = (!retained.removes(now)).then_some(retained);
            self.change(topic, to, now, &mut done);
        }
        done
    }

    /// Removes the messages for which `is_gone` returns true; returns their number.
    pub(crate) fn remove_if(&mut self, is_gone: impl Fn(&str, &Retained) -> bool) -> u64 {
        let gone = self.messages.iter();
        let gone = gone.filter(|(topic, retained)| is_gone(topic, retained));
        let mut gone: Vec<String> = gone.map(|(topic, _)| topic.clone()).collect();
        gone.sort_by_key(|topic| order(topic));
        let mut done = Published::default();
        for topic in gone {
            self.change(&topic, None, 0, &mut done);
        }
        done.removed
    }
}
