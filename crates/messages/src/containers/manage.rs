//! Creating, dropping, restoring and renaming containers, and changing their options.
//!
//! A dropped container that can be restored keeps its number and all its rows except its name and its row in `Due`; its
//! record moves to the part `Dropped`. When a container is removed for good, its rows are removed as ranges, and its
//! number is not used again.

use crate::containers::deletion::Deletion;
use crate::containers::due::{Due, Kind, NEVER};
use crate::containers::keys::{
    MessageKey, behind_container, container_key, deletion_key, dropped_key, dropped_prefix,
    split_deletion, split_dropped,
};
use crate::containers::options::{ContainerOptions, check_name};
use crate::containers::parts::{Part, damaged, part, within};
use crate::containers::record::{DroppedRecord, Record};
use crate::containers::state::NUMBERS_MAX;
use crate::containers::write::ContainersWriter;
use tidalite_pager::{Error, PageWrite, Refusal, Result};
use tidalite_time::Timestamp;

/// A container that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedContainer {
    /// The name that it had before.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// Number of its messages.
    pub messages: u64,
    /// Total bytes of these messages.
    pub bytes: u64,
    /// Time at which it was dropped.
    pub dropped_at: Timestamp,
    /// Time from which it can no longer be restored; `None` if it cannot be restored at all.
    pub free_at: Option<Timestamp>,
}

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Creates a container and returns its number. Without options of its own it uses the default options of the table.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that a container has; `InvalidName` for one that cannot be used; `InvalidInput` for
    /// options that cannot be used; `Limit` for a long name and too many containers; a damaged page, a full disk.
    pub fn create_container(
        &mut self,
        now: i64,
        name: &str,
        options: Option<ContainerOptions>,
    ) -> Result<u32> {
        self.check_new_name(name)?;
        if let Some(options) = &options {
            options.check()?;
        }
        self.check_room_for_container()?;
        let number = self.state.next_container;
        within(
            "numbers of containers",
            u64::from(number) + 1,
            NUMBERS_MAX.into(),
        )?;
        let mut record = Record::new(number, now);
        record.options = options;
        self.state.next_container += 1;
        self.state.containers += 1;
        self.put_number(number, name)?;
        self.save_record(name, &mut record)?;
        self.save_state()?;
        Ok(number)
    }

    fn check_new_name(&self, name: &str) -> Result<()> {
        check_name(name)?;
        match self.find_record(name)? {
            None => Ok(()),
            Some(_) => Err(Error::refused(
                Refusal::AlreadyExists,
                format!("the container {name:?}, which exists"),
                "a new name",
            )),
        }
    }

    fn check_room_for_container(&self) -> Result<()> {
        let limit = self.options.containers_max.into();
        within("containers of a table", self.state.containers + 1, limit)
    }

    fn put_number(&mut self, number: u32, name: &str) -> Result<()> {
        self.change(Part::Numbers, &mut |w, table| {
            table
                .insert(w, &container_key(number), name.as_bytes())
                .map(drop)
        })
    }

    /// Changes the options of a container; `None` selects the default options of the table. They also apply to messages
    /// that are already stored: `maintain` then removes expired and surplus messages.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `InvalidInput` for options that cannot be used; a damaged page,
    /// a full disk.
    pub fn set_options(&mut self, name: &str, options: Option<ContainerOptions>) -> Result<()> {
        if let Some(options) = &options {
            options.check()?;
        }
        let mut record = self.record(name)?;
        record.options = options;
        self.save_record(name, &mut record)
    }

    /// Renames a container. Its number does not change.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `AlreadyExists` for a new name that a container has;
    /// `InvalidName` for one that cannot be used; `Limit` for a long name; a damaged page, a full disk.
    pub fn rename(&mut self, name: &str, new_name: &str) -> Result<()> {
        let mut record = self.record(name)?;
        self.check_new_name(new_name)?;
        self.change(Part::Containers, &mut |w, table| {
            table.remove(w, name.as_bytes())
        })?;
        self.put_number(record.number, new_name)?;
        self.save_record(new_name, &mut record)
    }

    /// Drops a container with its contents. It can be restored for as long as its options keep deleted messages.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged page, a full disk.
    ///
    /// # Cost
    /// A few rows if the container can be restored. Otherwise its rows are removed as ranges: pages are freed without
    /// being read, unless they hold documents that are stored outside the leaves.
    pub fn drop_container(&mut self, now: i64, name: &str) -> Result<DroppedContainer> {
        let mut record = self.record(name)?;
        let number = record.number;
        let keep = record.options(&self.options.defaults).keep_deleted_ns();
        let mut dropped = DroppedContainer {
            name: name.to_owned(),
            number,
            messages: record.messages,
            bytes: record.bytes,
            dropped_at: Timestamp(now),
            free_at: None,
        };
        self.refile(&[(number, record.due, NEVER)])?;
        record.due = NEVER;
        self.change(Part::Containers, &mut |w, table| {
            table.remove(w, name.as_bytes())
        })?;
        self.state.containers = self.state.containers.saturating_sub(1);
        self.state.messages = self.state.messages.saturating_sub(record.messages);
        self.state.bytes = self.state.bytes.saturating_sub(record.bytes);
        if keep == 0 {
            self.remove_rows(number)?;
        } else {
            let free_at = now.saturating_add(keep);
            dropped.free_at = Some(Timestamp(free_at));
            let row = DroppedRecord {
                dropped_at: now,
                free_at,
                record,
            };
            self.change(Part::Dropped, &mut |w, table| {
                table.insert(w, &dropped_key(name, number), &row.encode())
            })?;
            self.change(Part::Due, &mut |w, table| {
                let due = Due::new(free_at, Kind::Dropped, number);
                table.insert(w, &due.encode(), &[])
            })?;
        }
        self.save_state()?;
        Ok(dropped)
    }

    /// Removes all rows that belong to a container except its record and its row in `Due`. Times of idempotency keys
    /// remain until they are due. The caller stores the state.
    pub(crate) fn remove_rows(&mut self, number: u32) -> Result<()> {
        let (from, to) = (container_key(number), behind_container(number));
        let mut dues = Vec::new();
        {
            let w = &*self.w;
            let mut rows = part(self.root, w, Part::Deletions)?.cursor(w)?;
            let mut there = rows.seek_ge(&from)?;
            while there && rows.key() < &to[..] {
                let (_, deletion) = split_deletion(rows.key())?;
                let found = Deletion::decode(deletion, &rows.value()?.bytes()?)?;
                dues.push(Due::of_deletion(found.free_at.0, number, deletion).encode());
                let state = &mut self.state;
                state.deleted_messages = state.deleted_messages.saturating_sub(found.messages);
                state.deleted_bytes = state.deleted_bytes.saturating_sub(found.bytes);
                there = rows.next()?;
            }
        }
        if !dues.is_empty() {
            self.change(Part::Due, &mut |w, table| {
                dues.iter()
                    .try_for_each(|due| table.remove(w, due).map(drop))
            })?;
        }
        for of in [
            Part::Messages,
            Part::Latest,
            Part::Seen,
            Part::Deletions,
            Part::Trash,
            Part::Thinning,
            Part::Numbers,
        ] {
            let is_empty = part(self.root, &*self.w, of)?.is_empty();
            if !is_empty {
                self.change(of, &mut |w, table| table.remove_range(w, &from, &to))?;
            }
        }
        Ok(())
    }

    /// Restores the container with this name that was dropped last, with all its messages, under the same name or a new
    /// one.
    ///
    /// # Errors
    /// `NotFound` if no dropped container of this name can be restored; `AlreadyExists` for a new name that a container
    /// has; `InvalidName` for one that cannot be used; `Limit` for a long name and too many containers; a damaged page,
    /// a full disk.
    pub fn restore_container(&mut self, now: i64, name: &str, new_name: &str) -> Result<u32> {
        let mut newest: Option<DroppedRecord> = None;
        {
            let (w, prefix) = (&*self.w, dropped_prefix(name));
            let mut rows = part(self.root, w, Part::Dropped)?.cursor(w)?;
            let mut there = rows.seek_ge(&prefix)?;
            while there && rows.key().starts_with(&prefix) {
                split_dropped(rows.key())?;
                let found = DroppedRecord::decode(&rows.value()?.bytes()?)?;
                let order = |row: &DroppedRecord| (row.dropped_at, row.record.number);
                let is_newer = newest
                    .as_ref()
                    .is_none_or(|newest| order(newest) < order(&found));
                if found.free_at > now && is_newer {
                    newest = Some(found);
                }
                there = rows.next()?;
            }
        }
        let Some(DroppedRecord {
            free_at,
            mut record,
            ..
        }) = newest
        else {
            return Err(Error::refused(
                Refusal::NotFound,
                format!("the dropped container {name:?}, which cannot be restored"),
                "a container that was dropped and not removed yet",
            ));
        };
        self.check_new_name(new_name)?;
        self.check_room_for_container()?;
        let number = record.number;
        self.change(Part::Dropped, &mut |w, table| {
            table.remove(w, &dropped_key(name, number))
        })?;
        self.change(Part::Due, &mut |w, table| {
            table.remove(w, &Due::new(free_at, Kind::Dropped, number).encode())
        })?;
        if new_name != name {
            self.put_number(number, new_name)?;
        }
        self.state.containers += 1;
        self.state.messages += record.messages;
        self.state.bytes += record.bytes;
        self.save_record(new_name, &mut record)?;
        self.save_state()?;
        Ok(number)
    }

    /// Removes a deletion: its messages can no longer be restored. The caller stores the state.
    pub(crate) fn remove_deletion(
        &mut self,
        (container, deletion): (u32, u64),
        free_at: i64,
    ) -> Result<u64> {
        let key = deletion_key(container, deletion);
        let found = {
            let w = &*self.w;
            match part(self.root, w, Part::Deletions)?.get(w, &key)? {
                Some(found) => Deletion::decode(deletion, &found.bytes()?)?,
                None => return Err(damaged("deletion", "no row", "the row of work that is due")),
            }
        };
        if found.free_at.0 != free_at {
            return Err(damaged("time of a deletion", found.free_at.0, free_at));
        }
        let end = deletion_key(container, deletion.saturating_add(1));
        self.change(Part::Trash, &mut |w, table| {
            table.remove_range(w, &key, &end)
        })?;
        self.change(Part::Deletions, &mut |w, table| table.remove(w, &key))?;
        self.change(Part::Due, &mut |w, table| {
            let due = Due::of_deletion(found.free_at.0, container, deletion);
            table.remove(w, &due.encode())
        })?;
        let state = &mut self.state;
        state.deleted_messages = state.deleted_messages.saturating_sub(found.messages);
        state.deleted_bytes = state.deleted_bytes.saturating_sub(found.bytes);
        Ok(found.messages)
    }

    /// The smallest key that a message of a container can have at this time.
    pub(crate) fn start_of(number: u32, time: i64) -> [u8; 16] {
        MessageKey::new(number, time, 0).encode()
    }
}
