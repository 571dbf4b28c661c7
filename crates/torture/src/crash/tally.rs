//! Counts the states that were examined after crashes.

use std::sync::atomic::{AtomicU64, Ordering};
use tidalite::Database;
use tidalite_testkit::Cut;

/// Counters of the states that were examined after crashes.
#[derive(Debug, Default)]
pub struct Tally {
    /// Number of states whose file was opened and judged.
    pub states: AtomicU64,
    /// Number of states after a death of the process.
    pub kills: AtomicU64,
    /// Number of states after a power cut with a lock area from some moment of the run.
    pub kept: AtomicU64,
    /// Number of states whose lock area named an incomplete commit.
    pub dropped: AtomicU64,
    /// Number of states after a crash inside a reopening or after it.
    pub nested: AtomicU64,
    /// Number of runs continued from a crash that was itself inside a reopening.
    pub deep: AtomicU64,
    /// Number of states with commits in the redo log.
    pub replayed: AtomicU64,
    /// Number of states in which damage had lost commits of the redo log.
    pub went_back: AtomicU64,
    /// Number of states whose newest commit, begun or complete, has leaves encoded by an appender.
    pub leaves: AtomicU64,
    /// Number of states whose newest commit has run blocks encoded by an appender.
    pub blocks: AtomicU64,
    /// Number of states in which queries were run.
    pub asked: AtomicU64,
    /// Number of states with messages that were used up.
    pub used_up: AtomicU64,
    /// Number of states with a relation that has rows and an index.
    pub related: AtomicU64,
    /// Number of states that were checked before a writer opened the file.
    pub read_only: AtomicU64,
}

impl Tally {
    /// Counts a state whose file was opened.
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
