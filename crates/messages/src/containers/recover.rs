//! Recovery of a table of containers that may have lost parts: everything except the options of the table is rebuilt
//! from the records, the messages and the deleted messages.
//!
//! ```text
//! fields      names and numbers are taken from both tables; numbers without a name get one
//! records     decodable records are kept; lost ones are created again from the table of numbers or from messages
//! messages    undecodable ones are removed; counts and times of the records are computed again
//! latest      the stored values, and newer values of messages
//! deletions   counted again from the deleted messages
//! all others  written again
//! ```

use crate::containers::codec::raw_fields;
use crate::containers::deletion::Deletion;
use crate::containers::due::{Due, Kind, NEVER};
use crate::containers::keys::{
    MessageKey, behind_container, container_key, container_of, deletion_key, dropped_key,
};
use crate::containers::latest::{Entry, Latest};
use crate::containers::message::{StoredMessage, counted_bytes};
use crate::containers::options::ContainerTableOptions;
use crate::containers::parts::{Part, part, row};
use crate::containers::record::Record;
use crate::containers::recovery::{Containers, ContainersRecovery, Fields};
use crate::containers::state::State;
use crate::containers::thinning::ThinningRow;
use crate::containers::write::ContainersWriter;
use std::collections::BTreeMap;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageWrite, Result};

impl<'a, W: PageWrite> ContainersWriter<'a, W> {
    /// Opens a table of containers that may have lost parts, and rebuilds the lost parts from the rest. Latest values
    /// that no stored message has, and idempotency keys, are kept as far as they can be decoded.
    ///
    /// # Errors
    /// A damaged page, a full disk. If the options of the table are lost, it gets the default ones.
    ///
    /// # Cost
    /// Reads everything, and writes all parts except the messages. Needs memory for the record of each container and
    /// each deletion.
    pub fn recover(
        root: &'a mut Tree,
        w: &'a mut W,
        now: i64,
    ) -> Result<(Self, ContainersRecovery)> {
        let stored = row(root, &*w, Part::Options);
        let stored = stored.and_then(|row| ContainerTableOptions::decode(&row));
        let (options, has_lost_options) = match stored {
            Ok(options) => (options, false),
            Err(Error::Corrupt(_)) => (ContainerTableOptions::default(), true),
            Err(error) => return Err(error),
        };
        if has_lost_options {
            root.insert(w, &Part::Options.key(), &options.encode())?;
        }
        let old = row(root, &*w, Part::State).and_then(|row| State::decode(&row));
        let mut table = Self {
            state: State::default(),
            options,
            root,
            w,
            fields: Default::default(),
            work: Default::default(),
        };
        let mut recovery = ContainersRecovery {
            has_lost_options,
            ..ContainersRecovery::default()
        };
        let pages = (&*table.root, &*table.w);
        let mut fields = Fields::read(pages)?;
        let mut containers = Containers::read(pages, now)?;
        table.recover_messages(&mut containers, &mut fields, &mut recovery)?;
        let deletions = table.recover_deletions(now, &containers, &mut fields, &mut recovery)?;
        table.recover_seen(&containers)?;
        recovery.made_anew = containers.made_anew;
        recovery.fields_made_anew = fields.made_anew;
        if let Ok(old) = old {
            table.state.next_container = old.next_container;
            table.state.next_field = old.next_field;
            table.state.next_deletion = old.next_deletion;
        }
        table.write_fields(&fields)?;
        table.write_records(containers, &deletions)?;
        table.save_state()?;
        recovery.containers = table.state.containers;
        recovery.messages = table.state.messages;
        Ok((table, recovery))
    }

    /// Counts the messages, removes undecodable ones, and updates latest values.
    fn recover_messages(
        &mut self,
        containers: &mut Containers,
        fields: &mut Fields,
        recovery: &mut ContainersRecovery,
    ) -> Result<()> {
        let mut wrong: Vec<Vec<u8>> = Vec::new();
        {
            let w = &*self.w;
            let mut rows = part(self.root, w, Part::Messages)?.cursor(w)?;
            let mut there = rows.first()?;
            while there {
                let decoded = MessageKey::decode(rows.key()).and_then(|key| {
                    let value = rows.value()?;
                    let message = StoredMessage::decode(key, &value.bytes()?)?;
                    Ok((message, value.len()))
                });
                let decoded = decoded.ok().filter(|(message, _)| {
                    fields.accept(&message.document) && containers.accept(message.key.container)
                });
                match decoded {
                    Some((message, len)) => {
                        if let Some(record) = containers.record(message.key.container) {
                            record.add(counted_bytes(len), message.is_protected);
                            record.include(message.key.time.0, message.is_protected);
                        }
                    }
                    None => wrong.push(rows.key().to_vec()),
                }
                there = rows.next()?;
            }
        }
        recovery.removed += wrong.len() as u64;
        self.remove_keys(Part::Messages, &wrong)?;
        let mut lost = Vec::new();
        {
            let w = &*self.w;
            let mut rows = part(self.root, w, Part::Latest)?.cursor(w)?;
            let mut there = rows.first()?;
            while there {
                let number = container_of(rows.key());
                let is_known = number.is_ok_and(|number| containers.is_known(number));
                if !is_known || rows.key().len() != 4 {
                    lost.push(rows.key().to_vec());
                }
                there = rows.next()?;
            }
        }
        self.remove_keys(Part::Latest, &lost)?;
        self.recover_thinning(containers)?;
        for number in containers.numbers() {
            self.recover_latest(number, fields)?;
        }
        Ok(())
    }

    /// Removes thinning rules that cannot be decoded or whose container does not exist.
    fn recover_thinning(&mut self, containers: &Containers) -> Result<()> {
        let mut lost = Vec::new();
        {
            let w = &*self.w;
            let mut rows = part(self.root, w, Part::Thinning)?.cursor(w)?;
            let mut there = rows.first()?;
            while there {
                let number = container_of(rows.key());
                let is_known = number.is_ok_and(|number| containers.is_known(number));
                let row = rows.value()?.to_vec()?;
                let is_sound = ThinningRow::decode(&row).is_ok();
                if !is_known || rows.key().len() != 4 || !is_sound {
                    lost.push(rows.key().to_vec());
                }
                there = rows.next()?;
            }
        }
        self.remove_keys(Part::Thinning, &lost)
    }

    fn recover_latest(&mut self, number: u32, fields: &mut Fields) -> Result<()> {
        let key = container_key(number);
        let (old, mut found) = {
            let w = &*self.w;
            let row = part(self.root, w, Part::Latest)?.get(w, &key)?;
            let row = row.map(|row| row.to_vec()).transpose()?;
            // Messages come in the order of their times, so the last message with a field sets its latest value.
            let mut found: BTreeMap<u32, (i64, Vec<u8>)> = BTreeMap::new();
            let mut rows = part(self.root, w, Part::Messages)?.cursor(w)?;
            let mut there = rows.seek_ge(&key)?;
            while there && rows.key() < &behind_container(number)[..] {
                let message = MessageKey::decode(rows.key())?;
                let value = rows.value()?;
                let stored = StoredMessage::decode(message, &value.bytes()?)?;
                for (field, value) in raw_fields(&stored.document)? {
                    found.insert(field, (message.time.0, value.to_vec()));
                }
                there = rows.next()?;
            }
            (row, found)
        };
        let mut latest = Latest::default();
        let rebuilt = std::mem::take(&mut found);
        let stored = old.as_ref().and_then(|old| Latest::decode_all(old).ok());
        if let Some(stored) = &stored {
            for entry in stored.entries() {
                if fields.accept_number(entry.field) {
                    latest.insert(*entry);
                }
            }
        }
        for (field, (time, value)) in &rebuilt {
            let (field, time) = (*field, *time);
            let is_newer = latest.get(field).is_none_or(|entry| entry.time < time);
            if is_newer {
                latest.insert(Entry { field, time, value });
            }
        }
        let row = latest.encode();
        let is_empty = latest.entries().is_empty();
        if is_empty && old.is_none() || old.as_ref() == Some(&row) {
            return Ok(());
        }
        self.change(Part::Latest, &mut |w, table| match is_empty {
            true => table.remove(w, &key),
            false => table.insert(w, &key, &row),
        })?;
        Ok(())
    }

    fn write_fields(&mut self, fields: &Fields) -> Result<()> {
        let by_number = fields.by_number();
        let next = by_number.last_key_value().map_or(0, |(last, _)| last + 1);
        self.state.next_field = self.state.next_field.max(next);
        let names = by_number
            .iter()
            .map(|(number, name)| (container_key(*number).to_vec(), name.as_bytes().to_vec()));
        self.write_anew(Part::FieldNames, names)?;
        let mut rows: Vec<_> = by_number
            .iter()
            .map(|(number, name)| (name.as_bytes().to_vec(), number.to_le_bytes().to_vec()))
            .collect();
        rows.sort_unstable();
        self.write_anew(Part::Fields, rows.into_iter())
    }

    /// Writes the records and everything that is derived from them and from the deletions.
    fn write_records(
        &mut self,
        containers: Containers,
        deletions: &BTreeMap<(u32, u64), Deletion>,
    ) -> Result<()> {
        let (mut live, mut dropped) = (BTreeMap::new(), BTreeMap::new());
        let (mut dues, mut numbers) = (Vec::new(), Vec::new());
        let state = &mut self.state;
        for (number, mut found) in containers.into_all() {
            state.next_container = state.next_container.max(number + 1);
            numbers.push((container_key(number).to_vec(), found.name.clone().into()));
            let record: &mut Record = &mut found.record;
            record.due = NEVER;
            match found.dropped {
                None => {
                    record.due = record.wanted_due(record.options(&self.options.defaults));
                    if record.due != NEVER {
                        dues.push(Due::new(record.due, Kind::Container, number));
                    }
                    state.containers += 1;
                    state.messages += record.messages;
                    state.bytes += record.bytes;
                    live.insert(found.name.into_bytes(), record.encode());
                }
                Some(_) => {
                    let key = dropped_key(&found.name, number);
                    if let Some(row) = found.dropped_row() {
                        dues.push(Due::new(row.free_at, Kind::Dropped, number));
                        dropped.insert(key, row.encode());
                    }
                }
            }
        }
        for ((container, number), deletion) in deletions {
            state.next_deletion = state.next_deletion.max(number + 1);
            state.deleted_messages += deletion.messages;
            state.deleted_bytes += deletion.bytes;
            dues.push(Due::of_deletion(deletion.free_at.0, *container, *number));
        }
        dues.sort_unstable();
        let deletions = deletions.iter().map(|((container, number), deletion)| {
            let key = deletion_key(*container, *number).to_vec();
            (key, deletion.encode().to_vec())
        });
        self.write_anew(Part::Containers, live.into_iter())?;
        self.write_anew(Part::Dropped, dropped.into_iter())?;
        self.write_anew(Part::Numbers, numbers.into_iter())?;
        self.write_anew(Part::Deletions, deletions)?;
        let dues = dues.iter().map(|due| (due.encode(), Vec::new()));
        self.write_anew(Part::Due, dues)
    }
}
