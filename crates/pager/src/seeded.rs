//! Deliberate bugs, which prove that the crash tests find bugs of their kind. Compiled only with the feature
//! `seeded-bugs`; a shipped build contains none of these bugs. Bugs of a storage are in the test kit instead, which
//! wraps the storage (`tidalite_testkit::Mistake`).

/// A bug of the pager that tests switch on to prove that they detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A transaction reuses a page that it has freed, although the newest durable commit still uses the page.
    ReuseEarly,
    /// A commit does not sync the new file length before it writes a meta record that relies on the length.
    GrowthNotDurable,
    /// Both copies of a meta record are written to the same block.
    CopiesInOneBlock,
    /// The writer ignores the snapshots that readers hold, and overwrites their pages.
    ForgetReaders,
    /// The next unsynced meta record overwrites the newest one, instead of being written to the other slot.
    UnsyncedMetaInOneSlot,
    /// The unsynced meta record is written before the pages of its commit.
    UnsyncedMetaBeforeData,
    /// An unsynced meta record does not name the meta record that a running flush is writing, although it may have to
    /// build on that record.
    UnsyncedMetaOnOneBase,
    /// A flush accepts a sync that began before the data of the commit was written.
    CoveredTooEarly,
    /// The redo log is begun anew before the meta record on which it builds is synced.
    LogTooEarly,
    /// Recovery ignores the commits in the redo log.
    LogIgnored,
    /// Opening uses an unsynced meta record without verifying that its pages are in the file.
    UnsyncedMetaUnverified,
    /// A flush does not sync the second file before it writes a meta record.
    SkipLargeSync,
}

/// Bugs that are found by tests with sequential durable commits and without readers.
pub const BUGS: [Bug; 3] = [
    Bug::ReuseEarly,
    Bug::GrowthNotDurable,
    Bug::CopiesInOneBlock,
];

/// Bugs that are found by tests with lazy commits and with commits that share a flush.
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
