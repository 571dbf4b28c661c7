//! One file: pages, extents, snapshots, commit, durability, check.
//!
//! Imports point down: a folder uses those below it, and `tidalite-tidy` checks that.
//!
//! ```text
//! maintenance  work on a whole file: check, backup and restore, salvage
//! open         opening: find, verify, recover; the methods of `Pager`; the background flusher
//! txn          transactions: `Snapshot`, `WriteTxn` with its changed pages (`dirty`), savepoints, tickets; the state of the one writer
//! commit       which record is the newest (`found`, `versions`), the redo log, the pipeline from committed to durable, reading pages
//! space        free space of both files
//! options      how a file is opened; events; what programs are asked and told
//! format       bytes of the file: pointers, headers, superblock, meta records, pins; the traits `PageRead` and `PageWrite`
//! lock         the lock file: reader table, writer lock, who is alive
//! storage      the data file through a trait: the system's file, memory, an overlay
//! system       clocks, random identities
//! error        `Error`
//! seeded       deliberate bugs (tests only)
//! ```
//!
//! `system`, `storage` and `lock` know nothing of pages.
//!
//! docs/format.md sections 1 to 4 are the format, docs/durability.md the argument.

mod commit;
mod error;
mod format;
mod lock;
mod maintenance;
mod open;
mod options;
pub mod seeded;
mod space;
pub mod storage;
mod system;
mod txn;

pub use commit::found::Recovery;
pub use commit::metrics::{MetricsReport, PHASES, Phase, Times};
pub use error::lost_commits::{LossCause, LostCommits};
pub use error::{Error, Result};
pub use format::header::{HEADER_BYTES, Header, seal_block, verify_block};
pub use format::kind::Kind;
pub use format::layout::in_second_file;
pub use format::meta::{APP_BYTES_MAX, USER_BYTES_MAX};
pub use format::pages::{Counters, Extent, PageRead, PageRef, PageWrite, expect_zeros};
pub use format::pins::{PIN_NAME_BYTES_MAX, PINS_MAX, Pin};
pub use format::ptr::{PTR_BYTES, Ptr};
pub use lock::readers::{Reader, ReaderKind, WriterSeen};
pub use lock::{HANDLES_MAX, LockMemory, READERS_MAX};
pub use maintenance::backup::{BackupInfo, OnMoved, restore};
pub use maintenance::check::{Check, CheckReport};
pub use maintenance::salvage::{Candidate, RawFile, RawState};
pub use open::handle::Stat;
pub use open::inspect::{Look, Place, Record, look};
pub use options::event::{Event, Logger};
pub use options::laggard::{Laggard, LaggardAction, OnLaggard, OnWait};
pub use options::unrecorded::{Unrecorded, Verifier};
pub use options::{OpenMode, Options, RootsOf, Verify};
pub use storage::file::ReadAhead;
pub use storage::{FileStorage, MemoryStorage, Storage};
pub use system::clock::{ClockSource, Clocks};
pub use txn::inner::Pager;
pub use txn::snapshot::{Parked, Shown, Snapshot};
pub use txn::{CommitInfo, Durability, Savepoint, SecondFile, Ticket, UncommittedRead, WriteTxn};
