//! Series as tables.
//!
//! ```text
//! layout    the columns of a table, and the series that contain its rows
//! filters   conditions that a scan evaluates
//! chunk     reads the rows of a member in pieces
//! scan      the scan as a node of a plan
//! trace     traces expressions of a plan back to columns of a table
//! newest    reads the first or last rows by time
//! table     the table, as seen by the planner
//! ```

pub(crate) mod chunk;
pub(crate) mod filters;
pub(crate) mod layout;
pub(crate) mod newest;
pub(crate) mod scan;
pub(crate) mod table;
pub(crate) mod trace;
