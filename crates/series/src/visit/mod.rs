//! Traversals of whole trees: check, move, list; and leaves without a tree.

pub(crate) mod check;
pub(crate) mod relocate;
pub(crate) mod salvage;
pub(crate) mod walk;
