//! The redo log: how small commits become durable with one sync.
//!
//! ```text
//! delta    a page, stored as the difference from another page
//! record   the entry of a commit in the redo log
//! block    blocks of the redo log, each stored once or twice
//! replay   reading the redo log at opening, and writing a durable meta record for its newest commit
//! overlay  the pages in the redo log, laid over the file for handles that may not write
//! ```
//!
//! The pages of such a commit are written like pages of a lazy commit, to the cache of the operating system without a
//! sync. Data that a power failure would lose is also written to the redo log: the meta record and, for each page,
//! its difference from the page that it is a copy of. One write of a few adjacent blocks, with one sync that covers
//! nothing else, makes all waiting commits durable. When the redo log is full, and at close, an ordinary flush with
//! two syncs writes a meta record, and the redo log begins again at its start.
//!
//! This is physical redo logging after a fuzzy checkpoint, as in J. Gray and A. Reuter, "Transaction Processing"
//! (1993), chapters 9 to 11. Since pages are copied on write, the checkpoint is an immutable version of the database,
//! and no undo is needed.
//!
//! Invariants
//! 1. The redo log builds on the newest durable meta record. The meta record has the address of the redo log, and the
//!    blocks of the log name the meta record. Only the handle that wrote the meta record writes to the log, only when
//!    the meta record is known to be on the medium, and only until another handle takes the writer lock.
//! 2. The redo log has all commits after that meta record up to the newest acknowledged one, without a gap.
//! 3. Blocks are only appended: an acknowledged block is not overwritten before a newer meta record is durable.
//! 4. A page in a log entry is a difference from a page as the previous commit left it. Pages in use by the durable
//!    meta record are not overwritten (`Writer::live`). Every later commit can therefore be rebuilt from the durable
//!    meta record and the redo log, whether or not the pages themselves reached the medium.
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
