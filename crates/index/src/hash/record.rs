//! Rows of the record store: the key is the record number, u64 big-endian, and the value is the record.
//!
//! ```text
//! 0  u8      kind: 0 set a key to a value, 1 remove a key, 2 remove one record of a key
//! 1  varint  length of the key: 7 bits a byte, the lowest first, the highest bit set but in the last byte
//! .  key
//! .  kind 0: the value; kind 2: the number of the removed record, u64 big-endian
//! ```

use crate::hash::entry::Action;
use crate::hash::options::HashOptions;
use std::borrow::Cow;
use std::ops::Deref;
use tidalite_base::{Corrupt, varint};
use tidalite_kv::{PageSlice, TableReader, Value};
use tidalite_pager::{Error, PageRead, Result};

const SET: u8 = 0;
const REMOVE: u8 = 1;
const REMOVE_ONE: u8 = 2;

/// Maximum length in bytes of the value of a record.
pub const RECORD_VALUE_MAX: usize = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Set,
    Remove,
    RemoveOne,
}

/// Appends a record to `bytes`. The value of a `RemoveOne` record is the number of the removed record.
pub(crate) fn encode(kind: Kind, key: &[u8], value: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(match kind {
        Kind::Set => SET,
        Kind::Remove => REMOVE,
        Kind::RemoveOne => REMOVE_ONE,
    });
    varint::push(bytes, key.len() as u64);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
}

/// The parts of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

#[cold]
pub(crate) fn damaged(number: u64, found: impl std::fmt::Display) -> Error {
    let what = format!("record {number} of a hash table");
    Corrupt::new(what, 0, found, "a kind, a key and a value").into()
}

/// Length of the header and length of the key of a record.
#[inline]
fn lengths(number: u64, bytes: &[u8]) -> Result<(usize, usize)> {
    let (mut len, mut at, mut shift) = (0u64, 1, 0);
    loop {
        let Some(&byte) = bytes.get(at) else {
            return Err(damaged(number, format!("{} bytes", bytes.len())));
        };
        at += 1;
        len |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
        if shift > 28 {
            return Err(damaged(number, "a length of more than 5 bytes"));
        }
    }
    let len = len as usize;
    if bytes.len() - at < len {
        return Err(damaged(number, format!("a key of {len} bytes")));
    }
    Ok((at, len))
}

pub(crate) fn decode(number: u64, bytes: &[u8]) -> Result<Parts<'_>> {
    let (at, len) = lengths(number, bytes)?;
    let (key, value) = bytes[at..].split_at(len);
    let kind = match bytes[0] {
        SET => Kind::Set,
        REMOVE if value.is_empty() => Kind::Remove,
        REMOVE_ONE if value.len() == 8 => Kind::RemoveOne,
        kind => {
            return Err(damaged(
                number,
                format!("kind {kind}, {} bytes", value.len()),
            ));
        }
    };
    Ok(Parts { kind, key, value })
}

/// The beginning of a record: enough to decode its kind and its key. The end of a long value may be missing.
pub(crate) fn start_of<'v>(number: u64, value: &'v Value<'_>) -> Result<Cow<'v, [u8]>> {
    if let Some(bytes) = value.as_slice() {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut bytes = Vec::new();
    for chunk in value.chunks() {
        bytes.extend_from_slice(&chunk?);
        if bytes.first() == Some(&SET) && lengths(number, &bytes).is_ok() {
            break;
        }
    }
    Ok(Cow::Owned(bytes))
}

/// The key of a record to which the index refers, in the form in which keys are compared.
pub(crate) fn folded_key<'r, R: PageRead>(
    records: &TableReader<'r>,
    r: &'r R,
    number: u64,
    options: &HashOptions,
) -> Result<Vec<u8>> {
    let value = records
        .get(r, &number.to_be_bytes())?
        .ok_or_else(|| missing(number))?;
    let bytes = start_of(number, &value)?;
    let (at, len) = lengths(number, &bytes)?;
    Ok(options.folded(&bytes[at..at + len]).into_owned())
}

/// Whether these are the bytes of a record that assigns a value to the key with this folded form. The end of a long
/// value may be missing.
pub(crate) fn is_set(
    number: u64,
    bytes: &[u8],
    folded: &[u8],
    options: &HashOptions,
) -> Result<bool> {
    let parts = decode(number, bytes)?;
    Ok(parts.kind == Kind::Set && *options.folded(parts.key) == *folded)
}

#[cold]
fn missing(number: u64) -> Error {
    damaged(number, "none, but the index refers to it")
}

impl Kind {
    /// The entry of the index for record `number` of this kind.
    pub(crate) fn action(self, number: u64) -> Action {
        match self {
            Self::Set => Action::Set(number),
            Self::Remove => Action::Remove(number),
            Self::RemoveOne => Action::RemoveOne(number),
        }
    }
}

/// A record that was found, with its key and value borrowed from the file where possible.
#[derive(Clone, Debug)]
pub struct Record<'r> {
    number: u64,
    bytes: Bytes<'r>,
    key: (usize, usize),
    is_set: bool,
}

#[derive(Clone, Debug)]
enum Bytes<'r> {
    Page(PageSlice<'r>),
    Owned(Vec<u8>),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Page(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl<'r> Record<'r> {
    pub(crate) fn of_value(number: u64, value: Value<'r>) -> Result<Self> {
        let bytes = match value.into_piece() {
            Ok(slice) => Bytes::Page(slice),
            Err(extent) => Bytes::Owned(extent.to_vec()?),
        };
        Self::new(number, bytes)
    }

    pub(crate) fn of_bytes(number: u64, bytes: &[u8]) -> Result<Self> {
        Self::new(number, Bytes::Owned(bytes.to_vec()))
    }

    fn new(number: u64, bytes: Bytes<'r>) -> Result<Self> {
        let key = lengths(number, &bytes)?;
        let is_set = bytes[0] == SET;
        Ok(Self {
            number,
            bytes,
            key,
            is_set,
        })
    }

    /// Number of the record in its table. Numbers begin at 0 and follow the order in which records are written.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The key as the caller set it, with its upper and lower case.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.bytes[self.key.0..self.key.0 + self.key.1]
    }

    /// The value; `None` if this record removes the key, or one of its records.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.is_set.then(|| &self.bytes[self.key.0 + self.key.1..])
    }
}

/// Reads a record; `None` if it does not exist.
pub(crate) fn get<'r, R: PageRead>(
    records: &TableReader<'r>,
    r: &'r R,
    number: u64,
) -> Result<Option<Record<'r>>> {
    match records.get(r, &number.to_be_bytes())? {
        Some(value) => Record::of_value(number, value).map(Some),
        None => Ok(None),
    }
}

/// Reads a record to which the index refers; an error if it does not exist.
pub(crate) fn expect<'r, R: PageRead>(
    records: &TableReader<'r>,
    r: &'r R,
    number: u64,
) -> Result<Record<'r>> {
    get(records, r, number)?.ok_or_else(|| missing(number))
}

/// Number of the record that the record `number` removes.
pub(crate) fn removed_by<'r, R: PageRead>(
    records: &TableReader<'r>,
    r: &'r R,
    number: u64,
) -> Result<u64> {
    let removal = expect(records, r, number)?;
    let parts = decode(number, &removal.bytes)?;
    match (parts.kind, parts.value.first_chunk::<8>()) {
        (Kind::RemoveOne, Some(removed)) => Ok(u64::from_be_bytes(*removed)),
        _ => Err(damaged(number, format!("{:?}", parts.kind))),
    }
}

/// The number in the key of a row of the record store.
pub(crate) fn number_of(row: &[u8]) -> Result<u64> {
    match row.try_into() {
        Ok(bytes) => Ok(u64::from_be_bytes(bytes)),
        Err(_) => {
            let found = row.escape_ascii().to_string();
            Err(Corrupt::new("number of a record", 0, found, "8 bytes").into())
        }
    }
}
