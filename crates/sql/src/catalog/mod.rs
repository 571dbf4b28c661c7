//! Finds the tables of a database by their names.
//!
//! ```text
//! names       the tables for a list of series, by name
//! computed    a table whose rows are computed when it is scanned
//! series      tidalite_series: the list of series as a table
//! system      tidalite_stats, tidalite_pins: the database as tables
//! files       attached files, by name
//! views       named queries
//! read_only   a table of an attached file
//! providers   the catalogs and schemas that the planner requires
//! ```

pub(crate) mod computed;
pub(crate) mod files;
pub(crate) mod names;
pub(crate) mod providers;
pub(crate) mod read_only;
pub(crate) mod series;
pub(crate) mod system;
pub(crate) mod views;
