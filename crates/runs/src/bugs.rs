//! Deliberate bugs, to prove that the tests bite. They act with the feature `seeded-bugs` only, each switched on for one thread, so
//! that other tests of the same process stay sound; a shipped build holds none of this.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Merges forget their watermark: the record says that nothing was merged yet.
    MergeForgetsWatermark,
    /// The tail, which is older, stays in front of the blocks of appenders.
    BlocksPassTail,
    /// Blocks go on waiting when another appender opens a series among theirs.
    BlocksWaitOn,
}

/// All of them.
pub const BUGS: [Bug; 3] = [
    Bug::MergeForgetsWatermark,
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

    /// Turns one bug on for this thread, or all off.
    pub fn enable(bug: Option<Bug>) {
        ACTIVE.set(bug);
    }

    /// Whether that bug is on.
    #[must_use]
    pub fn active(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }
}

#[cfg(feature = "seeded-bugs")]
pub use switch::{active, enable};

/// Whether that bug is on: never.
#[cfg(not(feature = "seeded-bugs"))]
#[must_use]
pub const fn active(_: Bug) -> bool {
    false
}
