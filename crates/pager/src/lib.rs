//! One file: pages, extents, snapshots, commit, durability, check.
//!
//! ```text
//! what the structures above see            the open file                       on disk
//! ptr       Ptr, a Merkle pointer           pager     what is open, its states  layout      where things are
//! header    32 bytes of every page          open      find, heal, settle log    superblock  what never changes
//! pages     PageRead, PageWrite             snapshot  Snapshot                  meta        one durable commit
//! event     Event, Logger                   reading   pages: lent, verified
//! error     Error                           txn       WriteTxn: commit, dirty,  space/base  free-space structure
//! backup    pages as a stream, and back               epochs, uncommitted,
//! salvage   RawFile, by headers alone                 ticket
//! check     Check, claims of every page     found     which record is newest
//! handle    Pager, Stat                     pipeline  from committed to durable
//!                                           unrecorded: is it in the file?
//! metrics   phases of commits
//!                                           redo      the log: one barrier instead of two
//!                                           flusher   the thread that flushes
//!                                           writer    growth, what a writer     storage     Storage: the system's
//!                                                     needs                                 file, memory
//! options   Options                         space     who may allocate what     seeded      deliberate bugs
//!                                           turns     the queue of writers                  (tests only)
//!                                           verified  what was verified
//!                                           unwritten pages of `None` commits
//! ```
//!
//! published  a snapshot and the free space for who does not wait for the writer
//! look       what the head of a file says, before it is opened
//! lost       evidence that durable commits are missing
//! large_file the second file, for large values; space/large its free space.
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
