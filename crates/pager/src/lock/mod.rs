//! What several open handles on one file share, in one process or many: who reads what, who writes, what
//! was published, whether a sync has failed. In the lock file `name.tdl-lock`, or in memory.
//!
//! ```text
//! layout       where the words of the area are     slots        one reader slot a snapshot
//! area         the area as atomic words            idle_slots   slots that a handle keeps
//! map          the area, mapped from a file        protocol     the reader table's atomics (for models too)
//! bytes, ofd   locks on byte ranges                sync         the atomics of `protocol`
//! fork         is this still the same process?     readers      readers and writer as programs see them
//! handle       one open handle's part              queue        tickets of writers, between handles
//! seat         the setup lock; becoming a handle   writer_lock  the writer lock, between threads
//! file         the lock file
//! ```
//!
//! Invariants
//! 1. A handle is alive exactly while its byte is locked. Numbers of processes and threads are only told.
//! 2. Handles come and go, and slots of the dead are cleaned, only under the setup lock; a frozen process
//!    there delays opening and cleaning, never a reader that has a slot, nor the writer.
//! 3. Whoever finds, under the setup lock, that nobody else is alive makes the area anew.
//! 4. In a forked child nothing here is touched: the locks are shared with the parent.

mod area;
mod bytes;
pub(crate) mod file;
mod fork;
pub(crate) mod handle;
mod idle_slots;
mod layout;
mod map;
mod ofd;
pub(crate) mod protocol;
pub(super) mod queue;
pub(crate) mod readers;
pub(crate) mod seat;
pub(crate) mod slots;
mod sync;
pub(crate) mod writer_lock;

pub(crate) use area::Identity;
pub use layout::{HANDLES_MAX, READERS_MAX};
pub(crate) use queue::{Patience, Ticket};
pub use seat::LockMemory;
