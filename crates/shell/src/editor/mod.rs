//! The line editor: reads statements from a user.
//!
//! ```text
//! highlight  colours of the input
//! complete   keywords, tables, columns and commands for the key Tab
//! prompt     the prompt, and when the input is complete
//! interact   reads, runs, and reads again
//! ```

mod complete;
mod highlight;
mod interact;
mod prompt;

pub use interact::{History, interact};
