//! The delta: the write-optimised tier with the rows that are not yet in the leaves of their series.
//!
//! If ten thousand series each get a point per second, writing ten thousand leaves per second would be too expensive.
//! Rows therefore stay in the write buffer while the transaction is open. At commit, rows that are too few for a leaf
//! go to the tail page, then to sorted runs. Runs are merged in bounded steps until a series has enough contiguous rows
//! for leaves; these rows are *linked*, that is, installed as leaves of the series.
//!
//! ```text
//! push ──> write buffer ──┬── full vectors of a series ────────────────────> Sink: linked by the series
//!                         └── rest ──> tail page ──> run ──> compactions ──┬──────────^
//!                                                                          └──> run of the next tier
//!
//! bugs        deliberate bugs that the randomized tests must find
//! key         class, series, time          the sort order of everything here
//! limits, counters, step_sizes             bounds, counters that prove them, bytes written and freed at once
//! run         one run
//!  ├ block         up to 1024 rows, encoded
//!  ├ directory     a kv tree per run: blocks by first key, extents
//!  ├ descriptor    the entry of a run in the record
//!  ├ writer        packs rows into blocks and blocks into extents
//!  ├ cursor        iterates over a run; tests an interval for rows
//!  └ tail          the page of the newest rows
//! record      DeltaRoot                    the list of tiers and runs in the file
//! delta       Delta                        tail, tiers, open compactions
//! link        Sink; threshold: minimum rows for a leaf; overlap: check for older rows in the delta
//! compaction  steps: tiers, bounded steps, watermarks; batch_merge, reclaim, memory
//! buffer      WriteBuffer, Slot            the write buffer: rows of the open transaction, in memory
//!  ├ log, slot                             columns of rows in push order
//!  ├ round_state, round_robin, transposed  series that are written in round-robin order
//!  ├ overlay                               rows of a series that was read
//!  ├ group, grouping, copies               rows by series
//!  └ lent                                  a log that is lent to helper threads
//! flush       from the write buffer to sink, tail and runs
//!  ├ driver        Delta::flush, commit, store
//!  ├ linker        Linker                  several threads that encode, one writer that links
//!  ├ blocks        Blocks                  blocks encoded by other threads: Delta::add_blocks
//!  ├ appender      WriteBuffer::flush, end       a thread with its own write buffer
//!  └ threads, helpers   BackgroundFlush    helper threads that encode a transaction's buffered rows
//! read        Delta::rows, latest, first
//! delete      Delta::delete
//! visit       traversals: check, since (after a transaction), extents; relocate; around (damage),
//!             damage (rows hit), salvage
//! ```

mod buffer;
pub mod bugs;
mod compaction;
mod counters;
mod delete;
mod delta;
mod flush;
mod key;
mod limits;
mod link;
mod read;
mod record;
mod run;
mod step_sizes;
mod visit;

pub use buffer::write_buffer::{Slot, WRITE_BUFFER_BYTES_DEFAULT, WriteBuffer};
pub use counters::Work;
pub use delta::Delta;
pub use flush::blocks::Blocks;
pub use flush::linker::{Linker, Linking};
pub use flush::threads::BackgroundFlush;
pub use limits::{
    BYTES_A_BYTE_MAX, COMPACTION_OVERSHOOT_BYTES, COMPACTION_STEP_BYTES, FAN_IN, LAYOUTS_MAX,
    LEAF_ROWS, PAGES_A_COMMIT_MAX, TIER_RUNS_MAX, TIERS_MAX,
};
pub use link::overlap::OverlapCheck;
pub use link::sink::{EncodingSink, Sink};
pub use read::DeltaRow;
pub use record::{DELTA_ROOT_BYTES, DeltaRoot};
pub use run::block::time_rows_max;
pub use run::tail::SERIES_MAX;
#[cfg(any(test, feature = "seeded-bugs"))]
pub use step_sizes::{set_fan_in, short_extents};
pub use visit::check::{DeltaClaim, DeltaReport, LiveRows};
pub use visit::damage::{DeltaDamage, Hit, HitRows};
pub use visit::relocate::DeltaPosition;
pub use visit::salvage::{LoneBlock, block_rows, layouts_of, lone_block, tail_rows};
pub use visit::since::check_since;

#[cfg(test)]
mod tests;
