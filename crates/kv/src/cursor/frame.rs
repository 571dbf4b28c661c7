//! One page of a cursor's descent path, and the cursor's index in it.

use crate::page::header::Shape;
use crate::page::node::Node;
use tidalite_pager::PageRef;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CursorState {
    Before,
    At,
    After,
}

#[derive(Clone)]
pub(super) struct Frame<'r> {
    pub(super) page: PageRef<'r>,
    pub(super) shape: Shape,
    pub(super) at: u64,
    pub(super) index: usize,
}

impl<'r> Frame<'r> {
    pub(super) fn node(&self) -> Node<'_> {
        Node::with(&self.page, self.shape, self.at)
    }
}

/// Selects the entry that a descent takes in each page.
#[derive(Clone, Copy)]
pub(super) enum Target<'k> {
    First,
    /// The first entry, as for `First`, when the cursor steps forward from the leaf before.
    Next,
    Last,
    /// The entry that leads to a key: in the leaf, the first entry that is not below the key; may be one past the last
    /// entry.
    To(&'k [u8]),
}
