//! Ranges of keys: lost ranges, and the ranges that are covered by leaves found by their headers.

use std::collections::BTreeMap;
use tidalite_base::Corrupt;

pub(super) type Key = Vec<u8>;

/// A lost range of keys, with its end excluded or unbounded.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub(super) from: Key,
    pub(super) to: Option<Key>,
    pub(super) corrupt: Option<Corrupt>,
}

impl Lost {
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_deref().is_none_or(|to| key < to)
    }
}

/// Ranges of keys that newer leaves cover: disjoint, each from first key to last key.
#[derive(Default)]
pub(super) struct Covered(BTreeMap<Key, Key>);

impl Covered {
    pub(super) fn has(&self, key: &[u8]) -> bool {
        let mut before = self
            .0
            .range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(key)));
        before
            .next_back()
            .is_some_and(|(_, last)| key <= last.as_slice())
    }

    pub(super) fn add(&mut self, first: Key, last: Key) {
        let (mut first, mut last) = (first, last);
        let touching: Vec<Key> = self
            .0
            .range(..=last.clone())
            .rev()
            .take_while(|(_, end)| **end >= first)
            .map(|(start, _)| start.clone())
            .collect();
        for start in touching {
            if let Some(end) = self.0.remove(&start) {
                last = last.max(end);
            }
            first = first.min(start);
        }
        self.0.insert(first, last);
    }
}
