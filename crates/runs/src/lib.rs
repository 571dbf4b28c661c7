//! The write-optimised front: rows that are not yet in their series' leaves.
//!
//! Ten thousand series that get a point a second each must not cost ten thousand leaves a second. So rows are staged
//! in memory while the transaction is open, and what is not worth a leaf at its commit goes to a tail page, then to
//! sorted runs, which merge in bounded steps until stretches long enough for leaves come together.
//!
//! ```text
//! push ──> staging ──┬── long stretches ───────────────────────────> Sink: linked in place by the series
//!                    └── rest ──> tail page ──> run ──> merges ──┬──────────^
//!                                                                └──> run of the next tier
//!
//! key        class, series, time             what everything here is ordered by
//! staging    Staging, Slot                   the open transaction's rows, in memory
//! handover   Front::flush, commit            from staging to sink, tail and runs; the rule for linking
//! sealing    several threads that encode, one writer that links
//! help       threads that have a transaction's staged rows: Front::flush_with, settle, store_with
//! tail       the page of the newest rows
//! block      up to 1024 rows, encoded
//! blocks     those that other threads have encoded: Front::add_blocks
//! run        blocks in extents; their writer
//! directory  a kv tree a run: blocks by first key, extents
//! cursor     walking a run; asking it about an interval
//! merge      tiers, bounded steps, watermarks
//! read       Front::rows, latest, first
//! delete     Front::delete
//! record     FrontRoot; the list of tiers and runs in the file
//! check      Front::check
//! since      what was written after a transaction, verified
//! around     a directory's entries, read around its damage
//! hit        the rows that damage takes along
//! salvage    what is left of a damaged front
//! extents    what fills a run's extents, checked
//! bugs       deliberate ones, which the searches must find
//! lengths    bytes that are written, and freed, at once; short ones for searches
//! work       every bound, and the counters that prove them
//! ```

mod buffer;
pub mod bugs;
mod compaction;
mod counters;
mod delete;
mod flush;
mod front;
mod key;
mod link;
mod read;
mod record;
mod run;
mod step_sizes;
mod visit;

pub use crate::buffer::staging::{LEAF_ROWS, STAGING_BYTES_DEFAULT, Slot, Staging};
pub use crate::counters::{
    BYTES_A_BYTE_MAX, FAN_IN, LAYOUTS_MAX, MERGE_OVERSHOOT_BYTES, MERGE_STEP_BYTES,
    PAGES_A_COMMIT_MAX, TIER_RUNS_MAX, TIERS_MAX, Work,
};
pub use crate::flush::blocks::Blocks;
pub use crate::flush::driver::Obstacles;
pub use crate::flush::linker::{Linker, Linking};
pub use crate::flush::threads::Beside;
pub use crate::front::Front;
pub use crate::link::sink::{SealingSink, Sink};
pub use crate::read::FrontRow;
pub use crate::record::{FRONT_ROOT_BYTES, FrontRoot};
pub use crate::run::block::time_rows_max;
pub use crate::run::tail::SERIES_MAX;
#[cfg(any(test, feature = "seeded-bugs"))]
pub use crate::step_sizes::{set_fan_in, short_extents};
pub use crate::visit::check::{FrontClaim, FrontReport, Held};
pub use crate::visit::damage::{FrontDamage, Hit, HitRows};
pub use crate::visit::salvage::{LoneBlock, block_rows, layouts_of, lone_block, tail_rows};
pub use crate::visit::since::check_since;

#[cfg(test)]
mod tests;
