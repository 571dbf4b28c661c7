//! Freeing the extents of values, the nested tables and the whole subtrees that rows and branches lead to.

use crate::error::damaged;
use crate::inline::inline_table;
use crate::page::key::free_rest;
use crate::page::layout::{Payload, tag};
use crate::page::node::Node;
use crate::table::tree::{LEADS_ON, Tree, check_depth};
use crate::value;
use std::collections::HashSet;
use tidalite_pager::{PageWrite, Ptr, Result};

/// What becomes of what the old payload led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// It is freed: by a removal all of it, by a put the extent of a value. No put takes a nested table's place.
    Free,
    /// They belong to the new payload.
    Keep,
}

/// A copy of a payload that leads to something; of a plain value nothing.
pub(crate) fn leading_on(payload: Payload<'_>) -> Vec<u8> {
    if tag::kind(payload.tag) == tag::INLINE {
        return Vec::new();
    }
    payload.bytes.to_vec()
}

/// What one operation has freed, or gone through, so far. A hostile file may lead to a page in many ways; each is gone through once, else
/// a few pages could keep us busy for ever.
#[derive(Default)]
pub(crate) struct Freed {
    /// How deep the table at hand is nested.
    pub(crate) depth: usize,
    /// How many keys went with what was freed, where they are counted: of a table of multi-values of which some stay.
    pub(crate) keys: Option<u64>,
    /// Branches, and roots of nested tables.
    seen: HashSet<u64>,
}

impl Freed {
    pub(crate) fn first_time(&mut self, ptr: &Ptr) -> Result<()> {
        if self.seen.insert(ptr.addr) {
            return Ok(());
        }
        Err(damaged("table page", ptr.addr, "a second way to it", "one"))
    }
}

impl Tree {
    /// Frees what a payload leads to. `bytes` may be left out for a plain value.
    pub(crate) fn free_payload<W: PageWrite>(
        &self,
        w: &mut W,
        tag: u32,
        bytes: &[u8],
        leaf_at: u64,
        freed: &mut Freed,
    ) -> Result<()> {
        match tag::kind(tag) {
            tag::INLINE => {}
            tag::REFERENCE => {
                if let Some(old) = value::reference(tag, bytes, w.page_size(), leaf_at)? {
                    w.free_extent(&old.extent());
                }
            }
            tag::NESTED => {
                check_depth(freed.depth)?;
                freed.depth += 1;
                for cell in inline_table::cells(bytes, leaf_at)? {
                    let cell = cell?;
                    self.free_payload(w, cell.tag, cell.payload, leaf_at, freed)?;
                }
                freed.depth -= 1;
            }
            _ => {
                let tree = Self::of_nested_root(bytes, self.id, w.page_size(), leaf_at)?;
                check_depth(freed.depth)?;
                if tree.height == 1 {
                    freed.first_time(&tree.root)?;
                }
                freed.depth += 1;
                // The rows of a set are no keys of this table.
                let keys = freed.keys.take();
                tree.free_below(w, &tree.root, tree.height - 1, freed)?;
                freed.keys = keys;
                freed.depth -= 1;
            }
        }
        Ok(())
    }

    /// Frees a page with all that it leads to. Leaves that lead nowhere are not read.
    pub(crate) fn free_below<W: PageWrite>(
        &self,
        w: &mut W,
        ptr: &Ptr,
        level: u8,
        freed: &mut Freed,
    ) -> Result<()> {
        if level > 0 {
            freed.first_time(ptr)?;
            let (children, rests) = {
                let page = w.page(ptr)?;
                let node = Node::open(&page, level, ptr.addr)?;
                let children = (0..node.count()).map(|index| Ok(node.child(index)?.0));
                let children: Vec<Ptr> = children.collect::<Result<_>>()?;
                let leads_on = self.flags & LEADS_ON != 0;
                let rests = if leads_on { node.rests()? } else { Vec::new() };
                (children, rests)
            };
            for rest in rests {
                free_rest(w, &rest, ptr.addr)?;
            }
            for child in children {
                self.free_below(w, &child, level - 1, freed)?;
            }
        } else if self.flags & LEADS_ON != 0 || freed.keys.is_some() {
            let copy = w.page(ptr)?.to_vec();
            let node = Node::open(&copy, 0, ptr.addr)?;
            if let Some(keys) = &mut freed.keys {
                *keys += node.count() as u64;
            }
            for index in 0..node.count() {
                let cell = node.cell(index)?;
                free_rest(w, cell.rest, ptr.addr)?;
                self.free_payload(w, cell.tag, cell.payload, ptr.addr, freed)?;
            }
        }
        w.free_page(ptr);
        Ok(())
    }
}
