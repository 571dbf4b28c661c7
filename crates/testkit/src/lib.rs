//! What the tests of every room use; never part of a shipped build.
//!
//! ```text
//! rng       Rng                        a small seeded generator
//! scratch   ScratchPages               pages and extents in memory, strict about ownership
//! simdisk   SimDisk, Recording, Replay a disk that fails and loses power at every step
//! tap       Tap                        notes the lock area and lets more happen inside a sync
//! second    Second                     a second disk beside it, in one order of events
//! explore   explore, Promise           what every crash of a recorded run leaves, and what was promised there
//! monitor   Monitor                    judges every write while it happens
//! watch     watch                      puts it around every storage that a test opens
//! forward   forward_storage            calls that a wrapped storage passes on
//! image     with_superblocks           a file as another version would have written it
//! ```

mod explore;
mod forward;
pub mod image;
mod monitor;
mod places;
pub mod rng;
mod scratch;
mod second;
mod simdisk;
mod tap;
mod watch;

pub use explore::{Crash, Cut, Note, Promise, Taped, explore};
pub use monitor::Monitor;
pub use scratch::{ScratchPages, ScratchSnapshot};
pub use second::Second;
pub use simdisk::{Fault, FaultKind, Op, Recording, Replay, SECTOR_BYTES, SimDisk};
pub use tap::{Hook, Tap};
pub use watch::watch;
