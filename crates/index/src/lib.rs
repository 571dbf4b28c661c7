//! Postings: sets of numbers under byte keys, such as the series that have a tag.
//!
//! ```text
//! container   one block of a set: up to 65,536 numbers as a Roaring bitmap
//! changes     additions and removals of a transaction, collected in memory
//! postings    reading and changing sets in a table of containers
//! check       every rule of the format
//! ```
//!
//! A set is stored as one table row for each block of 65,536 numbers in which it has members, so a change of one member
//! of a set of millions rewrites one row of at most 8 KiB.
//!
//! Like the other structures, a set of postings is identified by the root of its table (`Tree`): functions take the root
//! and a page reader or page writer, and the caller stores the root.

mod changes;
mod check;
mod container;
mod postings;

pub use changes::Changes;
pub use check::check;
pub use postings::{NUMBERS_MAX, SetCursor, apply, count, get, get_within, set_cursor};
pub use roaring::{RoaringBitmap, RoaringTreemap};

#[cfg(test)]
mod tests;
