//! Checks the rules of the format for a table of containers: its records and messages. `check_parts` checks the other
//! parts.

use crate::containers::check_parts::Expected;
use crate::containers::codec::raw_fields;
use crate::containers::dictionary::FieldNames;
use crate::containers::due::{Due, Kind, NEVER};
use crate::containers::keys::{MessageKey, container_key, number_of, split_dropped, text_of};
use crate::containers::latest::Latest;
use crate::containers::message::{StoredMessage, counted_bytes};
use crate::containers::options::check_name;
use crate::containers::parts::{Part, part};
use crate::containers::read::ContainersReader;
use crate::containers::record::{DroppedRecord, Record};
use std::collections::{BTreeMap, HashMap};
use tidalite_pager::{PageRead, Result};

/// A container that was found, either live or dropped.
struct Known {
    name: String,
    record: Record,
}

/// Sums over the messages of a container.
struct Sums {
    record: Record,
    /// Time of the newest message with each field.
    fields: HashMap<u32, i64>,
}

impl<R: PageRead> ContainersReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`.
    ///
    /// # Errors
    /// A damaged or unreadable page, a row that cannot be decoded.
    ///
    /// # Cost
    /// Reads the whole table; memory for the record of each container and for each deletion.
    pub fn check(&self, problem: &mut dyn FnMut(String)) -> Result<()> {
        let names = self.check_fields(problem)?;
        let mut expected = Expected::default();
        let containers = self.check_records(&mut expected, problem)?;
        self.check_messages(&containers, &names, problem)?;
        self.check_latest_rows(&containers, &names, problem)?;
        let is_known = |number: u32| containers.contains_key(&number);
        self.check_seen(&is_known, problem)?;
        self.check_thinning(&is_known, problem)?;
        self.check_deletions(&is_known, &names, &mut expected, problem)?;
        self.check_due(&expected, problem)?;
        let state = &self.state;
        let found = (expected.deleted_messages, expected.deleted_bytes);
        if found != (state.deleted_messages, state.deleted_bytes) {
            problem(format!("state: {state:?}, found deleted {found:?}"));
        }
        Ok(())
    }

    /// Checks the records with their numbers and times, and the totals.
    fn check_records(
        &self,
        expected: &mut Expected,
        problem: &mut dyn FnMut(String),
    ) -> Result<BTreeMap<u32, Known>> {
        let mut found: BTreeMap<u32, Known> = BTreeMap::new();
        let mut add = |name: &str, record: Record, problem: &mut dyn FnMut(String)| {
            let number = record.number;
            if number >= self.state.next_container {
                problem(format!("container {name:?}: number {number} is not given"));
            }
            if check_name(name).is_err() {
                problem(format!("container {name:?}: the name is not allowed"));
            }
            let name = name.to_owned();
            if let Some(other) = found.insert(number, Known { name, record }) {
                problem(format!("container {:?}: number {number} twice", other.name));
            }
        };
        let (mut containers, mut messages, mut bytes) = (0, 0, 0);
        let mut rows = part(&self.root, &self.r, Part::Containers)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let name = text_of(rows.key())?;
            let record = Record::decode(&rows.value()?.bytes()?)?;
            containers += 1;
            messages += record.messages;
            bytes += record.bytes;
            let wanted = record.wanted_due(record.options(&self.options.defaults));
            if record.due > wanted {
                problem(format!(
                    "container {name:?}: due at {}, which is behind {wanted}",
                    record.due
                ));
            }
            if record.due != NEVER {
                let due = Due::new(record.due, Kind::Container, record.number);
                expected.dues.insert(due);
            }
            add(name, record, problem);
            there = rows.next()?;
        }
        let state = &self.state;
        if (containers, messages, bytes) != (state.containers, state.messages, state.bytes) {
            problem(format!(
                "state: {state:?}, found {containers} containers, {messages} messages, {bytes} bytes"
            ));
        }
        let mut rows = part(&self.root, &self.r, Part::Dropped)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let (name, number) = split_dropped(rows.key())?;
            let row = DroppedRecord::decode(&rows.value()?.bytes()?)?;
            if row.record.number != number || row.record.due != NEVER {
                problem(format!("dropped container {name:?}: {row:?}"));
            }
            let due = Due::new(row.free_at, Kind::Dropped, number);
            expected.dues.insert(due);
            add(name, row.record, problem);
            there = rows.next()?;
        }
        let mut numbers = part(&self.root, &self.r, Part::Numbers)?.cursor(&self.r)?;
        let (mut there, mut count) = (numbers.first()?, 0);
        while there {
            let number = number_of(numbers.key())?;
            let value = numbers.value()?;
            let name = value.bytes()?;
            let name = text_of(&name)?;
            match found.get(&number) {
                Some(known) if known.name == name => count += 1,
                _ => problem(format!("number {number}: no container {name:?}")),
            }
            there = numbers.next()?;
        }
        if count < found.len() {
            problem(format!("{} containers, {count} numbers", found.len()));
        }
        Ok(found)
    }

    /// Checks the messages of all containers against their records and latest values.
    fn check_messages(
        &self,
        containers: &BTreeMap<u32, Known>,
        names: &FieldNames,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let mut all: HashMap<u32, Sums> = HashMap::new();
        let mut rows = part(&self.root, &self.r, Part::Messages)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let key = MessageKey::decode(rows.key())?;
            let value = rows.value()?;
            let message = StoredMessage::decode(key, &value.bytes()?)?;
            names.decode(&message.document)?;
            // Messages are sorted by container, so only one container at a time is in memory.
            if !all.contains_key(&key.container) {
                self.compare(containers, &mut all, problem)?;
            }
            let sums = all.entry(key.container).or_insert_with(|| Sums {
                record: Record::new(key.container, 0),
                fields: HashMap::new(),
            });
            sums.record
                .add(counted_bytes(value.len()), message.is_protected);
            sums.record.include(key.time.0, message.is_protected);
            for (field, _) in raw_fields(&message.document)? {
                let newest = sums.fields.entry(field).or_insert(key.time.0);
                *newest = key.time.0.max(*newest);
            }
            there = rows.next()?;
        }
        self.compare(containers, &mut all, problem)?;
        let with_rows = part(&self.root, &self.r, Part::Messages)?;
        for (number, known) in containers {
            let from = with_rows.rank(&self.r, &container_key(*number))?;
            let to = with_rows.rank(&self.r, &container_key(number.saturating_add(1)))?;
            if known.record.messages != to.saturating_sub(from) {
                problem(format!(
                    "container {:?}: {} messages, {} rows",
                    known.name,
                    known.record.messages,
                    to.saturating_sub(from)
                ));
            }
            let is_empty = known.record.messages == 0;
            let record = &known.record;
            let empty = (record.bytes, record.oldest, record.newest) == (0, i64::MAX, i64::MIN);
            if is_empty && !empty {
                problem(format!(
                    "container {:?}: {record:?}, no messages",
                    known.name
                ));
            }
        }
        Ok(())
    }

    /// Compares the sums of finished containers with their records and latest values, and drops the sums.
    fn compare(
        &self,
        containers: &BTreeMap<u32, Known>,
        all: &mut HashMap<u32, Sums>,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        for (number, sums) in all.drain() {
            let Some(Known { name, record }) = containers.get(&number) else {
                problem(format!("messages of the unknown container {number}"));
                continue;
            };
            let of = |record: &Record| {
                (
                    record.messages,
                    record.bytes,
                    record.protected_messages,
                    record.protected_bytes,
                    record.oldest,
                    record.newest,
                )
            };
            if of(record) != of(&sums.record)
                || record.unprotected_from > sums.record.unprotected_from
            {
                problem(format!(
                    "container {name:?}: {record:?}, found {:?}",
                    sums.record
                ));
            }
            let row = part(&self.root, &self.r, Part::Latest)?;
            let row = row.get(&self.r, &container_key(number))?;
            let row = row.map(|row| row.to_vec()).transpose()?;
            let latest = match &row {
                Some(row) => Latest::decode(row)?,
                None => Latest::default(),
            };
            for (field, time) in sums.fields {
                let found = latest.get(field).map(|entry| entry.time);
                if found.is_none_or(|found| found < time) {
                    problem(format!(
                        "container {name:?}: latest value of field {field} at {found:?}, a message at {time}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_latest_rows(
        &self,
        containers: &BTreeMap<u32, Known>,
        names: &FieldNames,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let mut rows = part(&self.root, &self.r, Part::Latest)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let number = number_of(rows.key())?;
            if !containers.contains_key(&number) {
                problem(format!("latest values of the unknown container {number}"));
            }
            let value = rows.value()?;
            let row = value.bytes()?;
            let latest = Latest::decode_all(&row)?;
            for entry in latest.entries() {
                if names.get(entry.field).is_none() {
                    problem(format!(
                        "container {number}: field {} has no name",
                        entry.field
                    ));
                }
            }
            if *latest.encode() != *row {
                problem(format!("container {number}: latest values in another form"));
            }
            there = rows.next()?;
        }
        Ok(())
    }
}
