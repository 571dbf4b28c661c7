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

mod backup;
mod check;
mod clock;
mod error;
mod event;
mod flusher;
mod found;
mod handle;
mod header;
mod large_file;
mod layout;
mod lock;
mod look;
mod lost;
mod meta;
mod metrics;
mod open;
mod options;
mod page_map;
mod pager;
mod pages;
mod pins;
mod pipeline;
mod ptr;
mod published;
mod readers;
mod reading;
mod redo;
mod salvage;
pub mod seeded;
mod snapshot;
mod space;
pub mod storage;
mod superblock;
mod turns;
mod txn;
mod unrecorded;
mod unwritten;
mod verified;
mod writer;

pub use backup::{BackupInfo, OnMoved, restore};
pub use check::{Check, CheckReport};
pub use clock::{ClockSource, Clocks};
pub use error::{Error, Result};
pub use event::{Event, Logger};
pub use handle::{Pager, Stat};
pub use header::{HEADER_BYTES, Header, Kind, seal_block, verify_block};
pub use layout::in_second_file;
pub use lock::{HANDLES_MAX, LockMemory, READERS_MAX};
pub use look::{Look, Place, Record, look};
pub use lost::{LossCause, LostCommits};
pub use meta::{APP_BYTES_MAX, USER_BYTES_MAX};
pub use metrics::{MetricsReport, PHASES, Phase, Times};
pub use options::{OpenMode, Options, ReadAhead, RootsOf, Verify};
pub use pages::{Counters, Extent, PageRead, PageRef, PageWrite, expect_zeros};
pub use pins::{PIN_NAME_BYTES_MAX, PINS_MAX, Pin};
pub use ptr::{PTR_BYTES, Ptr};
pub use readers::{Laggard, LaggardAction, OnLaggard, OnWait, Reader, ReaderKind, WriterSeen};
pub use redo::Recovery;
pub use salvage::{Candidate, RawFile, RawState};
pub use snapshot::{Parked, Shown, Snapshot};
pub use storage::{FileStorage, MemoryStorage, Storage};
pub use txn::{CommitInfo, Durability, Savepoint, SecondFile, Ticket, UncommittedRead, WriteTxn};
pub use unrecorded::{Unrecorded, Verifier};
