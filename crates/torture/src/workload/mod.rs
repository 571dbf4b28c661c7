//! Seeded transactions over tables and series, applied to a database and to the model alike.

mod appenders;
pub(crate) mod operations;
pub(crate) mod round_robin;
pub mod script;
mod table_calls;
mod wide;

pub(crate) use operations::chance;
pub use operations::{Shape, TIME_MAX, durability, merge_of, operations, pins, series_name};
