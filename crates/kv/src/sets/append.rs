//! Bulk insert of key-value pairs into a table of sets; pairs that ascend after the last pair are laid out set by set
//! and leaf by leaf.
//!
//! ```text
//! pairs ──> the values of one key ──────> its row, after the row before it (append)
//!             │ more than a quarter of a page
//!             └─> rows of a table of their own (append) ──> its root, in the row
//! ```
//!
//! 1. The buffered values belong to `key` and ascend; none of them is yet in the table, nor in `set`, which has the
//!    values before them.
//! 2. After `finish` the table contains all rows that `cursor` and `set` held back.

use crate::bulk::append::PutRow;
use crate::bulk::append_cursor::AppendCursor;
use crate::inline::inline_table::KeyList;
use crate::nested::conversion::{fits_row, inline_bytes_max, root_payload, to_pages};
use crate::nested::table_repr::TableRepr;
use crate::nested::table_writer::TableWriter;
use crate::page::key;
use crate::page::layout::{Payload, tag};
use crate::sets::set_table::{AllowedPosition, PairWriter, only};
use crate::table::free::OldPayload;
use crate::table::tree::Tree;
use tidalite_pager::{PageWrite, Result};

/// State of a bulk insert of pairs into a table.
struct SetLoader<'t> {
    tree: &'t mut Tree,
    /// The append position for the row of the next key.
    cursor: AppendCursor,
    /// The key whose values are being collected.
    key: Option<Vec<u8>>,
    values: KeyList,
    set: Option<LargeSet>,
}

/// A set of values that is too large for the row of its key.
struct LargeSet {
    tree: Tree,
    cursor: AppendCursor,
    /// True if the key of this set is above all other keys of the table.
    new: bool,
}

impl PairWriter<'_> {
    /// Inserts many pairs; returns the number of new pairs. Consecutive values of a key are inserted together. Pairs
    /// that ascend beyond the table's last pair are packed tightly and quickly.
    ///
    /// # Errors
    /// As for `insert`, but after a `Limit` error the pairs before the refused pair stay inserted.
    ///
    /// # Cost
    /// For ascending pairs: a copy of each pair, without descent or search; leaves are filled to the last row that
    /// fits, and so are the leaves of sets with pages of their own. For other pairs: at most one call of `insert` for
    /// each; consecutive values of a key change its set only once.
    pub fn extend<W, K, V>(
        &mut self,
        w: &mut W,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64>
    where
        W: PageWrite,
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.extend_lent(w, |put| {
            pairs
                .into_iter()
                .try_for_each(|(key, value)| put(key.as_ref(), value.as_ref()))
        })
    }

    /// As `extend`, but for pairs that need not all be in memory: `feed` passes them one by one to the callback that it
    /// receives.
    ///
    /// # Errors
    /// As for `extend`, and errors of `feed`: the pairs before the error are inserted.
    pub fn extend_lent<W: PageWrite>(
        &mut self,
        w: &mut W,
        feed: impl FnOnce(&mut PutRow<'_>) -> Result<()>,
    ) -> Result<u64> {
        let before = self.tree.len();
        let mut gathering = SetLoader {
            tree: self.tree,
            cursor: AppendCursor::default(),
            key: None,
            values: KeyList::default(),
            set: None,
        };
        let fed = feed(&mut |key, value| gathering.push(w, key, value));
        gathering.finish(w)?;
        fed?;
        Ok(self.tree.len().wrapping_sub(before))
    }
}

impl SetLoader<'_> {
    fn push<W: PageWrite>(&mut self, w: &mut W, key: &[u8], value: &[u8]) -> Result<()> {
        key::check_len(value)?;
        if self.key.as_deref() != Some(key) {
            key::check_len(key)?;
            self.put_set(w)?;
            self.begin(key);
        }
        if let Some(set) = &mut self.set {
            return set.tree.append_row(w, &mut set.cursor, value, &[]);
        }
        match self.values.last().map(|last| last.cmp(value)) {
            Some(std::cmp::Ordering::Equal) => return Ok(()),
            Some(std::cmp::Ordering::Greater) => {
                self.put_set(w)?;
                self.begin(key);
            }
            _ => {}
        }
        debug_assert!(self.key.as_deref() == Some(key), "values of one key");
        self.values.push(value);
        if self.values.encoded_len() > inline_bytes_max(w.page_size()) {
            self.enlarge(w)?;
        }
        Ok(())
    }

    fn begin(&mut self, key: &[u8]) {
        let own = self.key.get_or_insert_default();
        own.clear();
        own.extend_from_slice(key);
    }

    /// Moves the buffered values of the current key into a set with pages of its own.
    fn enlarge<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        let Some(key) = &self.key else {
            return Ok(());
        };
        debug_assert!(self.set.is_none(), "the set becomes large once");
        let id = self.tree.id;
        let new = self.cursor.is_below(key);
        let old = match new {
            true => None,
            false => {
                self.tree.finish_append(w, &mut self.cursor)?;
                self.tree.find_payload(w, key)?
            }
        };
        let tree = match TableWriter::of_set(old.as_ref(), id, w.page_size())?.repr {
            TableRepr::Pages(tree) => tree,
            TableRepr::Inline(inline) => to_pages(w, id, &inline)?,
        };
        let set = self.set.insert(LargeSet {
            tree,
            cursor: AppendCursor::default(),
            new,
        });
        for value in self.values.iter() {
            set.tree.append_row(w, &mut set.cursor, value, &[])?;
        }
        self.values.clear();
        Ok(())
    }

    /// Writes the buffered values to the table as the set of their key.
    fn put_set<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        let Some(key) = self.key.take() else {
            return Ok(());
        };
        if self.set.is_none() && self.values.len() == 0 {
            return Ok(());
        }
        let done = self.put_set_of(w, &key);
        self.values.clear();
        self.key = Some(key);
        done
    }

    fn put_set_of<W: PageWrite>(&mut self, w: &mut W, key: &[u8]) -> Result<()> {
        if let Some(mut set) = self.set.take() {
            debug_assert!(self.values.len() == 0, "the values are in the large set");
            set.tree.finish_append(w, &mut set.cursor)?;
            let (tag, bytes) = root_payload(&set.tree);
            let payload = Payload { tag, bytes: &bytes };
            if !set.new || !self.tree.append_set(w, &mut self.cursor, key, payload)? {
                self.tree.put_payload(w, key, payload, OldPayload::Keep)?;
                self.cursor.remember(self.tree, w)?;
            }
            return Ok(());
        }
        debug_assert!(self.values.len() > 0, "an empty set has no row");
        let one = self.values.last().filter(|_| self.values.len() == 1);
        if self.cursor.is_below(key) {
            let bytes;
            let payload = match one {
                Some(value) => only(w.page_size(), key.len(), value),
                None => {
                    bytes = self.values.encode();
                    let tag = tag::of(tag::NESTED, bytes.len());
                    let fits = fits_row(w.page_size(), key.len(), &bytes);
                    fits.then_some(Payload { tag, bytes: &bytes })
                }
            };
            if let Some(payload) = payload
                && self.tree.append_set(w, &mut self.cursor, key, payload)?
            {
                return Ok(());
            }
        }
        // The key exists already, or its row cannot simply be appended, so the values are inserted by descents.
        self.tree.finish_append(w, &mut self.cursor)?;
        let mut pairs = self.tree.pairs();
        match one {
            Some(value) => drop(pairs.put(w, key, value, AllowedPosition::Any)?),
            None => pairs.change(w, key, |w, set| {
                let put = |value| set.insert(w, value, &[]).map(drop);
                self.values.iter().try_for_each(put)
            })?,
        }
        self.cursor.remember(self.tree, w)?;
        Ok(())
    }

    /// Writes all buffered values, and links all rows that were held back.
    fn finish<W: PageWrite>(mut self, w: &mut W) -> Result<()> {
        self.put_set(w)?;
        self.tree.finish_append(w, &mut self.cursor)
    }
}
