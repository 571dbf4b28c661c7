//! How many bytes of blocks are written, and freed, at once.
//!
//! A search's runs are a few blocks long: on its thread, both may be so short that these runs have several extents, too, and
//! merges free what they have passed of them; and a merge may take fewer runs.

use crate::limits::{BLOCK_BYTES_MAX, FAN_IN};

/// Bytes of blocks that are collected before they are written as one extent.
const EXTENT_BYTES: usize = 1 << 20;

/// Bytes of blocks that a merge has passed of an input for which it changes that run's directory.
const PASSED_BYTES: usize = 512 << 10;

/// Bytes of rows that a step of a merge takes for which it frees what was passed of all inputs, and an eighth of what is worth while else: such a step
/// writes some MiB of leaves, of which the directories of sixteen inputs are a hundredth.
const LARGE_STEP_BYTES: u64 = 8 << 20;

/// The first two, for searches.
const SHORT_BYTES: usize = 2 << 10;
/// The last, for searches: some of their steps are longer.
const SHORT_STEP_BYTES: u64 = 96 << 10;

/// Bytes that blocks collected for an extent do not exceed by more than a block.
pub(crate) fn extent_bytes() -> usize {
    if is_short() {
        BLOCK_BYTES_MAX + SHORT_BYTES
    } else {
        EXTENT_BYTES
    }
}

/// Bytes of blocks behind which it is worth while to free them.
pub(crate) fn passed_bytes() -> u64 {
    let bytes = if is_short() {
        SHORT_BYTES
    } else {
        PASSED_BYTES
    };
    bytes as u64
}

/// Bytes of rows with which a step is a large one.
pub(crate) fn large_step_bytes() -> u64 {
    if is_short() {
        SHORT_STEP_BYTES
    } else {
        LARGE_STEP_BYTES
    }
}

/// Runs that one merge takes: [`FAN_IN`], or fewer in a search.
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

    /// How many runs a merge takes on this thread from now on: 2 to [`FAN_IN`].
    pub fn set_fan_in(runs: usize) {
        RUNS.set(runs);
    }

    pub(super) fn fewer_runs() -> usize {
        RUNS.get()
    }

    /// Whether extents are short on this thread from now on.
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
