//! Relations as SQL tables.
//!
//! ```text
//! types    converts types of columns and cells between relations and Arrow
//! columns  converts rows to arrays
//! rows     converts arrays to rows
//! range    converts conditions on columns to ranges of a key
//! table    the table, as seen by the planner
//! scan     the scan as a node of a plan
//! sorted   scans in the order of a sort
//! declared metrics that have no series yet
//! ```

pub(crate) mod columns;
pub(crate) mod declared;
pub(crate) mod range;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod sorted;
pub(crate) mod table;
pub(crate) mod types;
