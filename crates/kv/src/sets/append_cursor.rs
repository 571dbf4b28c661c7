//! Appends key-value pairs one by one: an [`AppendCursor`] remembers the append position in the table, and in the set
//! of the table's last key.

use crate::bulk::append_cursor::{AppendCursor, Tail};
use crate::bulk::leaf_builder::LeafBuilder;
use crate::nested::conversion::{fits_row, root_payload};
use crate::page::edit::{self, Placed};
use crate::page::entries::Bias;
use crate::page::key::{self, Key};
use crate::page::layout::{Payload, tag};
use crate::page::node::Node;
use crate::sets::set_table::{
    AllowedPosition, PairInsert, PairWriter, SetWithValue, only, set_with_value,
};
use crate::table::path::Path;
use crate::table::tree::{HAS_REFERENCES, Tree};
use std::cmp::Ordering;
use tidalite_pager::{PageWrite, Result};

/// Result of inserting a pair at a remembered append position.
enum HintedInsert {
    Done,
    /// The pair was inserted, and its row has moved to another leaf.
    Moved,
    NotLast,
    /// The pair belongs elsewhere, or needs a more expensive insert; nothing has changed.
    Elsewhere,
}

impl PairWriter<'_> {
    /// As `insert`, but only at an allowed position; returns false, with nothing changed, if the pair exists or would
    /// be elsewhere. Pairs that ascend after the table's last pair need neither descent nor search: `cursor` remembers
    /// the position.
    ///
    /// # Errors
    /// As for `insert`.
    ///
    /// # Cost
    /// For a pair after the last one: a copy of the pair, and a new count in each branch above. If the set is stored
    /// inline, the whole row is rewritten.
    pub fn insert_hinted<W: PageWrite>(
        &mut self,
        w: &mut W,
        cursor: &mut AppendCursor,
        (key, value): (&[u8], &[u8]),
        order: AllowedPosition,
    ) -> Result<bool> {
        key::check_len(key)?;
        key::check_len(value)?;
        if let Some(tail) = cursor.tail_of(self.tree) {
            match self.append_at_cursor(w, tail, (key, value), order)? {
                HintedInsert::Done => return Ok(true),
                HintedInsert::NotLast => return Ok(false),
                HintedInsert::Moved => {
                    cursor.remember(self.tree, w)?;
                    return Ok(true);
                }
                HintedInsert::Elsewhere => {}
            }
        }
        let PairInsert::New { last } = self.put(w, key, value, order)? else {
            return Ok(false); // The table is unchanged, so the remembered position stays valid.
        };
        cursor.descended(self.tree, w, last)?;
        Ok(true)
    }

    fn append_at_cursor<W: PageWrite>(
        &mut self,
        w: &mut W,
        tail: &mut Tail,
        (key, value): (&[u8], &[u8]),
        order: AllowedPosition,
    ) -> Result<HintedInsert> {
        let below = key.cmp(&tail.last_key);
        if below == Ordering::Less && order == AllowedPosition::LastOfTable {
            return Ok(HintedInsert::NotLast);
        }
        if below == Ordering::Less || !tail.may_change(w) {
            return Ok(HintedInsert::Elsewhere);
        }
        if below == Ordering::Equal {
            return self.append_to_last_set(w, tail, value, order);
        }
        let page_size = w.page_size();
        let payload = only(page_size, key.len(), value);
        let Some(payload) = payload.filter(|one| LeafBuilder::accepts(page_size, key, *one)) else {
            return Ok(HintedInsert::Elsewhere);
        };
        if !tail.push(w, key, payload)? {
            return Ok(HintedInsert::Elsewhere);
        }
        debug_assert!(tail.last_key == key, "the last key of the table");
        self.tree.keys += 1;
        self.tree.count_tail(w, tail)?;
        Ok(HintedInsert::Done)
    }

    /// Appends a value to the set of the table's last key.
    fn append_to_last_set<W: PageWrite>(
        &mut self,
        w: &mut W,
        tail: &mut Tail,
        value: &[u8],
        order: AllowedPosition,
    ) -> Result<HintedInsert> {
        let (leaf, at, page_size) = (tail.leaf, tail.leaf.addr, w.page_size());
        let node = Node::open(w.own_page(&leaf)?, 0, at)?;
        let index = node.count() - 1;
        let cell = node.cell(index)?;
        if !cell.rest.is_empty() {
            return Ok(HintedInsert::Elsewhere);
        }
        debug_assert!(
            node.prefix().len() + cell.suffix.len() == tail.last_key.len(),
            "the last row of the leaf is the last of the table"
        );
        let not_behind = match order {
            // The value is not above the last value, and the set may contain the value already.
            AllowedPosition::Any => HintedInsert::Elsewhere,
            AllowedPosition::LastOfKey | AllowedPosition::LastOfTable => HintedInsert::NotLast,
        };
        let (tag, bytes) = match set_with_value(cell.payload(), value, at)? {
            SetWithValue::There | SetWithValue::Row { last: false, .. } => return Ok(not_behind),
            SetWithValue::Row { bytes, .. } if fits_row(page_size, tail.last_key.len(), &bytes) => {
                (tag::of(tag::NESTED, bytes.len()), bytes)
            }
            SetWithValue::Row { .. } => return Ok(HintedInsert::Elsewhere),
            SetWithValue::Pages(root) => {
                let mut set = Tree::decode_nested_root(&root, self.tree.id, page_size, at)?;
                if !set.append_hinted(w, &mut tail.set, value, &[])? {
                    return Ok(not_behind);
                }
                root_payload(&set)
            }
        };
        let payload = Payload { tag, bytes: &bytes };
        self.tree.flags |= HAS_REFERENCES;
        self.tree.count_rows(w, &tail.path, 1)?;
        tail.rows = self.tree.rows;
        let page = w.page_mut(&leaf)?;
        if edit::overwrite(page, at, index, payload)? {
            return Ok(HintedInsert::Done);
        }
        // The cell of the row inserted last is the lowest in the page, so its space becomes free again when it is
        // removed.
        edit::remove(page, 0, at, index)?;
        let key = Key::plain(&tail.last_key);
        if edit::try_insert(page, 0, at, index, key, payload)? == Placed::Yes {
            return Ok(HintedInsert::Done);
        }
        let path = Path::to_last(tail.path.clone(), leaf, index);
        self.tree.put_in(w, path, key, payload, Bias::Ascending)?;
        Ok(HintedInsert::Moved)
    }
}
