//! Maintenance in a thread of the database, for those who ask for it.
//!
//! Invariant: While the wall clock is ahead it removes by the commits' clock, and tells the logger once that more waits for the clock to
//! be confirmed.

use crate::database::background::Round;
use crate::database::handle::Database;
use crate::database::options::{Options, Schedule};
use crate::maintenance::policies::Budget;
use std::time::Duration;

impl Options {
    /// Keeps to the retention policies in a thread of its own that calls [`Database::maintain`] so often, a second of
    /// work at most each time (not at all). It waits in line for the write transaction, and gets it however busy the writers are. What they commit between two rounds, and
    /// while one is under way, comes on top of a cap. The thread ends with the last clone of the database.
    pub fn maintain_every(mut self, every: Duration) -> Self {
        let work = maintenance;
        self.background = Some(Schedule { every, work });
        self
    }
}

/// The rounds of the thread.
fn maintenance(database: Database) -> Round {
    // Something waits until the clock is confirmed, and the logger has heard of it.
    let mut waits = false;
    Box::new(move |goes_on| {
        // It waits in line, so that writers who begin again at once do not keep it out. Whoever ends the thread may hold
        // the write transaction: then it leaves the line.
        let done =
            database.maintain_with(&Budget::default(), || database.begin_write_while(goes_on));
        let ahead = done.as_ref().ok().and_then(|done| done.clock_ahead);
        if let Some(reading) = ahead
            && !std::mem::replace(&mut waits, true)
        {
            database.pager.log_event(&reading.event());
        }
        waits &= ahead.is_some();
        done.map(drop)
    })
}
