//! Derives from the lines that the writer has reported which transactions a file may contain.

use super::cut::Ended;
use super::tally::Tally;
use super::writer::Said;

/// The transactions that a file may contain as its newest one.
#[derive(Default)]
pub(super) struct Promise {
    pub(super) opened: bool,
    /// Number of the last transaction acknowledged as durable.
    pub(super) last: u64,
    /// Later transactions whose durable commit or sync has begun.
    pub(super) begun: Vec<u64>,
    /// Later transactions whose lazy commit has begun.
    pub(super) lazy: Vec<u64>,
}

impl Promise {
    /// Updates the promise with the lines of a writer. Acknowledgements reported after the disk ceased to keep writes
    /// do not count, because such commits may be lost.
    pub(super) fn hear_all(&mut self, ended: &Ended, tally: &mut Tally) {
        for (at, said) in ended.said.iter().enumerate() {
            let is_late = at >= ended.before_cut;
            if !(is_late && matches!(said, Said::Acknowledged(_) | Said::Opened)) {
                self.hear(said, tally);
            }
        }
    }

    fn hear(&mut self, said: &Said, tally: &mut Tally) {
        match *said {
            Said::Opened => self.opened = true,
            Said::Begun(number) => self.begun.push(number),
            Said::Acknowledged(number) => {
                tally.acknowledged += 1;
                self.last = number;
                self.begun.clear();
                self.lazy.clear();
            }
            Said::Trying(number) => self.lazy.push(number),
            Said::Lazy(_) => tally.lazy += 1,
            Said::Visible(_) | Said::Failed(_) | Said::Again(_) => {}
        }
    }

    pub(super) fn allows(&self, number: u64, same_boot: bool) -> bool {
        let lazy = same_boot && self.lazy.contains(&number);
        number == self.last || self.begun.contains(&number) || lazy
    }

    /// Updates the promise with the transaction that was found. A transaction that was found only through the lock file
    /// is not on the disk yet.
    pub(super) fn found(&mut self, number: u64, same_boot: bool) {
        self.opened = true;
        if same_boot && self.lazy.contains(&number) {
            self.begun.retain(|begun| *begun <= number);
            self.lazy.retain(|lazy| *lazy <= number);
            return;
        }
        self.last = number;
        self.begun.clear();
        self.lazy.clear();
    }
}
