//! Iterates over rows, in the order of their keys or of an index.
//!
//! Invariants:
//! 1. The row at the cursor `rows` is the current one; it lies in the range.
//! 2. After the end was reached, or an error has occurred, `next` returns `None`.

use crate::bounds::Span;
use crate::error::damaged;
use crate::key;
use crate::layout::{Layout, Piece};
use crate::row_ref::RowRef;
use tidalite_kv::Cursor;
use tidalite_pager::{PageRead, Result};

/// The position of an iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Row,
    End,
}

/// Rows of a relation in the order of a key or of an index.
pub struct Rows<'r, R> {
    layout: &'r Layout,
    rows: Cursor<'r, R>,
    /// A cursor over the entries of the index, and the pieces of its keys before the primary key.
    index: Option<(Cursor<'r, R>, Vec<Piece>)>,
    span: Span,
    is_reversed: bool,
    at: At,
    /// The value of the current row, if it is stored in an extent.
    large: Vec<u8>,
}

impl<'r, R: PageRead> Rows<'r, R> {
    pub(crate) fn new(
        layout: &'r Layout,
        rows: Cursor<'r, R>,
        index: Option<(Cursor<'r, R>, Vec<Piece>)>,
        span: Span,
    ) -> Self {
        Self {
            layout,
            rows,
            index,
            at: if span.is_empty { At::End } else { At::Start },
            span,
            is_reversed: false,
            large: Vec::new(),
        }
    }

    /// Reverses the order: the last row comes first. Call it before the first `next`.
    #[must_use]
    pub fn rev(self) -> Self {
        Self {
            is_reversed: !self.is_reversed,
            ..self
        }
    }

    /// The next row; `None` after the last one.
    ///
    /// # Errors
    /// A damaged or unreadable page; an entry of the index without a row. After an error, no more rows are returned.
    #[expect(
        clippy::should_implement_trait,
        reason = "the row borrows the iterator"
    )]
    pub fn next(&mut self) -> Result<Option<RowRef<'_>>> {
        if !self.step()? {
            return Ok(None);
        }
        self.row().map(Some)
    }

    /// Moves to the next row.
    fn step(&mut self) -> Result<bool> {
        let from = std::mem::replace(&mut self.at, At::End);
        let keys = match &mut self.index {
            Some((entries, _)) => entries,
            None => &mut self.rows,
        };
        let there = match (from, self.is_reversed) {
            (At::End, _) => false,
            (At::Row, false) => keys.next()?,
            (At::Row, true) => keys.previous()?,
            (At::Start, false) => keys.seek_ge(&self.span.from)?,
            (At::Start, true) => match &self.span.to {
                Some(to) => keys.seek_lt(to)?,
                None => keys.last()?,
            },
        };
        if !there || !self.is_in_span() {
            return Ok(false);
        }
        if let Some((entries, pieces)) = &self.index {
            let key = primary_key(entries.key(), pieces)?;
            if !self.rows.seek(key)? {
                let found = format!("no row with the key {}", key.escape_ascii());
                return Err(damaged("index of a relation", found, "a row"));
            }
        }
        self.at = At::Row;
        Ok(true)
    }

    fn is_in_span(&self) -> bool {
        let key = match &self.index {
            Some((entries, _)) => entries.key(),
            None => self.rows.key(),
        };
        match self.is_reversed {
            true => key >= &self.span.from[..],
            false => self.span.to.as_ref().is_none_or(|to| key < &to[..]),
        }
    }

    fn row(&mut self) -> Result<RowRef<'_>> {
        if self.rows.value_slice().is_none() {
            self.large = self.rows.value()?.to_vec()?;
        }
        let value = self.rows.value_slice().unwrap_or(&self.large);
        RowRef::open(self.layout, self.rows.key(), value)
    }
}

/// The primary key, which is the last part of the key of an index entry.
pub(crate) fn primary_key<'k>(entry: &'k [u8], pieces: &[Piece]) -> Result<&'k [u8]> {
    let mut rest = entry;
    for piece in pieces {
        let len = match piece.nullable {
            true => key::len_nullable(piece.kind, rest),
            false => key::len(piece.kind, rest),
        };
        match len {
            Some(len) => rest = &rest[len..],
            None => {
                let found = entry.escape_ascii();
                return Err(damaged(
                    "index of a relation",
                    found,
                    "the columns of a row",
                ));
            }
        }
    }
    Ok(rest)
}
