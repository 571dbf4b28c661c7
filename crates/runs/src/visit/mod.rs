//! Going through the whole front: checking it, and reading around damage.

pub(crate) mod around;
pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod extents;
pub(crate) mod salvage;
pub(crate) mod since;
