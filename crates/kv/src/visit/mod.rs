//! Traversal of whole tables: checking, relocating, counting, listing pages.

pub(crate) mod check;
pub(crate) mod read_leaves;
pub(crate) mod relocate;
pub(crate) mod stat;
pub(crate) mod walk;
