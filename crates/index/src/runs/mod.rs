//! Writes that are not in the main table yet, stored in sorted runs as in a log-structured merge-tree.
//!
//! ```text
//! state       the list of runs, and the progress of merging the oldest ones into the main table
//! cursor      reading blocks in order of keys
//! merge       reading several runs, and the main table, as one
//! filter      Bloom filters, which exclude keys that a run does not have
//! lookup      the entries of one key
//! check       checks every rule of the format for blocks and runs
//! write       creates runs, and merges runs of similar size
//! ```
//!
//! P. O'Neil, E. Cheng, D. Gawlick, E. O'Neil, "The log-structured merge-tree (LSM-tree)", Acta Informatica 33 (1996).

pub(crate) mod check;
pub(crate) mod cursor;
pub(crate) mod filter;
pub(crate) mod lookup;
pub(crate) mod merge;
pub(crate) mod state;
pub(crate) mod write;
