//! Replacing and deleting messages.

use crate::containers::codec;
use crate::containers::deletion::Deletion;
use crate::containers::document::Document;
use crate::containers::due::Due;
use crate::containers::keys::{
    MessageKey, behind_container, container_key, deletion_key, trash_key,
};
use crate::containers::latest::Latest;
use crate::containers::message::{
    ContainerMessage, HEAD_BYTES, StoredMessage, counted_bytes, put_head,
};
use crate::containers::parts::{Part, part};
use crate::containers::plan::check_room;
use crate::containers::record::Record;
use crate::containers::resolve::is_protected;
use crate::containers::runs::Runs;
use crate::containers::sweep::read_bounds;
use crate::containers::token::MessageToken;
use crate::containers::write::ContainersWriter;
use tidalite_pager::{PageWrite, Result};
use tidalite_time::Timestamp;

/// The messages from which a call deletes, and the number of messages that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteRange {
    /// The earliest time.
    pub from: Timestamp,
    /// The latest time, inclusive.
    pub to: Timestamp,
    /// Position at which an earlier call stopped.
    pub after: Option<MessageToken>,
    /// Maximum number of messages to read; at least one is read.
    pub examined_max: u64,
    /// Whether messages are only counted.
    pub dry_run: bool,
}

impl Default for DeleteRange {
    /// All times, 10,000 messages a call.
    fn default() -> Self {
        Self {
            from: Timestamp::MIN,
            to: Timestamp::MAX,
            after: None,
            examined_max: 10_000,
            dry_run: false,
        }
    }
}

/// Result of one call that deletes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Number of messages that were deleted, or would be.
    pub messages: u64,
    /// Total bytes of these messages.
    pub bytes: u64,
    /// Number of messages that were read.
    pub examined: u64,
    /// Number of the deletion, if the messages can be restored.
    pub deletion: Option<u64>,
    /// Position at which the next call continues; `None` at the end.
    pub next: Option<MessageToken>,
}

/// Callback that returns whether a message is to be deleted.
pub type SelectMessage<'f> = dyn FnMut(&ContainerMessage<'_>) -> Result<bool> + 'f;

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Replaces the document of a message and sets the latest values of its fields. Time and tie do not change. Returns
    /// the message as it was before; `None`, with nothing changed, if it does not exist or has expired.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `Limit`, `InvalidName` and `InvalidInput` for a document that
    /// cannot be stored, `Limit` for one that the container has no room for; a damaged page, a full disk.
    pub fn replace_message(
        &mut self,
        now: i64,
        container: &str,
        (time, tie): (i64, u32),
        document: &Document,
    ) -> Result<Option<StoredMessage>> {
        let mut record = self.record(container)?;
        let options = record.options(&self.options.defaults).clone();
        let key = MessageKey::new(record.number, time, tie);
        self.work.lookups += 1;
        let old = {
            let w = &*self.w;
            match part(self.root, w, Part::Messages)?.get(w, &key.encode())? {
                Some(found) => StoredMessage::decode(key, &found.bytes()?)?,
                None => return Ok(None),
            }
        };
        if options.is_expired(time, old.is_protected, now) {
            return Ok(None);
        }
        let is_protected = is_protected(&options, document);
        let mut row = Vec::new();
        put_head(is_protected, Timestamp(now), &mut row);
        let encoded = {
            let (w, fields, state) = (&*self.w, &mut self.fields, &self.state);
            let table = part(self.root, w, Part::Fields)?;
            let mut number = |name: &str| fields.number(&table, w, state, name);
            codec::encode(document, &mut number, &mut row)
        };
        let before = record.unprotected();
        record.subtract(old.counted_bytes(), old.is_protected);
        let counted = counted_bytes(row.len() as u64);
        record.add(counted, is_protected);
        let checked = encoded
            .and_then(|()| self.fields.check_limit(&self.state, &self.options))
            .and_then(|()| check_room(&options, before, record.unprotected(), counted));
        if let Err(error) = checked {
            self.fields.discard();
            return Err(error);
        }
        self.fields.store(self.root, self.w, &mut self.state)?;
        record.include(time, is_protected);
        record.changes += 1;
        self.change(Part::Messages, &mut |w, table| {
            table.insert(w, &key.encode(), &row)
        })?;
        self.change(Part::Latest, &mut |w, table| {
            let place = container_key(key.container);
            let stored = table.get(w, &place)?;
            let mut latest = match &stored {
                Some(stored) => Latest::decode(stored)?,
                None => Latest::default(),
            };
            match latest.set(time, &row[HEAD_BYTES..])? {
                true => table.insert(w, &place, &latest.encode()).map(drop),
                false => Ok(()),
            }
        })?;
        self.state.bytes = (self.state.bytes + counted).saturating_sub(old.counted_bytes());
        self.save_record(container, &mut record)?;
        self.save_state()?;
        Ok(Some(old))
    }

    /// Deletes one message. Returns it; `None` if it does not exist or has expired.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged page, a full disk.
    pub fn delete_message(
        &mut self,
        now: i64,
        container: &str,
        (time, tie): (i64, u32),
    ) -> Result<Option<StoredMessage>> {
        // The first row after all smaller ties of this time is the message, if it exists.
        let before = tie.checked_sub(1);
        let range = DeleteRange {
            from: Timestamp(time),
            to: Timestamp(time),
            after: before.map(|before| MessageToken::behind(MessageKey::new(0, time, before))),
            examined_max: 1,
            dry_run: false,
        };
        let mut found = None;
        self.delete_messages(now, container, &range, &mut |message| {
            if message.key.tie == tie {
                found = Some(message.to_stored());
            }
            Ok(found.is_some())
        })?;
        Ok(found)
    }

    /// Deletes the messages of a range that `select` selects, a bounded number in one call. Expired messages are left
    /// to `maintain`. `select` sees each message before it is deleted, so that a caller can update its own data. The
    /// latest values of fields do not change.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; errors of `select`, before anything has changed; a damaged page,
    /// a full disk.
    ///
    /// # Cost
    /// Reads up to `examined_max` messages. Needs memory for the deleted messages if they can be restored, otherwise
    /// for runs of their keys.
    pub fn delete_messages(
        &mut self,
        now: i64,
        container: &str,
        range: &DeleteRange,
        select: &mut SelectMessage<'_>,
    ) -> Result<Deleted> {
        let mut record = self.record(container)?;
        let keep = record.options(&self.options.defaults).keep_deleted_ns();
        let mut found = Selected::default();
        let next = self.select(now, &mut record, range, (select, keep > 0), &mut found)?;
        let mut deleted = Deleted {
            messages: found.messages,
            bytes: found.bytes,
            examined: found.examined,
            deletion: None,
            next,
        };
        if range.dry_run || found.runs.is_empty() {
            return Ok(deleted);
        }
        self.change(Part::Messages, &mut |w, table| found.runs.remove(w, table))?;
        if keep > 0 {
            let number = self.state.next_deletion;
            deleted.deletion = Some(number);
            let deletion = Deletion {
                number,
                deleted_at: Timestamp(now),
                free_at: Timestamp(now.saturating_add(keep)),
                messages: found.messages,
                bytes: found.bytes,
            };
            self.put_deletion(record.number, &deletion, &found.rows)?;
        }
        record.changes += found.messages;
        read_bounds(self.root, &*self.w, &mut record)?;
        self.state.messages = self.state.messages.saturating_sub(found.messages);
        self.state.bytes = self.state.bytes.saturating_sub(found.bytes);
        self.save_record(container, &mut record)?;
        self.save_state()?;
        Ok(deleted)
    }

    /// Reads messages, collects the selected ones, and subtracts these from the counts of the record.
    fn select(
        &self,
        now: i64,
        record: &mut Record,
        range: &DeleteRange,
        (select, keeps_rows): (&mut SelectMessage<'_>, bool),
        found: &mut Selected,
    ) -> Result<Option<MessageToken>> {
        let options = record.options(&self.options.defaults).clone();
        let w = &*self.w;
        let mut rows = part(self.root, w, Part::Messages)?.cursor(w)?;
        let start = Self::start_of(record.number, range.from.0);
        let after = range.after.map(|after| {
            let key = MessageKey {
                container: record.number,
                ..after.key
            };
            key.encode()
        });
        let mut there = match after {
            Some(after) if after >= start => rows.seek_gt(&after)?,
            _ => rows.seek_ge(&start)?,
        };
        let mut last = range.after;
        let mut follows = false;
        while there && rows.key() < &behind_container(record.number)[..] {
            let key = MessageKey::decode(rows.key())?;
            if key.time > range.to {
                break;
            }
            if found.examined >= range.examined_max.max(1) {
                return Ok(Some(last.unwrap_or(MessageToken::behind(key))));
            }
            found.examined += 1;
            last = Some(MessageToken::behind(key));
            let value = rows.value()?;
            let row = value.bytes()?;
            let message = ContainerMessage::decode(key, &row)?;
            let is_expired = options.is_expired(key.time.0, message.is_protected, now);
            let is_selected = !is_expired && select(&message)?;
            if is_selected {
                let bytes = counted_bytes(value.len());
                record.subtract(bytes, message.is_protected);
                found.messages += 1;
                found.bytes += bytes;
                found.runs.push(key.encode(), follows);
                if keeps_rows && !range.dry_run {
                    found.rows.push((key, row.to_vec()));
                }
            }
            follows = is_selected;
            there = rows.next()?;
        }
        Ok(None)
    }

    /// Stores deleted messages so that they can be restored. The caller stores the state.
    fn put_deletion(
        &mut self,
        container: u32,
        deletion: &Deletion,
        rows: &[(MessageKey, Vec<u8>)],
    ) -> Result<()> {
        self.state.next_deletion += 1;
        self.state.deleted_messages += deletion.messages;
        self.state.deleted_bytes += deletion.bytes;
        self.change(Part::Trash, &mut |w, table| {
            let rows = rows.iter();
            let rows = rows.map(|(key, row)| (trash_key(deletion.number, *key), row));
            table.extend(w, rows).map(drop)
        })?;
        self.change(Part::Deletions, &mut |w, table| {
            let key = deletion_key(container, deletion.number);
            table.insert(w, &key, &deletion.encode())
        })?;
        self.change(Part::Due, &mut |w, table| {
            let due = Due::of_deletion(deletion.free_at.0, container, deletion.number);
            table.insert(w, &due.encode(), &[]).map(drop)
        })
    }
}

/// Messages that are selected to be deleted.
#[derive(Default)]
struct Selected {
    messages: u64,
    bytes: u64,
    examined: u64,
    runs: Runs,
    /// The rows of the messages, if they can be restored.
    rows: Vec<(MessageKey, Vec<u8>)>,
}
