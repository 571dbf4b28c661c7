//! The catalog of series: by name, by GUID, by id.
//!
//! An entry of the `series` tree (key: series id, u64 big-endian):
//!
//! ```text
//! 0        1       2        18           20       20 + n
//! | version | flags | GUID   | name bytes | name  | schema (see schema.rs) |
//! |   u8    |  u8   | 16 B   |    u16     |       |
//! ```
//!
//! `flags`: 1 = has a name, 2 = has a GUID (all zero without one); bits 2 to 4: merge policy (0 replace, 1 keep first,
//! 2 error, 3 keep all, 4 keep distinct); 32 = the series has, or once had, merge policy 3 or 4, so a time may have
//! several rows.
//!
//! Invariants: 1. `names` and `guids` hold exactly the names and GUIDs of the entries of `series`; so does the index of
//! tags (tags/mod.rs) after the changes have been stored.
//! 2. An entry's id is below `next_series`, which never decreases: no id is assigned twice.

use crate::catalog::roots::Roots;
use crate::catalog::tags::{select, update};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::merge_policy::MergePolicy;
use crate::types::name::SeriesName;
use crate::types::pattern::SeriesPattern;
use crate::types::schema::{Described, Schema};
use crate::types::text_form::guid_text;
use std::sync::Arc;
use tidalite_base::{Corrupt, SeriesId, get_u16, put_u16};
use tidalite_codec::ColumnType as WordType;
use tidalite_delta::SERIES_MAX;
use tidalite_index::Changes;
use tidalite_pager::{PageRead, PageWrite};

const VERSION: u8 = 1;
const FLAGS_AT: usize = 1;
const GUID_AT: usize = 2;
const NAME_LEN_AT: usize = GUID_AT + 16;
const NAME_AT: usize = NAME_LEN_AT + 2;
const HAS_NAME: u8 = 1;
const HAS_GUID: u8 = 2;
const MERGE_SHIFT: u32 = 2;
const MERGE_BITS: u8 = 7 << MERGE_SHIFT;
const SEVERAL: u8 = 32;

/// Identity and schema of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesInfo {
    /// Number of the series in this file; numbers are assigned consecutively from 0.
    pub id: SeriesId,
    /// Name of the series; `None` if the series has no name.
    pub name: Option<SeriesName>,
    /// GUID of the series; `None` if the series has no GUID.
    pub guid: Option<[u8; 16]>,
    /// Columns of the series, and its unit of time.
    pub schema: Schema,
    /// Policy for a new row whose time already has a row.
    pub merge: MergePolicy,
    /// Whether a time may have several rows: the merge policy is, or once was, [`MergePolicy::KeepAll`] or
    /// [`MergePolicy::KeepDistinct`].
    pub several: bool,
}

impl SeriesInfo {
    /// The name or, without a name, the GUID, as text for messages.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.name, &self.guid) {
            (Some(name), _) => name.to_string(),
            (None, Some(guid)) => guid_text(guid),
            (None, None) => self.id.to_string(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let name = self
            .name
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let mut bytes = vec![0u8; NAME_AT];
        bytes[0] = VERSION;
        bytes[FLAGS_AT] = self.merge.bits() << MERGE_SHIFT;
        if self.name.is_some() {
            bytes[FLAGS_AT] |= HAS_NAME;
        }
        if self.several {
            bytes[FLAGS_AT] |= SEVERAL;
        }
        if let Some(guid) = &self.guid {
            bytes[FLAGS_AT] |= HAS_GUID;
            bytes[GUID_AT..NAME_LEN_AT].copy_from_slice(guid);
        }
        put_u16(&mut bytes, NAME_LEN_AT, name.len() as u16);
        bytes.extend_from_slice(name.as_bytes());
        self.schema.encode(&mut bytes);
        bytes
    }

    pub(crate) fn decode(id: SeriesId, bytes: &[u8]) -> Result<Self> {
        let damaged = |found: String, expected: &str| {
            Corrupt::new(format!("catalog entry of {id}"), 0, found, expected)
        };
        if bytes.len() < NAME_AT || bytes[0] != VERSION {
            return Err(damaged(format!("{} bytes", bytes.len()), "an entry of version 1").into());
        }
        let name_end = NAME_AT + usize::from(get_u16(bytes, NAME_LEN_AT));
        let text = bytes
            .get(NAME_AT..name_end)
            .and_then(|name| std::str::from_utf8(name).ok());
        let text = text.ok_or_else(|| damaged("a cut name".to_owned(), "a name"))?;
        let name = if bytes[FLAGS_AT] & HAS_NAME != 0 {
            let parsed = SeriesName::parse(text);
            Some(parsed.map_err(|error| damaged(error.to_string(), "a name"))?)
        } else {
            None
        };
        let mut guid = [0u8; 16];
        guid.copy_from_slice(&bytes[GUID_AT..NAME_LEN_AT]);
        let guid = (bytes[FLAGS_AT] & HAS_GUID != 0).then_some(guid);
        let (schema, taken) = Schema::decode(&bytes[name_end..])?;
        let meaningless = bytes[FLAGS_AT] & !(HAS_NAME | HAS_GUID | MERGE_BITS | SEVERAL) != 0;
        let several = bytes[FLAGS_AT] & SEVERAL != 0;
        let merge = MergePolicy::of_bits((bytes[FLAGS_AT] & MERGE_BITS) >> MERGE_SHIFT);
        let merge = merge.filter(|&merge| !meaningless && (several || !merge.keeps_several()));
        if merge.is_none() || name_end + taken != bytes.len() || (name.is_none() && guid.is_none())
        {
            let found = format!("{} bytes with flags {}", bytes.len(), bytes[FLAGS_AT]);
            return Err(damaged(found, "an entry as it is written").into());
        }
        Ok(Self {
            id,
            name,
            guid,
            schema,
            merge: merge.unwrap_or_default(),
            several,
        })
    }

    /// Decodes only the storage types of the columns (`WordType`), and skips name and GUID.
    fn decode_word_types(id: SeriesId, bytes: &[u8]) -> Result<Vec<WordType>> {
        let damaged = |expected: &str| {
            let found = format!("{} bytes", bytes.len());
            Corrupt::new(format!("catalog entry of {id}"), 0, found, expected)
        };
        let cut = || damaged("an entry of version 1");
        let head = bytes
            .get(..NAME_AT)
            .filter(|head| head[0] == VERSION)
            .ok_or_else(cut)?;
        let schema_at = NAME_AT + usize::from(get_u16(head, NAME_LEN_AT));
        let schema = bytes.get(schema_at..).ok_or_else(cut)?;
        let (types, taken) = Schema::decode_word_types(schema)?;
        if taken != schema.len() {
            return Err(damaged("an entry that ends with its schema").into());
        }
        Ok(types)
    }

    /// Decodes an entry like `decode`, and also rejects reserved bits and a name that is not canonical. For a check of
    /// the whole catalog: an opening of one series skips this, because it would double the cost.
    pub(crate) fn decode_exact(id: SeriesId, bytes: &[u8]) -> Result<Self> {
        let info = Self::decode(id, bytes)?;
        if info.encode() != bytes {
            let (what, found) = (format!("catalog entry of {id}"), format!("{info:?}"));
            return Err(Corrupt::new(what, 0, found, "an entry as it is written").into());
        }
        Ok(info)
    }
}

/// Key of a series in every tree that is ordered by series id: the id in big-endian bytes.
pub(crate) fn id_key(id: SeriesId) -> [u8; 8] {
    id.0.to_be_bytes()
}

pub(crate) fn decode_id(bytes: &[u8]) -> tidalite_pager::Result<SeriesId> {
    let bytes: [u8; 8] = bytes
        .try_into()
        .map_err(|_| Corrupt::new("series id", 0, format!("{} bytes", bytes.len()), "8 bytes"))?;
    Ok(SeriesId(u64::from_be_bytes(bytes)))
}

/// The ways to look up a series in the catalog.
#[derive(Clone, Copy)]
pub(crate) enum SeriesKey<'a> {
    Name(&'a SeriesName),
    Guid(&'a [u8; 16]),
}

impl SeriesKey<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Name(name) => name.to_string().into_bytes(),
            Self::Guid(guid) => guid.to_vec(),
        }
    }
}

pub(crate) fn find<R: PageRead>(
    roots: &Roots,
    pages: &R,
    key: SeriesKey<'_>,
) -> Result<Option<SeriesId>> {
    let tree = match key {
        SeriesKey::Name(_) => &roots.names,
        SeriesKey::Guid(_) => &roots.guids,
    };
    tree.get(pages, &key.bytes())?
        .map(|value| Ok(decode_id(&value.bytes()?)?))
        .transpose()
}

pub(crate) fn info<R: PageRead>(
    roots: &Roots,
    pages: &R,
    id: SeriesId,
) -> Result<Option<Arc<SeriesInfo>>> {
    let entry = roots.series.get(pages, &id_key(id))?;
    entry
        .map(|value| Ok(Arc::new(SeriesInfo::decode(id, &value.bytes()?)?)))
        .transpose()
}

/// Reads the storage types of the columns of a series from the catalog.
pub(crate) fn word_types<R: PageRead>(
    roots: &Roots,
    pages: &R,
    id: SeriesId,
) -> Result<Option<Vec<WordType>>> {
    let entry = roots.series.get(pages, &id_key(id))?;
    entry
        .map(|value| SeriesInfo::decode_word_types(id, &value.bytes()?))
        .transpose()
}

/// Checks that the schema is valid and that an id is left for one more series.
pub(crate) fn expect_room(roots: &Roots, schema: &Schema) -> Result<()> {
    schema.validate()?;
    if roots.next_series > SERIES_MAX {
        return Err(Error::from(Cause::Limit {
            what: "series of a file",
            found: roots.next_series,
            limit: SERIES_MAX,
        }));
    }
    Ok(())
}

/// Creates a series in the catalog and returns its entry. The caller must have called `expect_room` before.
pub(crate) fn create<W: PageWrite>(
    roots: &mut Roots,
    pages: &mut W,
    tags: &mut Changes,
    key: SeriesKey<'_>,
    schema: &Schema,
) -> Result<Arc<SeriesInfo>> {
    let id = SeriesId(roots.next_series);
    let (name, guid) = match key {
        SeriesKey::Name(name) => (Some(name.clone()), None),
        SeriesKey::Guid(guid) => (None, Some(*guid)),
    };
    let info = SeriesInfo {
        id,
        name,
        guid,
        schema: schema.clone(),
        merge: MergePolicy::default(),
        several: false,
    };
    let by_key = match key {
        SeriesKey::Name(_) => &mut roots.names,
        SeriesKey::Guid(_) => &mut roots.guids,
    };
    by_key.insert(pages, &key.bytes(), &id_key(id))?;
    roots.series.insert(pages, &id_key(id), &info.encode())?;
    roots.next_series += 1;
    update::add(tags, id, info.name.as_ref());
    update::store_many(&mut roots.tags, pages, tags)?;
    Ok(Arc::new(info))
}

/// Replaces the catalog entry of a series by one with more columns.
pub(crate) fn change_schema<W: PageWrite>(
    roots: &mut Roots,
    pages: &mut W,
    info: &SeriesInfo,
    schema: Schema,
) -> Result<Arc<SeriesInfo>> {
    let info = SeriesInfo {
        schema,
        ..info.clone()
    };
    roots
        .series
        .insert(pages, &id_key(info.id), &info.encode())?;
    Ok(Arc::new(info))
}

/// Replaces the catalog entry of a series by one with another merge policy.
pub(crate) fn change_merge<W: PageWrite>(
    roots: &mut Roots,
    pages: &mut W,
    info: &SeriesInfo,
    merge: MergePolicy,
) -> Result<Arc<SeriesInfo>> {
    let info = SeriesInfo {
        merge,
        several: info.several || merge.keeps_several(),
        ..info.clone()
    };
    let entry = info.encode();
    roots.series.insert(pages, &id_key(info.id), &entry)?;
    Ok(Arc::new(info))
}

/// Removes a series from the catalog. The caller must have removed its rows before.
pub(crate) fn remove<W: PageWrite>(
    roots: &mut Roots,
    pages: &mut W,
    tags: &mut Changes,
    id: SeriesId,
) -> Result<()> {
    let Some(info) = info(roots, pages, id)? else {
        return Ok(());
    };
    if let Some(name) = &info.name {
        roots.names.remove(pages, &SeriesKey::Name(name).bytes())?;
    }
    if let Some(guid) = &info.guid {
        roots.guids.remove(pages, &SeriesKey::Guid(guid).bytes())?;
    }
    update::remove(tags, id, info.name.as_ref());
    roots.records.remove(pages, &id_key(id))?;
    roots.series.remove(pages, &id_key(id))?;
    Ok(())
}

/// Sets or replaces the name of a series. The caller has checked that no other series has this name.
pub(crate) fn rename<W: PageWrite>(
    roots: &mut Roots,
    pages: &mut W,
    tags: &mut Changes,
    id: SeriesId,
    name: &SeriesName,
) -> Result<Arc<SeriesInfo>> {
    let Some(info) = info(roots, pages, id)? else {
        return Err(Error::from(Cause::NoSuchSeries {
            wanted: format!("number {}", id.0),
        }));
    };
    let mut info = SeriesInfo::clone(&info);
    update::remove(tags, id, info.name.as_ref());
    update::add(tags, id, Some(name));
    if let Some(old) = info.name.replace(name.clone()) {
        roots.names.remove(pages, &SeriesKey::Name(&old).bytes())?;
    }
    let key = SeriesKey::Name(name).bytes();
    roots.names.insert(pages, &key, &id_key(id))?;
    roots.series.insert(pages, &id_key(id), &info.encode())?;
    update::store_many(&mut roots.tags, pages, tags)?;
    Ok(Arc::new(info))
}

/// Returns all series whose names match the pattern, in order of id. `info` reads the entry of a series.
pub(crate) fn list<R: PageRead>(
    roots: &Roots,
    pages: &R,
    pattern: &SeriesPattern,
    info: impl Fn(SeriesId) -> Result<Option<Arc<SeriesInfo>>>,
) -> Result<Vec<Arc<SeriesInfo>>> {
    let mut found = Vec::new();
    if pattern.selects_all() {
        each_from(roots, pages, &mut Vec::new(), &mut |info| {
            found.push(Arc::new(info))
        })?;
        return Ok(found);
    }
    for id in select::candidates(&roots.tags, pages, pattern.parsed())? {
        let Some(info) = info(SeriesId(id))? else {
            let indexed = format!("{} is not in the catalog", SeriesId(id));
            return Err(Corrupt::new("index of tags", 0, indexed, "series of the catalog").into());
        };
        let matches = match &info.name {
            Some(name) => pattern.matches(name),
            None => SeriesName::new(info.label(), []).is_ok_and(|name| pattern.matches(&name)),
        };
        if matches {
            found.push(info);
        }
    }
    Ok(found)
}

/// Calls `each` with every series from the catalog key `at` on, in order of id, and advances `at`.
pub(crate) fn each_from<R: PageRead>(
    roots: &Roots,
    pages: &R,
    at: &mut Vec<u8>,
    each: &mut dyn FnMut(SeriesInfo),
) -> Result<()> {
    let mut cursor = roots.series.cursor(pages);
    let mut there = cursor.seek_ge(at)?;
    while there {
        cursor.key().clone_into(at);
        let id = decode_id(cursor.key())?;
        each(SeriesInfo::decode_exact(id, &cursor.value()?.to_vec()?)?);
        there = cursor.next()?;
    }
    Ok(())
}

/// Returns an error unless the series has exactly this schema. Called when a series is opened with a schema.
pub(crate) fn expect_schema(info: &SeriesInfo, schema: &Schema) -> Result<()> {
    if info.schema == *schema {
        return Ok(());
    }
    let problem = format!(
        "series {} has {}; asked for was {schema}",
        info.label(),
        info.schema,
    );
    Err(Error::from(Cause::Schema { problem }))
}

/// Returns an error unless the columns of the series begin with those of the record type; the series may have more.
pub(crate) fn expect_first_columns(info: &SeriesInfo, schema: &Schema) -> Result<()> {
    if info.schema.columns.starts_with(&schema.columns) {
        return Ok(());
    }
    expect_columns(info, schema)
}

/// Returns an error unless the series has the record type's unit of time. Called if the record's times are plain
/// numbers.
pub(crate) fn expect_unit(info: &SeriesInfo, schema: &Schema) -> Result<()> {
    if info.schema.unit == schema.unit {
        return Ok(());
    }
    let problem = format!(
        "series {} counts time in {:?}, the record in {:?}: give the record the series' unit, or a Timestamp as its time",
        info.label(),
        info.schema.unit,
        schema.unit
    );
    Err(Error::from(Cause::Schema { problem }))
}

/// Returns an error unless the series has exactly the columns of the record type, as writing requires.
pub(crate) fn expect_columns(info: &SeriesInfo, schema: &Schema) -> Result<()> {
    if info.schema.columns == schema.columns {
        return Ok(());
    }
    let problem = format!(
        "series {} has the columns {}; asked for were {}",
        info.label(),
        Described(&info.schema.columns),
        Described(&schema.columns)
    );
    Err(Error::from(Cause::Schema { problem }))
}

/// The error for rows whose number of columns is not the series'.
pub(crate) fn wrong_columns(info: &SeriesInfo, columns: usize, found: usize) -> Error {
    let problem = format!(
        "series {} has {columns} columns, given were {found} (or columns of unequal length)",
        info.label()
    );
    Error::from(Cause::Schema { problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::types::column::{Column, ColumnType};
    use crate::types::instant::Steps;
    use crate::types::schema::Unit;
    use std::sync::Arc;
    use tidalite_base::limits::COLUMNS_MAX;
    use tidalite_pager::MemoryStorage;

    #[test]
    fn reading_only_the_types_refuses_invalid_entries() {
        let entry = |columns: usize| {
            let columns = (0..columns).map(|i| Column::nullable(format!("c{i}"), ColumnType::F64));
            let info = SeriesInfo {
                id: SeriesId(1),
                name: None,
                guid: Some([7; 16]),
                schema: Schema {
                    unit: Unit::Nanos,
                    columns: columns.collect(),
                },
                merge: MergePolicy::Replace,
                several: false,
            };
            info.encode()
        };
        let taken = |bytes: &[u8]| {
            let whole = SeriesInfo::decode(SeriesId(1), bytes);
            let types = SeriesInfo::decode_word_types(SeriesId(1), bytes);
            assert_eq!(whole.is_ok(), types.is_ok(), "{whole:?} {types:?}");
            types.is_ok()
        };
        assert!(taken(&entry(1)) && taken(&entry(COLUMNS_MAX)));
        assert!(!taken(&entry(0)) && !taken(&entry(COLUMNS_MAX + 1)));
        let mut bytes = entry(2);
        for cut in 0..bytes.len() {
            assert!(!taken(&bytes[..cut]), "cut at {cut}");
        }
        bytes.push(0);
        assert!(!taken(&bytes));
    }

    #[test]
    fn check_finds_rows_of_the_delta_that_have_other_columns_than_their_series() {
        let db = Options::new()
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let mut txn = db.begin_write().unwrap();
        let mut series = txn.series("a").unwrap();
        for time in 0..3 {
            series.insert_point(Steps(time), 1, 0.5).unwrap();
        }
        let mut info = series.info().clone();
        txn.commit().unwrap();
        assert!(db.check().unwrap().is_clean());

        // The test changes the catalog directly, as nothing in the library does.
        info.schema = Schema::new(
            Unit::Nanos,
            [("flags", ColumnType::U64), ("value", ColumnType::F64)],
        );
        let mut txn = db.begin_write().unwrap();
        let entry = info.encode();
        let tree = &mut txn.roots.series;
        tree.insert(&mut txn.pages, &id_key(info.id), &entry)
            .unwrap();
        txn.commit().unwrap();
        let report = db.check().unwrap();
        let told = report
            .problems
            .iter()
            .any(|p| p.contains("with the columns"));
        assert!(told, "{:#?}", report.problems);
    }
}
