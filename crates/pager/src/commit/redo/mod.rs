//! The redo log: small durable commits with one barrier.
//!
//! ```text
//! delta    a page stored as the difference from another one
//! record   the log record of a commit
//! block    blocks of the log, each stored once or twice
//! replay   reading the log at opening, and making its end a durable record
//! overlay  the pages of the log over the file, for handles that may not write
//! ```
//!
//! The pages of such a commit are written like pages of a lazy commit, to the system's cache without a sync. Data that
//! a power cut would lose is kept in the log: the meta record and, for each page, its difference from the page it was
//! copied from. One write of a few adjacent blocks, with one barrier that covers nothing else, makes all waiting
//! commits durable. When the log is full, and at close, an ordinary flush of two barriers writes a record, and the log
//! starts over.
//!
//! This is physical redo logging after a fuzzy checkpoint, as in J. Gray and A. Reuter, "Transaction Processing"
//! (1993), chapters 9 to 11. Since pages are copied on write, the checkpoint is an immutable state, and no undo is
//! needed.
//!
//! Invariants
//! 1. The log builds on the newest durable record. The record names the location of the log, and the log blocks name
//!    the record. Only the handle that wrote the record writes the log, only when the record is known to be on the
//!    medium, and only until another handle takes the writer lock.
//! 2. It holds all commits from that record up to the newest acknowledged one, without a gap.
//! 3. Blocks are only appended: an acknowledged block is not overwritten before a newer record is durable.
//! 4. A page in a log record is a difference from a page of the state left by the previous commit. Pages visible to the
//!    durable record are not overwritten (`Writer::live`). Every later state can therefore be rebuilt from the durable
//!    record and the log, whether or not the pages themselves reached the medium.
//! 5. Each block of a `Durable` commit is stored twice, so that no single damaged block undoes the commit. A block of a
//!    `OneFlush` commit is stored once.

pub(crate) mod area;
mod block;
mod delta;
mod log;
mod overlay;
mod record;
mod replay;

pub(crate) use log::{Appended, Entry, Log};
pub(crate) use overlay::Overlay;
pub(crate) use record::{PageOf, Recorder};
pub(crate) use replay::{Logged, Replayed, read, write_replayed};
