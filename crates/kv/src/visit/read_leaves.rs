//! Reads a table's leaves in advance, so that they are in memory and verified for later readers.

use crate::page::node::Node;
use crate::page::read_ahead::request_children;
use crate::table::tree::Tree;
use std::hint::black_box;
use tidalite_pager::{PageRead, Ptr, Result};

impl Tree {
    /// Reads every leaf in key order. Before each leaf, `go_on` receives the number of rows before that leaf; if it
    /// returns false, the function stops reading.
    ///
    /// # Errors
    /// `Corrupt`, `Io`: the same error that a reader of the rows of that leaf gets.
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

/// Reads the leaves below a branch; returns false if `go_on` has stopped the function. The recursion depth is the
/// height of the tree.
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
        request_children(r, &node);
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
        // Reads one byte, so that the kernel loads a page of the memory map even if the page needs no verification.
        black_box(r.page(&child)?.first());
        *before = before.wrapping_add(rows);
    }
    Ok(true)
}
