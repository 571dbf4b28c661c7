//! Reads the catalog (section 9 of docs/format.md): roots in the app area of the meta record, names and schemas of
//! series, types of tables, annotations, policies.

use crate::bytes::{Fields, big};
use crate::error::{Error, Result};
use crate::image::{Image, text};
use crate::table::{Rows, TREE_BYTES, Tree, Value};
use std::collections::BTreeMap;

const ROOTS_VERSION: usize = 6;
const INLINE_MAX: usize = 8;
const ENTRY_VERSION: u8 = 1;
const SCHEMA_VERSION: u8 = 2;
const POLICY_VERSION: u8 = 4;
const POLICIES_OF_TIMES: u8 = 5;

/// Names of the units of time, indexed by their number in the file.
pub const UNITS: [&str; 5] = ["ns", "us", "ms", "s", "100 ns since year 1"];

/// Names of the column types; the first has number 1 in the file.
pub const TYPES: [&str; 9] = [
    "f64", "i64", "u64", "f32", "bool", "decimal", "string", "bytes", "guid",
];

/// The number of the column type decimal in the file.
pub const DECIMAL: u8 = 6;

/// The number of the column type GUID in the file.
pub const GUID: u8 = 9;

/// Names of the merge policies, indexed by their number in the file.
pub const MERGES: [&str; 5] = [
    "replace",
    "keep the first",
    "refuse",
    "keep all",
    "keep all that differ",
];

/// The roots of the catalog's tables, from the app area of the meta record.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Table of the user's tables, by name.
    pub tables: Tree,
    /// Table from names of series to their numbers.
    pub names: Tree,
    /// Table from GUIDs of series to their numbers.
    pub guids: Tree,
    /// Table of the catalog entries of series, by number.
    pub series: Tree,
    /// Table of the series records, which hold the roots of the series' trees.
    pub records: Tree,
    /// Table of the extents in which leaves of series are stored.
    pub extents: Tree,
    /// Table of the retention policies.
    pub policies: Tree,
    /// Table of the texts (strings, bytes and GUIDs) to which rows refer.
    pub texts: Tree,
    /// Table of the annotations of series.
    pub annotations: Tree,
    /// Table of the index of series by metric and tags.
    pub tags: Tree,
    /// The 96 bytes of the root of the delta, which holds rows of series that are in no leaf yet.
    pub delta: Vec<u8>,
    /// Roots of tables that are newer than the roots in `tables`, by number of the table.
    pub inline: BTreeMap<u64, Tree>,
}

impl Roots {
    /// Decodes the app area of a meta record; `None` for a new file, whose app area is empty.
    ///
    /// # Errors
    /// If the app area has an unknown version or is damaged.
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
            tags: tree(10)?,
            delta: fields.take(96)?.to_vec(),
            inline: BTreeMap::new(),
        };
        let _clock = fields.take(32)?;
        let _relations = fields.u64()?;
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
    /// Name of the table.
    pub name: String,
    /// Root of the table's B+tree.
    pub tree: Tree,
    /// Names of the types of keys and values, if the file records them.
    pub types: Option<(String, String)>,
    /// The layout of the table.
    pub layout: Layout,
}

/// The layouts of tables; each has its number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Rows with plain values, sets or nested tables.
    Rows,
    /// A hash table (section 9.9).
    Hash,
    /// A buffered table (section 9.10).
    Buffered,
    /// Topics (section 9.11).
    Topics,
    /// A queue (section 9.12).
    Queue,
    /// A bucket (section 9.13).
    Bucket,
    /// Containers (section 9.14).
    Containers,
    /// A relation (section 9.15).
    Relation,
}

impl Layout {
    fn of(number: u8, fields: &Fields<'_>) -> Result<Self> {
        Ok(match number {
            1 => Self::Hash,
            2 => Self::Buffered,
            3 => Self::Topics,
            4 => Self::Queue,
            5 => Self::Bucket,
            6 => Self::Containers,
            7 => Self::Relation,
            _ => return Err(fields.damaged("the layout of a table")),
        })
    }

    /// Whether the entries of tables with this layout have names of types.
    fn has_types(self) -> bool {
        matches!(self, Self::Rows | Self::Hash | Self::Buffered)
    }
}

/// Reads the list of the user's tables, ordered by name.
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
        let mut layout = Layout::Rows;
        if value.get(8 + TREE_BYTES) == Some(&0) {
            fields.skip(1)?;
            layout = Layout::of(fields.u8()?, &fields)?;
        }
        let is_plain = layout == Layout::Rows && fields.left() == 0;
        let types = if is_plain || !layout.has_types() {
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
            layout,
        });
    }
    Ok(tables)
}

/// Reads all rows of a table of the catalog, whose values are plain bytes.
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

/// A column in the schema of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Number of the column type, 1 to 9.
    pub kind: u8,
    /// True if the column may contain nulls.
    pub nulls: bool,
    /// Number of decimal places, for a column of type decimal.
    pub scale: u8,
}

impl Column {
    /// Number of the type of the encoded words, as in section 6 of docs/format.md.
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

/// The catalog entry of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesEntry {
    /// Number of the series.
    pub id: u64,
    /// Canonical name of the series, if it has a name.
    pub name: Option<String>,
    /// GUID of the series, if it has one.
    pub guid: Option<[u8; 16]>,
    /// Name of the unit of the timestamps.
    pub unit: &'static str,
    /// Name of the merge policy.
    pub merge: &'static str,
    /// True if several rows may have the same timestamp.
    pub equal_times: bool,
    /// The columns of the schema.
    pub columns: Vec<Column>,
}

/// Reads the catalog entries of all series, ordered by number.
///
/// # Errors
/// If an entry is damaged, or a name or GUID does not lead to its series.
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

/// Reads a table whose values are numbers of series.
fn ids(image: &Image, tree: &Tree) -> Result<BTreeMap<Vec<u8>, u64>> {
    let rows = plain_rows(image, tree)?.into_iter();
    let ids = rows.map(|(key, value)| Ok((key, series_id(&value)?)));
    ids.collect()
}

/// Decodes the number of a series, which is big-endian.
///
/// # Errors
/// If `bytes` is not eight bytes long.
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

/// Reads the annotations of all series: number of the series, key, text.
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
    /// Name of the policy.
    pub name: String,
    /// Pattern that selects series by their names.
    pub pattern: String,
    /// Number of nanoseconds after which rows may be removed; 0 if there is no such limit.
    pub keep_nanos: u64,
    /// True if ages are counted from the newest row of a series instead of the current time.
    pub from_newest: bool,
    /// Maximum number of bytes that the rows may use; 0 if there is no such limit.
    pub bytes_max: u64,
    /// Number of nanoseconds after which leaves are rewritten in cold form; 0 for never.
    pub cold_nanos: u64,
    /// The rule by which windows replace old rows, as it is stored; empty if there is none.
    pub downsample: String,
}

/// Reads the retention policies, ordered by name.
///
/// # Errors
/// If a policy is damaged.
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
        let rule = fields.left();
        let downsample = text(fields.take(rule)?, &fields)?;
        policies.push(Policy {
            name: text(&key, &fields)?,
            pattern,
            keep_nanos,
            from_newest: from == 1,
            bytes_max,
            cold_nanos,
            downsample,
        });
    }
    Ok(policies)
}
