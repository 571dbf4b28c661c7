//! Hash tables: records with keys that need no order. They support duplicates and history, and their index can be
//! rebuilt.
//!
//! ```text
//! options      form of keys, duplicates, history
//! open         hash tables of a snapshot and of a write transaction
//! read         HashTable: lookups, duplicates, history, records
//! range        HashRange: keys in order, and sets of records
//! write        HashTableMut: set, remove, compaction
//! counter      increment and decrement
//! ```

pub(crate) mod counter;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod write;
