//! Programs that try to break a database.
pub mod model;
pub mod workload;
