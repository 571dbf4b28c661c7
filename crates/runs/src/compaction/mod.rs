//! Merging the runs of a tier into one of the next, in bounded steps.

pub(crate) mod batch;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod reclaim;
