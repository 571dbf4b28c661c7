//! A queue in memory: work that falls due with time, purges, and groups.

use super::queue::{Group, NAMELESS, Queue};
use tidalite::queue::GroupStart;

impl Queue {
    /// Does everything that is due; `retention` is the age at which messages are removed.
    pub(crate) fn maintain(&mut self, retention: i64, now: i64) {
        self.expire(now);
        let old = self.messages.iter();
        let old = old.take_while(|(_, message)| message.pushed + retention <= now);
        let old: Vec<u64> = old.map(|(id, _)| *id).collect();
        self.totals[3] += old.len() as u64;
        self.remove(&old, now);
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

    /// Removes the oldest messages.
    pub(crate) fn purge(&mut self, limit: usize, now: i64) {
        let ids: Vec<u64> = self.messages.keys().copied().take(limit).collect();
        self.totals[4] += ids.len() as u64;
        self.remove(&ids, now);
    }

    /// Removes the oldest messages of a group; `None` if it does not exist.
    pub(crate) fn purge_group(&mut self, name: &str, limit: usize, now: i64) -> Option<()> {
        let row = self.row(name)?;
        let group = self.groups.get_mut(row)?;
        let ids: Vec<u64> = group.open.keys().copied().take(limit).collect();
        group.open.retain(|id, _| !ids.contains(id));
        self.settle(now);
        Some(())
    }

    /// Creates a group; returns false if it exists.
    pub(crate) fn create_group(&mut self, name: &str, start: GroupStart, now: i64) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        if self.groups.contains_key(NAMELESS) {
            if start == GroupStart::Oldest {
                let group = self.groups.remove(NAMELESS).unwrap_or_default();
                self.groups.insert(name.to_owned(), group);
                return true;
            }
            self.hide(NAMELESS);
        }
        self.groups.insert(name.to_owned(), Group::default());
        if start == GroupStart::Oldest {
            let ids: Vec<u64> = self.messages.keys().copied().collect();
            ids.into_iter().for_each(|id| self.arrive(name, id, now));
        }
        true
    }

    fn hide(&mut self, name: &str) {
        let mut group = self.groups.remove(name).unwrap_or_default();
        group.is_dropped = true;
        self.dropped_groups += 1;
        let hidden = format!("\0{}", self.dropped_groups);
        self.groups.insert(hidden, group);
    }

    /// Drops a group; returns false if it does not exist.
    pub(crate) fn drop_group(&mut self, name: &str) -> bool {
        let Some(row) = self.row(name) else {
            return false;
        };
        if row == NAMELESS && self.groups[row].open.is_empty() {
            return false;
        }
        self.hide(row);
        if self.groups.keys().all(|name| name.starts_with('\0')) {
            self.groups.insert(NAMELESS.to_owned(), Group::default());
        }
        true
    }

    /// Names of the groups that a user sees.
    pub(crate) fn group_names(&self) -> Vec<&str> {
        let names = self.groups.keys().map(String::as_str);
        names
            .filter(|name| *name != NAMELESS && !name.starts_with('\0'))
            .collect()
    }
}
