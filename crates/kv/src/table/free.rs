//! Frees the extents, nested tables and subtrees that removed rows and branches refer to.

use crate::error::damaged;
use crate::inline::inline_table;
use crate::page::key::free_rest;
use crate::page::layout::{Payload, kind_of, tag};
use crate::page::node::Node;
use crate::table::tree::{HAS_REFERENCES, Tree, check_depth};
use crate::value;
use std::collections::HashSet;
use tidalite_pager::{PageWrite, Ptr, Result};

/// What happens to the pages and extents to which a replaced or removed payload refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldPayload {
    /// They are freed: all of them when a row is removed, the extent of a value when another value is put. Putting a
    /// value never replaces a nested table.
    Free,
    /// They are kept, because the new payload refers to them.
    Keep,
}

/// A copy of a payload that refers to pages or extents; empty for a value stored in the leaf.
pub(crate) fn reference_bytes(payload: Payload<'_>) -> Vec<u8> {
    if tag::kind(payload.tag) == tag::INLINE {
        return Vec::new();
    }
    payload.bytes.to_vec()
}

/// Pages that one operation has freed or visited. In a hostile file many pointers may lead to the same page; each page
/// is visited once, or a few pages could keep the operation busy forever.
#[derive(Default)]
pub(crate) struct VisitedPages {
    /// Nesting depth of the table that is being visited.
    pub(crate) depth: usize,
    /// Number of distinct keys removed. Set only for a table of sets that may keep some of its keys.
    pub(crate) keys: Option<u64>,
    /// Addresses of the branches visited, and of the visited roots of nested tables.
    seen: HashSet<u64>,
}

impl VisitedPages {
    pub(crate) fn visit(&mut self, ptr: &Ptr) -> Result<()> {
        if self.seen.insert(ptr.addr) {
            return Ok(());
        }
        Err(damaged(
            "table page",
            ptr.addr,
            "a second pointer to it",
            "one pointer",
        ))
    }
}

impl Tree {
    /// Frees the pages and extents to which a payload refers. `bytes` may be empty for a value stored in the leaf.
    pub(crate) fn free_payload<W: PageWrite>(
        &self,
        w: &mut W,
        tag: u32,
        bytes: &[u8],
        leaf_at: u64,
        freed: &mut VisitedPages,
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
                debug_assert!(freed.depth > 0, "depths are balanced");
                freed.depth -= 1;
            }
            _ => {
                let tree = Self::decode_nested_root(bytes, self.id, w.page_size(), leaf_at)?;
                check_depth(freed.depth)?;
                if tree.height == 1 {
                    freed.visit(&tree.root)?;
                }
                freed.depth += 1;
                // Stops the count of removed keys: the values of a nested set are not keys of this table.
                let keys = freed.keys.take();
                tree.free_below(w, &tree.root, tree.height - 1, freed)?;
                freed.keys = keys;
                debug_assert!(freed.depth > 0, "depths are balanced");
                freed.depth -= 1;
            }
        }
        Ok(())
    }

    /// Frees a page and everything below it. Leaves are read only if their rows may refer to pages or extents, or if
    /// removed keys are counted.
    pub(crate) fn free_below<W: PageWrite>(
        &self,
        w: &mut W,
        ptr: &Ptr,
        level: u8,
        freed: &mut VisitedPages,
    ) -> Result<()> {
        debug_assert!(ptr.kind == kind_of(level), "a page of this level");
        if level > 0 {
            freed.visit(ptr)?;
            let (children, rests) = {
                let page = w.page(ptr)?;
                let node = Node::open(&page, level, ptr.addr)?;
                let children = (0..node.count()).map(|index| Ok(node.child(index)?.0));
                let children: Vec<Ptr> = children.collect::<Result<_>>()?;
                let leads_on = self.flags & HAS_REFERENCES != 0;
                let rests = if leads_on { node.rests()? } else { Vec::new() };
                (children, rests)
            };
            for rest in rests {
                free_rest(w, &rest, ptr.addr)?;
            }
            for child in children {
                self.free_below(w, &child, level - 1, freed)?;
            }
        } else if self.flags & HAS_REFERENCES != 0 || freed.keys.is_some() {
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
