//! Applies a sorted batch of changes to all parts of a table of topics.
//!
//! ```text
//! messages    read the old heads of a few hundred keys, then write these rows; one pass over the batch
//! ids         rows of new and of removed topics
//! terms       sets of new and of removed topics
//! expiry      rows of messages that now expire earlier, begin to expire, or no longer expire
//! feed        a row for each change
//! ```
//!
//! A message that replaces another one changes only its row in the table of messages, and adds a row to the feed if the
//! feed is on. The expiry index changes as well if the new message expires and the old one did not expire, or expired
//! later.

use crate::options::most;
use crate::topics::batch::{Batch, Change};
use crate::topics::feed;
use crate::topics::follow::Follow;
use crate::topics::message::Message;
use crate::topics::old::{filed, read_old};
use crate::topics::options::TopicOptions;
use crate::topics::parts::{Part, change};
use crate::topics::record::{self, Numbers, SEQUENCES_MAX, counted_bytes, head_in};
use crate::topics::state::State;
use crate::topics::terms::{self, SetChanges};
use tidalite_index::NUMBERS_MAX;
use tidalite_kv::{TableWriter, Tree};
use tidalite_pager::{Error, PageWrite, Result};

/// Number of changes for which the heads of the old messages are read before the changes are written.
const READ_AHEAD: usize = 512;

/// Number of changes of sets that are collected before they are stored. It bounds the memory of a large import.
const SET_CHANGES_MAX: usize = 1 << 18;

/// Result of publishing a batch of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Number of topics that had no message before.
    pub created: u64,
    /// Number of topics whose message was replaced.
    pub replaced: u64,
    /// Number of topics whose message was removed.
    pub removed: u64,
}

/// A table of topics while a batch is applied to it.
pub(super) struct Apply<'a, W> {
    pub(super) root: &'a mut Tree,
    pub(super) w: &'a mut W,
    pub(super) options: &'a TopicOptions,
    pub(super) state: &'a mut State,
}

impl<W: PageWrite> Apply<'_, W> {
    /// Applies a sorted batch and stores the state. `Limit` errors are returned before anything is changed.
    pub(super) fn run(
        &mut self,
        now: i64,
        batch: &Batch,
        messages: &[&Message<'_>],
    ) -> Result<Published> {
        if batch.changes.is_empty() {
            return Ok(Published::default());
        }
        self.check_limits(batch, messages)?;
        let mut follow = Follow::default();
        let before = *self.state;
        let published = self.put_messages(now, batch, messages, &mut follow)?;
        self.change_ids(batch, &follow)?;
        self.change_terms(batch, &follow)?;
        self.change_expiry(&mut follow)?;
        if self.options.feed_changes > 0 {
            self.add_to_feed(batch, &follow, before.sequence)?;
        } else {
            self.state.feed_from = self.state.sequence + 1;
        }
        if before != *self.state {
            self.put_state()?;
        }
        Ok(published)
    }

    pub(super) fn put_state(&mut self) -> Result<()> {
        let state = self.state.encode();
        self.root
            .insert(self.w, &Part::State.key(), &state)
            .map(drop)
    }

    fn check_limits(&mut self, batch: &Batch, messages: &[&Message<'_>]) -> Result<()> {
        let changes = batch.changes.len() as u64;
        within(
            "changes of a table of topics",
            self.state.sequence,
            changes,
            SEQUENCES_MAX - 1,
        )?;
        let (mut count, mut bytes) = (0, 0);
        let mut record = Vec::new();
        for change in &batch.changes {
            if let Some(message) = change.message() {
                count += 1;
                bytes += body_bytes(batch.key(change), messages[message], &mut record)?;
            }
        }
        // A removal needs no topic id.
        within("ids of topics", self.state.next_id, count, NUMBERS_MAX)?;
        let fits =
            |now: u64, more: u64, limit| now.checked_add(more).is_some_and(|all| all <= limit);
        let is_certain = fits(self.state.messages, count, most(self.options.messages_max))
            && fits(self.state.bytes, bytes, most(self.options.bytes_max));
        if is_certain {
            return Ok(());
        }
        // The old messages must be read to compute the final numbers of messages and bytes.
        let (mut messages_after, mut bytes_after) = (self.state.messages, self.state.bytes);
        let (root, w) = (&mut *self.root, &mut *self.w);
        let table = tidalite_kv::part(root, &*w, &Part::Messages.key())?;
        for change in &batch.changes {
            let key = batch.key(change);
            if let Some(value) = table.get(&*w, key)? {
                let head = head_in(&value)?;
                let old = counted_bytes(key, value.len(), &head);
                messages_after = messages_after.saturating_sub(1);
                bytes_after = bytes_after.saturating_sub(old);
            }
            if let Some(message) = change.message() {
                messages_after = messages_after.saturating_add(1);
                let new = body_bytes(key, messages[message], &mut record)?;
                bytes_after = bytes_after.saturating_add(new);
            }
        }
        // A batch that makes a table smaller is accepted even above a limit, which may have been lowered.
        if messages_after > self.state.messages {
            within(
                "messages",
                messages_after,
                0,
                most(self.options.messages_max),
            )?;
        }
        if bytes_after > self.state.bytes {
            within(
                "bytes of all messages",
                bytes_after,
                0,
                most(self.options.bytes_max),
            )?;
        }
        Ok(())
    }

    fn put_messages(
        &mut self,
        now: i64,
        batch: &Batch,
        messages: &[&Message<'_>],
        follow: &mut Follow,
    ) -> Result<Published> {
        let (state, has_feed) = (&mut *self.state, self.options.feed_changes > 0);
        let mut published = Published::default();
        let (mut old, mut record) = (Vec::with_capacity(READ_AHEAD), Vec::new());
        change(self.root, self.w, Part::Messages, &mut |w, table| {
            let mut from = 0;
            while from < batch.changes.len() {
                let to = (from + READ_AHEAD).min(batch.changes.len());
                read_old(&*w, table, batch, from..to, &mut old)?;
                for (index, old) in (from..to).zip(&old) {
                    let change = &batch.changes[index];
                    let key = batch.key(change);
                    let message = change.message().map(|message| messages[message]);
                    if message.is_none() && old.is_none() {
                        continue;
                    }
                    state.sequence += 1;
                    if has_feed {
                        follow.changed.push((index as u32, message.is_none()));
                    }
                    if let Some(old) = old {
                        let bytes = counted_bytes(key, old.record_len, &old.head);
                        state.bytes = state.bytes.saturating_sub(bytes);
                    }
                    let Some(message) = message else {
                        table.remove(w, key)?;
                        published.removed += 1;
                        state.messages = state.messages.saturating_sub(1);
                        follow.remove(index, old.as_ref());
                        continue;
                    };
                    let id = match old {
                        Some(old) => old.head.id,
                        None => {
                            let id = state.next_id;
                            state.next_id += 1;
                            state.messages += 1;
                            follow.created.push((id, index as u32));
                            id
                        }
                    };
                    let numbers = Numbers {
                        id,
                        sequence: state.sequence,
                        time: now,
                        filed: filed(message.expires.map(|time| time.0), old.as_ref()),
                    };
                    follow.refile(&numbers, old.as_ref());
                    let head_len = record::encode(message, &numbers, &mut record);
                    let counted = key.len() + record.len() - head_len;
                    state.bytes = state.bytes.saturating_add(counted as u64);
                    table.insert(w, key, &record)?;
                    match old {
                        Some(_) => published.replaced += 1,
                        None => published.created += 1,
                    }
                }
                from = to;
            }
            Ok(())
        })?;
        Ok(published)
    }

    fn change_ids(&mut self, batch: &Batch, follow: &Follow) -> Result<()> {
        if follow.created.is_empty() && follow.removed.is_empty() {
            return Ok(());
        }
        change(self.root, self.w, Part::Ids, &mut |w, table| {
            let mut removed: Vec<u64> = follow.removed.iter().map(|(id, _)| *id).collect();
            removed.sort_unstable();
            for id in removed {
                table.remove(w, &id.to_be_bytes())?;
            }
            let rows = follow.created.iter().map(|(id, index)| {
                let key = batch.key(&batch.changes[*index as usize]);
                (id.to_be_bytes(), key)
            });
            table.extend(w, rows).map(drop)
        })
    }

    fn change_terms(&mut self, batch: &Batch, follow: &Follow) -> Result<()> {
        let removed = follow.removed.iter().map(|entry| (entry, false));
        let created = follow.created.iter().map(|entry| (entry, true));
        let mut all = removed.chain(created).peekable();
        let mut sets = SetChanges::default();
        while all.peek().is_some() {
            while sets.count < SET_CHANGES_MAX {
                let Some(((id, index), is_new)) = all.next() else {
                    break;
                };
                let key = batch.key(&batch.changes[*index as usize]);
                terms::of_key(key, &mut |term| sets.add(term, *id, is_new));
            }
            change(self.root, self.w, Part::Terms, &mut |w, table| {
                sets.apply(w, table)
            })?;
        }
        Ok(())
    }

    fn change_expiry(&mut self, follow: &mut Follow) -> Result<()> {
        if follow.expiry.is_empty() {
            return Ok(());
        }
        follow.expiry.sort_unstable();
        change(self.root, self.w, Part::Expiry, &mut |w, table| {
            for (row, is_new) in &follow.expiry {
                match is_new {
                    true => table.insert(w, row, &[])?,
                    false => table.remove(w, row)?,
                };
            }
            Ok(())
        })
    }

    /// Adds rows to the feed, with sequence numbers after `before`, and removes the oldest rows.
    fn add_to_feed(&mut self, batch: &Batch, follow: &Follow, before: u64) -> Result<()> {
        let (limit, state) = (self.options.feed_changes, &mut *self.state);
        change(self.root, self.w, Part::Feed, &mut |w, table| {
            let skipped = (follow.changed.len() as u64).saturating_sub(limit);
            let mut value = Vec::new();
            let mut rows = (before + 1..).zip(&follow.changed).skip(skipped as usize);
            table.extend_lent(w, |put| {
                rows.try_for_each(|(sequence, (index, is_removed))| {
                    let key = batch.key(&batch.changes[*index as usize]);
                    feed::encode(key, *is_removed, &mut value);
                    put(&sequence.to_be_bytes(), &value)
                })
            })?;
            trim_feed(w, table, limit, state)
        })
    }
}

/// Removes the oldest changes of the feed until `limit` are left. Sequence numbers have no gaps.
pub(super) fn trim_feed<W: PageWrite>(
    w: &mut W,
    table: &mut TableWriter,
    limit: u64,
    state: &mut State,
) -> Result<()> {
    let first = (state.sequence + 1).saturating_sub(limit);
    if first > state.feed_from {
        table.remove_range(w, &[], &first.to_be_bytes())?;
        state.feed_from = first;
    }
    Ok(())
}

/// Size of a message as counted in limits and totals.
fn body_bytes(key: &[u8], message: &Message<'_>, record: &mut Vec<u8>) -> Result<u64> {
    if message.is_plain() {
        return Ok((key.len() + message.payload.len()) as u64);
    }
    let numbers = Numbers {
        id: 0,
        sequence: 0,
        time: 0,
        filed: message.expires.map(|time| time.0),
    };
    let head_len = record::encode(message, &numbers, record);
    Ok((key.len() + record.len() - head_len) as u64)
}

fn within(what: &'static str, now: u64, more: u64, limit: u64) -> Result<()> {
    match now.checked_add(more) {
        Some(all) if all <= limit => Ok(()),
        all => Err(Error::Limit {
            what,
            found: all.unwrap_or(u64::MAX),
            limit,
        }),
    }
}

/// A batch must have fewer than 2^32 changes, because their indexes take four bytes.
const _: () =
    assert!(crate::topics::batch::CHANGES_MAX <= u32::MAX as usize && size_of::<Change>() <= 32);
