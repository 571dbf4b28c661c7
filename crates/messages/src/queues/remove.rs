//! Removing messages: because no group needs them any longer, or for all groups because of expiry, retention, overflow
//! or a purge.

use crate::queues::due::due_ids;
use crate::queues::edit::Edit;
use crate::queues::keys;
use crate::queues::mark::Mark;
use crate::queues::message::Head;
use crate::queues::options::QueueOptions;
use crate::queues::parts::{Part, change, damaged, part};
use crate::queues::read::QueueReader;
use crate::queues::seen;
use crate::queues::sets::{self, SetChanges, each_set};
use crate::queues::store::{self, heads, heads_from, heads_while};
use crate::queues::writer::QueueWriter;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Result of a maintenance step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueMaintenance {
    /// Number of messages that were removed because they had expired.
    pub expired: u64,
    /// Number of messages that were removed because they were older than the retention.
    pub aged: u64,
    /// Number of idempotency keys that were forgotten.
    pub forgotten_keys: u64,
    /// Whether work may remain.
    pub more: bool,
}

/// Ids of messages that have expired, ascending; at most `limit`.
fn expired_ids<R: PageRead>(root: &Tree, r: &R, limit: usize, now: i64) -> Result<Vec<u64>> {
    let mut ids = Vec::new();
    each_set(
        root,
        r,
        Part::Expiry,
        &[],
        &[],
        &mut |key, base, members| {
            let Some((time, [])) = keys::split_time(key) else {
                return Err(damaged("expiry of a queue", key.escape_ascii(), "a time"));
            };
            if time <= now {
                ids.extend(sets::ids(base, members).take(limit - ids.len()));
            }
            Ok(time <= now && ids.len() < limit)
        },
    )?;
    ids.sort_unstable();
    Ok(ids)
}

/// The oldest messages that are older than the retention, at most `limit`, up to the first younger message.
fn aged<R: PageRead>(
    root: &Tree,
    r: &R,
    options: &QueueOptions,
    limit: usize,
    now: i64,
) -> Result<Vec<(u64, Head)>> {
    let retention = options.retention_ns();
    if retention == 0 {
        return Ok(Vec::new());
    }
    let is_old = &mut |head: &Head| head.pushed.saturating_add(retention) <= now;
    heads_while(root, r, 0, limit, is_old)
}

impl<R: PageRead> QueueReader<R> {
    /// Whether [`QueueWriter::maintain`] has work at the time `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    ///
    /// # Cost
    /// Three rows, and one for each group.
    pub fn is_maintenance_due(&self, now: i64) -> Result<bool> {
        let (root, r, options) = (&self.root, &self.r, &self.options);
        if !expired_ids(root, r, 1, now)?.is_empty()
            || !aged(root, r, options, 1, now)?.is_empty()
            || seen::is_due(root, r, options.window_ns(), now)?
        {
            return Ok(true);
        }
        for group in self.groups.values() {
            let may_lapse = group.leased + group.delayed > 0;
            if group.is_dropped
                || (may_lapse && !due_ids(root, r, group.number, 1, now)?.is_empty())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<W: PageWrite> QueueWriter<'_, W> {
    /// Number of stored messages.
    pub(crate) fn messages(&self) -> Result<u64> {
        Ok(part(self.root, &*self.w, Part::Messages)?.len())
    }

    /// Removes the rows of messages that are not open in any group.
    fn delete(&mut self, messages: &[(u64, Head)]) -> Result<()> {
        let ids: Vec<u64> = messages.iter().map(|(id, _)| *id).collect();
        store::remove(self.root, self.w, &ids)?;
        let mut expiry = SetChanges::default();
        for (id, head) in messages {
            self.state.bytes = self.state.bytes.saturating_sub(head.bytes);
            if let Some(expires) = head.expires {
                expiry.remove(Part::Expiry, &keys::expiry(expires, *id), *id);
            }
        }
        expiry.store(self.root, self.w)
    }

    /// Removes the rows of the messages that are not open in any group. The messages must be in the order of their ids.
    /// Saves the state.
    pub(crate) fn delete_unneeded(&mut self, messages: &[(u64, Head)]) -> Result<()> {
        // With one group, no other group needs a message that this group has finished.
        if self.groups.len() <= 1 {
            self.delete(messages)?;
            return self.save_state();
        }
        let mut ids: Vec<u64> = messages.iter().map(|(id, _)| *id).collect();
        for group in self.groups.values() {
            if ids.is_empty() {
                break;
            }
            let key = |id| keys::by_group(group.number, id);
            let needed = sets::within(self.root, &*self.w, Part::Open, &ids, &key)?;
            ids.retain(|id| needed.binary_search(id).is_err());
        }
        let mut unneeded = messages.to_vec();
        unneeded.retain(|(id, _)| ids.binary_search(id).is_ok());
        self.delete(&unneeded)?;
        self.save_state()
    }

    /// Removes open ids, in ascending order, from one group. Ids that are not open in it are ignored.
    fn remove_from_group(&mut self, name: &str, messages: &[(u64, Head)], now: i64) -> Result<()> {
        let Some(group) = self.groups.get(name) else {
            return Ok(());
        };
        let mut edit = Edit::new(*group);
        let ids: Vec<u64> = messages.iter().map(|(id, _)| *id).collect();
        let key = |id| keys::by_group(edit.group.number, id);
        let open = sets::within(self.root, &*self.w, Part::Open, &ids, &key)?;
        let mut messages = messages.iter();
        for id in open {
            let Some((_, head)) = messages.find(|(other, _)| *other == id) else {
                return Err(damaged("open ids", id, "ascending ids"));
            };
            let mark = edit.marks.get(self.root, &*self.w, id)?;
            let mark = mark.unwrap_or(Mark::ready(head.priority, 0));
            edit.finish(self.root, &*self.w, id, mark, head.lane)?;
        }
        self.store(name, edit, now)
    }

    /// Removes messages, in the order of their ids, from all groups. The caller counts them and saves the state.
    pub(crate) fn remove_everywhere(&mut self, messages: &[(u64, Head)], now: i64) -> Result<()> {
        let names: Vec<String> = self.groups.keys().cloned().collect();
        for name in names {
            self.remove_from_group(&name, messages, now)?;
        }
        self.delete(messages)
    }

    /// Removes the oldest messages, in any state, at most `limit`; returns whether more messages remain.
    ///
    /// # Errors
    /// `DiskFull`, `Io`; a damaged page.
    pub fn purge(&mut self, limit: usize, now: i64) -> Result<bool> {
        let oldest = heads_from(self.root, &*self.w, 0, limit)?;
        self.remove_everywhere(&oldest, now)?;
        self.state.purged += oldest.len() as u64;
        self.save_state()?;
        Ok(self.messages()? > 0)
    }

    /// Removes the oldest open ids of a group, including dead letters, at most `limit`; returns whether more remain.
    /// Other groups keep their messages.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; as for `purge`.
    pub fn purge_group(&mut self, name: &str, limit: usize, now: i64) -> Result<bool> {
        let (row, edit) = self.edit(name)?;
        self.purge_row(row, edit.group.number, limit, now)
    }

    fn purge_row(&mut self, row: &str, number: u32, limit: usize, now: i64) -> Result<bool> {
        let mut ids = Vec::new();
        let mut has_more = false;
        let prefix = keys::group_prefix(number);
        each_set(
            self.root,
            &*self.w,
            Part::Open,
            &prefix,
            &prefix,
            &mut |_, base, members| {
                ids.extend(sets::ids(base, members).take(limit.saturating_add(1) - ids.len()));
                has_more = ids.len() > limit;
                Ok(!has_more)
            },
        )?;
        ids.truncate(limit);
        let messages = heads(self.root, &*self.w, &ids)?;
        self.remove_from_group(row, &messages, now)?;
        self.delete_unneeded(&messages)?;
        Ok(has_more)
    }

    /// Removes messages that have expired, at most `limit`; returns their number.
    pub(crate) fn expire(&mut self, limit: usize, now: i64) -> Result<usize> {
        let ids = expired_ids(self.root, &*self.w, limit, now)?;
        if ids.is_empty() {
            return Ok(0);
        }
        self.remove_expired(&ids, now)?;
        Ok(ids.len())
    }

    /// Removes expired messages with these ids, which must ascend.
    pub(crate) fn remove_expired(&mut self, ids: &[u64], now: i64) -> Result<()> {
        let messages = heads(self.root, &*self.w, ids)?;
        self.remove_everywhere(&messages, now)?;
        self.state.expired += messages.len() as u64;
        self.save_state()
    }

    /// Removes the oldest messages that are older than the retention, at most `limit`; returns their number.
    fn age(&mut self, limit: usize, now: i64) -> Result<usize> {
        let old = aged(self.root, &*self.w, &self.options, limit, now)?;
        if !old.is_empty() {
            self.remove_everywhere(&old, now)?;
            self.state.aged += old.len() as u64;
            self.save_state()?;
        }
        Ok(old.len())
    }

    /// Does periodic maintenance: removes expired messages, messages older than the retention, idempotency keys that
    /// have left the window and messages of dropped groups, and ends lapsed leases and delays. Handles at most `limit`
    /// messages of each kind, but at least one.
    ///
    /// # Errors
    /// `DiskFull`, `Io`; a damaged page.
    pub fn maintain(&mut self, limit: u64, now: i64) -> Result<QueueMaintenance> {
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let expired = self.expire(limit, now)?;
        let aged = self.age(limit, now)?;
        let window = self.options.window_ns();
        let forgotten_keys = seen::prune(self.root, self.w, window, now, limit)?;
        let mut more = [expired, aged, forgotten_keys].contains(&limit);
        let groups: Vec<_> = self
            .groups
            .iter()
            .map(|(name, group)| (name.clone(), *group))
            .collect();
        for (name, group) in groups {
            if !group.is_dropped {
                more |= self.fall_due(&name, limit, now)? == limit;
            } else if self.purge_row(&name, group.number, limit, now)? {
                more = true;
            } else {
                change(self.root, self.w, Part::Groups, &mut |w, table| {
                    table.remove(w, name.as_bytes())
                })?;
                self.groups.remove(&name);
            }
        }
        Ok(QueueMaintenance {
            expired: expired as u64,
            aged: aged as u64,
            forgotten_keys: forgotten_keys as u64,
            more,
        })
    }
}
