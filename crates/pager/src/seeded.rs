//! Deliberate bugs, to show that the crash harness finds them. Compiled in only with the feature
//! `seeded-bugs`; a shipped build holds none of this.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The sync between the data and the meta blocks is left out.
    SkipSync,
    /// The meta blocks are written before the data.
    MetaBeforeData,
    /// A page that the newest durable state still shows is reused by the transaction that frees it.
    ReuseEarly,
    /// A failed sync is taken for a good one.
    IgnoreFailedSync,
    /// The new file length is not synced before a meta block relies on it.
    GrowthNotDurable,
    /// Both copies of a meta record go to the same block.
    CopiesInOneBlock,
    /// What readers hold is not asked for.
    ForgetReaders,
    /// A weak record is written over the newest one.
    WeakInOneSlot,
    /// The weak record is written before the pages of its commit.
    WeakBeforeData,
    /// A weak record does not say on which record it stands that is being written meanwhile.
    WeakStandsOnOne,
    /// A sync that began before the data was written is taken for enough.
    CoveredTooEarly,
    /// The log is begun anew although the record on which it stands was not synced.
    LogTooEarly,
    /// A commit is acknowledged when its log is written, not when that is synced.
    LogUnsynced,
    /// Who finds a log forgets to look for commits in it.
    LogIgnored,
    /// A weak record is believed although nobody has verified that its pages are in the file.
    WeakUnverified,
    /// The second file is not synced before a record.
    SkipLargeSync,
}

/// Those of durable commits, one after the other, that show without readers.
pub const BUGS: [Bug; 6] = [
    Bug::SkipSync,
    Bug::MetaBeforeData,
    Bug::ReuseEarly,
    Bug::IgnoreFailedSync,
    Bug::GrowthNotDurable,
    Bug::CopiesInOneBlock,
];

/// Those of lazy commits and of commits that share a flush.
pub const LAZY_BUGS: [Bug; 8] = [
    Bug::WeakInOneSlot,
    Bug::WeakBeforeData,
    Bug::WeakStandsOnOne,
    Bug::CoveredTooEarly,
    Bug::LogTooEarly,
    Bug::LogUnsynced,
    Bug::LogIgnored,
    Bug::WeakUnverified,
];

#[cfg(feature = "seeded-bugs")]
mod switch {
    use crate::seeded::Bug;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Turns one bug on for this thread, or all off.
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
