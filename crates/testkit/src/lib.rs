//! What the tests of every room use; never part of a shipped build.
//!
//! ```text
//! rng       Rng                       a small seeded generator
//! scratch   ScratchPages              pages and extents in memory, strict about ownership
//! ```

pub mod rng;
mod scratch;

pub use scratch::{ScratchPages, ScratchSnapshot};
