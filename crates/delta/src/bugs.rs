//! Deliberate bugs, to prove that the tests detect them. They exist only with the feature `seeded-bugs`, and each is
//! switched on for one thread, so that other tests of the process are unaffected. A release build contains none of
//! this.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A compaction forgets its watermark: the record claims that nothing has been merged yet.
    CompactionForgetsWatermark,
    /// The tail page takes precedence over the blocks of appenders, although it is older.
    BlocksPassTail,
    /// Blocks stay unwritten although another appender opens one of their series.
    BlocksWaitOn,
}

/// All deliberate bugs.
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

    /// Whether the bug is enabled.
    #[must_use]
    pub fn active(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }
}

#[cfg(feature = "seeded-bugs")]
pub use switch::{active, enable};

/// Whether the bug is enabled: always false.
#[cfg(not(feature = "seeded-bugs"))]
#[must_use]
pub const fn active(_: Bug) -> bool {
    false
}
