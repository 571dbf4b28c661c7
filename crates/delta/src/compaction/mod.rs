//! Merges runs of a tier into a run of the next tier, in bounded steps.

pub(crate) mod batch_merge;
pub(crate) mod memory;
pub(crate) mod reclaim;
pub(crate) mod steps;
