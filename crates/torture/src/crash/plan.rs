//! Parameters for recording and judging a run.

use crate::workload::Shape;

/// One in this many operations appends to series in round robin, if helper threads encode them.
const TURNS_ONE_IN: u64 = 12;

/// Parameters for recording and judging a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of steps in a run; most are transactions.
    pub steps: u64,
    /// Number of outcomes of a power cut that are examined after each operation.
    pub images: u64,
    /// After one in this many operations the death of the process is examined as well; 0 for never.
    pub kill_one_in: u64,
    /// Approximate number of states that are examined if a run has more; they are spread over the run.
    pub states_max: u64,
    /// Approximate number of states, spread over the run, from which the run is continued and crashed again.
    pub nested_runs: u64,
    /// Maximum number of states of a seed that are examined inside or after a reopening.
    pub nested_max: u64,
    /// True if large values are on a second disk.
    pub two_disks: bool,
    /// Number of helper threads that encode for a writer (`Options::flush_threads`). With helper threads the positions
    /// of pages depend on timing, so another run of the same seed differs, and only the recorded run is judged.
    pub flush_threads: usize,
    /// Size of a page in bytes.
    pub page_size: usize,
    /// Shape of the workload: how often each kind of operation occurs in a transaction.
    pub shape: Shape,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            steps: 16,
            images: 2,
            kill_one_in: 3,
            states_max: 900,
            nested_runs: 4,
            nested_max: 800,
            two_disks: false,
            flush_threads: 0,
            page_size: 512,
            shape: Shape::default(),
        }
    }
}

impl Plan {
    /// Approximate number of states of a run with this many operations and images of the lock area.
    pub(super) fn states_of(&self, operations: u64, areas: u64) -> u64 {
        let kills = operations.checked_div(self.kill_one_in).unwrap_or(0);
        operations * self.images + kills + areas
    }

    /// A run with this many states is continued from one in so many of its examined states; 0 for never.
    pub(super) fn nest_one_in(&self, states: u64) -> u64 {
        match self.nested_runs {
            0 => 0,
            runs => (states.min(self.states_max) / runs).max(1),
        }
    }

    /// The plan for a seed. One in eight runs is long, so that runs of the delta accumulate and crashes hit compactions
    /// in the middle. One in four runs, long or not, has two disks. One in three has small durable commits, many of
    /// which follow each other in the redo log; of the others, one in four has batches of more than a thousand rows.
    #[must_use]
    pub fn of_seed(seed: u64, page_size: usize) -> Self {
        let plan = Self {
            page_size,
            two_disks: (seed / 8 + seed) % 4 == 2,
            shape: Shape {
                messages_one_in: Self::messages_one_in(seed),
                ..match seed % 3 {
                    1 => Shape::small_and_durable(),
                    _ if Self::has_batches(seed) => Shape::default(),
                    _ => Shape {
                        bulk_one_in: 0,
                        ..Shape::default()
                    },
                }
            },
            ..Self::default()
        };
        match seed {
            _ if Self::is_long(seed) => plan.long(),
            _ if Self::has_messages(seed) => plan.sparse(),
            _ => plan,
        }
    }

    /// Whether the run of this seed has topics, queues, buckets and containers. They write so many pages that such a
    /// run has many times as many states: one seed in eight has them, and the others examine more of the rest.
    fn has_messages(seed: u64) -> bool {
        seed % 8 == 5
    }

    /// Whether batches of more rows than a vector holds occur often in the run of this seed. All rows are compared in
    /// every state, so the other seeds examine more states in the same time.
    fn has_batches(seed: u64) -> bool {
        (seed / 8 + seed / 2).is_multiple_of(4)
    }

    fn messages_one_in(seed: u64) -> u64 {
        match Self::has_messages(seed) {
            true => Shape::default().messages_one_in,
            false => 0,
        }
    }

    /// Adds helper threads that encode for the writer, and operations that append to series in round robin, which these
    /// threads encode.
    #[must_use]
    pub fn helped(self, flush_threads: usize) -> Self {
        let shape = Shape {
            turns_one_in: TURNS_ONE_IN,
            ..self.shape
        };
        Self {
            flush_threads,
            shape,
            ..self
        }
    }

    /// Whether the run of this seed is long.
    #[must_use]
    pub fn is_long(seed: u64) -> bool {
        seed % 8 == 7
    }

    /// Turns this plan into a plan for a long run, whose states are examined less densely.
    #[must_use]
    pub fn long(self) -> Self {
        Self { steps: 80, ..self }.sparse()
    }

    /// Examines fewer states after each operation.
    fn sparse(self) -> Self {
        Self {
            images: 1,
            kill_one_in: 6,
            ..self
        }
    }
}
