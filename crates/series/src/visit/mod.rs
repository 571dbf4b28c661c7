//! Traversals of whole trees: check, relocation, salvage, difference; and leaves without a tree.

pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod relocate;
pub(crate) mod salvage;
