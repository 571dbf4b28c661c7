//! The catalog: section 9. Roots in the app area, names and schemas of series, types of tables, annotations, policies.

use crate::bytes::{Fields, big};
use crate::error::{Error, Result};
use crate::image::{Image, text};
use crate::table::{Rows, TREE_BYTES, Tree, Value};
use std::collections::BTreeMap;

const ROOTS_VERSION: usize = 4;
const INLINE_MAX: usize = 8;
const ENTRY_VERSION: u8 = 1;
const SCHEMA_VERSION: u8 = 2;
const POLICY_VERSION: u8 = 3;
const POLICIES_OF_TIMES: u8 = 5;

/// Names of the units of times, by their numbers.
pub const UNITS: [&str; 5] = ["ns", "us", "ms", "s", "100 ns since year 1"];

/// Names of the types of columns, from number 1 on.
pub const TYPES: [&str; 9] = [
    "f64", "i64", "u64", "f32", "bool", "decimal", "string", "bytes", "guid",
];

/// The number of the type of decimals.
pub const DECIMAL: u8 = 6;

/// The number of the type of GUIDs.
pub const GUID: u8 = 9;

/// Names of the merge policies, by their numbers.
pub const MERGES: [&str; 5] = [
    "replace",
    "keep the first",
    "refuse",
    "keep all",
    "keep all that differ",
];

/// The roots in the app area.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Tables by name.
    pub tables: Tree,
    /// Series by name.
    pub names: Tree,
    /// Series by GUID.
    pub guids: Tree,
    /// Catalog entries.
    pub series: Tree,
    /// Series records.
    pub records: Tree,
    /// Extents of leaves.
    pub extents: Tree,
    /// Retention policies.
    pub policies: Tree,
    /// Texts of rows.
    pub texts: Tree,
    /// Annotations of series.
    pub annotations: Tree,
    /// The 96 bytes of the root of the delta.
    pub delta: Vec<u8>,
    /// Roots that are newer than those in `tables`, by table.
    pub inline: BTreeMap<u64, Tree>,
}

impl Roots {
    /// Reads the app area; `None` in a new file.
    ///
    /// # Errors
    /// If it is of another version or damaged.
    pub fn read(app: &[u8]) -> Result<Option<Self>> {
        if app.is_empty() {
            return Ok(None);
        }
        let mut fields = Fields::new(app, 0);
        let version = fields.u32()?;
        if version != ROOTS_VERSION {
            let value = version as u64;
            let field = "version of the app area";
            return Err(Error::Unknown { field, value });
        }
        let inline_count = fields.u32()?;
        fields.require(inline_count <= INLINE_MAX, "too many inline roots")?;
        let _next_series = fields.u64()?;
        let _next_table = fields.u64()?;
        let mut tree = |id: u64| -> Result<Tree> {
            let tree = Tree::read(&mut fields)?;
            fields.require(tree.id == id, "the owner of a catalog table")?;
            Ok(tree)
        };
        let mut roots = Self {
            tables: tree(1)?,
            names: tree(2)?,
            guids: tree(3)?,
            series: tree(4)?,
            records: tree(5)?,
            extents: tree(6)?,
            policies: tree(7)?,
            texts: tree(8)?,
            annotations: tree(9)?,
            delta: fields.take(96)?.to_vec(),
            inline: BTreeMap::new(),
        };
        let _clock = fields.take(32)?;
        for _ in 0..inline_count {
            let id = fields.u64()?;
            let tree = Tree::read(&mut fields)?;
            fields.require(tree.id == id, "the owner of an inline root")?;
            roots.inline.insert(id, tree);
        }
        fields.require(fields.left() == 0, "the app area goes on")?;
        Ok(Some(roots))
    }
}

/// A table of the user.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// Its name.
    pub name: String,
    /// Its root.
    pub tree: Tree,
    /// Names of the types of keys and values, where they are recorded.
    pub types: Option<(String, String)>,
}

/// The tables of the user, by name.
///
/// # Errors
/// If an entry is damaged.
pub fn tables(image: &Image, roots: &Roots) -> Result<Vec<TableEntry>> {
    let mut tables = Vec::new();
    for (key, value) in plain_rows(image, &roots.tables)? {
        let mut fields = Fields::new(&value, 0);
        let name = text(&key, &fields)?;
        let id = fields.u64()?;
        let stored = Tree::read(&mut fields)?;
        debug_assert_eq!(fields.position(), 8 + TREE_BYTES);
        let types = if fields.left() == 0 {
            None
        } else {
            let mut name = || -> Result<String> {
                let bytes = usize::from(fields.u8()?);
                fields.require(bytes > 0, "the name of a type")?;
                text(fields.take(bytes)?, &fields)
            };
            Some((name()?, name()?))
        };
        fields.require(fields.left() == 0, "the entry of a table goes on")?;
        fields.require(stored.id == id, "the owner of a table")?;
        tables.push(TableEntry {
            name,
            tree: roots.inline.get(&id).copied().unwrap_or(stored),
            types,
        });
    }
    Ok(tables)
}

/// Rows of a table of the catalog: all values are bytes.
///
/// # Errors
/// If the table is damaged.
pub fn plain_rows(image: &Image, tree: &Tree) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let Rows { rows, .. } = tree.rows(image)?;
    let plain = rows.into_iter().map(|(key, value)| match value {
        Value::Bytes(bytes) => Ok((key, bytes)),
        _ => Err(Error::damaged(0, "a catalog with a nested table")),
    });
    plain.collect()
}

/// A column of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Type, 1 to 9.
    pub kind: u8,
    /// Whether it has nulls.
    pub nulls: bool,
    /// Decimal places.
    pub scale: u8,
}

impl Column {
    /// The type of the words (section 6).
    #[must_use]
    pub fn words(&self) -> u8 {
        let words = match self.kind {
            1 => 1,
            2 | 6 => 2,
            4 => 4,
            _ => 3,
        };
        if self.nulls { words | 16 } else { words }
    }
}

/// A catalog entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesEntry {
    /// Number of the series.
    pub id: u64,
    /// Canonical name.
    pub name: Option<String>,
    /// GUID.
    pub guid: Option<[u8; 16]>,
    /// Name of the unit of its times.
    pub unit: &'static str,
    /// Name of the merge policy.
    pub merge: &'static str,
    /// Whether several rows may have one time.
    pub equal_times: bool,
    /// The schema.
    pub columns: Vec<Column>,
}

/// The series, by number.
///
/// # Errors
/// If an entry is damaged, or names and GUIDs do not lead to their series.
pub fn series(image: &Image, roots: &Roots) -> Result<Vec<SeriesEntry>> {
    let names = ids(image, &roots.names)?;
    let guids = ids(image, &roots.guids)?;
    let mut entries = Vec::new();
    let (mut named, mut with_guid) = (0, 0);
    for (key, value) in plain_rows(image, &roots.series)? {
        let entry = series_entry(&key, &value)?;
        if let Some(name) = &entry.name {
            named += 1;
            if names.get(name.as_bytes()) != Some(&entry.id) {
                return Err(Error::damaged(0, "a name leads to another series"));
            }
        }
        if let Some(guid) = &entry.guid {
            with_guid += 1;
            if guids.get(&guid[..]) != Some(&entry.id) {
                return Err(Error::damaged(0, "a GUID leads to another series"));
            }
        }
        entries.push(entry);
    }
    if (named, with_guid) != (names.len(), guids.len()) {
        return Err(Error::damaged(0, "a name or a GUID of no series"));
    }
    Ok(entries)
}

/// A table whose values are numbers of series.
fn ids(image: &Image, tree: &Tree) -> Result<BTreeMap<Vec<u8>, u64>> {
    let rows = plain_rows(image, tree)?.into_iter();
    let ids = rows.map(|(key, value)| Ok((key, series_id(&value)?)));
    ids.collect()
}

/// The number of a series, big-endian.
///
/// # Errors
/// If these are not eight bytes.
pub fn series_id(bytes: &[u8]) -> Result<u64> {
    if bytes.len() == 8 {
        Ok(big(bytes))
    } else {
        Err(Error::damaged(0, "the number of a series"))
    }
}

fn series_entry(key: &[u8], value: &[u8]) -> Result<SeriesEntry> {
    let mut fields = Fields::new(value, 0);
    let version = fields.u8()?;
    if version != ENTRY_VERSION {
        let value = u64::from(version);
        let field = "version of a catalog entry";
        return Err(Error::Unknown { field, value });
    }
    let flags = fields.u8()?;
    let merge = flags >> 2 & 7;
    let guid = fields.id()?;
    let name_bytes = fields.u16()?;
    let name = text(fields.take(name_bytes)?, &fields)?;
    fields.require(
        merge < POLICIES_OF_TIMES && flags & 0xc0 == 0 && (merge < 3 || flags & 32 != 0),
        "flags of a catalog entry",
    )?;
    fields.require(
        (flags & 1 != 0) != name.is_empty() && (flags & 2 != 0 || guid == [0; 16]),
        "name and GUID of a catalog entry",
    )?;

    let schema = fields.u8()?;
    fields.require(schema == SCHEMA_VERSION, "the version of a schema")?;
    let unit = fields.u8()?;
    let unit = UNITS.get(usize::from(unit)).copied();
    let unit = unit.ok_or_else(|| fields.damaged("the unit of a series"))?;
    let count = fields.u16()?;
    fields.require((1..=64).contains(&count), "columns of a series")?;
    let mut columns: Vec<Column> = Vec::new();
    for _ in 0..count {
        let kind = fields.u8()?;
        let column_flags = fields.u8()?;
        let scale = fields.u8()?;
        let zero = fields.u8()?;
        let bytes = fields.u16()?;
        let name = text(fields.take(bytes)?, &fields)?;
        fields.require(
            (1..=9).contains(&kind) && column_flags <= 1 && zero == 0,
            "the type of a column",
        )?;
        fields.require(scale <= 18 && (kind == 6 || scale == 0), "a scale")?;
        fields.require(
            (1..=255).contains(&bytes) && columns.iter().all(|other| other.name != name),
            "the name of a column",
        )?;
        columns.push(Column {
            name,
            kind,
            nulls: column_flags == 1,
            scale,
        });
    }
    fields.require(fields.left() == 0, "a catalog entry goes on")?;
    Ok(SeriesEntry {
        id: series_id(key)?,
        name: (flags & 1 != 0).then_some(name),
        guid: (flags & 2 != 0).then_some(guid),
        unit,
        merge: MERGES[usize::from(merge)],
        equal_times: flags & 32 != 0,
        columns,
    })
}

/// Annotations: series, key, text.
///
/// # Errors
/// If the table is damaged.
pub fn annotations(image: &Image, roots: &Roots) -> Result<Vec<(u64, String, String)>> {
    let mut annotations = Vec::new();
    for (key, value) in plain_rows(image, &roots.annotations)? {
        let fields = Fields::new(&value, 0);
        fields.require((9..=72).contains(&key.len()), "the key of an annotation")?;
        let (id, name) = key.split_at(8);
        annotations.push((series_id(id)?, text(name, &fields)?, text(&value, &fields)?));
    }
    Ok(annotations)
}

/// A retention policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Selects series.
    pub pattern: String,
    /// Nanoseconds that rows are kept; 0 for no such bound.
    pub keep_nanos: u64,
    /// Whether ages are counted from the newest row of a series.
    pub from_newest: bool,
    /// Bytes that may be used; 0 for no such bound.
    pub bytes_max: u64,
    /// Nanoseconds after which leaves become cold; 0 for never.
    pub cold_nanos: u64,
}

/// The retention policies, by name.
///
/// # Errors
/// If one is damaged.
pub fn policies(image: &Image, roots: &Roots) -> Result<Vec<Policy>> {
    let mut policies = Vec::new();
    for (key, value) in plain_rows(image, &roots.policies)? {
        let mut fields = Fields::new(&value, 0);
        let version = fields.u8()?;
        if version != POLICY_VERSION {
            let value = u64::from(version);
            let field = "version of a policy";
            return Err(Error::Unknown { field, value });
        }
        let from = fields.u8()?;
        fields.require(from <= 1, "where a policy counts ages from")?;
        fields.skip(6)?;
        let keep_nanos = fields.u64()?;
        let bytes_max = fields.u64()?;
        let cold_nanos = fields.u64()?;
        let bytes = fields.u16()?;
        let pattern = text(fields.take(bytes)?, &fields)?;
        fields.require(fields.left() == 0, "a policy goes on")?;
        policies.push(Policy {
            name: text(&key, &fields)?,
            pattern,
            keep_nanos,
            from_newest: from == 1,
            bytes_max,
            cold_nanos,
        });
    }
    Ok(policies)
}
