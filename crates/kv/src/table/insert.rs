//! Inserts a row: a descent that copies the pages on its path for the transaction (`path.rs`), then an edit of the leaf
//! in place.
//!
//! A leaf without room is rewritten (with a longer prefix and no dead bytes), shares entries with a neighbour
//! (`redistribute.rs`), or is split (`split.rs`).

use crate::error::{damaged, key_holds_table};
use crate::page::edit::{self, Placed};
use crate::page::entries::Bias;
use crate::page::header::Shape;
use crate::page::key::{self, KEY_BYTES_MAX, Key, Rest};
use crate::page::layout::{PREFIX_AT, Payload, cell_size, slot_bytes, tag};
use crate::page::node::Node;
use crate::page::row_count::weight;
use crate::table::free::{OldPayload, VisitedPages, reference_bytes};
use crate::table::path::Path;
use crate::table::sequential::{SequentialInserts, inserts_ascend_at};
use crate::table::tree::{HAS_REFERENCES, Tree};
use crate::value::Stored;
use tidalite_pager::{PageWrite, Result};

impl Tree {
    /// Inserts a row, or replaces the value of an existing row; returns true if the key existed.
    ///
    /// # Errors
    /// `Limit` for a key beyond `KEY_BYTES_MAX` or a value beyond `VALUE_BYTES_MAX`, `IsTable` for a key that holds a
    /// nested table: nothing has changed in these cases. After any other error the transaction must be rolled back.
    ///
    /// # Cost
    /// One page copy per level, the first time that a transaction changes the page; a split writes one more page.
    pub fn insert<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        let stored = Stored::put(w, self.id, key, value)?;
        let before = self.put_payload(w, key, stored.payload(), OldPayload::Free);
        Ok(stored.free_if_refused(w, before)? > 0)
    }

    /// Puts a payload under `key`, whose length was checked. Returns the number of rows that the old payload stood for,
    /// or 0 if there was no old payload.
    pub(crate) fn put_payload<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
        old: OldPayload,
    ) -> Result<u64> {
        Ok(self.put_payload_noting_end(w, key, payload, old)?.0)
    }

    /// As `put_payload`; also returns whether the row was inserted after all other rows.
    pub(crate) fn put_payload_noting_end<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
        old: OldPayload,
    ) -> Result<(u64, bool)> {
        if self.root.is_null() {
            self.root = self.new_page(w, 0)?;
            self.height = 1;
        }
        debug_assert!(key.len() <= KEY_BYTES_MAX, "the length was checked");
        let path = self.own_path(w, key)?;
        let at_end = path.at_end;
        Ok((self.put_at(w, path, key, payload, old)?, at_end))
    }

    /// As `put_payload`, for a key whose descent path is known.
    pub(crate) fn put_at<W: PageWrite>(
        &mut self,
        w: &mut W,
        path: Path,
        key: &[u8],
        payload: Payload<'_>,
        old: OldPayload,
    ) -> Result<u64> {
        if tag::kind(payload.tag) != tag::INLINE {
            self.flags |= HAS_REFERENCES;
        }
        let rows = if self.is_multi() { weight(payload) } else { 1 };
        let mut before = 0;
        let rest;
        if path.found {
            let (was, done);
            (was, done, rest) = self.replace(w, &path, key, payload, old)?;
            before = if self.is_multi() { was } else { 1 };
            self.count_rows(w, &path.steps, rows.wrapping_sub(before).cast_signed())?;
            if done {
                return Ok(before);
            }
        } else {
            self.count_rows(w, &path.steps, rows.cast_signed())?;
            self.keys += u64::from(self.is_multi());
            rest = key::spill(w, self.id, key)?;
            if rest.is_some() {
                self.flags |= HAS_REFERENCES;
            }
        }
        let bias = if path.at_end {
            Bias::Ascending
        } else {
            Bias::Balance
        };
        let key = Key::of(key, rest.as_ref(), w.page_size());
        self.put_in(w, path, key, payload, bias)?;
        Ok(before)
    }

    /// Inserts an entry at the end of a descent path: in place, by sharing entries with a neighbour, or by a split.
    pub(crate) fn put_in<W: PageWrite>(
        &mut self,
        w: &mut W,
        path: Path,
        key: Key<'_>,
        payload: Payload<'_>,
        bias: Bias,
    ) -> Result<()> {
        debug_assert!(
            path.steps.len() + 1 == usize::from(self.height),
            "the path of this tree"
        );
        let (leaf, index) = (path.leaf, path.index);
        let page = w.page_mut(&leaf)?;
        if edit::try_insert(page, 0, leaf.addr, index, key, payload)? == Placed::Yes {
            return Ok(());
        }
        let shape = Shape::of(page, 0, leaf.addr)?;
        let shared = &page[PREFIX_AT..shape.heads];
        let suffix = key.inline.strip_prefix(shared).unwrap_or(key.inline);
        let suffix = (suffix.len(), key.rest.len());
        let size = cell_size(true, suffix, payload) + slot_bytes(true, page.len());
        let overfull = shape.slots_end + size > shape.heap + shape.dead;
        if overfull && bias == Bias::Balance {
            let likely = inserts_ascend_at(w.own_page(&leaf)?, &leaf, index)?;
            let placed =
                likely == SequentialInserts::Yes && self.split_at_insert(w, &path, key, payload)?;
            if placed || self.redistribute(w, &path, key, payload, likely)? {
                return Ok(());
            }
        }
        let split = self.insert_or_split(w, &leaf, 0, index, key, payload, bias)?;
        self.propagate_split(w, path.steps, leaf, 1, split, bias)
    }

    /// Overwrites the payload at the end of a descent path if the new payload has the same tag and length; otherwise
    /// removes the entry. Returns the number of rows that the old payload stood for, whether the new payload is in
    /// place, and the reference to the rest of a long key, which is kept. `IsTable`, with nothing changed, if a nested
    /// table would be lost.
    fn replace<W: PageWrite>(
        &self,
        w: &mut W,
        path: &Path,
        key: &[u8],
        payload: Payload<'_>,
        old: OldPayload,
    ) -> Result<(u64, bool, Option<Rest>)> {
        let (leaf, at) = (&path.leaf, path.leaf.addr);
        let (_, rest_bytes) = key::stored_bytes(w.page_size(), key.len());
        let page = w.page_mut(leaf)?;
        let cell = Node::open(page, 0, at)?.cell(path.index)?;
        if cell.rest.len() != rest_bytes {
            let found = format!("a key of {} bytes, spilled or not", key.len());
            let expected = "short keys whole and long ones spilled";
            return Err(damaged("table page", at, found, expected));
        }
        if old == OldPayload::Free && tag::kind(cell.tag) >= tag::NESTED {
            return Err(key_holds_table(at, key));
        }
        let rows = if self.is_multi() {
            weight(cell.payload())
        } else {
            1
        };
        let (tag, bytes) = (cell.tag, reference_bytes(cell.payload()));
        let rest = cell.rest.first_chunk().copied();
        let done = edit::overwrite(page, at, path.index, payload)?;
        if !done {
            edit::remove(page, 0, at, path.index)?;
        }
        if old == OldPayload::Free {
            self.free_payload(w, tag, &bytes, at, &mut VisitedPages::default())?;
        }
        Ok((rows, done, rest))
    }
}
