//! The encoded schema, which is stored as row 0 of the root table.
//!
//! ```text
//! version       u8        1
//! columns       varint    then for each: name, type, flags u8 (1 not null, 2 in the primary key, 4 has a default),
//!                         varint: the field id, or the number of the piece of the key; default (null or value)
//! fields        varint    then for each: type, absent value (null or value)
//! next index    varint
//! indexes       varint    then for each: number varint, flags u8 (1 unique), name, count of columns varint, their positions
//!                         as varints
//! ```
//!
//! A name is stored as its length (a varint) and its UTF-8 bytes; types are described in `kind.rs`, and nullable values
//! in `fields.rs`.

use crate::cell::Cell;
use crate::error::damaged;
use crate::fields::{push_nullable, read_nullable};
use crate::kind::ColumnType;
use crate::layout::{FIELDS_MAX, Field, Layout, Place, StoredIndex};
use crate::schema::{COLUMNS_MAX, Column, INDEXES_MAX, Index, KEY_COLUMNS_MAX, Schema};
use tidalite_base::varint;

const VERSION: u8 = 1;
const NOT_NULL: u8 = 1;
const IN_KEY: u8 = 2;
const HAS_DEFAULT: u8 = 4;
const UNIQUE: u8 = 1;

fn push_number(bytes: &mut Vec<u8>, number: usize) {
    varint::push(bytes, number as u64);
}

fn push_name(bytes: &mut Vec<u8>, name: &str) {
    push_number(bytes, name.len());
    bytes.extend_from_slice(name.as_bytes());
}

impl Layout {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        push_number(&mut bytes, self.places.len());
        for (column, place) in self.schema.columns.iter().zip(&self.places) {
            push_name(&mut bytes, &column.name);
            column.kind.encode(&mut bytes);
            let (in_key, number) = match place {
                Place::Key(piece) => (IN_KEY, *piece),
                Place::Field(field) => (0, *field),
            };
            let not_null = if column.not_null { NOT_NULL } else { 0 };
            let has_default = column.default.as_ref().map_or(0, |_| HAS_DEFAULT);
            bytes.push(not_null | in_key | has_default);
            push_number(&mut bytes, number);
            if let Some(default) = &column.default {
                push_nullable(&mut bytes, column.kind, default);
            }
        }
        push_number(&mut bytes, self.fields.len());
        for field in &self.fields {
            field.kind.encode(&mut bytes);
            push_nullable(&mut bytes, field.kind, &field.absent);
        }
        push_number(&mut bytes, self.next_index as usize);
        push_number(&mut bytes, self.indexes.len());
        for (index, stored) in self.each_index() {
            push_number(&mut bytes, stored.number as usize);
            bytes.push(if index.unique { UNIQUE } else { 0 });
            push_name(&mut bytes, &index.name);
            push_number(&mut bytes, stored.columns.len());
            for &at in &stored.columns {
                push_number(&mut bytes, at);
            }
        }
        debug_assert!(
            Self::decode(&bytes).is_ok(),
            "a schema that can be read: {self:?}"
        );
        bytes
    }

    /// Decodes a schema, and checks all rules for schemas.
    pub(crate) fn decode(bytes: &[u8]) -> tidalite_pager::Result<Self> {
        let mut reader = Reader(bytes);
        let layout = reader.layout().filter(|_| reader.0.is_empty());
        let Some(layout) = layout else {
            let found = format!("{} bytes that are none", bytes.len());
            return Err(damaged("schema of a relation", found, "a schema"));
        };
        let is_known = |number: u32| number < layout.next_index;
        let mut numbers: Vec<u32> = layout.indexes.iter().map(|index| index.number).collect();
        numbers.sort_unstable();
        let problem = match layout.schema.check() {
            Err(error) => error.to_string(),
            Ok(()) if !numbers.iter().all(|number| is_known(*number)) => {
                "the number of an index that is not taken yet".to_owned()
            }
            Ok(()) if numbers.windows(2).any(|pair| pair[0] == pair[1]) => {
                "two indexes with one number".to_owned()
            }
            Ok(()) => return Ok(layout),
        };
        Err(damaged(
            "schema of a relation",
            problem,
            "a schema that can be used",
        ))
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn number(&mut self, below: usize) -> Option<usize> {
        let (number, len) = varint::read(self.0)?;
        self.0 = &self.0[len..];
        usize::try_from(number)
            .ok()
            .filter(|number| *number < below)
    }

    fn name(&mut self) -> Option<String> {
        let len = self.number(256)?;
        let (name, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(name.to_vec()).ok()
    }

    fn kind(&mut self) -> Option<ColumnType> {
        ColumnType::decode(&mut self.0)
    }

    fn cell(&mut self, kind: ColumnType) -> Option<Cell> {
        read_nullable(&mut self.0, kind)
    }

    fn layout(&mut self) -> Option<Layout> {
        if self.byte()? != VERSION {
            return None;
        }
        let mut schema = Schema::default();
        let mut places = Vec::new();
        let mut key: Vec<Option<usize>> = Vec::new();
        let mut last_field = None;
        for at in 0..self.number(COLUMNS_MAX + 1)? {
            let (name, kind) = (self.name()?, self.kind()?);
            let flags = self.byte()?;
            if flags > NOT_NULL | IN_KEY | HAS_DEFAULT {
                return None;
            }
            let place = if flags & IN_KEY != 0 {
                let piece = self.number(KEY_COLUMNS_MAX)?;
                if key.len() <= piece {
                    key.resize(piece + 1, None);
                }
                let is_first = key[piece].replace(at).is_none();
                (is_first && flags & NOT_NULL != 0).then_some(Place::Key(piece))?
            } else {
                // The ids of fields ascend with the positions of their columns.
                let field = self.number(FIELDS_MAX)?;
                if last_field.replace(field).is_some_and(|last| last >= field) {
                    return None;
                }
                Place::Field(field)
            };
            places.push(place);
            let default = match flags & HAS_DEFAULT {
                0 => None,
                _ => Some(self.cell(kind)?),
            };
            schema.columns.push(Column {
                name,
                kind,
                not_null: flags & NOT_NULL != 0,
                default,
            });
        }
        let key = key.into_iter().collect::<Option<Vec<usize>>>()?;
        let name_of = |at: &usize| Some(schema.columns.get(*at)?.name.clone());
        schema.primary_key = key.iter().map(name_of).collect::<Option<_>>()?;
        let mut fields = Vec::new();
        for _ in 0..self.number(FIELDS_MAX + 1)? {
            let kind = self.kind()?;
            let absent = self.cell(kind)?;
            fields.push(Field { kind, absent });
        }
        for (place, column) in places.iter().zip(&schema.columns) {
            if let Place::Field(field) = place {
                let stored: &Field = fields.get(*field)?;
                if stored.kind != column.kind {
                    return None;
                }
            }
        }
        let next_index = self.number(u32::MAX as usize)? as u32;
        let mut indexes = Vec::new();
        for _ in 0..self.number(INDEXES_MAX + 1)? {
            let number = self.number(u32::MAX as usize)? as u32;
            let unique = match self.byte()? {
                0 => false,
                UNIQUE => true,
                _ => return None,
            };
            let name = self.name()?;
            let mut columns = Vec::new();
            for _ in 0..self.number(KEY_COLUMNS_MAX + 1)? {
                columns.push(self.number(schema.columns.len())?);
            }
            let names = columns.iter().map(|at| schema.columns[*at].name.clone());
            schema.indexes.push(Index {
                name,
                columns: names.collect(),
                unique,
            });
            indexes.push(StoredIndex { number, columns });
        }
        Some(Layout {
            schema,
            places,
            key,
            fields,
            indexes,
            next_index,
        })
    }
}
