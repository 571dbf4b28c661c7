//! Maintenance in a thread of the database, if requested.
//!
//! Invariant: while the wall clock is ahead, the thread removes by the commit clock, and logs once that more waits for
//! the clock to be confirmed.

use crate::database::background::Round;
use crate::database::handle::Database;
use crate::database::options::{Options, Schedule};
use crate::maintenance::policies::Budget;
use std::sync::Arc;
use std::time::Duration;

impl Options {
    /// Applies the retention policies in a thread of its own that calls [`Database::maintain`] with this budget at this
    /// interval (default: no thread). If a round leaves work, the next one begins at once. The thread queues for the
    /// write transaction and gets it however busy the writers are. Data that writers commit between two rounds, and
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

/// The rounds of the thread.
fn maintenance(database: Database, budget: Budget) -> Round {
    // Whether work waits for a confirmed clock; that was logged then.
    let mut waits = false;
    Box::new(move |goes_on| {
        // It queues, so that writers who start again at once do not starve it. The caller that ends the thread may hold
        // the write transaction: then the thread leaves the queue.
        let done = database.maintain_with(&budget, || database.begin_write_while(goes_on));
        let ahead = done.as_ref().ok().and_then(|done| done.clock_ahead);
        if let Some(reading) = ahead
            && !std::mem::replace(&mut waits, true)
        {
            database.pager.log_event(&reading.event());
        }
        waits &= ahead.is_some();
        // A budget without time would never end the work.
        done.map(|done| done.more && !budget.time.is_zero())
    })
}
