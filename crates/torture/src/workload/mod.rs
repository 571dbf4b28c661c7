//! Random transactions over tables and series, determined by a seed and applied to both a database and the model.
//!
//! ```text
//! shape        how often each kind of operation occurs
//! names        names of tables and series, and their number
//! points       series of default points
//! hashes       operations on hash tables
//! buffered     operations on buffered tables
//! messages     operations on topics, a queue, a bucket and containers
//! relations    operations on relations
//! tables       the common operations on tables
//! table_calls  the less common operations on tables
//! wide         series of many columns
//! appenders    transactions that lend series to appenders
//! round_robin  series fed in turn while other threads encode
//! operations   random transactions made of all of these
//! script       numbered transactions, and an oracle that knows the content after each
//! ```

mod appenders;
mod buffered;
mod hashes;
pub(crate) mod messages;
mod names;
mod operations;
mod points;
mod relations;
pub(crate) mod round_robin;
pub mod script;
mod shape;
mod table_calls;
mod tables;
mod wide;

pub use hashes::RUN_BYTES;
pub use names::{TIME_MAX, merge_of, series_name};
pub use operations::{durability, operations, pins};
pub use shape::Shape;
pub(crate) use shape::chance;
