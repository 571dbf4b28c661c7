//! Free space of both files: allocation, and the free-space part of the next meta record.

pub(crate) mod base;
pub(crate) mod build;
pub(crate) mod free_map;
pub(super) mod free_space;
pub(crate) mod large;
pub(crate) mod lists;
pub(crate) mod load;
mod pending;
mod placement;
pub(crate) mod plan;
pub(crate) mod ranges;
mod read;
pub(crate) mod reclaim;
pub(crate) mod region;
mod take_next_to;
mod take_recent;
mod txn;

#[cfg(test)]
mod tests;

pub(crate) use free_space::LISTS_PER_COMMIT;
pub(crate) use read::ReadPage;
pub(crate) use txn::TxnSpace;
