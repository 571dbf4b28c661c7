//! Deliberate bugs, which show that the crash harness finds bugs of their kind. Compiled only with the feature
//! `seeded-bugs`; a shipped build contains none of this.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Skips the sync between the data and the meta blocks.
    SkipSync,
    /// Writes the meta blocks before the data.
    MetaBeforeData,
    /// The transaction that frees a page reuses it although the newest durable state still shows it.
    ReuseEarly,
    /// Treats a failed sync as successful.
    IgnoreFailedSync,
    /// Does not sync the new file length before a meta block relies on it.
    GrowthNotDurable,
    /// Writes both copies of a meta record to the same block.
    CopiesInOneBlock,
    /// Ignores the snapshots that readers hold.
    ForgetReaders,
    /// Overwrites the newest unsynced meta record with the next one.
    UnsyncedMetaInOneSlot,
    /// Writes the unsynced meta record before the pages of its commit.
    UnsyncedMetaBeforeData,
    /// Omits from a unsynced meta record the meta record that a running flush is writing, on which it may have to
    /// build.
    UnsyncedMetaOnOneBase,
    /// Accepts a sync that began before the data was written.
    CoveredTooEarly,
    /// Restarts the redo log before the record on which it builds is synced.
    LogTooEarly,
    /// Acknowledges a commit when its log blocks are written, before they are synced.
    LogUnsynced,
    /// Recovery ignores the commits in the redo log.
    LogIgnored,
    /// Accepts a unsynced meta record without verifying that its pages are in the file.
    UnsyncedMetaUnverified,
    /// Does not sync the second file before a record.
    SkipLargeSync,
}

/// Bugs that show with sequential durable commits and no readers.
pub const BUGS: [Bug; 6] = [
    Bug::SkipSync,
    Bug::MetaBeforeData,
    Bug::ReuseEarly,
    Bug::IgnoreFailedSync,
    Bug::GrowthNotDurable,
    Bug::CopiesInOneBlock,
];

/// Bugs that show with lazy commits and with commits that share a flush.
pub const LAZY_BUGS: [Bug; 8] = [
    Bug::UnsyncedMetaInOneSlot,
    Bug::UnsyncedMetaBeforeData,
    Bug::UnsyncedMetaOnOneBase,
    Bug::CoveredTooEarly,
    Bug::LogTooEarly,
    Bug::LogUnsynced,
    Bug::LogIgnored,
    Bug::UnsyncedMetaUnverified,
];

#[cfg(feature = "seeded-bugs")]
mod switch {
    use crate::seeded::Bug;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Enables one bug for this thread, or disables all.
    pub fn enable(bug: Option<Bug>) {
        ACTIVE.set(bug);
    }

    pub(crate) fn active(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }
}

#[cfg(feature = "seeded-bugs")]
pub(crate) use switch::active;
#[cfg(feature = "seeded-bugs")]
pub use switch::enable;

#[cfg(not(feature = "seeded-bugs"))]
pub(crate) const fn active(_: Bug) -> bool {
    false
}
