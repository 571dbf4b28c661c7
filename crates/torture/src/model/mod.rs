//! The model: plain maps that say what the database must hold, and a digest that both sides share.
//!
//! ```text
//! digest    parts of a content folded into one number
//! wide      series of many columns
//! content   all that a database must hold
//! database  the same of a database, read through its public API
//! ```

mod content;
mod database;
mod digest;
pub mod wide;

pub use content::{Model, Pairs, Rows, TOPICS};
pub use database::{digest_of, digest_of_snapshot, model_of};
