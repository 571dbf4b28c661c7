//! State of a log whose rows arrive in rounds: one row for each of the same series in turn (`round_robin.rs`).

use crate::buffer::slot::NO_SLOT;

/// Row count of the first search for rounds; each later search follows when the number of rows has doubled. This
/// keeps the cost per row low in logs without rounds, and in logs whose rounds end soon and must be recorded as
/// batches.
pub(super) const DETECT_ROWS_MIN: usize = 1 << 12;

/// State of round-robin mode, in which rows arrive for the same series in turn; the head of `round_robin.rs`
/// describes it.
#[derive(Debug)]
pub(super) struct RoundRobin {
    pub(super) expected: u32,
    /// Index in `slots` of the slot `expected`.
    pub(super) at: usize,
    pub(super) slots: Vec<u32>,
    /// Index of the first row in the log that arrived in rounds.
    pub(super) first: usize,
    /// Row count of the log at which the rounds are flushed, because each series then has only whole vectors.
    pub(super) flush_at: usize,
    /// Row count of the log at which the next search for rounds takes place.
    pub(super) detect_at: usize,
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self {
            expected: NO_SLOT,
            at: 0,
            slots: Vec::new(),
            first: 0,
            flush_at: usize::MAX,
            detect_at: DETECT_ROWS_MIN,
        }
    }
}

impl RoundRobin {
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.expected != NO_SLOT
    }

    /// The slots of a round, in the order in which their rows arrive.
    pub(super) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Advances to the next slot after a row of the expected slot was appended.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        debug_assert!(
            self.at < self.slots.len(),
            "the expected slot is one of the round"
        );
        let mut at = self.at + 1;
        if at >= self.slots.len() {
            at = 0;
        }
        self.at = at;
        self.expected = self.slots.get(at).copied().unwrap_or(NO_SLOT);
    }

    /// Ends round-robin mode after all rows were removed from the log.
    pub(super) fn reset(&mut self) {
        self.expected = NO_SLOT;
        self.slots.clear();
        self.detect_at = DETECT_ROWS_MIN;
    }

    /// Moves the round-robin state of the log `others`, whose rows are appended after `before` older rows, to this
    /// log. Round-robin mode of `others` ends.
    pub(super) fn take_over(&mut self, others: &mut Self, before: usize) {
        debug_assert!(!self.is_active(), "the older rows are recorded as batches");
        std::mem::swap(self, others);
        self.first += before;
        others.reset();
    }

    /// Returns the slots of a round if the last round in the log is complete: the next row after a flush then belongs
    /// to the first slot again.
    pub(super) fn slots_at_round_start(&self) -> Option<Vec<u32>> {
        (self.is_active() && self.at == 0).then(|| self.slots.clone())
    }
}
