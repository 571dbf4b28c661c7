//! Files and locks: everything below the pages of a database file. This crate reads and writes bytes at addresses,
//! and the words of the lock area; it does not know the format of the data file.
//!
//! Imports point down: a folder uses only the folders below it, which `tidalite-tidy` checks.
//!
//! ```text
//! lock     the lock file: reader table, writer lock, liveness of processes
//! storage  the data file behind a trait: a file of the operating system, a block device, memory
//! system   clocks, random identities
//! error    `Error`
//! ```

mod error;
pub mod lock;
pub mod storage;
pub mod system;

pub use error::{Error, Result};
