//! Buffered tables: ordered tables for keys that arrive in random order.
//!
//! ```text
//! open         buffered tables of a snapshot and of a write transaction
//! read         BufferedTable: lookups
//! range        BufferedEntries: keys in order
//! write        BufferedTableMut: put, remove, compaction
//! ```

pub(crate) mod open;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod write;
