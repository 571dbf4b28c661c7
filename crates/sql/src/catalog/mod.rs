//! Finds the tables of a database by their names.
//!
//! ```text
//! names       tables of one list of series: their names, and the table of each
//! computed    a table whose rows are computed when it is scanned
//! series      tidalite_series: the list of series as a table
//! system      tidalite_stats, tidalite_pins: the database as tables
//! files       attached files, by name
//! views       queries with a name
//! read_only   a table of an attached file
//! providers   catalogs and schemas, as the planner asks for them
//! ```

pub(crate) mod computed;
pub(crate) mod files;
pub(crate) mod names;
pub(crate) mod providers;
pub(crate) mod read_only;
pub(crate) mod series;
pub(crate) mod system;
pub(crate) mod views;
