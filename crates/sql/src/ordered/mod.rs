//! Ordered tables as SQL tables, with a column for the key and a column for the value.
//!
//! ```text
//! codec   keys and values of the known types as arrays
//! range   conditions on the key as a range of keys
//! table   the table, as the planner sees it, and its scan
//! ```

pub(crate) mod codec;
pub(crate) mod range;
pub(crate) mod table;
