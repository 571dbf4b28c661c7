//! Ordered tables, of bytes or typed, with one value or a sorted set of values per key.
//!
//! ```text
//! open_read, open_write                        tables of a snapshot; tables of a write transaction
//! open_types                                   types recorded with a table
//! table, table_cursor                          one value per key: reading, a cursor
//! table_mut, table_cursor_mut                  changing, a cursor that changes
//! set_table, set_table_mut                     a sorted set of values per key: reading, changing
//! set_cursor, set_cursor_mut, set_range        their cursors and iterators
//! codec, lent                                  keys and values of Rust types as bytes; values lent by a page
//! document                                     values through serde
//! range, key_range, bounds                     ranges of keys, from both ends
//! shared                                       several tables open for changes at once
//! retain                                       removing entries by a predicate
//! stream, cached                               a value as a stream; repeated gets
//! owned, batches                               a table that holds its snapshot; iteration in batches
//! ```

mod batches;
pub(crate) mod bounds;
pub(crate) mod cached;
pub(crate) mod codec;
#[cfg(feature = "serde")]
pub(crate) mod document;
pub(crate) mod key_range;
pub(crate) mod lent;
pub(crate) mod open_read;
pub(crate) mod open_types;
pub(crate) mod open_write;
pub(crate) mod owned;
pub(crate) mod range;
pub(crate) mod retain;
pub(crate) mod set_cursor;
pub(crate) mod set_cursor_mut;
pub(crate) mod set_range;
pub(crate) mod set_table;
pub(crate) mod set_table_mut;
pub(crate) mod shared;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod table_cursor;
pub(crate) mod table_cursor_mut;
pub(crate) mod table_mut;
