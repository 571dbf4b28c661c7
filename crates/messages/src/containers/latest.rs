//! The latest value of each field of a container, with the time of the message that set it. A container has one such
//! row.
//!
//! ```text
//! 0  i64     the newest of these times
//! 8  varint  number of fields that were set at that time; for each: varint number of the field, value
//! .  varint  number of all other fields; for each: varint number of the field, i64 time, value
//! ```
//!
//! Values are encoded as in documents. Both lists are sorted by the number of the field, and each field is in only one
//! list. Most messages of a source have the same fields, so most fields are in the first list and need no time of their
//! own.
//!
//! A message sets a field unless the stored value of the field has a later time; if several messages have the same
//! time, the last one that arrives counts. Deleting messages does not change the latest values.

use crate::containers::codec::{put_varint, raw_fields, take_number, take_value, value_of};
use crate::containers::document::{DOCUMENT_VALUES_MAX, values_in};
use crate::containers::parts::{damaged, shown};
use tidalite_pager::Result;

/// The latest value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'v> {
    pub(crate) field: u32,
    pub(crate) time: i64,
    /// The encoded value.
    pub(crate) value: &'v [u8],
}

/// The latest values of a container, by field.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Latest<'v> {
    entries: Vec<Entry<'v>>,
}

impl<'v> Latest<'v> {
    pub(crate) fn entries(&self) -> &[Entry<'v>] {
        &self.entries
    }

    pub(crate) fn get(&self, field: u32) -> Option<&Entry<'v>> {
        let place = self.place(field).ok()?;
        self.entries.get(place)
    }

    fn place(&self, field: u32) -> std::result::Result<usize, usize> {
        self.entries
            .binary_search_by_key(&field, |entry| entry.field)
    }

    /// Sets the fields of a message; returns whether a value or a time has changed.
    pub(crate) fn set(&mut self, time: i64, document: &'v [u8]) -> Result<bool> {
        let mut is_changed = false;
        for (field, value) in raw_fields(document)? {
            let new = Entry { field, time, value };
            match self.place(field) {
                Ok(place) if self.entries[place].time <= time => {
                    is_changed |= self.entries[place] != new;
                    self.entries[place] = new;
                }
                Ok(_) => {}
                Err(place) => {
                    is_changed = true;
                    self.entries.insert(place, new);
                }
            }
        }
        Ok(is_changed)
    }

    /// Sets the value of a field, whatever its time.
    pub(crate) fn insert(&mut self, entry: Entry<'v>) {
        match self.place(entry.field) {
            Ok(place) => self.entries[place] = entry,
            Err(place) => self.entries.insert(place, entry),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let newest = self.entries.iter().map(|entry| entry.time).max();
        let newest = newest.unwrap_or(i64::MIN);
        let count = self.entries.iter().filter(|entry| entry.time == newest);
        let count = count.count();
        let mut row = newest.to_le_bytes().to_vec();
        put_varint(count as u64, &mut row);
        for entry in self.entries.iter().filter(|entry| entry.time == newest) {
            put_varint(entry.field.into(), &mut row);
            row.extend_from_slice(entry.value);
        }
        put_varint((self.entries.len() - count) as u64, &mut row);
        for entry in self.entries.iter().filter(|entry| entry.time != newest) {
            put_varint(entry.field.into(), &mut row);
            row.extend_from_slice(&entry.time.to_le_bytes());
            row.extend_from_slice(entry.value);
        }
        row
    }

    /// Decodes a row. The values are not checked.
    pub(crate) fn decode(row: &'v [u8]) -> Result<Self> {
        let wrong = || damaged("latest values of a container", shown(row), "latest values");
        let (newest, mut rest) = row.split_first_chunk().ok_or_else(wrong)?;
        let newest = i64::from_le_bytes(*newest);
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for has_time in [false, true] {
            let start = entries.len();
            for _ in 0..take_number(&mut rest)? {
                let field = take_number(&mut rest)?;
                let mut time = newest;
                if has_time {
                    let (own, behind) = rest.split_first_chunk().ok_or_else(wrong)?;
                    (time, rest) = (i64::from_le_bytes(*own), behind);
                }
                let ascends = entries[start..]
                    .last()
                    .is_none_or(|last| last.field < field);
                if !ascends || has_time && time >= newest {
                    return Err(wrong());
                }
                let value = take_value(&mut rest)?;
                entries.push(Entry { field, time, value });
            }
        }
        entries.sort_by_key(|entry| entry.field);
        let are_unique = entries.is_sorted_by(|a, b| a.field < b.field);
        match are_unique && rest.is_empty() {
            true => Ok(Self { entries }),
            false => Err(wrong()),
        }
    }

    /// Decodes a row and checks its values.
    pub(crate) fn decode_all(row: &'v [u8]) -> Result<Self> {
        let latest = Self::decode(row)?;
        for entry in &latest.entries {
            value_of(entry.value)?.decode()?;
        }
        Ok(latest)
    }
}

/// Sets the fields of a new document in an old one. Fields that both have get the new value and keep their place; other
/// new fields come last. `None` if the result would be larger than the maximum size of a document.
pub(crate) fn merge(old: &[u8], new: &[u8]) -> Result<Option<Vec<u8>>> {
    use crate::containers::document::{DOCUMENT_BYTES_MAX, DOCUMENT_FIELDS_MAX};
    let (mut fields, new) = (raw_fields(old)?, raw_fields(new)?);
    let kept = fields.len();
    let mut by_field: Vec<(u32, usize)> = (0..kept).map(|at| (fields[at].0, at)).collect();
    by_field.sort_unstable();
    for (field, value) in new {
        match by_field.binary_search_by_key(&field, |(field, _)| *field) {
            Ok(found) => fields[by_field[found].1].1 = value,
            Err(_) => fields.push((field, value)),
        }
    }
    let mut merged = Vec::with_capacity(old.len());
    put_varint(fields.len() as u64, &mut merged);
    for (field, value) in &fields {
        put_varint((*field).into(), &mut merged);
        merged.extend_from_slice(value);
    }
    let values = fields.iter().map(|(_, value)| *value);
    let fits = fields.len() <= DOCUMENT_FIELDS_MAX
        && merged.len() <= DOCUMENT_BYTES_MAX
        && are_few(merged.len(), values)?;
    Ok(fits.then_some(merged))
}

/// Whether a document of `len` bytes with these encoded values has at most the permitted number of values.
pub(crate) fn are_few<'v>(len: usize, fields: impl Iterator<Item = &'v [u8]>) -> Result<bool> {
    // Each value needs at least one byte.
    if len <= DOCUMENT_VALUES_MAX {
        return Ok(true);
    }
    let mut values = 0;
    for value in fields {
        values += 1 + values_in(&value_of(value)?.decode()?);
    }
    Ok(values <= DOCUMENT_VALUES_MAX)
}
