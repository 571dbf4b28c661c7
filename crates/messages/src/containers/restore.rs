//! Restoring deleted messages.

use crate::containers::deletion::Deletion;
use crate::containers::due::Due;
use crate::containers::keys::{
    MessageKey, behind_container, deletion_key, split_deletion, split_trash, trash_key,
};
use crate::containers::message::StoredMessage;
use crate::containers::options::{ContainerOptions, OnDuplicate};
use crate::containers::parts::{Part, part};
use crate::containers::record::Record;
use crate::containers::write::ContainersWriter;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_pager::{PageWrite, Result};
use tidalite_time::Timestamp;

/// A deleted message: the number of the deletion, and the key that the message had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedPlace {
    /// Number of the deletion.
    pub deletion: u64,
    /// Key of the message.
    pub key: MessageKey,
}

/// The deleted messages that a call restores, and the number of messages that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreRange {
    /// The earliest time of the messages.
    pub from: Timestamp,
    /// Their latest time, inclusive.
    pub to: Timestamp,
    /// The earliest time of the deletion.
    pub deleted_from: Timestamp,
    /// Position at which an earlier call stopped.
    pub after: Option<DeletedPlace>,
    /// Maximum number of deleted messages to read; at least one is read.
    pub examined_max: u64,
}

impl Default for RestoreRange {
    /// All messages, 10,000 a call.
    fn default() -> Self {
        Self {
            from: Timestamp::MIN,
            to: Timestamp::MAX,
            deleted_from: Timestamp::MIN,
            after: None,
            examined_max: 10_000,
        }
    }
}

/// Result of one call that restores messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The messages that were restored. With `OnDuplicate::KeepAll` their ties may differ from before.
    pub messages: Vec<StoredMessage>,
    /// Number of messages that remain deleted, because they would have expired or because another message has their
    /// time and tie.
    pub skipped: u64,
    /// Position at which the next call continues; `None` at the end.
    pub next: Option<DeletedPlace>,
}

/// A deleted message that is restored.
struct Found {
    place: DeletedPlace,
    message: StoredMessage,
}

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Restores deleted messages of a container, beginning with the last deletion. The limits of the container do not
    /// prevent this, but messages that exceed them are rotated later. The latest values of fields do not change:
    /// deletions have not removed them.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged page, a full disk.
    ///
    /// # Cost
    /// Reads up to `examined_max` deleted messages, with one lookup for each, and keeps them in memory.
    pub fn restore_messages(
        &mut self,
        now: i64,
        container: &str,
        range: &RestoreRange,
    ) -> Result<Restored> {
        let mut record = self.record(container)?;
        let options = record.options(&self.options.defaults).clone();
        let (mut found, mut restored) = (Vec::new(), Restored::default());
        self.find_deleted(now, &record, &options, range, (&mut found, &mut restored))?;
        if found.is_empty() {
            return Ok(restored);
        }
        let mut left: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for Found { place, message } in &found {
            let counted = message.counted_bytes();
            record.add(counted, message.is_protected);
            record.include(message.key.time.0, message.is_protected);
            record.changes += 1;
            let (messages, bytes) = left.entry(place.deletion).or_default();
            *messages += 1;
            *bytes += counted;
            self.state.messages += 1;
            self.state.bytes += counted;
        }
        self.change(Part::Messages, &mut |w, table| {
            for Found { message, .. } in &found {
                table.insert(w, &message.key.encode(), &message.encode())?;
            }
            Ok(())
        })?;
        self.change(Part::Trash, &mut |w, table| {
            for Found { place, .. } in &found {
                table.remove(w, &trash_key(place.deletion, place.key))?;
            }
            Ok(())
        })?;
        self.shrink_deletions(record.number, &left)?;
        self.save_record(container, &mut record)?;
        self.save_state()?;
        restored.messages = found.into_iter().map(|found| found.message).collect();
        Ok(restored)
    }

    /// Reads deleted messages, the last deletion first, and finds the restorable ones.
    fn find_deleted(
        &mut self,
        now: i64,
        record: &Record,
        options: &ContainerOptions,
        range: &RestoreRange,
        (found, restored): (&mut Vec<Found>, &mut Restored),
    ) -> Result<()> {
        let number = record.number;
        let w = &*self.w;
        let mut deletions = part(self.root, w, Part::Deletions)?.cursor(w)?;
        let mut rows = part(self.root, w, Part::Trash)?.cursor(w)?;
        let messages = part(self.root, w, Part::Messages)?;
        let mut stored = messages.cursor(w)?;
        // Keys that are assigned to messages of this call.
        let mut taken: BTreeSet<MessageKey> = BTreeSet::new();
        let (mut examined, mut last) = (0, range.after);
        let mut there = match range.after {
            Some(after) => deletions.seek_le(&deletion_key(number, after.deletion))?,
            None => deletions.seek_lt(&behind_container(number))?,
        };
        while there {
            let (of, deletion) = split_deletion(deletions.key())?;
            if of != number {
                return Ok(());
            }
            let row = Deletion::decode(deletion, &deletions.value()?.bytes()?)?;
            if row.deleted_at < range.deleted_from || row.free_at.0 <= now {
                there = deletions.previous()?;
                continue;
            }
            let start = trash_key(deletion, MessageKey::new(number, range.from.0, 0));
            let resumed = range.after.filter(|after| after.deletion == deletion);
            let mut has_row = match resumed {
                Some(after) => {
                    let key = MessageKey {
                        container: number,
                        ..after.key
                    };
                    rows.seek_gt(&trash_key(deletion, key))?
                }
                None => rows.seek_ge(&start)?,
            };
            while has_row {
                let (found_deletion, key) = split_trash(rows.key())?;
                let is_within = (key.container, found_deletion) == (number, deletion);
                if !is_within || key.time > range.to {
                    break;
                }
                if examined >= range.examined_max.max(1) {
                    restored.next = last;
                    return Ok(());
                }
                examined += 1;
                let place = DeletedPlace { deletion, key };
                last = Some(place);
                let mut message = StoredMessage::decode(key, &rows.value()?.bytes()?)?;
                let is_expired = options.is_expired(key.time.0, message.is_protected, now);
                let is_taken = taken.contains(&key) || messages.contains(w, &key.encode())?;
                let new_tie = match (is_taken, options.on_duplicate) {
                    (false, _) => Some(key.tie),
                    (true, OnDuplicate::KeepAll) => {
                        let last = MessageKey::new(number, key.time.0, u32::MAX);
                        stored.seek_le(&last.encode())?;
                        let stored_tie = match stored.is_at_row() {
                            true => MessageKey::decode(stored.key())?,
                            false => key,
                        };
                        let same = taken.range(MessageKey { tie: 0, ..last }..=last);
                        let ties = same.chain([&stored_tie]);
                        let ties = ties
                            .filter(|other| (other.container, other.time) == (number, key.time));
                        ties.map(|other| other.tie)
                            .max()
                            .unwrap_or(key.tie)
                            .checked_add(1)
                    }
                    _ => None,
                };
                match new_tie.filter(|_| !is_expired) {
                    Some(tie) => {
                        message.key.tie = tie;
                        taken.insert(message.key);
                        found.push(Found { place, message });
                    }
                    None => restored.skipped += 1,
                }
                has_row = rows.next()?;
            }
            there = deletions.previous()?;
        }
        Ok(())
    }

    /// Subtracts restored messages from their deletions; removes deletions that become empty.
    fn shrink_deletions(&mut self, container: u32, left: &BTreeMap<u64, (u64, u64)>) -> Result<()> {
        let mut gone = Vec::new();
        let (mut messages, mut bytes) = (0, 0);
        self.change(Part::Deletions, &mut |w, table| {
            for (deletion, counts) in left {
                let key = deletion_key(container, *deletion);
                let Some(row) = table.get(w, &key)? else {
                    continue;
                };
                let mut row = Deletion::decode(*deletion, &row)?;
                row.messages = row.messages.saturating_sub(counts.0);
                row.bytes = row.bytes.saturating_sub(counts.1);
                (messages, bytes) = (messages + counts.0, bytes + counts.1);
                match row.messages {
                    0 => {
                        table.remove(w, &key)?;
                        gone.push(Due::of_deletion(row.free_at.0, container, *deletion).encode());
                    }
                    _ => drop(table.insert(w, &key, &row.encode())?),
                }
            }
            Ok(())
        })?;
        let state = &mut self.state;
        state.deleted_messages = state.deleted_messages.saturating_sub(messages);
        state.deleted_bytes = state.deleted_bytes.saturating_sub(bytes);
        if gone.is_empty() {
            return Ok(());
        }
        self.change(Part::Due, &mut |w, table| {
            gone.iter()
                .try_for_each(|due| table.remove(w, due).map(drop))
        })
    }
}
