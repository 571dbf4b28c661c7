//! How many crash states were looked at.

use std::sync::atomic::{AtomicU64, Ordering};
use tidalite::Database;
use tidalite_testkit::Cut;

/// How many crash states were looked at.
#[derive(Debug, Default)]
pub struct Tally {
    /// Images opened and judged.
    pub states: AtomicU64,
    /// Those of them that a kill left.
    pub kills: AtomicU64,
    /// Those with what a power cut left of the disk and a lock area of some instant of the run.
    pub kept: AtomicU64,
    /// Those of which the lock area named a commit that was not all there.
    pub dropped: AtomicU64,
    /// Those that were cut inside a reopening or after it.
    pub nested: AtomicU64,
    /// Reopenings inside a crash of a reopening that were gone on with.
    pub deep: AtomicU64,
    /// Those in which commits were found in the log.
    pub replayed: AtomicU64,
    /// Those that had lost commits of the log to damage.
    pub went_back: AtomicU64,
    /// Those whose newest commit, begun or done, has leaves that an appender encoded.
    pub leaves: AtomicU64,
    /// The same with blocks of runs.
    pub blocks: AtomicU64,
    /// Those that were asked questions.
    pub asked: AtomicU64,
    /// Those that were checked before a writer opened them.
    pub read_only: AtomicU64,
}

impl Tally {
    /// A state was opened.
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
