//! The log: small durable commits with one barrier.
//!
//! ```text
//! delta    a page as what differs from another one
//! record   what the log holds of a commit
//! block    blocks of the log, each once or twice
//! replay   what is found in the log at opening; making it a durable record
//! ```
//!
//! The pages of such a commit are written as those of a lazy one: to the system's cache, and no sync follows. What a power cut would take
//! is kept in the log: the meta record and, for each page, what differs from the page that it was copied from. One write of a few
//! blocks side by side, with one barrier that covers nothing else, makes a commit durable, or all that wait. When the log is full, and
//! at the end, an ordinary flush of two barriers makes a record, and the log begins anew.
//!
//! Physical redo logging after a fuzzy checkpoint, as in J. Gray and A. Reuter, "Transaction Processing" (1993), chapters 9 to 11; since pages
//! are copied on write, the checkpoint is a state that nobody writes to, and nothing need be undone.
//!
//! Invariants
//! 1. The log stands on the newest durable record, which names its place and which its blocks name; it is written only when that record
//!    is known to be on the medium, by the handle that put it there, and while no other handle has had the turn.
//! 2. It holds all commits from that record up to the newest acknowledged one, without a gap.
//! 3. Blocks are only appended: one that was acknowledged is not written again before a newer record is durable.
//! 4. A page of a record in the log differs from one of the state that the commit before it left. What the durable record shows is not
//!    written over (`Writer::live`), so from it and the log every later state can be made anew, whatever became of the pages
//!    that were written.
//! 5. Each block of a `Durable` commit stands there twice: no single damaged block undoes it. That of a `OneFlush` commit once.

pub(crate) mod area;
mod block;
mod delta;
mod log;
mod record;
mod replay;

pub(crate) use log::{Appended, Entry, Log};
pub(crate) use record::{PageOf, Recorder};
pub(crate) use replay::{Logged, Replayed, read, settle};
