//! Ranges of keys.

use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::key;
use crate::layout::{Layout, Piece};
use std::ops::Bound;
use tidalite_base::after_prefix;

/// A range of keys of a relation or of an index.
///
/// A bound is a list of cells that is at most as long as the key. A shorter list stands for all keys that begin with
/// it: an included bound includes all of them, an excluded bound excludes all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyBounds {
    /// The lower end.
    pub lower: Bound<Vec<Cell>>,
    /// The upper end.
    pub upper: Bound<Vec<Cell>>,
}

impl KeyBounds {
    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Self::new(Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys between two bounds.
    #[must_use]
    pub fn new(lower: Bound<Vec<Cell>>, upper: Bound<Vec<Cell>>) -> Self {
        Self { lower, upper }
    }

    /// The keys that begin with these cells.
    #[must_use]
    pub fn prefix(cells: impl Into<Vec<Cell>>) -> Self {
        let cells = cells.into();
        Self::new(Bound::Included(cells.clone()), Bound::Included(cells))
    }
}

/// A range of encoded keys: at or above `from` and below `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Vec<u8>,
    /// The upper end; `None` if the range has no upper end.
    pub(crate) to: Option<Vec<u8>>,
    pub(crate) is_empty: bool,
}

impl Span {
    /// Restricts the range to keys at or above `from` and below `to`.
    pub(crate) fn cut(&mut self, from: Option<&[u8]>, to: Option<&[u8]>) {
        if let Some(from) = from.filter(|from| *from > &self.from[..]) {
            self.from = from.to_vec();
        }
        if let Some(to) = to.filter(|to| self.to.as_ref().is_none_or(|end| *to < &end[..])) {
            self.to = Some(to.to_vec());
        }
        self.is_empty |= self.to.as_ref().is_some_and(|to| *to <= self.from);
    }
}

/// Encodes the first pieces of a key.
pub(crate) fn encode(layout: &Layout, pieces: &[Piece], cells: &[Cell]) -> Result<Vec<u8>> {
    if cells.len() > pieces.len() {
        return Err(Error::Count {
            found: cells.len(),
            expected: pieces.len(),
        });
    }
    let mut bytes = Vec::with_capacity(16);
    for (piece, cell) in pieces.iter().zip(cells) {
        if !cell.fits(piece.kind) || cell.is_null() && !piece.nullable {
            return Err(Error::Cell {
                column: layout.piece_name(piece).to_owned(),
                kind: piece.kind,
                found: cell.to_string(),
            });
        }
        match piece.nullable {
            true => key::push_nullable(&mut bytes, piece.kind, cell),
            false => key::push(&mut bytes, piece.kind, cell),
        }
    }
    Ok(bytes)
}

/// Encodes a range.
pub(crate) fn span(layout: &Layout, pieces: &[Piece], bounds: &KeyBounds) -> Result<Span> {
    let encode = |cells: &Vec<Cell>| encode(layout, pieces, cells);
    let from = match &bounds.lower {
        Bound::Unbounded => Some(Vec::new()),
        Bound::Included(cells) => Some(encode(cells)?),
        Bound::Excluded(cells) => after_prefix(&encode(cells)?),
    };
    let to = match &bounds.upper {
        Bound::Unbounded => None,
        Bound::Included(cells) => after_prefix(&encode(cells)?),
        Bound::Excluded(cells) => Some(encode(cells)?),
    };
    let is_empty = match (&from, &to) {
        (None, _) => true,
        (Some(from), Some(to)) => from >= to,
        (Some(_), None) => false,
    };
    Ok(Span {
        from: from.unwrap_or_default(),
        to,
        is_empty,
    })
}
