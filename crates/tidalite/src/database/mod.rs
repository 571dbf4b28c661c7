//! The database: one file, opened.
//!
//! ```text
//! options, open          how it is opened
//! handle                 Database: begins transactions
//! background             a thread that repeats some work
//! verify                 verifies a state that only the lock file names
//! amend                  a snapshot becomes a write transaction, and back
//! durability, clock      syncs; how far the wall clock is believed
//! readers, pins          who reads and writes, in all processes; versions that stay
//! ```

pub(crate) mod amend;
pub(crate) mod background;
pub(crate) mod clock;
pub(crate) mod durability;
pub(crate) mod handle;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod pins;
pub(crate) mod readers;
pub(crate) mod verify;
