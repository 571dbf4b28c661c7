//! The library as its users see it, one scenario per file.
//!
//! ```text
//! errors         files that cannot be opened and calls that fail: each a typed error with the next step
//! disk_full      a disk that fills up or fails at every call; a small real file system
//! lock_file      a lock file that does not match its data file
//! limits         every limit of docs/limits.md, at the limit and one beyond
//! model          random operations against plain maps, with reads inside transactions and reopening
//! bounds         bytes written by a commit and read by a query
//! appenders      several threads in one write transaction
//! in_order       appenders one after the other
//! flush_threads  threads that encode the rows of one transaction
//! threads        writers and readers in several threads
//! integrity      findings of a check, beside writers and readers
//! pins           old versions that stay readable, and the changes since
//! salvage        intact data of a destroyed file
//! readers        snapshots that are renewed, parked, evicted, listed
//! backup         backups and their restore
//! copy           copies while writing goes on
//! upkeep_faults  compaction, maintenance, backup, restore, salvage over disks that fail at every call
//! aged           helper that lets a policy remove rows, for random tests
//! common, oracle helpers: contents to compare, and brute force
//! ```
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::print_stdout,
    reason = "seeds and figures belong in the log of a test"
)]

#[path = "../aged/mod.rs"]
mod aged;
mod appenders;
mod backup;
mod bounds;
mod common;
mod compact;
mod copy;
mod disk_full;
mod errors;
mod flush_threads;
mod in_order;
mod integrity;
mod large;
mod lazy;
mod lifecycle;
mod limits;
mod lock_file;
mod model;
mod oracle;
mod pins;
mod readers;
mod salvage;
mod threads;
mod upkeep_faults;
