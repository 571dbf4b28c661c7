//! Traversals of the whole delta: checks, and reads around damage.

pub(crate) mod around;
pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod extents;
pub(crate) mod salvage;
pub(crate) mod since;
