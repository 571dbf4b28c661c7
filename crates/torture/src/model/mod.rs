//! The model: plain maps that say what the database must hold, and a digest that both sides share.

mod content;
pub mod wide;

pub use content::{Model, Pairs, Rows, TOPICS, digest_of, digest_of_snapshot, model_of};
