//! One database file: pages, extents, snapshots, commits, durability, checks.
//!
//! Imports point down: a folder uses only the folders below it, which `tidalite-tidy` checks.
//!
//! ```text
//! maintenance  work on a whole file: check, backup, restore, salvage
//! open         open a file: find, verify, recover; the methods of `Pager`; the background flusher
//! txn          transactions: `Snapshot`, `WriteTxn`, dirty pages (`dirty`), savepoints, tickets; state of the writer
//! commit       newest meta record (`found`, `versions`), redo log, pipeline from commit to durability, page reads
//! space        free space of both files
//! options      options for opening a file; events; callbacks
//! format       bytes of the file: pointers, headers, superblock, meta records, pins; traits `PageRead`, `PageWrite`
//! error        `Error`
//! seeded       deliberate bugs (tests only)
//! ```
//!
//! Files and locks are in the crate below, `tidalite_disk`, whose public types are exported here too.
//!
//! The format is described in docs/format.md, sections 1 to 4, and the durability argument in docs/durability.md.

mod commit;
mod error;
mod format;
mod maintenance;
mod open;
mod options;
pub mod seeded;
mod space;
mod txn;

pub use commit::found::Recovery;
pub use commit::metrics::{MetricsReport, PHASES, Phase, Times};
pub use error::lost_commits::{LossCause, LostCommits};
pub use error::refusal::Refusal;
pub use error::{Error, Result};
pub use format::header::{HEADER_BYTES, Header, seal_block, verify_block};
pub use format::kind::Kind;
pub use format::layout::in_second_file;
pub use format::meta::{APP_BYTES_MAX, USER_BYTES_MAX};
pub use format::pages::{Counters, Extent, PageRead, PageRef, PageWrite, expect_zeros};
pub use format::pins::{PIN_NAME_BYTES_MAX, PINS_MAX, Pin};
pub use format::ptr::{PTR_BYTES, Ptr};
pub use maintenance::backup::{BackupInfo, OnMoved, restore};
pub use maintenance::check::{Check, CheckReport};
pub use maintenance::salvage::{Candidate, RawFile, RawState};
pub use open::handle::Stat;
pub use open::inspect::{Inspection, MetaBlock, MetaRecord, inspect};
pub use options::event::{Event, Logger};
pub use options::long_reader::{LongReader, LongReaderAction, OnLongReader, OnWait};
pub use options::unrecorded::{Unrecorded, Verifier};
pub use options::{OpenMode, Options, RootsOf, Verify};
pub use tidalite_disk::Error as DiskError;
pub use tidalite_disk::lock::{
    HANDLES_MAX, LockMemory, READERS_MAX, Reader, ReaderKind, WriterSeen,
};
pub use tidalite_disk::storage::{FileStorage, Growth, MemoryStorage, ReadAhead, Storage};
pub use tidalite_disk::system::{ClockSource, Clocks};
pub use txn::inner::Pager;
pub use txn::snapshot::{Parked, Shown, Snapshot};
pub use txn::{CommitInfo, Durability, Savepoint, SecondFile, Ticket, UncommittedRead, WriteTxn};
