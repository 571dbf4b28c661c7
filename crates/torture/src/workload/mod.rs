//! Seeded transactions over tables and series, applied to a database and to the model alike.
//!
//! ```text
//! shape        how often each kind of operation comes
//! names        tables and series, and how many there are
//! points       series of default points
//! tables       the common operations on tables
//! table_calls  the rarer ones
//! wide         series of many columns
//! appenders    transactions lent to appenders
//! round_robin  series fed in turn while other threads encode
//! operations   a transaction, chosen by chance from all of these
//! script       numbered transactions, and the oracle that knows what each leaves
//! ```

mod appenders;
mod names;
mod operations;
mod points;
pub(crate) mod round_robin;
pub mod script;
mod shape;
mod table_calls;
mod tables;
mod wide;

pub use names::{TIME_MAX, merge_of, series_name};
pub use operations::{durability, operations, pins};
pub use shape::Shape;
pub(crate) use shape::chance;
