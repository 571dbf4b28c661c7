//! Hash tables: records with ordered or unordered keys, in an append-only store with an index.
//!
//! ```text
//! options      form of keys, duplicates, history
//! entry        entries of the index: a record number, or the removal of records
//! record       rows of the record store
//! state        counters, and the list of the runs
//! settle       which entries of a key remain valid, and where replaced records go
//! main_table   merging runs into the main table of the index
//! buffer       the records of a transaction, in memory
//! opened       options, state and locations of the parts, shared by readers
//! read         lookups, duplicates, history, ranges
//! walk         all keys in order
//! write        storing a transaction's records; compaction
//! rebuild      rebuilding the index from the records
//! check        checks every rule of the format
//! ```
//!
//! Invariants:
//! 1. Record numbers ascend from 0 and are never used again. A record never changes.
//! 2. The newest entry of a key is the one with the greatest record number.
//! 3. The index can be rebuilt from the records: removals are records, too.

pub(crate) mod buffer;
pub(crate) mod check;
pub(crate) mod entry;
pub(crate) mod main_table;
pub(crate) mod opened;
pub(crate) mod options;
pub(crate) mod read;
pub(crate) mod rebuild;
pub(crate) mod record;
pub(crate) mod settle;
pub(crate) mod state;
pub(crate) mod walk;
pub(crate) mod write;
