//! The schema of a relation, with the places at which its columns and indexes are stored.
//!
//! Invariants:
//! 1. A column is either a piece of the primary key or a field of the row's value, never both.
//! 2. Field ids and index numbers are never used again. A dropped field keeps its id and type, because older rows still
//!    contain it.
//! 3. `indexes` is in the same order as `schema.indexes`.

use crate::cell::Cell;
use crate::error::{Conflict, Error, Result, unusable};
use crate::fields;
use crate::key;
use crate::kind::ColumnType;
use crate::schema::{Index, Schema};
use std::fmt::Write;

/// Maximum number of columns outside the primary key that a relation has ever had.
pub const FIELDS_MAX: usize = 4096;

/// Maximum length in bytes of the value of a row: its columns outside the primary key.
pub const ROW_BYTES_MAX: usize = 1 << 30;

/// The place at which a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The piece of the primary key with this number.
    Key(usize),
    /// The field with this id.
    Field(usize),
}

/// A field of the rows' values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) kind: ColumnType,
    /// The value in rows that were written before the field was added.
    pub(crate) absent: Cell,
}

/// An index and the place at which it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredIndex {
    pub(crate) number: u32,
    /// Positions of its columns.
    pub(crate) columns: Vec<usize>,
}

/// A piece of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: ColumnType,
    pub(crate) nullable: bool,
    /// Position of its column; `None` for the hidden key.
    pub(crate) column: Option<usize>,
}

/// A schema, with the places of its columns and indexes.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    pub(crate) schema: Schema,
    /// The place of each column.
    pub(crate) places: Vec<Place>,
    /// Positions of the columns of the primary key; empty for a hidden key.
    pub(crate) key: Vec<usize>,
    pub(crate) fields: Vec<Field>,
    pub(crate) indexes: Vec<StoredIndex>,
    pub(crate) next_index: u32,
}

impl Layout {
    /// Assigns places to the columns and indexes of a new relation.
    ///
    /// # Errors
    /// `Schema` for a schema that cannot be used.
    pub fn of(mut schema: Schema) -> Result<Self> {
        schema.check()?;
        let key = schema.positions("the primary key", &schema.primary_key)?;
        for &at in &key {
            schema.columns[at].not_null = true;
            schema.columns[at].check()?;
        }
        let mut fields = Vec::new();
        let mut places = Vec::with_capacity(schema.columns.len());
        for (at, column) in schema.columns.iter().enumerate() {
            if let Some(piece) = key.iter().position(|one| *one == at) {
                places.push(Place::Key(piece));
                continue;
            }
            places.push(Place::Field(fields.len()));
            fields.push(Field {
                kind: column.kind,
                absent: Cell::Null,
            });
        }
        let mut indexes = Vec::with_capacity(schema.indexes.len());
        for (number, index) in schema.indexes.iter().enumerate() {
            indexes.push(StoredIndex {
                number: number as u32,
                columns: schema.index_positions(index)?,
            });
        }
        Ok(Self {
            next_index: indexes.len() as u32,
            schema,
            places,
            key,
            fields,
            indexes,
        })
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether rows are ordered by a hidden number.
    pub(crate) fn has_hidden_key(&self) -> bool {
        self.key.is_empty()
    }

    /// The pieces of the primary key.
    pub(crate) fn key_pieces(&self) -> Vec<Piece> {
        if self.has_hidden_key() {
            return vec![Piece {
                kind: ColumnType::U64,
                nullable: false,
                column: None,
            }];
        }
        let piece = |&at: &usize| self.piece(at, false);
        self.key.iter().map(piece).collect()
    }

    /// The pieces of the keys of an index: its columns, and the primary key.
    pub(crate) fn index_pieces(&self, index: &StoredIndex) -> Vec<Piece> {
        let columns = index.columns.iter().map(|&at| self.piece(at, true));
        columns.chain(self.key_pieces()).collect()
    }

    fn piece(&self, at: usize, nullable: bool) -> Piece {
        Piece {
            kind: self.schema.columns[at].kind,
            nullable,
            column: Some(at),
        }
    }

    /// The indexes, each with the user's description and its stored form.
    pub(crate) fn each_index(&self) -> impl Iterator<Item = (&Index, &StoredIndex)> {
        self.schema.indexes.iter().zip(&self.indexes)
    }

    /// Position of the index with this name.
    pub(crate) fn index(&self, name: &str) -> Result<usize> {
        let found = self.schema.indexes.iter();
        match found.clone().position(|index| index.name == name) {
            Some(at) => Ok(at),
            None => unusable(format!("there is no index {name}")),
        }
    }

    /// Name of the column of a piece, for error texts.
    pub(crate) fn piece_name(&self, piece: &Piece) -> &str {
        match piece.column {
            Some(at) => &self.schema.columns[at].name,
            None => "the hidden key",
        }
    }

    /// Checks that a row has a valid value for each column.
    pub(crate) fn check_row(&self, row: &[Cell]) -> Result<()> {
        let columns = &self.schema.columns;
        if row.len() != columns.len() {
            return Err(Error::Count {
                found: row.len(),
                expected: columns.len(),
            });
        }
        for (column, cell) in columns.iter().zip(row) {
            if !cell.fits(column.kind) {
                return Err(Error::Cell {
                    column: column.name.clone(),
                    kind: column.kind,
                    found: cell.to_string(),
                });
            }
            if column.not_null && cell.is_null() {
                let column = column.name.clone();
                return Err(Error::NotNull { column });
            }
        }
        Ok(())
    }

    /// The primary key of a row, for a relation without a hidden key. The row must have been checked.
    pub(crate) fn key_of(&self, row: &[Cell]) -> Vec<u8> {
        debug_assert!(!self.has_hidden_key(), "a row holds its key");
        debug_assert!(
            self.key.iter().all(|&at| !row[at].is_null()),
            "a key is not null"
        );
        let mut bytes = Vec::with_capacity(16);
        for &at in &self.key {
            key::push(&mut bytes, self.schema.columns[at].kind, &row[at]);
        }
        bytes
    }

    /// The columns of a row in the key of an index, without the primary key. The row must have been checked.
    pub(crate) fn index_prefix(&self, index: &StoredIndex, row: &[Cell]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24);
        for &at in &index.columns {
            key::push_nullable(&mut bytes, self.schema.columns[at].kind, &row[at]);
        }
        bytes
    }

    /// The value of a row. The row must have been checked.
    pub(crate) fn value_of(&self, row: &[Cell]) -> Vec<u8> {
        let cells = || {
            let places = self.places.iter().zip(row);
            places.filter_map(|(place, cell)| match place {
                Place::Field(field) => Some((*field, cell)),
                Place::Key(_) => None,
            })
        };
        debug_assert!(row.len() == self.places.len(), "a cell for each column");
        debug_assert!(
            cells().is_sorted_by(|(one, _), (next, _)| one < next),
            "fields are in the order of their columns: {:?}",
            self.places
        );
        let mut bytes = Vec::with_capacity(32);
        fields::push_head(&mut bytes, self.fields.len(), cells());
        // Fields are in the order of their columns, because an added column comes last.
        for (field, cell) in cells() {
            if !cell.is_null() {
                fields::push(&mut bytes, self.fields[field].kind, cell);
            }
        }
        bytes
    }

    /// Names and values of the columns in which a row conflicts with another row, for an error text.
    pub(crate) fn conflict_text(&self, conflict: &Conflict, row: &[Cell]) -> String {
        let columns = match conflict {
            Conflict::PrimaryKey => &self.key,
            Conflict::Index(name) => match self.index(name) {
                Ok(at) => &self.indexes[at].columns,
                Err(_) => return String::new(),
            },
        };
        let mut text = String::new();
        for (number, &at) in columns.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            let name = &self.schema.columns[at].name;
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}{name} = {}", row[at]);
        }
        text
    }
}
