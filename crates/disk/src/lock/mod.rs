//! Data that the open handles of one file share, in one process or several: readers, the writer, the published
//! commit, failed syncs. These data are in the lock file `name.tdl-lock`, or in memory.
//!
//! ```text
//! layout       offsets of the words of the area     slots        reader slots, one per snapshot
//! area         the area as atomic words             idle_slots   slots that a handle keeps
//! map          the area, mapped from a file         protocol     atomics of the reader table (for models too)
//! bytes, ofd   locks on byte ranges                 sync         atomics for `protocol`
//! fork         detection of a forked child          readers      public descriptions of readers and the writer
//! handle       the part of one open handle          queue        tickets of writers, between handles
//! attachment   setup lock; registering a handle     writer_lock  the writer lock, between threads
//! file         the lock file
//! ```
//!
//! Invariants
//! 1. A handle is alive exactly while its byte is locked. Process and thread numbers are only informative.
//! 2. Handles are registered and removed, and slots of dead handles are freed, only under the setup lock. A process
//!    that is suspended while it holds this lock delays opening and cleaning, but never a reader that has a slot, nor
//!    the writer.
//! 3. A handle that finds, under the setup lock, no other handle alive resets the area.
//! 4. A forked child does not change these data, because it shares the locks with the parent.

mod area;
mod attachment;
mod bytes;
pub mod file;
mod fork;
mod handle;
mod idle_slots;
mod layout;
mod map;
mod ofd;
pub mod protocol;
mod queue;
mod readers;
mod slots;
mod sync;
mod writer_lock;

pub use area::{Area, Identity};
pub use attachment::{Attachment, LockMemory, path_next_to};
pub use handle::Lock;
pub use layout::{HANDLES_MAX, READERS_MAX};
pub use queue::WaitLimit;
pub use readers::{Reader, ReaderKind, WriterSeen};
pub use slots::Seen;
pub use writer_lock::{Acquisition, Satisfied, WriterGuard, WriterLock};
