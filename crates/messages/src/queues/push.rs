//! Pushing messages: idempotency, overflow, and the first state of each message in each group.

use crate::queues::edit::Edit;
use crate::queues::keys;
use crate::queues::message::{Head, NewMessage};
use crate::queues::options::{BATCH_MAX, IDS_MAX, Overflow, check_limit};
use crate::queues::parts::{Part, change, damaged};
use crate::queues::seen::{self, Seen};
use crate::queues::sets::SetChanges;
use crate::queues::store::heads_while;
use crate::queues::writer::QueueWriter;
use std::collections::HashMap;
use tidalite_pager::{Error, PageWrite, Result};

/// Number of oldest messages that a full queue removes at a time.
const DROP_STEP: usize = 1024;

/// The result of pushing one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The message is stored under this id.
    Stored(u64),
    /// The idempotency key was seen within the window, with the message that has this id; nothing is stored.
    Repeated(u64),
    /// The queue is full and drops the newest messages: nothing is stored.
    Dropped,
}

/// Messages that are about to be stored, with the first id.
#[derive(Default)]
struct Batch<'m, 'n> {
    messages: Vec<(&'n NewMessage<'m>, Head)>,
    bytes: u64,
}

impl<W: PageWrite> QueueWriter<'_, W> {
    /// Pushes one message: see [`push_many`](Self::push_many).
    ///
    /// # Errors
    /// As for `push_many`.
    pub fn push(&mut self, message: &NewMessage<'_>, now: i64) -> Result<Pushed> {
        let answers = self.push_many(std::slice::from_ref(message), now)?;
        Ok(answers.first().copied().unwrap_or(Pushed::Dropped))
    }

    /// Pushes messages, at most [`BATCH_MAX`], in order; returns a result for each.
    ///
    /// # Errors
    /// `Limit` for a message or a batch that is too large, and for a full queue that rejects messages: then no message
    /// is stored. `DiskFull`, `Io`; a damaged page.
    ///
    /// # Cost
    /// A row for each message, appended in bulk, and for each group one or two rows for up to 65,536 messages. A
    /// message with an ordering key, a delay, an expiry or an idempotency key needs one to four additional rows.
    pub fn push_many(&mut self, messages: &[NewMessage<'_>], now: i64) -> Result<Vec<Pushed>> {
        check_limit("messages of a batch", messages.len(), BATCH_MAX)?;
        if messages.len() as u64 > IDS_MAX - self.state.next_id {
            return Err(Error::Limit {
                what: "messages that a queue has ever had",
                found: self.state.next_id,
                limit: IDS_MAX,
            });
        }
        let mut heads = Vec::with_capacity(messages.len());
        for message in messages {
            let bytes = message.check()?;
            if self.options.is_over(1, bytes) {
                return Err(self.full(1, bytes));
            }
            heads.push(message.head(now, bytes));
        }
        let window = self.options.window_ns();
        let mut answers = Vec::with_capacity(messages.len());
        let mut new_keys: HashMap<&[u8], u64> = HashMap::new();
        let mut next_id = self.state.next_id;
        let (mut repeated, mut dropped) = (0, 0);
        let (mut stored, mut stored_bytes) = (self.messages()?, self.state.bytes);
        let mut batch = Batch::default();
        for (message, head) in messages.iter().zip(heads) {
            let key = message.idempotency_key.filter(|_| window > 0);
            if let Some(key) = key {
                let found = match new_keys.get(key) {
                    Some(id) => Some(*id),
                    None => seen::find(self.root, &*self.w, key, window, now)?,
                };
                if let Some(id) = found {
                    repeated += 1;
                    answers.push(Pushed::Repeated(id));
                    continue;
                }
            }
            let bytes = stored_bytes.saturating_add(head.bytes);
            match self.options.overflow {
                Overflow::Reject if self.options.is_over(stored + 1, bytes) => {
                    return Err(self.full(stored + 1, bytes));
                }
                Overflow::DropNewest if self.options.is_over(stored + 1, bytes) => {
                    dropped += 1;
                    answers.push(Pushed::Dropped);
                    continue;
                }
                Overflow::DropOldest => {
                    let count = batch.messages.len() as u64 + 1;
                    if self.options.is_over(count, batch.bytes + head.bytes) {
                        self.store_batch(&std::mem::take(&mut batch), now)?;
                    }
                }
                _ => {}
            }
            (stored, stored_bytes) = (stored + 1, bytes);
            batch.bytes += head.bytes;
            batch.messages.push((message, head));
            if let Some(key) = key {
                new_keys.insert(key, next_id);
            }
            answers.push(Pushed::Stored(next_id));
            next_id += 1;
        }
        self.store_batch(&batch, now)?;
        self.state.repeated += repeated;
        self.state.dropped_newest += dropped;
        self.save_state()?;
        Ok(answers)
    }

    fn full(&self, messages: u64, bytes: u64) -> Error {
        match self.options.messages_max {
            Some(limit) if messages > limit => Error::Limit {
                what: "messages of a queue",
                found: messages,
                limit,
            },
            _ => Error::Limit {
                what: "bytes of a queue",
                found: bytes,
                limit: self.options.bytes_max.unwrap_or(u64::MAX),
            },
        }
    }

    /// Stores messages. If the queue drops the oldest messages, makes room first.
    fn store_batch(&mut self, batch: &Batch<'_, '_>, now: i64) -> Result<()> {
        if batch.messages.is_empty() {
            return Ok(());
        }
        if self.options.overflow == Overflow::DropOldest {
            self.make_room(batch.messages.len() as u64, batch.bytes, now)?;
        }
        let first = self.state.next_id;
        let count = batch.messages.len() as u64;
        let ids = || (first..).zip(&batch.messages);
        change(self.root, self.w, Part::Messages, &mut |w, table| {
            table.extend_lent(w, |put| {
                let mut bytes = Vec::new();
                for (id, (message, _)) in ids() {
                    message.encode(now, &mut bytes);
                    put(&id.to_be_bytes(), &bytes)?;
                }
                Ok(())
            })
        })?;
        self.state.next_id = first + count;
        self.state.pushed += count;
        self.state.bytes += batch.bytes;
        let mut expiry = SetChanges::default();
        for (id, (_, head)) in ids() {
            if let Some(expires) = head.expires {
                expiry.add(Part::Expiry, &keys::expiry(expires, id), id);
            }
        }
        expiry.store(self.root, self.w)?;
        if self.options.window_ns() > 0 {
            let seen: Vec<Seen<'_>> = ids()
                .filter_map(|(id, (message, _))| {
                    let key = message.idempotency_key?;
                    Some(Seen { key, time: now, id })
                })
                .collect();
            if !seen.is_empty() {
                let window = self.options.window_ns();
                seen::add(self.root, self.w, &seen, window, now)?;
            }
        }
        let groups: Vec<_> = self
            .groups
            .iter()
            .filter(|(_, group)| !group.is_dropped)
            .map(|(name, group)| (name.clone(), *group))
            .collect();
        for (name, group) in groups {
            let mut edit = Edit::new(group);
            for (id, (_, head)) in ids() {
                edit.begin(self.root, &*self.w, id, head, now)?;
            }
            self.store(&name, edit, now)?;
        }
        Ok(())
    }

    /// Removes the oldest messages until there is room for the given number of messages and bytes.
    fn make_room(&mut self, messages: u64, bytes: u64, now: i64) -> Result<()> {
        loop {
            let before = self.messages()?;
            let (mut stored, mut stored_bytes) = (before, self.state.bytes);
            let is_over = |stored, stored_bytes: u64| {
                self.options
                    .is_over(stored + messages, stored_bytes.saturating_add(bytes))
            };
            if !is_over(stored, stored_bytes) {
                return Ok(());
            }
            let oldest = heads_while(self.root, &*self.w, 0, DROP_STEP, &mut |head| {
                let is_needed = is_over(stored, stored_bytes);
                stored = stored.saturating_sub(1);
                stored_bytes = stored_bytes.saturating_sub(head.bytes);
                is_needed
            })?;
            if oldest.is_empty() {
                return Ok(());
            }
            self.remove_everywhere(&oldest, now)?;
            self.state.dropped_oldest += oldest.len() as u64;
            // In a damaged table the rows may be out of order, so that no row is found by its key.
            if self.messages()? >= before {
                let found = "messages that cannot be removed";
                return Err(damaged("queue", found, "messages in order"));
            }
        }
    }
}
