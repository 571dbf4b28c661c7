//! Ordered tables as SQL tables, with a column for the key and a column for the value.
//!
//! ```text
//! codec   converts keys and values of known types to arrays
//! range   converts conditions on the key to a range of keys
//! table   the table, as seen by the planner, and its scan
//! ```

pub(crate) mod codec;
pub(crate) mod range;
pub(crate) mod table;
