//! Maintenance in a background thread of the database, if the program asks for it.
//!
//! Invariant: while the wall clock is ahead, the thread removes by the commit clock, and logs once that further work
//! waits until the wall clock is confirmed.

use crate::database::background::Round;
use crate::database::handle::Database;
use crate::database::options::{Options, Schedule};
use crate::maintenance::policies::Budget;
use std::sync::Arc;
use std::time::Duration;

impl Options {
    /// Starts a thread that calls [`Database::maintain`] with this budget at the interval `every` (default: no thread).
    /// If a round leaves work, the next one begins at once. The thread queues for the write transaction and gets it
    /// however busy the writers are. The newest error, even of a single table, is kept for
    /// [`Database::take_maintenance_error`]; the next round tries again. Data that writers commit between two rounds, and
    /// during one, may exceed a cap. The thread ends with the last clone of the database.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tidalite::{Options, retention::Budget};
    ///
    /// let budget = Budget { time: Duration::from_millis(200), ..Budget::default() };
    /// let db = Options::new().maintain_every(Duration::from_secs(60), budget).open("plant.tdl")?;
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    pub fn maintain_every(mut self, every: Duration, budget: Budget) -> Self {
        let work = Arc::new(move |database| maintenance(database, budget));
        self.background = Some(Schedule { every, work });
        self
    }
}

/// Returns the function that does one round of maintenance in the thread.
fn maintenance(database: Database, budget: Budget) -> Round {
    // Whether work waits until the wall clock is confirmed; an event was logged when that began.
    let mut waits = false;
    Box::new(move |goes_on| {
        // The thread queues for the writer lock, so that writers who begin again at once do not starve it. The caller
        // that ends the thread may hold the writer lock: then the thread leaves the queue.
        let done = database.maintain_with(&budget, || database.begin_write_while(goes_on));
        let ahead = done.as_ref().ok().and_then(|done| done.done.clock_ahead);
        if let Some(reading) = ahead
            && !std::mem::replace(&mut waits, true)
        {
            database.pager.log_event(&reading.event());
        }
        waits &= ahead.is_some();
        // With a budget of no time nothing is ever done, so the next round must not begin at once.
        match done {
            Ok(done) => (done.goes_on() && !budget.time.is_zero(), done.error()),
            Err(error) => (false, Some(error)),
        }
    })
}
