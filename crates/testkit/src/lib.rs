//! What the tests of every room use; never part of a shipped build.
//!
//! ```text
//! rng       Rng                        a small seeded generator
//! scratch   ScratchPages               pages and extents in memory, strict about ownership
//! simdisk   SimDisk, Recording, Replay a disk that fails and loses power at every step
//! monitor   Monitor                    judges every write while it happens
//! ```

mod monitor;
pub mod rng;
mod scratch;
mod simdisk;

pub use monitor::Monitor;
pub use scratch::{ScratchPages, ScratchSnapshot};
pub use simdisk::{Fault, FaultKind, Op, Recording, Replay, SECTOR_BYTES, SimDisk};
