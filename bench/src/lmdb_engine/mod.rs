//! The peer: the engine of the article "An Ultrafast Light Timeseries Storage Engine", ported to Rust, on the same LMDB
//! with the same flag `MDB_WRITEMAP`.
//!
//! ```text
//! engine   Engine, WriteTxn: one modification buffer per series, insert or overwrite anywhere
//! cursor   SeriesCursor: search, step, for-each over stored points
//! segment  up to N raw points, sorted; insert with overflow; its bytes are the LMDB value
//! key      GUID + time, in memcmp order
//! arena    memory of the modification buffers: huge pages
//! lmdb     the required LMDB calls, with lifetimes
//! ```
//!
//! All differences between the port and the article favour the peer. The last segment of a series is stored trimmed to
//! its points (the article stores all 8,100 slots). The buffers are in huge pages and are not freed inside the commit.
//! The information of a series is looked up once per change of series, not once per insert. Keys are compared with
//! memcmp.

mod arena;
mod cursor;
mod engine;
mod key;
pub(crate) mod lmdb;
mod segment;

#[cfg(test)]
pub(crate) use cursor::Found;
pub(crate) use cursor::SeriesCursor;
pub(crate) use engine::{Engine, WriteTxn};
pub(crate) use key::Guid;
pub(crate) use segment::{Point, plain_words};

/// Number of points in a full segment, as in the published engine: 8 + 8,100 x 24 bytes are 48 pages less 2 KB.
pub(crate) const SEGMENT_POINTS: usize = 8100;

#[cfg(test)]
mod tests;
