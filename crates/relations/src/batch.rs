//! Inserting many rows at once.
//!
//! Invariants:
//! 1. All rows are checked before the first one is stored: against the stored rows, and against each other.
//! 2. Rows and index entries are stored in the order of their keys. Keys above all stored keys are appended, so that
//!    pages are filled one after the other.

use crate::cell::Cell;
use crate::conflict::NewRow;
use crate::error::{Conflict, Error, Result};
use crate::layout::Layout;
use crate::parts::{ROWS, index_key};
use crate::read::RelationReader;
use crate::row_ref::RowKey;
use crate::write::{RelationWriter, used_up};
use std::sync::Arc;
use tidalite_kv::{TableReader, TableWriter};
use tidalite_pager::{PageRead, PageWrite};

/// A key or an entry, and the position of its row in the batch.
type Placed<'n> = (&'n [u8], usize);

impl<W: PageWrite> RelationWriter<'_, W> {
    /// Inserts many rows, or none if one of them is refused; returns their keys.
    ///
    /// # Errors
    /// As for `insert`; also if rows of the batch conflict with each other. After such an error nothing has changed.
    ///
    /// # Cost
    /// Less for each row than `insert`, especially for primary keys that ascend and follow the stored ones, and for
    /// hidden keys.
    pub fn insert_many<R: AsRef<[Cell]>>(&mut self, rows: &[R]) -> Result<Vec<RowKey>> {
        let layout = Arc::clone(&self.layout);
        let reader = self.reader();
        let mut new = Vec::with_capacity(rows.len());
        for row in rows {
            new.push(reader.new_row(row.as_ref())?);
        }
        if layout.has_hidden_key() {
            let first = reader.rows_part()?.sequence();
            for (at, row) in new.iter_mut().enumerate() {
                let number = first.checked_add(at as u64).ok_or_else(used_up)?;
                row.keys.row = number.to_be_bytes().to_vec();
            }
        }
        let mut keys: Vec<Placed<'_>> = Vec::with_capacity(new.len());
        keys.extend(
            new.iter()
                .enumerate()
                .map(|(at, row)| (&row.keys.row[..], at)),
        );
        keys.sort_unstable();
        let is_behind = is_behind(&reader.rows_part()?, &reader.r, keys.first())?;
        if let Some((conflict, at)) = batch_conflict(&reader, &new, rows, &keys, is_behind)? {
            let key = layout.conflict_text(&conflict, rows[at].as_ref());
            return Err(Error::Unique { conflict, key });
        }
        drop(reader);
        self.change(&ROWS, &mut |w, table| {
            if layout.has_hidden_key() {
                table.take_sequence(new.len() as u64).ok_or_else(used_up)?;
            }
            let pairs = keys.iter().map(|(key, at)| (*key, &new[*at].value[..]));
            put_all(w, table, pairs, is_behind)
        })?;
        self.add_entries_of(&layout, &new)?;
        Ok(new.into_iter().map(|row| RowKey(row.keys.row)).collect())
    }

    fn add_entries_of(&mut self, layout: &Layout, new: &[NewRow]) -> tidalite_pager::Result<()> {
        for (number, index) in layout.indexes.iter().enumerate() {
            let mut entries: Vec<Vec<u8>> = new.iter().map(|row| row.keys.entry(number)).collect();
            entries.sort_unstable();
            let key = index_key(index.number);
            let first = entries.first().map(|entry| (&entry[..], 0));
            let reader = self.reader();
            let part = reader.index_part(index.number)?;
            let is_behind = is_behind(&part, &reader.r, first.as_ref())?;
            drop(reader);
            self.change(&key, &mut |w, table| {
                let pairs = entries.iter().map(|entry| (&entry[..], &[][..]));
                put_all(w, table, pairs, is_behind)
            })?;
        }
        Ok(())
    }
}

/// Whether the least new key is above all keys of a table.
fn is_behind<R: PageRead>(
    table: &TableReader<'_>,
    r: &R,
    first: Option<&Placed<'_>>,
) -> tidalite_pager::Result<bool> {
    let mut cursor = table.cursor(r)?;
    Ok(match first {
        Some((first, _)) => !cursor.last()? || cursor.key() < *first,
        None => true,
    })
}

/// Stores pairs with ascending keys.
fn put_all<'p, W: PageWrite>(
    w: &mut W,
    table: &mut TableWriter,
    mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    is_behind: bool,
) -> tidalite_pager::Result<()> {
    match is_behind {
        true => table.extend(w, pairs).map(drop),
        false => pairs.try_for_each(|(key, value)| table.insert(w, key, value).map(drop)),
    }
}

/// The first rule that a row of a batch violates, and the position of the row.
fn batch_conflict<R: PageRead, C: AsRef<[Cell]>>(
    reader: &RelationReader<R>,
    new: &[NewRow],
    rows: &[C],
    keys: &[Placed<'_>],
    is_behind: bool,
) -> Result<Option<(Conflict, usize)>> {
    let same = |placed: &[Placed<'_>]| {
        let mut pairs = placed.windows(2);
        pairs
            .find(|pair| pair[0].0 == pair[1].0)
            .map(|pair| pair[1].1)
    };
    if let Some(at) = same(keys) {
        return Ok(Some((Conflict::PrimaryKey, at)));
    }
    if !is_behind {
        let table = reader.rows_part()?;
        for (key, at) in keys {
            if table.contains(&reader.r, key)? {
                return Ok(Some((Conflict::PrimaryKey, *at)));
            }
        }
    }
    for (number, (described, index)) in reader.layout.each_index().enumerate() {
        if !described.unique {
            continue;
        }
        let is_bound = |at: &usize| {
            let row = rows[*at].as_ref();
            index.columns.iter().all(|&column| !row[column].is_null())
        };
        let bound = (0..new.len()).filter(is_bound);
        let mut prefixes: Vec<Placed<'_>> = bound
            .map(|at| (&new[at].keys.prefixes[number][..], at))
            .collect();
        prefixes.sort_unstable();
        let mut taken = same(&prefixes);
        let entries = reader.index_part(index.number)?;
        if taken.is_none() && !entries.is_empty() {
            let mut cursor = entries.cursor(&reader.r)?;
            for (prefix, at) in prefixes {
                if !cursor.seek_ge(prefix)? {
                    break;
                }
                if cursor.key().starts_with(prefix) {
                    taken = Some(at);
                    break;
                }
            }
        }
        if let Some(at) = taken {
            return Ok(Some((Conflict::Index(described.name.clone()), at)));
        }
    }
    Ok(None)
}
