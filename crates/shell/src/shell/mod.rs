//! A session: runs statements and dot commands.
//!
//! ```text
//! result   prints the batches of one result
//! session  statements and commands, one after the other
//! import   the statement that `.import` runs
//! ```

mod import;
mod result;
mod session;
#[cfg(test)]
mod tests;

pub use session::{Flow, Shell};
