//! Requests pages from the disk in advance; adjacent pages are requested in one call.

use crate::page::node::Node;
use tidalite_pager::{PageRead, Ptr};

/// Requests read-ahead of all children of a branch, if the kernel reads each page that is not in memory alone
/// (`PageRead::reads_single_pages`). This is only a hint: a damaged child is reported when it is read.
pub(crate) fn request_children<R: PageRead>(r: &R, branch: &Node<'_>) {
    if !r.reads_single_pages() {
        return;
    }
    let mut runs = PageRuns::default();
    let children = (0..branch.count()).map_while(|index| branch.child(index).ok());
    children.for_each(|(child, _)| runs.add(r, child));
    runs.request(r);
}

/// Combines requests for adjacent pages, in either order, into one request.
#[derive(Debug, Default)]
pub(crate) struct PageRuns {
    from: u64,
    to: u64,
}

impl PageRuns {
    /// Adds a page. If the page is not adjacent to the pages added before, these earlier pages are requested first.
    pub(crate) fn add<R: PageRead>(&mut self, r: &R, ptr: Ptr) {
        let end = ptr.addr.saturating_add(u64::from(ptr.len));
        debug_assert!(self.from <= self.to, "the range is in order");
        if ptr.addr == self.to {
            self.to = end;
        } else if end == self.from {
            self.from = ptr.addr;
        } else {
            self.request(r);
            (self.from, self.to) = (ptr.addr, end);
        }
    }

    /// Requests the pages that were added since the last request.
    pub(crate) fn request<R: PageRead>(&mut self, r: &R) {
        if self.to > self.from {
            r.read_ahead(self.from, self.to - self.from);
        }
        *self = Self::default();
    }
}
