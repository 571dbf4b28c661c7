//! Sets of numbers under byte keys.
//!
//! ```text
//! container   one block of a set: up to 65,536 numbers as a Roaring bitmap
//! changes     additions and removals of a transaction, collected in memory
//! sets        reading and changing sets in a table of containers
//! check       every rule of the format
//! ```

pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod container;
pub(crate) mod sets;
