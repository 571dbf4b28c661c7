//! Reading a table's leaves for their own sake: so that they are in memory and verified when somebody else comes to them.

use crate::page::node::Node;
use crate::page::read_ahead::ask_for_children;
use crate::table::tree::Tree;
use std::hint::black_box;
use tidalite_pager::{PageRead, Ptr, Result};

impl Tree {
    /// Reads every leaf in the order of keys. Before each, `go_on` hears how many rows lie before it, and ends the reading with
    /// false.
    ///
    /// # Errors
    /// `Corrupt`, `Io`: whoever comes for the rows of that page finds the same.
    pub fn read_leaves<R: PageRead>(
        &self,
        r: &R,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<()> {
        if let Some(level @ 1..) = self.height.checked_sub(1) {
            read_below(r, &self.root, level, &mut 0, go_on)?;
        }
        Ok(())
    }
}

/// Reads the leaves below a branch; false when it was ended. Recursion is as deep as the tree is high.
fn read_below<R: PageRead>(
    r: &R,
    ptr: &Ptr,
    level: u8,
    before: &mut u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool> {
    let page = r.page(ptr)?;
    let node = Node::open(&page, level, ptr.addr)?;
    if level == 1 {
        ask_for_children(r, &node);
    }
    for index in 0..node.count() {
        let (child, rows) = node.child(index)?;
        if level > 1 {
            if !read_below(r, &child, level - 1, before, go_on)? {
                return Ok(false);
            }
            continue;
        }
        if !go_on(*before) {
            return Ok(false);
        }
        // One byte, so that a page that is lent from the map is in memory although nobody had to verify it.
        black_box(r.page(&child)?.first());
        *before = before.wrapping_add(rows);
    }
    Ok(true)
}
