//! Appending pairs one by one: an [`Ending`] remembers the append position in the table and in the set of its last key.

use crate::bulk::append_cursor::{Ending, Place};
use crate::bulk::leaf_builder::Filling;
use crate::nested::table_writer::{fits_row, root_payload};
use crate::page::edit::{self, Placed};
use crate::page::entries::Bias;
use crate::page::key::{self, Key};
use crate::page::layout::{Payload, tag};
use crate::page::node::Node;
use crate::sets::set_table::{Grown, Order, Pairs, Put, grown, only};
use crate::table::path::Path;
use crate::table::tree::{LEADS_ON, Tree};
use std::cmp::Ordering;
use tidalite_pager::{PageWrite, Result};

/// Result of inserting a pair at a remembered append position.
enum Near {
    Done,
    /// Done, and the row has moved to another leaf.
    Moved,
    NotBehind,
    /// It belongs elsewhere, or needs a more expensive insert: nothing has changed.
    Elsewhere,
}

impl Pairs<'_> {
    /// As `insert`, with a hint: pairs that ascend after the last one need neither descent nor search.
    ///
    /// # Errors
    /// As for `insert`.
    ///
    /// # Cost
    /// After the last pair: a copy, and a count in each branch above. For an inline set, its row is rewritten.
    pub fn insert_near_end<W: PageWrite>(
        &mut self,
        w: &mut W,
        ending: &mut Ending,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let put = self.put_near_end(w, ending, (key, value), Order::Any)?;
        Ok(put != Put::There)
    }

    /// Inserts a pair after all others; false, with nothing changed, if it is not above the last one. `ending` is as
    /// for `insert_near_end`.
    ///
    /// # Errors
    /// As for `insert`.
    pub fn append_near_end<W: PageWrite>(
        &mut self,
        w: &mut W,
        ending: &mut Ending,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let put = self.put_near_end(w, ending, (key, value), Order::InTable)?;
        Ok(matches!(put, Put::New { .. }))
    }

    /// Inserts a value after all others of its key; false, with nothing changed, if it is not above the key's last
    /// value. `ending` is as for `insert_near_end`.
    ///
    /// # Errors
    /// As for `insert`.
    pub fn append_to_key_near_end<W: PageWrite>(
        &mut self,
        w: &mut W,
        ending: &mut Ending,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let put = self.put_near_end(w, ending, (key, value), Order::InKey)?;
        Ok(matches!(put, Put::New { .. }))
    }

    fn put_near_end<W: PageWrite>(
        &mut self,
        w: &mut W,
        ending: &mut Ending,
        (key, value): (&[u8], &[u8]),
        order: Order,
    ) -> Result<Put> {
        key::check_len(key)?;
        key::check_len(value)?;
        if let Some(place) = ending.place_of(self.tree) {
            match self.put_behind(w, place, (key, value), order)? {
                Near::Done => return Ok(Put::New { last: true }),
                Near::NotBehind => return Ok(Put::NotBehind),
                Near::Moved => {
                    ending.remember(self.tree, w)?;
                    return Ok(Put::New { last: true });
                }
                Near::Elsewhere => {}
            }
        }
        let put = self.put(w, key, value, order)?;
        match put {
            Put::New { last } => ending.descended(self.tree, w, last)?,
            // Nothing has changed.
            Put::There | Put::NotBehind => {}
        }
        Ok(put)
    }

    fn put_behind<W: PageWrite>(
        &mut self,
        w: &mut W,
        place: &mut Place,
        (key, value): (&[u8], &[u8]),
        order: Order,
    ) -> Result<Near> {
        let below = key.cmp(&place.last_key);
        if below == Ordering::Less && order == Order::InTable {
            return Ok(Near::NotBehind);
        }
        if below == Ordering::Less || !place.may_change(w) {
            return Ok(Near::Elsewhere);
        }
        if below == Ordering::Equal {
            return self.put_into_last(w, place, value, order);
        }
        let page_size = w.page_size();
        let payload = only(page_size, key.len(), value);
        let Some(payload) = payload.filter(|one| Filling::takes(page_size, key, *one)) else {
            return Ok(Near::Elsewhere);
        };
        if !place.push(w, key, payload)? {
            return Ok(Near::Elsewhere);
        }
        self.tree.keys += 1;
        self.tree.count_rows(w, &place.way, 1)?;
        place.rows = self.tree.rows;
        Ok(Near::Done)
    }

    /// Inserts a value after all others of the last key.
    fn put_into_last<W: PageWrite>(
        &mut self,
        w: &mut W,
        place: &mut Place,
        value: &[u8],
        order: Order,
    ) -> Result<Near> {
        let (leaf, at, page_size) = (place.leaf, place.leaf.addr, w.page_size());
        let node = Node::open(w.own_page(&leaf)?, 0, at)?;
        let index = node.count() - 1;
        let cell = node.cell(index)?;
        if !cell.rest.is_empty() {
            return Ok(Near::Elsewhere);
        }
        let not_behind = match order {
            // The value may exist.
            Order::Any => Near::Elsewhere,
            Order::InKey | Order::InTable => Near::NotBehind,
        };
        let (tag, bytes) = match grown(cell.payload(), value, at)? {
            Grown::There | Grown::Row { last: false, .. } => return Ok(not_behind),
            Grown::Row { bytes, .. } if fits_row(page_size, place.last_key.len(), &bytes) => {
                (tag::of(tag::NESTED, bytes.len()), bytes)
            }
            Grown::Row { .. } => return Ok(Near::Elsewhere),
            Grown::Pages(root) => {
                let mut set = Tree::of_nested_root(&root, self.tree.id, page_size, at)?;
                if !set.append_near_end(w, &mut place.set, value, &[])? {
                    return Ok(not_behind);
                }
                root_payload(&set)
            }
        };
        let payload = Payload { tag, bytes: &bytes };
        self.tree.flags |= LEADS_ON;
        self.tree.count_rows(w, &place.way, 1)?;
        place.rows = self.tree.rows;
        let page = w.page_mut(&leaf)?;
        if edit::overwrite(page, at, index, payload)? {
            return Ok(Near::Done);
        }
        // The row inserted last is the lowest cell, so its space becomes free again.
        edit::remove(page, 0, at, index)?;
        let key = Key::plain(&place.last_key);
        if edit::try_insert(page, 0, at, index, key, payload)? == Placed::Yes {
            return Ok(Near::Done);
        }
        let path = Path::to_last(place.way.clone(), leaf, index);
        self.tree.put_in(w, path, key, payload, Bias::Ascending)?;
        Ok(Near::Moved)
    }
}
