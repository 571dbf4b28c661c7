//! Going through whole trees: checking, moving, listing; and leaves without a tree.

pub(crate) mod check;
pub(crate) mod relocate;
pub(crate) mod salvage;
pub(crate) mod walk;
