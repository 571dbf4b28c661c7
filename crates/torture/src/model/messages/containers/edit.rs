//! Messages are replaced, deleted and restored. Containers are dropped and restored.

use super::append::Before;
use super::table::{Containers, Deletion, Dropped, Key, Stored};
use std::collections::BTreeMap;
use tidalite::containers::{Document, OnDuplicate, RestoreRange};

impl Containers {
    /// Replaces the document of a message; `None` if the message is not visible, and `Some(None)` if there is no room
    /// for it.
    pub(crate) fn replace(
        &mut self,
        name: &str,
        key: Key,
        document: &Document,
        now: i64,
    ) -> Option<Option<Before>> {
        let container = self.get_mut(name);
        let options = container.options();
        let old = container.messages.get(&key)?;
        if old.is_expired(&options, key.0, now) {
            return None;
        }
        let before = old.before();
        let new = Stored::new(document.clone(), now, &options);
        if !container.put(key, new) {
            return Some(None);
        }
        container.set_latest(key.0, document);
        Some(Some(before))
    }

    /// Deletes messages. If the options keep them, they become a deletion, whose number is returned.
    pub(crate) fn delete(&mut self, name: &str, keys: &[Key], now: i64) -> Option<u64> {
        let number = self.next_deletion;
        let container = self.get_mut(name);
        let keep = container.options().keep_deleted.as_nanos() as i64;
        let mut messages = BTreeMap::new();
        for key in keys {
            messages.extend(container.messages.remove_entry(key));
        }
        container.count_changes(messages.len());
        if keep == 0 || messages.is_empty() {
            return None;
        }
        let deletion = Deletion {
            deleted_at: now,
            free_at: now + keep,
            messages,
        };
        container.deletions.insert(number, deletion);
        self.next_deletion += 1;
        Some(number)
    }

    /// Restores messages, of the last deletion first. Returns the keys that they have, and the number of messages that
    /// stay deleted.
    pub(crate) fn restore(
        &mut self,
        name: &str,
        range: &RestoreRange,
        now: i64,
    ) -> (Vec<Key>, u64) {
        let container = self.get_mut(name);
        let options = container.options();
        let (mut restored, mut skipped) = (Vec::new(), 0);
        let mut deletions = std::mem::take(&mut container.deletions);
        for deletion in deletions.values_mut().rev() {
            if deletion.deleted_at < range.deleted_from.0 || deletion.free_at <= now {
                continue;
            }
            deletion.messages.retain(|key, message| {
                if !(range.from.0..=range.to.0).contains(&key.0) {
                    return true;
                }
                let mut place = *key;
                if container.messages.contains_key(key) {
                    let last = container.last_of(key.0);
                    place.1 = last.map_or(0, |((_, tie), _)| tie + 1);
                }
                let is_taken = place != *key && options.on_duplicate != OnDuplicate::KeepAll;
                if is_taken || message.is_expired(&options, key.0, now) {
                    skipped += 1;
                    return true;
                }
                container.messages.insert(place, message.clone());
                restored.push(place);
                false
            });
        }
        deletions.retain(|_, deletion| !deletion.messages.is_empty());
        container.deletions = deletions;
        container.count_changes(restored.len());
        (restored, skipped)
    }

    /// Drops a container; returns the time from which it cannot be restored, if it can be now.
    pub(crate) fn drop_container(&mut self, name: &str, now: i64) -> Option<i64> {
        let container = self.live.remove(name)?;
        let keep = container.options().keep_deleted.as_nanos() as i64;
        if keep == 0 {
            return None;
        }
        self.dropped.push(Dropped {
            name: name.to_owned(),
            dropped_at: now,
            free_at: now + keep,
            container,
        });
        self.sort_dropped();
        Some(now + keep)
    }

    /// Restores the container of a name that was dropped last; `None` if there is none or the new name is taken.
    pub(crate) fn restore_container(&mut self, name: &str, to: &str, now: i64) -> Option<u32> {
        let is_it = |dropped: &Dropped| dropped.name == name && dropped.free_at > now;
        let last = self.dropped.iter().rposition(is_it)?;
        if self.live.contains_key(to) {
            return None;
        }
        let Dropped { container, .. } = self.dropped.remove(last);
        let number = container.number;
        self.live.insert(to.to_owned(), container);
        Some(number)
    }
}
