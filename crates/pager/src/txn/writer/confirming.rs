//! Progress of the confirmation of the durable meta record that was found at opening. The meta record is rewritten,
//! one copy at a time, before a page is reused for the first time.

use crate::format::meta_blocks::Confirmation;

/// Number of copies of a meta record.
const COPIES: usize = 2;

#[derive(Debug)]
pub(super) struct Confirming {
    /// Number and order in which the copies of the meta record are rewritten.
    round: Confirmation,
    /// Number of copies that are rewritten already.
    done: usize,
}

impl Confirming {
    /// `is_known` says whether the lock area records that the meta record is on the medium, so that it need not be
    /// confirmed.
    pub(super) fn new(round: Confirmation, is_known: bool) -> Self {
        let done = if is_known { COPIES } else { 0 };
        Self { round, done }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done == COPIES
    }

    /// Returns the confirmation number for the copies, and the copy to write next; `None` if all copies are written.
    /// After a failed write, the same copy is returned again, since the other copy is intact.
    pub(super) fn next(&self) -> Option<(u16, usize)> {
        let Confirmation { number, first } = self.round;
        match self.done {
            0 => Some((number, first)),
            1 => Some((number, 1 - first)),
            _ => None,
        }
    }

    /// Records that the copy returned by `next` is on the medium.
    pub(super) fn copy_is_written(&mut self) {
        assert!(self.done < COPIES, "there are two copies to confirm");
        self.done += 1;
    }
}
