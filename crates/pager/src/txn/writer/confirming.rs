//! Progress of the confirmation of a record that was found: it is rewritten, one copy at a time, before a page is
//! reused for the first time.

use crate::format::meta_blocks::Confirmation;

/// Copies of a meta record.
const COPIES: usize = 2;

#[derive(Debug)]
pub(super) struct Confirming {
    /// How the record is rewritten.
    round: Confirmation,
    /// Number of copies that were rewritten.
    done: usize,
}

impl Confirming {
    /// `is_known`: another process, alive now or a moment ago, has noted that the record is on the medium.
    pub(super) fn new(round: Confirmation, is_known: bool) -> Self {
        let done = if is_known { COPIES } else { 0 };
        Self { round, done }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done == COPIES
    }

    /// The number that the copies get, and the copy to write next. After a failed write it is the same one: the other
    /// copy is intact.
    pub(super) fn next(&self) -> Option<(u16, usize)> {
        let Confirmation { number, first } = self.round;
        match self.done {
            0 => Some((number, first)),
            1 => Some((number, 1 - first)),
            _ => None,
        }
    }

    /// The copy named by `next` is on the medium.
    pub(super) fn copy_is_written(&mut self) {
        assert!(self.done < COPIES, "there are two copies to confirm");
        self.done += 1;
    }
}
