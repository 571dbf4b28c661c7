//! Working state of a recovery: the names and records that were found, and the result.

use crate::containers::codec::{decode, raw_fields};
use crate::containers::dictionary::decode_number;
use crate::containers::document::FIELD_NAME_BYTES_MAX;
use crate::containers::keys::{number_of, split_dropped, text_of};
use crate::containers::options::{ContainerOptions, check_name};
use crate::containers::parts::{Part, part};
use crate::containers::record::{DroppedRecord, Record};
use crate::containers::write::ContainersWriter;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Result of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainersRecovery {
    /// Number of containers after the recovery.
    pub containers: u64,
    /// Number of messages of live containers.
    pub messages: u64,
    /// Number of messages, including deleted ones, that were removed because they could not be decoded or belong to no
    /// container.
    pub removed: u64,
    /// Number of containers whose records were lost. They have the default options; if a name is unknown, the container
    /// is named `recovered-` with its number.
    pub made_anew: u64,
    /// Number of fields whose names were lost: they are named `field-` with their number.
    pub fields_made_anew: u64,
    /// Whether the options of the table were lost.
    pub has_lost_options: bool,
}

/// Greater numbers are treated as damage, because a table with such numbers could soon run out of numbers.
const SANE_NUMBER_MAX: u32 = u32::MAX / 2;

/// A name for a number that is not in use.
fn free_name<N: Borrow<str> + Eq + Hash>(base: &str, number: u32, taken: &HashSet<N>) -> String {
    let mut name = format!("{base}-{number}");
    while taken.contains(&*name) {
        name.push('-');
    }
    name
}

/// Calls `each` with key and value of each row of a part.
fn each_row<R: PageRead>(
    (root, r): (&Tree, &R),
    of: Part,
    each: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<()> {
    let mut rows = part(root, r, of)?.cursor(r)?;
    let mut there = rows.first()?;
    while there {
        each(rows.key(), &rows.value()?.bytes()?);
        there = rows.next()?;
    }
    Ok(())
}

/// The names of fields.
pub(crate) struct Fields {
    names: BTreeMap<u32, Arc<str>>,
    taken: HashSet<Arc<str>>,
    pub(crate) made_anew: u64,
}

impl Fields {
    /// Reads names and numbers from both tables. If they differ, the table from numbers to names takes precedence.
    pub(crate) fn read<R: PageRead>(pages: (&Tree, &R)) -> Result<Self> {
        let mut fields = Self {
            names: BTreeMap::new(),
            taken: HashSet::new(),
            made_anew: 0,
        };
        let mut add = |number: Result<u32>, name: Result<&str>| {
            if let (Ok(number), Ok(name)) = (number, name)
                && number <= SANE_NUMBER_MAX
                && name.len() <= FIELD_NAME_BYTES_MAX
                && !fields.names.contains_key(&number)
                && !fields.taken.contains(name)
            {
                let name = Arc::from(name);
                fields.taken.insert(Arc::clone(&name));
                fields.names.insert(number, name);
            }
        };
        each_row(pages, Part::FieldNames, &mut |key, value| {
            add(number_of(key), text_of(value));
        })?;
        each_row(pages, Part::Fields, &mut |key, value| {
            add(decode_number(value), text_of(key));
        })?;
        Ok(fields)
    }

    pub(crate) fn by_number(&self) -> &BTreeMap<u32, Arc<str>> {
        &self.names
    }

    /// Assigns a name to a number that has none; returns false for a number that is treated as damage.
    pub(crate) fn accept_number(&mut self, number: u32) -> bool {
        if number > SANE_NUMBER_MAX {
            return false;
        }
        if !self.names.contains_key(&number) {
            let name = Arc::from(free_name("field", number, &self.taken));
            self.taken.insert(Arc::clone(&name));
            self.names.insert(number, name);
            self.made_anew += 1;
        }
        true
    }

    /// Whether a document can be decoded. If so, all of its fields have names afterwards.
    pub(crate) fn accept(&mut self, document: &[u8]) -> bool {
        // Decoding works with any name, as long as each number has one of its own.
        let Ok(raw) = raw_fields(document) else {
            return false;
        };
        let numbers: Vec<u32> = raw.iter().map(|(number, _)| *number).collect();
        if numbers.iter().any(|number| *number > SANE_NUMBER_MAX) {
            return false;
        }
        let missing: Vec<(u32, Arc<str>)> = numbers
            .iter()
            .filter(|number| !self.names.contains_key(number))
            .map(|number| (*number, free_name("field", *number, &self.taken).into()))
            .collect();
        let name = |number: u32| {
            let new = missing.iter().find(|(new, _)| *new == number);
            self.names.get(&number).or(new.map(|(_, name)| name))
        };
        if decode(document, &name).is_err() {
            return false;
        }
        numbers.iter().all(|number| self.accept_number(*number))
    }
}

/// A container that was found.
pub(crate) struct FoundContainer {
    pub(crate) name: String,
    pub(crate) record: Record,
    /// Time at which it was dropped, and time from which it can no longer be restored.
    pub(crate) dropped: Option<(i64, i64)>,
}

impl FoundContainer {
    /// The row of a dropped container; `None` for a live one.
    pub(crate) fn dropped_row(&self) -> Option<DroppedRecord> {
        let (dropped_at, free_at) = self.dropped?;
        Some(DroppedRecord {
            dropped_at,
            free_at,
            record: self.record.clone(),
        })
    }
}

/// The containers, by number. Counts and times of messages are initially empty.
pub(crate) struct Containers {
    found: BTreeMap<u32, FoundContainer>,
    /// Names of containers that are not dropped.
    taken: HashSet<String>,
    now: i64,
    pub(crate) made_anew: u64,
}

impl Containers {
    pub(crate) fn read<R: PageRead>(pages: (&Tree, &R), now: i64) -> Result<Self> {
        let mut all = Self {
            found: BTreeMap::new(),
            taken: HashSet::new(),
            now,
            made_anew: 0,
        };
        each_row(pages, Part::Containers, &mut |key, value| {
            if let (Ok(name), Ok(record)) = (text_of(key), Record::decode(value)) {
                all.add(name, record, None);
            }
        })?;
        each_row(pages, Part::Dropped, &mut |key, value| {
            if let (Ok((name, number)), Ok(row)) =
                (split_dropped(key), DroppedRecord::decode(value))
                && row.record.number == number
            {
                all.add(name, row.record, Some((row.dropped_at, row.free_at)));
            }
        })?;
        let mut lost = Vec::new();
        each_row(pages, Part::Numbers, &mut |key, value| {
            if let (Ok(number), Ok(name)) = (number_of(key), text_of(value)) {
                lost.push((number, name.to_owned()));
            }
        })?;
        for (number, name) in lost {
            if !all.is_known(number) {
                all.make(number, Some(&name));
            }
        }
        Ok(all)
    }

    fn add(&mut self, name: &str, record: Record, dropped: Option<(i64, i64)>) {
        let number = record.number;
        let is_free = dropped.is_some() || !self.taken.contains(name);
        if check_name(name).is_err()
            || number > SANE_NUMBER_MAX
            || !is_free
            || self.is_known(number)
        {
            return;
        }
        if dropped.is_none() {
            self.taken.insert(name.to_owned());
        }
        let record = Record {
            created: record.created,
            changes: record.changes,
            rejected: record.rejected,
            expired: record.expired,
            rotated: record.rotated,
            options: record.options,
            ..Record::new(number, 0)
        };
        let found = FoundContainer {
            name: name.to_owned(),
            record,
            dropped,
        };
        self.found.insert(number, found);
    }

    /// Creates a record that was lost.
    fn make(&mut self, number: u32, name: Option<&str>) {
        if number > SANE_NUMBER_MAX {
            return;
        }
        let name = name.filter(|name| check_name(name).is_ok() && !self.taken.contains(*name));
        let name = match name {
            Some(name) => name.to_owned(),
            None => free_name("recovered", number, &self.taken),
        };
        self.add(&name, Record::new(number, self.now), None);
        self.made_anew += 1;
    }

    pub(crate) fn is_known(&self, number: u32) -> bool {
        self.found.contains_key(&number)
    }

    /// Creates the container of a message if its record is lost; returns false for a number that is treated as damage.
    pub(crate) fn accept(&mut self, number: u32) -> bool {
        if !self.is_known(number) {
            self.make(number, None);
        }
        self.is_known(number)
    }

    pub(crate) fn record(&mut self, number: u32) -> Option<&mut Record> {
        self.found.get_mut(&number).map(|found| &mut found.record)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.found.keys().copied().collect()
    }

    pub(crate) fn keep_deleted_ns(&self, number: u32, defaults: &ContainerOptions) -> i64 {
        let options = self.found.get(&number).map(|found| &found.record);
        let options = options.map_or(defaults, |record| record.options(defaults));
        options.keep_deleted_ns()
    }

    pub(crate) fn into_all(self) -> BTreeMap<u32, FoundContainer> {
        self.found
    }
}

impl<W: PageWrite> ContainersWriter<'_, W> {
    pub(crate) fn remove_keys(&mut self, of: Part, keys: &[Vec<u8>]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.change(of, &mut |w, table| {
            keys.iter()
                .try_for_each(|key| table.remove(w, key).map(drop))
        })
    }

    /// Replaces all rows of a part. `rows` must be ascending.
    pub(crate) fn write_anew(
        &mut self,
        of: Part,
        rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        let mut rows = Some(rows);
        self.change(of, &mut |w, table| {
            table.clear(w)?;
            table.extend(w, rows.take().into_iter().flatten()).map(drop)
        })
    }
}
