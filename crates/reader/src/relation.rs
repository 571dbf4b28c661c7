//! Reads relations (section 9.15 of docs/format.md): the schema and the rows. The entries of the indexes follow from
//! these and are compared with the stored ones.

use crate::bytes::Fields;
use crate::error::Result;
use crate::parts::end;
use crate::relation_cells::{Cell, Kind, decode_key, field, key_piece, nullable_field};
use crate::runs::{broken, plain, require};
use crate::shown::Bytes;
use crate::table::{Rows, Value};
use std::collections::BTreeMap;
use std::fmt;

const SCHEMA_VERSION: u8 = 1;
const COLUMNS_MAX: u64 = 1024;
const KEY_COLUMNS_MAX: u64 = 32;
const FIELDS_MAX: u64 = 4096;
const INDEXES_MAX: u64 = 200;

/// A relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The columns.
    pub columns: Vec<Column>,
    /// Positions of the columns of the primary key; empty for a hidden key.
    pub key: Vec<usize>,
    /// The indexes.
    pub indexes: Vec<Index>,
    /// The next hidden key.
    pub sequence: u64,
    /// The hidden key, if there is one, and the cells of each row.
    pub rows: Vec<(Option<u64>, Vec<Cell>)>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// True if null is refused.
    pub not_null: bool,
    /// The value for rows that do not specify one.
    pub default: Option<Cell>,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Positions of its columns.
    pub columns: Vec<usize>,
    /// True if two rows cannot have the same cells.
    pub unique: bool,
}

/// The place of a column.
enum Place {
    Key(usize),
    Field(usize),
}

/// The schema, with the places of columns and the numbers of indexes.
struct Schema {
    columns: Vec<Column>,
    places: Vec<Place>,
    key: Vec<usize>,
    /// Type of each field, and its value in rows that are older than the field.
    fields: Vec<(Kind, Cell)>,
    indexes: Vec<(u64, Index)>,
}

fn below(fields: &mut Fields<'_>, limit: u64, reason: &'static str) -> Result<usize> {
    let number = fields.varint()?;
    fields.require(number < limit, reason)?;
    Ok(number as usize)
}

fn name(fields: &mut Fields<'_>) -> Result<String> {
    let bytes = below(fields, 256, "the name of a column or an index")?;
    fields.require(bytes > 0, "an empty name")?;
    let bytes = fields.take(bytes)?.to_vec();
    String::from_utf8(bytes).map_err(|_| broken("a name that is not UTF-8"))
}

impl Schema {
    fn read(bytes: &[u8]) -> Result<Self> {
        let fields = &mut Fields::new(bytes, 0);
        let version = fields.u8()?;
        fields.require(version == SCHEMA_VERSION, "the version of a schema")?;
        let (mut columns, mut places) = (Vec::new(), Vec::new());
        let mut key = BTreeMap::new();
        for at in 0..below(fields, COLUMNS_MAX + 1, "the number of columns")? {
            let name = name(fields)?;
            let kind = Kind::read(fields)?;
            let flags = fields.u8()?;
            fields.require(flags < 8, "the flags of a column")?;
            let (not_null, in_key) = (flags & 1 != 0, flags & 2 != 0);
            places.push(if in_key {
                fields.require(not_null, "a column of a key that can be null")?;
                let piece = below(fields, KEY_COLUMNS_MAX, "a piece of a key")?;
                fields.require(key.insert(piece, at).is_none(), "a piece of a key")?;
                Place::Key(piece)
            } else {
                Place::Field(below(fields, FIELDS_MAX, "a field")?)
            });
            let default = match flags & 4 {
                0 => None,
                _ => Some(nullable_field(fields, kind)?),
            };
            columns.push(Column {
                name,
                kind,
                not_null,
                default,
            });
        }
        require(key.keys().copied().eq(0..key.len()), "the pieces of a key")?;
        let mut stored = Vec::new();
        for _ in 0..below(fields, FIELDS_MAX + 1, "the number of fields")? {
            let kind = Kind::read(fields)?;
            stored.push((kind, nullable_field(fields, kind)?));
        }
        let mut last = None;
        for (column, place) in columns.iter().zip(&places) {
            if let Place::Field(field) = place {
                require(last.replace(*field) < Some(*field), "the order of fields")?;
                let is_same = stored
                    .get(*field)
                    .is_some_and(|(kind, _)| *kind == column.kind);
                require(is_same, "the type of a field")?;
            }
        }
        let next_index = fields.varint()?;
        let mut indexes: Vec<(u64, Index)> = Vec::new();
        for _ in 0..below(fields, INDEXES_MAX + 1, "the number of indexes")? {
            let number = fields.varint()?;
            fields.require(number < next_index, "the number of an index")?;
            let is_new = indexes.iter().all(|(other, _)| *other != number);
            fields.require(is_new, "the number of an index")?;
            let flags = fields.u8()?;
            fields.require(flags < 2, "the flags of an index")?;
            let name = name(fields)?;
            let mut of = Vec::new();
            for _ in 0..below(fields, KEY_COLUMNS_MAX + 1, "the columns of an index")? {
                let column = below(fields, columns.len() as u64, "a column of an index")?;
                fields.require(!of.contains(&column), "a column of an index")?;
                of.push(column);
            }
            fields.require(!of.is_empty(), "an index without columns")?;
            let index = Index {
                name,
                columns: of,
                unique: flags == 1,
            };
            indexes.push((number, index));
        }
        end(fields, "a schema goes on")?;
        require(!columns.is_empty(), "a schema without columns")?;
        let is_repeated = |names: Vec<&str>| {
            let count = names.len();
            let names: std::collections::BTreeSet<&str> = names.into_iter().collect();
            names.len() < count
        };
        let names = columns.iter().map(|one| one.name.as_str()).collect();
        require(!is_repeated(names), "two columns with one name")?;
        let names = indexes.iter().map(|(_, one)| one.name.as_str()).collect();
        require(!is_repeated(names), "two indexes with one name")?;
        Ok(Self {
            columns,
            places,
            key: key.into_values().collect(),
            fields: stored,
            indexes,
        })
    }

    /// The fields of a row, in the order of their ids.
    fn fields_of(&self, value: &[u8]) -> Result<Vec<Cell>> {
        let fields = &mut Fields::new(value, 0);
        let count = below(fields, self.fields.len() as u64 + 1, "the fields of a row")?;
        let present = fields.take(count.div_ceil(8))?;
        let is_present = |at: usize| {
            present
                .get(at / 8)
                .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
        };
        require(
            (count..8 * present.len()).all(|at| !is_present(at)),
            "bits of fields that a row does not have",
        )?;
        let mut cells = Vec::new();
        for (at, (kind, absent)) in self.fields.iter().enumerate() {
            cells.push(match at < count {
                true if is_present(at) => field(fields, *kind)?,
                true => Cell::Null,
                false => absent.clone(),
            });
        }
        end(fields, "a row goes on")?;
        Ok(cells)
    }

    /// The hidden key and the cells of a row.
    fn row(&self, key: &[u8], value: &[u8]) -> Result<(Option<u64>, Vec<Cell>)> {
        let fields = &mut Fields::new(key, 0);
        let mut pieces = Vec::new();
        let mut hidden = None;
        match self.key.is_empty() {
            true => hidden = Some(fields.big(8)?),
            false => {
                for column in &self.key {
                    pieces.push(decode_key(fields, self.columns[*column].kind)?);
                }
            }
        }
        end(fields, "the key of a row goes on")?;
        let stored = self.fields_of(value)?;
        let cells = self.places.iter().map(|place| match place {
            Place::Key(piece) => pieces[*piece].clone(),
            Place::Field(field) => stored[*field].clone(),
        });
        let cells: Vec<Cell> = cells.collect();
        for (column, cell) in self.columns.iter().zip(&cells) {
            require(
                !column.not_null || *cell != Cell::Null,
                "a null that is refused",
            )?;
        }
        let again = self
            .key
            .iter()
            .map(|column| key_piece(self.columns[*column].kind, &cells[*column]));
        if hidden.is_none() {
            let again: Vec<Vec<u8>> = again.collect();
            require(again.concat() == key, "a key in another form")?;
        }
        Ok((hidden, cells))
    }

    /// The key of a row in an index.
    fn entry(&self, index: &Index, cells: &[Cell], key: &[u8]) -> Vec<u8> {
        let mut bytes = self.entry_columns(index, cells);
        bytes.extend_from_slice(key);
        bytes
    }

    fn entry_columns(&self, index: &Index, cells: &[Cell]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &column in &index.columns {
            let cell = &cells[column];
            bytes.push(u8::from(*cell != Cell::Null));
            bytes.extend(key_piece(self.columns[column].kind, cell));
        }
        bytes
    }
}

impl Relation {
    /// Decodes a relation from the rows of its root table.
    ///
    /// # Errors
    /// If the table breaks a rule of the format.
    pub fn read(root: &Rows) -> Result<Self> {
        let (mut schema, mut stored) = (None, Vec::new());
        let mut sequence = 0;
        let mut entries = BTreeMap::new();
        for (key, value) in &root.rows {
            match (key.as_slice(), value) {
                ([0], Value::Bytes(bytes)) => schema = Some(Schema::read(bytes)?),
                ([1], Value::Table(rows)) => {
                    sequence = rows.sequence;
                    stored = plain(rows)?;
                }
                ([2, number @ ..], Value::Table(rows)) if number.len() == 4 => {
                    entries.insert(crate::bytes::big(number), plain(rows)?);
                }
                _ => return Err(broken("a part of a relation")),
            }
        }
        let schema = schema.ok_or_else(|| broken("a relation without a schema"))?;
        let mut rows = Vec::new();
        for (key, value) in &stored {
            let row = schema.row(key, value)?;
            require(row.0.is_none_or(|hidden| hidden < sequence), "a hidden key")?;
            rows.push(row);
        }
        for (number, index) in &schema.indexes {
            let mut expected = Vec::new();
            let mut unique = Vec::new();
            for ((key, _), (_, cells)) in stored.iter().zip(&rows) {
                expected.push(schema.entry(index, cells, key));
                if index
                    .columns
                    .iter()
                    .all(|column| cells[*column] != Cell::Null)
                {
                    unique.push(schema.entry_columns(index, cells));
                }
            }
            expected.sort_unstable();
            let found = entries.remove(number).unwrap_or_default();
            let is_empty = found.iter().all(|(_, value)| value.is_empty());
            require(is_empty, "an entry of an index with a value")?;
            let keys = found.iter().map(|(key, _)| *key);
            require(
                keys.eq(expected.iter().map(Vec::as_slice)),
                "the entries of an index",
            )?;
            unique.sort_unstable();
            let is_unique = unique.windows(2).all(|pair| pair[0] != pair[1]);
            require(!index.unique || is_unique, "an index that is not unique")?;
        }
        require(entries.is_empty(), "an index that the schema does not have")?;
        Ok(Self {
            columns: schema.columns,
            key: schema.key,
            indexes: schema.indexes.into_iter().map(|(_, index)| index).collect(),
            sequence,
            rows,
        })
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for column in &self.columns {
            write!(
                f,
                "  column {}: {}",
                Bytes(column.name.as_bytes()),
                column.kind
            )?;
            if column.not_null {
                f.write_str(", not null")?;
            }
            if let Some(default) = &column.default {
                write!(f, ", default {default}")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "  key {:?}, sequence {}", self.key, self.sequence)?;
        for index in &self.indexes {
            let unique = if index.unique {
                "unique index"
            } else {
                "index"
            };
            let name = Bytes(index.name.as_bytes());
            writeln!(f, "  {unique} {name} {:?}", index.columns)?;
        }
        for (hidden, cells) in &self.rows {
            let hidden = hidden.map(|hidden| hidden.to_string()).into_iter();
            let cells: Vec<String> = hidden.chain(cells.iter().map(Cell::to_string)).collect();
            writeln!(f, "  {}", cells.join(" | "))?;
        }
        Ok(())
    }
}
