//! How much one call of maintenance may do.

use crate::types::time::Timestamp;
use std::time::{Duration, Instant};

/// How much one call of [`Database::maintain`](crate::Database::maintain) may do.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// No commit is begun after this time, but for the first that removes rows and the first that makes leaves cold: so each call gets on,
    /// however long it takes to look at a million series. Without any time nothing is done, and [`Maintained::more`](crate::Maintained::more) says what there is.
    pub time: Duration,
    /// Series that are cut in one commit.
    pub series: usize,
    /// What counts as now, whatever the clocks show. `None`: what [`Database::clock`](crate::Database::clock) says.
    pub now: Option<Timestamp>,
    /// The wall clock is right, however far ahead of the commits' clock: see [`Database::clock`](crate::Database::clock).
    pub confirm_clock: bool,
}

impl Default for Budget {
    /// A second, a thousand series a commit, the wall clock as far as the commits' clock bears it out.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            series: 1000,
            now: None,
            confirm_clock: false,
        }
    }
}

impl Budget {
    pub(crate) fn clock(&self) -> BudgetClock {
        BudgetClock {
            deadline: Instant::now().checked_add(self.time),
            first: !self.time.is_zero(),
        }
    }
}

/// Says when the time of a budget is over.
pub(crate) struct BudgetClock {
    deadline: Option<Instant>,
    /// The first step is still to be taken, whatever the time.
    first: bool,
}

impl BudgetClock {
    /// Whether there is no time for the next step.
    pub(crate) fn is_over(&mut self) -> bool {
        !std::mem::take(&mut self.first)
            && self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }
}
