//! The changes of one call, sorted by the keys of their topics.
//!
//! Most comparisons of two keys compare only eight bytes: those after the prefix that all keys have in common.

use crate::topics::key::put_key;
use std::ops::Range;

/// Value of the message index that marks a removal.
const REMOVAL: u32 = u32::MAX;

/// Maximum number of changes of one batch.
pub(super) const CHANGES_MAX: usize = REMOVAL as usize;

/// A change of one topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The eight bytes of the key after the common prefix.
    part: u64,
    at: usize,
    len: u32,
    message: u32,
}

impl Change {
    /// Index of the message that the topic gets; `None` for a removal.
    pub(super) fn message(&self) -> Option<usize> {
        (self.message != REMOVAL).then_some(self.message as usize)
    }
}

/// Changes, each with the key of its topic.
#[derive(Debug, Default)]
pub(super) struct Batch {
    keys: Vec<u8>,
    pub(super) changes: Vec<Change>,
}

impl Batch {
    pub(super) fn with_capacity(changes: usize, key_bytes: usize) -> Self {
        Self {
            keys: Vec::with_capacity(key_bytes),
            changes: Vec::with_capacity(changes),
        }
    }

    /// Adds a change; `message` is the index of the message that the topic gets, `None` for a removal.
    pub(super) fn push(&mut self, topic: &str, message: Option<usize>) {
        let at = self.keys.len();
        put_key(topic, &mut self.keys);
        self.add(at, message);
    }

    /// Adds the removal of the message under a key.
    pub(super) fn push_removal(&mut self, key: &[u8]) {
        let at = self.keys.len();
        self.keys.extend_from_slice(key);
        self.add(at, None);
    }

    fn add(&mut self, at: usize, message: Option<usize>) {
        debug_assert!(self.changes.len() < CHANGES_MAX, "the caller limits them");
        self.changes.push(Change {
            part: 0,
            at,
            len: (self.keys.len() - at) as u32,
            message: message.map_or(REMOVAL, |message| message as u32),
        });
    }

    pub(super) fn key(&self, change: &Change) -> &[u8] {
        &self.keys[change.at..change.at + change.len as usize]
    }

    pub(super) fn keys_of(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.changes[range].iter().map(|change| self.key(change))
    }

    /// Sorts the changes by key. If a topic has several changes, only the last one is kept.
    pub(super) fn sort(&mut self) {
        let Self { keys, changes } = self;
        let key = |change: &Change| &keys[change.at..change.at + change.len as usize];
        let Some(first) = changes.first().map(key) else {
            return;
        };
        let mut common = first.len();
        for change in changes.iter() {
            let own = key(change);
            if own.get(..common) != Some(&first[..common]) {
                let pairs = own.iter().zip(first);
                common = pairs.take_while(|(a, b)| a == b).count();
            }
        }
        for change in changes.iter_mut() {
            let own = &keys[change.at + common..change.at + change.len as usize];
            let mut part = [0; 8];
            let len = own.len().min(8);
            part[..len].copy_from_slice(&own[..len]);
            change.part = u64::from_be_bytes(part);
        }
        let compare = |a: &Change, b: &Change| {
            let parts = a.part.cmp(&b.part);
            parts.then_with(|| key(a)[common..].cmp(&key(b)[common..]))
        };
        if !changes.is_sorted_by(|a, b| compare(a, b).is_lt()) {
            // The sort is stable: if a topic has several changes, the last one counts.
            changes.sort_by(compare);
            let mut kept = 0;
            for at in 0..changes.len() {
                let next = changes.get(at + 1);
                if next.is_none_or(|next| key(next) != key(&changes[at])) {
                    changes[kept] = changes[at];
                    kept += 1;
                }
            }
            changes.truncate(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;

    #[test]
    fn changes_are_sorted_by_key_and_the_last_of_a_topic_stays() {
        let mut batch = Batch::default();
        let topics = [
            "dev/2/a", "dev/10", "dev/2", "dev/2/a", "dev", "dev/2!", "dev/2/a",
        ];
        for (index, topic) in topics.into_iter().enumerate() {
            batch.push(topic, (index != 2).then_some(index));
        }
        batch.sort();
        let found: Vec<_> = batch
            .changes
            .iter()
            .map(|change| change.message())
            .collect();
        assert_eq!(found, [Some(4), Some(1), None, Some(6), Some(5)]);
    }
}
