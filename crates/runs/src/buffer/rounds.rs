//! State of a log whose rows come in rounds (`round_robin.rs`).

use crate::buffer::slot::NO_SLOT;

/// Rows before which rounds are not looked for; afterwards whenever they have doubled, so that to look costs little a row
/// wherever there are none, and to note them as stretches where they end soon.
pub(super) const SEEK_ROWS_MIN: usize = 1 << 12;

/// See the head of `round_robin.rs`.
#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) expected: u32,
    /// Place of `expected`.
    pub(super) at: usize,
    pub(super) slots: Vec<u32>,
    /// First row.
    pub(super) first: usize,
    /// Rows of the log at which each series has whole vectors and nothing more.
    pub(super) due: usize,
    /// Rows of the log at which rounds are looked for.
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

    /// A row of the expected slot is there.
    #[inline(always)]
    pub(super) fn turn(&mut self) {
        let mut at = self.at + 1;
        if at >= self.slots.len() {
            at = 0;
        }
        self.at = at;
        self.expected = self.slots.get(at).copied().unwrap_or(NO_SLOT);
    }

    /// No row is there any more.
    pub(super) fn forget(&mut self) {
        self.expected = NO_SLOT;
        self.slots.clear();
        self.seek_at = SEEK_ROWS_MIN;
    }

    /// Goes on as others do, whose log is behind `before` rows; they end.
    pub(super) fn go_on_as(&mut self, others: &mut Self, before: usize) {
        std::mem::swap(self, others);
        self.first += before;
        others.forget();
    }

    /// The slots of a round, if the last one is whole: after a hand-over it goes on with the first.
    pub(super) fn whole(&self) -> Option<Vec<u32>> {
        (self.are_on() && self.at == 0).then(|| self.slots.clone())
    }
}
