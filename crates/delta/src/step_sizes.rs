//! Sizes of the steps in which block bytes are written or freed.
//!
//! In randomized tests, runs are only a few blocks long. Such a test can reduce these sizes for its own thread, so
//! that even its runs have several extents and its compactions free consumed blocks. It can also reduce the number of
//! runs per compaction.

use crate::limits::{BLOCK_BYTES_MAX, FAN_IN};

/// Size in bytes of the blocks that are collected before they are written as one extent.
const EXTENT_BYTES: usize = 1 << 20;

/// Minimum size in bytes of the consumed blocks of one input that justifies changing the directory of this input run.
const PASSED_BYTES: usize = 512 << 10;

/// Minimum size in bytes of the merged rows for a step of a compaction to count as large. A large step frees the
/// consumed blocks of all inputs, and does so already at an eighth of `PASSED_BYTES`: it writes several MiB of
/// leaves, and the directories of sixteen inputs are a hundredth of that.
const LARGE_STEP_BYTES: u64 = 8 << 20;

/// Value of `EXTENT_BYTES` and of `PASSED_BYTES` in randomized tests.
const SHORT_BYTES: usize = 2 << 10;
/// Value of `LARGE_STEP_BYTES` in randomized tests, so that some of their steps count as large.
const SHORT_STEP_BYTES: u64 = 96 << 10;

/// Target size of an extent in bytes. Collected blocks exceed it by at most one block.
pub(crate) fn extent_bytes() -> usize {
    if is_short() {
        BLOCK_BYTES_MAX + SHORT_BYTES
    } else {
        EXTENT_BYTES
    }
}

/// Minimum size in bytes of consumed blocks that makes freeing them worth a write of directory pages.
pub(crate) fn passed_bytes() -> u64 {
    let bytes = if is_short() {
        SHORT_BYTES
    } else {
        PASSED_BYTES
    };
    bytes as u64
}

/// Minimum size in bytes of merged rows for a step of a compaction to count as large.
pub(crate) fn large_step_bytes() -> u64 {
    if is_short() {
        SHORT_STEP_BYTES
    } else {
        LARGE_STEP_BYTES
    }
}

/// Number of runs that one compaction merges: [`FAN_IN`], or fewer in a randomized test.
pub(crate) fn fan_in() -> usize {
    fewer_runs().clamp(2, FAN_IN)
}

#[cfg(any(test, feature = "seeded-bugs"))]
mod switch {
    use crate::limits::FAN_IN;
    use std::cell::Cell;

    thread_local! {
        static SHORT: Cell<bool> = const { Cell::new(false) };
        static RUNS: Cell<usize> = const { Cell::new(FAN_IN) };
    }

    /// Sets the number of runs per compaction on this thread, from 2 to [`FAN_IN`].
    pub fn set_fan_in(runs: usize) {
        RUNS.set(runs);
    }

    pub(super) fn fewer_runs() -> usize {
        RUNS.get()
    }

    /// Switches short extents on or off for this thread.
    pub fn short_extents(on: bool) {
        SHORT.set(on);
    }

    pub(super) fn is_short() -> bool {
        SHORT.get()
    }
}

#[cfg(any(test, feature = "seeded-bugs"))]
use switch::{fewer_runs, is_short};
#[cfg(any(test, feature = "seeded-bugs"))]
pub use switch::{set_fan_in, short_extents};

#[cfg(not(any(test, feature = "seeded-bugs")))]
const fn is_short() -> bool {
    false
}

#[cfg(not(any(test, feature = "seeded-bugs")))]
const fn fewer_runs() -> usize {
    FAN_IN
}
