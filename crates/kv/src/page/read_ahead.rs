//! Pages asked for ahead, those side by side in one call.

use crate::page::node::Node;
use tidalite_pager::{PageRead, Ptr};

/// Asks for all that a branch leads to, where pages are read alone. A hint: what is wrong with it meets who reads.
pub(crate) fn ask_for_children<R: PageRead>(r: &R, branch: &Node<'_>) {
    if !r.reads_alone() {
        return;
    }
    let mut runs = Runs::default();
    let children = (0..branch.count()).map_while(|index| branch.child(index).ok());
    children.for_each(|(child, _)| runs.add(r, child));
    runs.ask(r);
}

/// Pages that lie side by side, in either order, are asked for together.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    from: u64,
    to: u64,
}

impl Runs {
    /// Takes a page in, after asking for those before if it is not beside them.
    pub(crate) fn add<R: PageRead>(&mut self, r: &R, ptr: Ptr) {
        let end = ptr.addr.saturating_add(u64::from(ptr.len));
        if ptr.addr == self.to {
            self.to = end;
        } else if end == self.from {
            self.from = ptr.addr;
        } else {
            self.ask(r);
            (self.from, self.to) = (ptr.addr, end);
        }
    }

    /// Asks for what was taken in.
    pub(crate) fn ask<R: PageRead>(&mut self, r: &R) {
        if self.to > self.from {
            r.read_ahead(self.from, self.to - self.from);
        }
        *self = Self::default();
    }
}
