//! The budget of one call of maintenance.

use std::time::{Duration, Instant};
use tidalite_time::Timestamp;

/// The budget of one call of [`Database::maintain`](crate::Database::maintain).
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Time after which no commit is begun, except the first that maintains messages, the first that removes rows and
    /// the first that makes leaves cold: each call thus makes progress, however long it takes to examine a million
    /// series. With a time of zero nothing is done, and [`Maintained::more`](crate::retention::Maintained::more) reports whether there is work.
    pub time: Duration,
    /// Number of series from which one commit removes rows.
    pub series: usize,
    /// The current time to use instead of the clocks. `None`: the time of [`Database::clock`](crate::Database::clock).
    pub now: Option<Timestamp>,
    /// Age from which leaves are rewritten in cold form, in series that no policy with
    /// [`Retention::cold`](crate::retention::Retention::cold) selects; all rows of a leaf must have it. `None`: never.
    /// A build without the feature `cold` ignores it.
    pub cold: Option<Duration>,
    /// Whether the call confirms the wall clock, however far it is ahead of the commit clock: see
    /// [`Database::clock`](crate::Database::clock).
    pub confirm_clock: bool,
}

impl Default for Budget {
    /// The default budget: one second, a thousand series per commit, the time of
    /// [`Database::clock`](crate::Database::clock), and the cold form for leaves that are older than
    /// [`COLD_AGE`](Self::COLD_AGE).
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            series: 1000,
            now: None,
            cold: Some(Self::COLD_AGE),
            confirm_clock: false,
        }
    }
}

impl Budget {
    /// The default of [`cold`](Self::cold): thirty days.
    pub const COLD_AGE: Duration = Duration::from_secs(30 * 86_400);

    /// The budget that is left after the time since `start`: enough for a step, unless no time was given.
    pub(crate) fn left(&self, start: Instant) -> Self {
        let mut left = *self;
        left.time = left.time.saturating_sub(start.elapsed());
        if !self.time.is_zero() {
            left.time = left.time.max(Duration::from_nanos(1));
        }
        left
    }

    pub(crate) fn clock(&self) -> BudgetClock {
        BudgetClock {
            deadline: Instant::now().checked_add(self.time),
            first: !self.time.is_zero(),
        }
    }
}

/// Measures the time of a budget.
pub(crate) struct BudgetClock {
    deadline: Option<Instant>,
    /// Whether the first step is still to come: it is done even if no time is left.
    first: bool,
}

impl BudgetClock {
    /// A clock for half of the time that is left; `first` says whether its first step is done even if none is left.
    pub(crate) fn half(&self, first: bool) -> Self {
        let now = Instant::now();
        let deadline = self.deadline;
        Self {
            deadline: deadline.map(|deadline| now + deadline.saturating_duration_since(now) / 2),
            first,
        }
    }

    /// Whether no time is left for the next step.
    pub(crate) fn is_over(&mut self) -> bool {
        !std::mem::take(&mut self.first)
            && self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }
}
