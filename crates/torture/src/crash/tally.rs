//! Counts of the crash states examined.

use std::sync::atomic::{AtomicU64, Ordering};
use tidalite::Database;
use tidalite_testkit::Cut;

/// Counts of the crash states examined.
#[derive(Debug, Default)]
pub struct Tally {
    /// Images opened and judged.
    pub states: AtomicU64,
    /// States left by a kill.
    pub kills: AtomicU64,
    /// States after a power cut with a lock area from some moment of the run.
    pub kept: AtomicU64,
    /// States with a lock area that named an incomplete commit.
    pub dropped: AtomicU64,
    /// States cut inside a reopening or after it.
    pub nested: AtomicU64,
    /// Runs continued from a crash that was itself inside a reopening.
    pub deep: AtomicU64,
    /// States with commits in the redo log.
    pub replayed: AtomicU64,
    /// States in which damage had lost commits of the redo log.
    pub went_back: AtomicU64,
    /// States with leaves encoded by an appender in the newest commit, begun or complete.
    pub leaves: AtomicU64,
    /// States with run blocks encoded by an appender in the newest commit.
    pub blocks: AtomicU64,
    /// States that were queried.
    pub asked: AtomicU64,
    /// States checked before a writer opened them.
    pub read_only: AtomicU64,
}

impl Tally {
    /// Counts an opened state.
    pub(super) fn opened(&self, db: &Database, cut: Cut, nested: bool) {
        count(&self.states, true);
        count(&self.kills, cut == Cut::Killed);
        count(&self.kept, cut == Cut::Disk);
        count(&self.nested, nested);
        let recovery = db.recovery();
        count(&self.replayed, recovery.replayed > 0);
        count(&self.went_back, recovery.lost.is_some());
        count(&self.dropped, recovery.dropped_unrecorded.is_some());
    }
}

pub(super) fn count(of: &AtomicU64, whether: bool) {
    of.fetch_add(u64::from(whether), Ordering::Relaxed);
}
