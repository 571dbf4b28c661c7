//! How a run is recorded and judged.

use crate::workload::Shape;

/// One of so many operations feeds series in turn where threads help with that.
const TURNS_ONE_IN: u64 = 12;

/// How a run is recorded and judged.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Steps of a run; most are transactions.
    pub steps: u64,
    /// Outcomes of a power cut that are looked at after every operation.
    pub images: u64,
    /// After one of so many operations the death of the process is looked at, too; 0 = never.
    pub kill_one_in: u64,
    /// One of so many images is gone on with and cut again; 0 = none.
    pub nest_one_in: u64,
    /// Large values lie on a second disk.
    pub two_disks: bool,
    /// Threads that encode beside a writer (`Options::sealing_threads`). With any, where pages lie is not that of the seed: the run is recorded as it
    /// went, and another of the same seed goes another way.
    pub sealing_threads: usize,
    /// Bytes of a page.
    pub page_size: usize,
    /// Shape of the transactions.
    pub shape: Shape,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            steps: 16,
            images: 2,
            kill_one_in: 3,
            nest_one_in: 50,
            two_disks: false,
            sealing_threads: 0,
            page_size: 512,
            shape: Shape::default(),
        }
    }
}

impl Plan {
    /// The plan of a seed: one in eight runs is long, so that runs pile up and merges are cut in the middle; one in four, long or
    /// not, has two disks; and one in three has small durable commits, so that many follow each other in the log.
    #[must_use]
    pub fn of_seed(seed: u64, page_size: usize) -> Self {
        let plan = Self {
            page_size,
            two_disks: (seed / 8 + seed) % 4 == 2,
            shape: if seed % 3 == 1 {
                Shape::small_and_durable()
            } else {
                Shape::default()
            },
            ..Self::default()
        };
        if Self::is_long(seed) {
            plan.long()
        } else {
            plan
        }
    }

    /// The same with threads that encode beside the writer, and with series that are fed in turn, which these help with.
    #[must_use]
    pub fn helped(self, sealing_threads: usize) -> Self {
        let shape = Shape {
            turns_one_in: TURNS_ONE_IN,
            ..self.shape
        };
        Self {
            sealing_threads,
            shape,
            ..self
        }
    }

    /// Whether the run of this seed is a long one.
    #[must_use]
    pub fn is_long(seed: u64) -> bool {
        seed % 8 == 7
    }

    /// A long run, looked at more coarsely.
    #[must_use]
    pub fn long(self) -> Self {
        Self {
            steps: 80,
            images: 1,
            kill_one_in: 6,
            nest_one_in: 200,
            ..self
        }
    }
}
