//! An open database file.
//!
//! ```text
//! options, tuning, open  opening
//! handle                 Database: begins transactions
//! background             a thread that repeats its work
//! verify                 verification of a state that only the lock file names
//! amend                  snapshot to write transaction, and back
//! durability, clock      syncs; trust in the wall clock
//! readers, pins          readers and writers of all processes; pinned versions
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
pub(crate) mod tuning;
pub(crate) mod verify;
