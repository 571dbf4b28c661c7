//! Traversals of the whole delta: checks, salvage around damage, and moving pages to other addresses.

pub(crate) mod around;
pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod extents;
pub(crate) mod relocate;
pub(crate) mod salvage;
pub(crate) mod since;
