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
//! bugs        deliberate ones, which the searches must find
//! key         class, series, time          what everything here is ordered by
//! limits, counters, step_sizes             every bound, the counters that prove them, bytes written and freed at once
//! run         one run
//!  ├ block         up to 1024 rows, encoded
//!  ├ directory     a kv tree a run: blocks by first key, extents
//!  ├ descriptor    what the record says of a run
//!  ├ writer        rows become blocks, blocks become extents
//!  ├ cursor        walking a run; asking it about an interval
//!  └ tail          the page of the newest rows
//! record      FrontRoot                    the list of tiers and runs in the file
//! front       Front                        tail, tiers, open merges
//! link        Sink; threshold: rows worth a leaf; obstacles: older rows in their way
//! compaction  merge: tiers, bounded steps, watermarks; batch, reclaim, memory
//! buffer      Staging, Slot                the open transaction's rows, in memory
//!  ├ log, slot                         columns of rows in the order of pushing
//!  ├ rounds, round_robin, transposed   series that are fed in turn
//!  ├ overlay                           rows of a series that was read
//!  ├ group, grouping, copies           rows by series
//!  └ away                              a log that other threads have
//! flush       from the buffer to sink, tail and runs
//!  ├ driver        Front::flush, commit, store
//!  ├ linker        Linker                  several threads that encode, one writer that links
//!  ├ blocks        Blocks                  those that other threads have encoded: Front::add_blocks
//!  ├ appender      Staging::flush, end     a thread's own staging
//!  └ threads, helpers                      Beside: threads that have a transaction's staged rows
//! read        Front::rows, latest, first
//! delete      Front::delete
//! visit       the whole front: check, since (after a transaction), extents; around (damage), damage (what it takes along), salvage
//! ```

mod buffer;
pub mod bugs;
mod compaction;
mod counters;
mod delete;
mod flush;
mod front;
mod key;
mod limits;
mod link;
mod read;
mod record;
mod run;
mod step_sizes;
mod visit;

pub use buffer::staging::{STAGING_BYTES_DEFAULT, Slot, Staging};
pub use counters::Work;
pub use flush::blocks::Blocks;
pub use flush::linker::{Linker, Linking};
pub use flush::threads::Beside;
pub use front::Front;
pub use limits::{
    BYTES_A_BYTE_MAX, FAN_IN, LAYOUTS_MAX, LEAF_ROWS, MERGE_OVERSHOOT_BYTES, MERGE_STEP_BYTES,
    PAGES_A_COMMIT_MAX, TIER_RUNS_MAX, TIERS_MAX,
};
pub use link::obstacles::Obstacles;
pub use link::sink::{SealingSink, Sink};
pub use read::FrontRow;
pub use record::{FRONT_ROOT_BYTES, FrontRoot};
pub use run::block::time_rows_max;
pub use run::tail::SERIES_MAX;
#[cfg(any(test, feature = "seeded-bugs"))]
pub use step_sizes::{set_fan_in, short_extents};
pub use visit::check::{FrontClaim, FrontReport, Held};
pub use visit::damage::{FrontDamage, Hit, HitRows};
pub use visit::salvage::{LoneBlock, block_rows, layouts_of, lone_block, tail_rows};
pub use visit::since::check_since;

#[cfg(test)]
mod tests;
