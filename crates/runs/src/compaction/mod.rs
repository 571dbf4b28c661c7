//! Merges runs of a tier into a run of the next tier, in bounded steps.

pub(crate) mod batch;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod reclaim;
