//! State of a log whose rows arrive in rounds (`round_robin.rs`).

use crate::buffer::slot::NO_SLOT;

/// Row count of the first search for rounds; later searches follow each time the rows have doubled. This keeps the cost
/// per row low in logs without rounds, and where rounds end soon and must be recorded as stretches.
pub(super) const SEEK_ROWS_MIN: usize = 1 << 12;

/// See the head of `round_robin.rs`.
#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) expected: u32,
    /// Index of `expected` in `slots`.
    pub(super) at: usize,
    pub(super) slots: Vec<u32>,
    /// First row of the rounds.
    pub(super) first: usize,
    /// Row count of the log at which each series has only whole vectors.
    pub(super) due: usize,
    /// Row count of the log at which the next search for rounds takes place.
    pub(super) seek_at: usize,
}

impl Default for Rounds {
    fn default() -> Self {
        Self {
            expected: NO_SLOT,
            at: 0,
            slots: Vec::new(),
            first: 0,
            due: usize::MAX,
            seek_at: SEEK_ROWS_MIN,
        }
    }
}

impl Rounds {
    #[inline]
    pub(super) fn are_on(&self) -> bool {
        self.expected != NO_SLOT
    }

    /// The slots of a round.
    pub(super) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Advances to the next slot after a row of the expected slot was appended.
    #[inline(always)]
    pub(super) fn turn(&mut self) {
        let mut at = self.at + 1;
        if at >= self.slots.len() {
            at = 0;
        }
        self.at = at;
        self.expected = self.slots.get(at).copied().unwrap_or(NO_SLOT);
    }

    /// Ends the rounds after all rows were removed.
    pub(super) fn forget(&mut self) {
        self.expected = NO_SLOT;
        self.slots.clear();
        self.seek_at = SEEK_ROWS_MIN;
    }

    /// Takes over the rounds of another log, whose rows are appended after `before` rows; the other rounds end.
    pub(super) fn go_on_as(&mut self, others: &mut Self, before: usize) {
        std::mem::swap(self, others);
        self.first += before;
        others.forget();
    }

    /// The slots of a round, if the last round is complete: after a flush the next round begins with the first slot.
    pub(super) fn whole(&self) -> Option<Vec<u32>> {
        (self.are_on() && self.at == 0).then(|| self.slots.clone())
    }
}
