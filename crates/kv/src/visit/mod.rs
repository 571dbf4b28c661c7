//! Going through whole tables: checking, moving, counting, listing pages.

pub(crate) mod check;
pub(crate) mod read_leaves;
pub(crate) mod relocate;
pub(crate) mod stat;
pub(crate) mod walk;
