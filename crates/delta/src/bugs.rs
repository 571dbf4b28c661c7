//! Deliberate bugs, to prove that the tests detect them. They exist only with the feature `seeded-bugs`, and each is
//! switched on for one thread, so that other tests of the process are unaffected. A release build contains none of
//! these bugs.

/// A bug that tests switch on to prove that they detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A compaction loses its watermark, so the record claims that no rows have been merged yet.
    CompactionForgetsWatermark,
    /// The rows of the tail page take precedence over the blocks that appender threads encoded, although they are
    /// older.
    BlocksPassTail,
    /// A block of an appender stays unwritten although another appender begins to write one of its series.
    BlocksWaitOn,
}

/// All bugs that tests can switch on.
pub const BUGS: [Bug; 3] = [
    Bug::CompactionForgetsWatermark,
    Bug::BlocksPassTail,
    Bug::BlocksWaitOn,
];

#[cfg(feature = "seeded-bugs")]
mod switch {
    use crate::bugs::Bug;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Enables one bug for this thread, or disables all.
    pub fn enable(bug: Option<Bug>) {
        ACTIVE.set(bug);
    }

    /// Whether the bug is switched on for this thread.
    #[must_use]
    pub fn active(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }
}

#[cfg(feature = "seeded-bugs")]
pub use switch::{active, enable};

/// Whether the bug is switched on: always false without the feature `seeded-bugs`.
#[cfg(not(feature = "seeded-bugs"))]
#[must_use]
pub const fn active(_: Bug) -> bool {
    false
}
