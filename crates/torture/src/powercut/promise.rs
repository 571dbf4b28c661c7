//! What a file must hold, from what the writer has said.

use super::cut::Ended;
use super::tally::Tally;
use super::writer::Said;

/// What a file must hold.
#[derive(Default)]
pub(super) struct Promise {
    pub(super) opened: bool,
    /// The last transaction acknowledged as durable.
    pub(super) last: u64,
    /// Later ones whose durable commit began.
    pub(super) begun: Vec<u64>,
    /// Later ones whose lazy commit began.
    pub(super) lazy: Vec<u64>,
}

impl Promise {
    /// What was acknowledged when the disk had stopped to keep anything may be lost, or not have been asked for.
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

    /// What was found, and whether only the lock file says so: then it is not on the disk yet.
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
