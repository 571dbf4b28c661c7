//! The tables of a database by their names.
//!
//! ```text
//! names       tables of one list of series: their names, and the table of each
//! series      tidalite_series: the list of series as a table
//! providers   catalogs and schemas, as the planner asks for them
//! ```

pub(crate) mod names;
pub(crate) mod providers;
pub(crate) mod series;
