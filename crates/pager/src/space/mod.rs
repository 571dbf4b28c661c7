//! Free space of both files: who may allocate what, and what the next record says about it.

pub(crate) mod base;
pub(crate) mod build;
mod free_space;
pub(crate) mod large;
pub(crate) mod lists;
pub(crate) mod plan;
pub(crate) mod ranges;
mod recent;
pub(crate) mod reclaim;
mod stretch;
mod txn;
pub(crate) mod zone;

#[cfg(test)]
mod tests;

pub(crate) use free_space::{ReadPage, Space};
pub(crate) use reclaim::LISTS_PER_COMMIT;
pub(crate) use txn::TxnSpace;
