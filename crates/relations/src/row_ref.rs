//! A row whose cells are decoded only when they are requested.

use crate::cell::{Cell, CellRef};
use crate::error::damaged;
use crate::fields::{self, Fields};
use crate::key;
use crate::kind::ColumnType;
use crate::layout::{Layout, Place};
use std::cell::{Cell as Memo, OnceCell};
use tidalite_pager::{Error, Result};

/// The encoded primary key of a row, or its hidden key. It is valid until the row's primary key is changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey(pub(crate) Vec<u8>);

impl RowKey {
    /// The key as bytes, which sort like the keys themselves.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Creates a row key from the result of [`as_bytes`](Self::as_bytes). Other bytes give a key that no row has.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

/// A row of a relation, borrowed from its page.
pub struct RowRef<'a> {
    layout: &'a Layout,
    key: &'a [u8],
    fields: Fields<'a>,
    /// The last field that was reached, and its offset in `fields.body`. Walks to later fields begin there.
    walked: Memo<(usize, usize)>,
    /// The decoded texts and bytes of the key, if at least one of them contains a zero byte; empty for other pieces.
    unescaped: OnceCell<Vec<Vec<u8>>>,
}

impl<'a> RowRef<'a> {
    pub(crate) fn open(layout: &'a Layout, key: &'a [u8], value: &'a [u8]) -> Result<Self> {
        let Some(fields) = Fields::open(value, layout.fields.len()) else {
            return Err(broken(key));
        };
        Ok(Self {
            layout,
            key,
            fields,
            walked: Memo::new((0, 0)),
            unescaped: OnceCell::new(),
        })
    }

    /// The encoded key.
    #[must_use]
    pub fn key(&self) -> RowKey {
        RowKey(self.key.to_vec())
    }

    /// The encoded key, borrowed.
    #[must_use]
    pub fn key_bytes(&self) -> &'a [u8] {
        self.key
    }

    /// The value of the column at this position.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are not a value of the column's type.
    ///
    /// # Panics
    /// If there is no such column.
    ///
    /// # Cost
    /// Skips the fields before it. If columns are read in ascending order, each field is skipped only once.
    #[inline]
    pub fn cell(&self, column: usize) -> Result<CellRef<'_>> {
        match self.layout.places[column] {
            Place::Field(field) => self.field(field),
            Place::Key(piece) => self.piece(piece),
        }
    }

    #[inline]
    fn field(&self, field: usize) -> Result<CellRef<'_>> {
        if field >= self.fields.count {
            return Ok(self.layout.fields[field].absent.as_ref());
        }
        if !self.fields.is_present(field) {
            return Ok(CellRef::Null);
        }
        let kind = self.layout.fields[field].kind;
        let bytes = self.walk_to(field).and_then(|at| {
            let rest = self.fields.body.get(at..)?;
            let len = fields::len(kind, rest)?;
            self.walked.set((field + 1, at + len));
            Some(&rest[..len])
        });
        bytes
            .and_then(|bytes| fields::read(kind, bytes))
            .ok_or_else(|| broken(self.key))
    }

    /// The offset of a field that is not null.
    #[inline]
    fn walk_to(&self, field: usize) -> Option<usize> {
        let (mut next, mut at) = self.walked.get();
        if next > field {
            (next, at) = (0, 0);
        }
        while next < field {
            if self.fields.is_present(next) {
                let rest = self.fields.body.get(at..)?;
                at += fields::len(self.layout.fields[next].kind, rest)?;
            }
            next += 1;
        }
        Some(at)
    }

    /// The pieces of the key, each with its type.
    fn pieces(&self) -> impl Iterator<Item = Option<(ColumnType, &'a [u8])>> {
        let mut rest = self.key;
        self.layout.key.iter().map(move |&at| {
            let kind = self.layout.schema.columns[at].kind;
            let (bytes, after) = rest.split_at(key::len(kind, rest)?);
            rest = after;
            Some((kind, bytes))
        })
    }

    fn piece(&self, piece: usize) -> Result<CellRef<'_>> {
        let unescaped = || {
            let decoded = self.unescaped.get_or_init(|| {
                let decode = |piece: Option<(ColumnType, &[u8])>| match piece {
                    Some((ColumnType::Text | ColumnType::Bytes, bytes)) => key::unescape(bytes),
                    _ => None,
                };
                self.pieces()
                    .map(|one| decode(one).unwrap_or_default())
                    .collect()
            });
            decoded.get(piece).map(Vec::as_slice)
        };
        let found = self.piece_bytes(piece);
        found
            .and_then(|(kind, bytes)| key::read(kind, bytes, unescaped))
            .ok_or_else(|| broken(self.key))
    }

    /// The type and the bytes of a piece of the key.
    #[inline]
    fn piece_bytes(&self, piece: usize) -> Option<(ColumnType, &'a [u8])> {
        let kind = |piece: usize| {
            let column = *self.layout.key.get(piece)?;
            Some(self.layout.schema.columns[column].kind)
        };
        let mut rest = self.key;
        for before in 0..piece {
            rest = &rest[key::len(kind(before)?, rest)?..];
        }
        let kind = kind(piece)?;
        Some((kind, &rest[..key::len(kind, rest)?]))
    }

    /// All values, in the order of the columns.
    ///
    /// # Errors
    /// As for [`cell`](Self::cell).
    pub fn to_cells(&self) -> Result<Vec<Cell>> {
        let columns = 0..self.layout.places.len();
        columns.map(|at| Ok(self.cell(at)?.to_cell())).collect()
    }

    /// All values, if the row consists exactly of its key and its fields, each a valid value of its type; `None`
    /// otherwise. Dropped fields are skipped.
    pub(crate) fn whole_cells(&self) -> Option<Vec<Cell>> {
        let key_len = match self.layout.has_hidden_key() {
            true => Some(size_of::<u64>()),
            false => self
                .pieces()
                .try_fold(0, |len, piece| Some(len + piece?.1.len())),
        };
        let end = self.walk_to(self.fields.count);
        let is_whole = key_len == Some(self.key.len())
            && end == Some(self.fields.body.len())
            && self.fields.is_trimmed();
        self.to_cells().ok().filter(|_| is_whole)
    }
}

#[cold]
fn broken(key: &[u8]) -> Error {
    let found = format!("bytes that are none, key {}", key.escape_ascii());
    damaged("row of a relation", found, "values of the columns' types")
}
