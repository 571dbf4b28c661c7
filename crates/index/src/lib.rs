//! Indexes: sets of numbers under byte keys, such as all series that have a tag, and hash tables.
//!
//! ```text
//! postings    sets of numbers as Roaring bitmaps, whose containers are rows of a table
//! block       sorted entries in one table row
//! parts       the tables of which an index consists
//! runs        writes that are not in the main table yet: sorted runs
//! buffered    ordered tables that collect random writes in runs
//! hash        hash tables: records, and an index from keys to record numbers
//! leaves      finds the part of an index to which the rows of an unreferenced leaf belong
//! ```
//!
//! A set is stored as one table row for each block of 65,536 numbers that contains members. So a change of one member
//! in a set of millions rewrites one row of at most 8 KiB.
//!
//! Like the other structures, an index is identified by the root of its table (`Tree`): functions take the root and a
//! page reader or page writer, and the caller stores the root.

mod block;
mod buffered;
mod hash;
mod leaves;
mod parts;
mod postings;
mod runs;

pub use buffered::range::BufferedRange;
pub use buffered::read::{BufferedReader, BufferedStat, FoundValue};
pub use buffered::write::{BUFFERED_KEY_MAX, BUFFERED_VALUE_MAX, BufferedWriter};
pub use hash::entry::RECORDS_MAX;
pub use hash::options::{HASHED_KEY_MAX, HashOptions, History, KeyForm, WHOLE_KEY_MAX};
pub use hash::read::{HashReader, HashStat, hash_records};
pub use hash::record::{RECORD_VALUE_MAX, Record};
pub use hash::walk::Walk;
pub use hash::write::{Buffered, HashWriter, RUN_BYTES_DEFAULT};
pub use leaves::{LeafRow, part_of_buffered_rows, part_of_hash_rows};
pub use postings::changes::Changes;
pub use postings::check::check;
pub use postings::sets::{NUMBERS_MAX, SetCursor, apply, count, get, get_within, set_cursor};
pub use roaring::{RoaringBitmap, RoaringTreemap};

#[cfg(test)]
mod tests;
