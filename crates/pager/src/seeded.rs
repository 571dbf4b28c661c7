//! Deliberate bugs, which prove that the crash tests find bugs of their kind. Compiled only with the feature
//! `seeded-bugs`; a shipped build contains none of this. Bugs of a storage are not here: the test kit wraps the storage
//! instead (`tidalite_testkit::Mistake`).

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A transaction reuses a page that it has freed, although the newest durable state still uses the page.
    ReuseEarly,
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
    /// Omits from an unsynced meta record the meta record that a running flush is writing, on which it may have to
    /// build.
    UnsyncedMetaOnOneBase,
    /// Accepts a sync that began before the data was written.
    CoveredTooEarly,
    /// Restarts the redo log before the record on which it builds is synced.
    LogTooEarly,
    /// Recovery ignores the commits in the redo log.
    LogIgnored,
    /// Accepts an unsynced meta record without verifying that its pages are in the file.
    UnsyncedMetaUnverified,
    /// Does not sync the second file before a record.
    SkipLargeSync,
}

/// Bugs that tests with sequential durable commits and no readers find.
pub const BUGS: [Bug; 3] = [
    Bug::ReuseEarly,
    Bug::GrowthNotDurable,
    Bug::CopiesInOneBlock,
];

/// Bugs that tests with lazy commits, and with commits that share a flush, find.
pub const LAZY_BUGS: [Bug; 7] = [
    Bug::UnsyncedMetaInOneSlot,
    Bug::UnsyncedMetaBeforeData,
    Bug::UnsyncedMetaOnOneBase,
    Bug::CoveredTooEarly,
    Bug::LogTooEarly,
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
