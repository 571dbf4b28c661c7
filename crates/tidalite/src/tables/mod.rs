//! Ordered tables, of bytes or typed, with one value or a sorted set of values per key.
//!
//! ```text
//! open_read, open_write                        tables of a snapshot; tables of a write transaction
//! table, table_mut, table_edit                 one value per key: reading, changing, a cursor that writes
//! multi, multi_mut, multi_edit                 the same for a set of values per key
//! typed, typed_multi                           keys and values of Rust types
//! range, key_range, bounds                     ranges of keys, from both ends
//! retain                                       removing entries by a predicate
//! stream, cached                               a value as a stream; repeated gets
//! ```

pub(crate) mod bounds;
pub(crate) mod cached;
pub(crate) mod key_range;
pub(crate) mod multi;
pub(crate) mod multi_edit;
pub(crate) mod multi_mut;
pub(crate) mod open_read;
pub(crate) mod open_write;
pub(crate) mod range;
pub(crate) mod retain;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod table_edit;
pub(crate) mod table_mut;
pub(crate) mod typed;
pub(crate) mod typed_multi;
