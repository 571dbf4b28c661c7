//! Work that is due: expired messages, containers that are too full, deletions and dropped containers that cannot be
//! restored any more.

use super::options::WINDOW;
use super::table::{Container, Containers, Key};
use crate::model::clock;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use tidalite::Result;
use tidalite::containers::{ContainersMut, Select};

/// The content of a table of containers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Left {
    /// Keys of messages and numbers of deletions, by name of the container.
    pub(crate) live: BTreeMap<String, (BTreeSet<Key>, BTreeSet<u64>)>,
    /// Numbers of dropped containers.
    pub(crate) dropped: BTreeSet<u32>,
}

impl Container {
    /// The message that must go first, and whether it has expired; `None` if none must go.
    fn first_due(&self, now: i64) -> Option<(Key, bool)> {
        let mut messages = self.messages.iter();
        let (key, oldest) = messages.find(|(_, message)| !message.is_protected)?;
        let is_expired = oldest.is_expired(&self.options(), key.0, now);
        (is_expired || self.rotates()).then_some((*key, is_expired))
    }

    /// Removes the message that must go first.
    pub(super) fn remove_due(&mut self, now: i64) -> Option<(Key, bool)> {
        let (key, is_expired) = self.first_due(now)?;
        self.messages.remove(&key);
        self.totals[if is_expired { 1 } else { 2 }] += 1;
        self.count_changes(1);
        Some((key, is_expired))
    }
}

impl Containers {
    /// The rows that are there.
    pub(crate) fn left(&self) -> Left {
        let keys = |container: &Container| {
            let messages = container.messages.keys().copied().collect();
            (messages, container.deletions.keys().copied().collect())
        };
        let live = self.live.iter();
        let dropped = self.dropped.iter();
        Left {
            live: live
                .map(|(name, container)| (name.clone(), keys(container)))
                .collect(),
            dropped: dropped.map(|dropped| dropped.container.number).collect(),
        }
    }

    /// Removes due messages, deletions and containers until the model has only the contents of `left`. The deletions of
    /// dropped containers are not in `left`; which of them are due is determined when the container is restored.
    pub(crate) fn reduce_to(&mut self, left: &Left, now: i64) {
        for (name, container) in &mut self.live {
            let Some((messages, deletions)) = left.live.get(name) else {
                continue;
            };
            while let Some((key, _)) = container.first_due(now) {
                if messages.contains(&key) {
                    break;
                }
                container.remove_due(now);
            }
            let is_left = |number: &u64, free_at: i64| deletions.contains(number) || free_at > now;
            (container.deletions).retain(|number, deletion| is_left(number, deletion.free_at));
            container.seen.retain(|_, time| *time + WINDOW > now);
        }
        self.dropped.retain(|dropped| {
            left.dropped.contains(&dropped.container.number) || dropped.free_at > now
        });
    }

    /// Performs all maintenance that is due.
    pub(crate) fn maintain(&mut self, now: i64) {
        let mut left = self.left();
        left.dropped.clear();
        left.live
            .values_mut()
            .for_each(|keys| *keys = Default::default());
        self.reduce_to(&left, now);
        for dropped in &mut self.dropped {
            let deletions = &mut dropped.container.deletions;
            deletions.retain(|_, deletion| deletion.free_at > now);
        }
    }
}

/// The content of a table, including expired messages.
///
/// # Errors
/// An error of the database.
pub(crate) fn left_of(table: &ContainersMut<'_>) -> Result<Left> {
    clock::in_the_past(|| {
        let mut left = Left::default();
        let view = table.view()?;
        for info in view.list("", None, usize::MAX)? {
            let (messages, deletions) = left.live.entry(info.name.clone()).or_default();
            view.each(&info.name, &Select::default(), &mut |found| {
                messages.insert((found.time().0, found.tie()));
                Ok(ControlFlow::Continue(()))
            })?;
            let found = view.deletions(&info.name, None, usize::MAX)?;
            deletions.extend(found.iter().map(|deletion| deletion.number));
        }
        let dropped = view.dropped("", None, usize::MAX)?;
        left.dropped = dropped.iter().map(|dropped| dropped.number).collect();
        Ok(left)
    })
}
