//! Relations as SQL tables.
//!
//! ```text
//! types    types of columns and cells as types of Arrow
//! columns  rows as arrays
//! rows     arrays as rows
//! range    conditions on a key as ranges of it
//! table    the table, as the planner sees it
//! scan     the scan as a node of a plan
//! sorted   scans in the order of a sort
//! declared metrics without series
//! ```

pub(crate) mod columns;
pub(crate) mod declared;
pub(crate) mod range;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod sorted;
pub(crate) mod table;
pub(crate) mod types;
