//! Series as tables.
//!
//! ```text
//! layout    the columns of a table, and the series that contain its rows
//! filters   conditions that a scan evaluates
//! chunk     rows of a member, read piece by piece
//! scan      the scan as a node of a plan
//! trace     expressions of a plan as columns of a table
//! newest    the first or last rows by time
//! table     the table, as the planner sees it
//! ```

pub(crate) mod chunk;
pub(crate) mod filters;
pub(crate) mod layout;
pub(crate) mod newest;
pub(crate) mod scan;
pub(crate) mod table;
pub(crate) mod trace;
