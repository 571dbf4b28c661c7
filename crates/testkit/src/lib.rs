//! Test support for all crates; never part of a shipped build.
//!
//! ```text
//! rng       Rng                        a small seeded generator
//! scratch   ScratchPages               pages and extents in memory, strict about ownership
//! simdisk   SimDisk, Recording, Replay a disk that fails and loses power at every step
//! tap       Tap                        notes the lock area and runs a hook before a sync
//! second    Second                     a second disk, in one order of events with the first
//! explore   explore, Promise           the state after every crash of a recorded run, and the promise for it
//! monitor   Monitor                    checks every write when it happens
//! watch     watch                      puts a monitor around every storage that a test opens
//! mistaken  Deliberate, Mistake        storages with deliberate bugs
//! forward   forward_storage            forwards calls of a wrapping storage
//! image     with_superblocks           a file as another version would write it
//! ```

mod explore;
mod forward;
pub mod image;
mod mistaken;
mod monitor;
mod places;
pub mod rng;
mod scratch;
mod second;
mod simdisk;
mod tap;
mod watch;

pub use explore::{Crash, Cut, Note, Promise, Taped, explore};
pub use mistaken::{Deliberate, Mistake};
pub use monitor::Monitor;
pub use scratch::{ScratchPages, ScratchSnapshot};
pub use second::Second;
pub use simdisk::{Fault, FaultKind, Op, Recording, Replay, SECTOR_BYTES, SimDisk};
pub use tap::{Hook, Tap};
/// Errors of the pager, for tests that simulate errors.
pub use tidalite_pager::{DiskError, Error as FileError};
pub use watch::watch;
