//! The line editor: reads statements from a user.
//!
//! ```text
//! highlight  colours of the input
//! complete   completes keywords, tables, columns and commands with the key Tab
//! prompt     the prompt, and the decision whether the input is complete
//! interact   the loop that reads and runs statements
//! ```

mod complete;
mod highlight;
mod interact;
mod prompt;

pub use interact::{History, interact};
