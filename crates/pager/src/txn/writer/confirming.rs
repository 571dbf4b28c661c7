//! Progress of the confirmation of the durable record that was found at opening. The record is rewritten, one copy at a
//! time, before a page is reused for the first time.

use crate::format::meta_blocks::Confirmation;

/// Number of copies of a meta record.
const COPIES: usize = 2;

#[derive(Debug)]
pub(super) struct Confirming {
    /// How the record is rewritten.
    round: Confirmation,
    /// Number of copies that were rewritten.
    done: usize,
}

impl Confirming {
    /// `is_known`: whether the lock area notes that the record is on the medium, so that it need not be confirmed.
    pub(super) fn new(round: Confirmation, is_known: bool) -> Self {
        let done = if is_known { COPIES } else { 0 };
        Self { round, done }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done == COPIES
    }

    /// The confirmation number for the copies, and the copy to write next. After a failed write it is the same copy
    /// again, since the other one is intact.
    pub(super) fn next(&self) -> Option<(u16, usize)> {
        let Confirmation { number, first } = self.round;
        match self.done {
            0 => Some((number, first)),
            1 => Some((number, 1 - first)),
            _ => None,
        }
    }

    /// Notes that the copy named by `next` is on the medium.
    pub(super) fn copy_is_written(&mut self) {
        assert!(self.done < COPIES, "there are two copies to confirm");
        self.done += 1;
    }
}
