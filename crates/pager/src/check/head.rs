//! The heads of both files, as they stand.

use super::Check;
use crate::layout::{meta_at, superblock_at};
use crate::meta::MetaBlocks;
use crate::superblock;
use std::time::Duration;

/// The head is read again so often while it looks damaged, after pauses that grow by this.
const HEAD_ATTEMPTS: u32 = 4;
const HEAD_PAUSE: Duration = Duration::from_millis(10);

impl Check {
    /// The head as it stands. A commit that is just being written looks like damage, but it does not last.
    pub(super) fn check_head(&mut self) -> Vec<String> {
        let (mut problems, mut notes) = self.head_problems();
        if !problems.is_empty() {
            // A handle that only reads cannot keep the writers of other processes away.
            let turn = self.pager.inner.turn();
            (problems, notes) = self.head_problems();
            drop(turn);
        }
        for attempt in 1..=HEAD_ATTEMPTS {
            if problems.is_empty() || !self.written_since() {
                break;
            }
            std::thread::sleep(HEAD_PAUSE * attempt);
            (problems, notes) = self.head_problems();
        }
        for problem in problems {
            self.problem(problem);
        }
        notes
    }

    /// Whether somebody has committed since the check began.
    fn written_since(&self) -> bool {
        let blocks = MetaBlocks::load(&*self.pager.inner.storage, &self.pager.uuid());
        let newest = blocks.newest();
        newest.is_ok_and(|(newest, _)| newest.sequence != self.captured.meta.sequence)
    }

    /// Damage, and what is none: a pair that does not hold the newest record is torn by a crash, and healed by the next writer.
    fn head_problems(&self) -> (Vec<String>, Vec<String>) {
        let (mut problems, mut notes) = (Vec::new(), Vec::new());
        let storage = self.pager.inner.storage.clone();
        match superblock::load(&*storage) {
            Ok((_, damaged)) => {
                for (copy, error) in damaged.into_iter().enumerate() {
                    if let Some(error) = error {
                        let at = superblock_at(copy);
                        problems.push(format!("superblock copy at byte {at}: {error}"));
                    }
                }
            }
            Err(error) => problems.push(format!("superblock: {error}")),
        }
        if let Some(large) = &self.pager.inner.large {
            let damaged = large.damaged_heads(self.pager.inner.page_size);
            let text = damaged
                .into_iter()
                .map(|(_, error)| format!("head of the second file: {error}"));
            problems.extend(text);
        }
        let blocks = MetaBlocks::load(&*storage, &self.pager.uuid());
        // Who may write has healed it when it was opened; then it is damage that came since.
        let read_only = self.pager.inner.options.read_only;
        let newest = blocks.newest().map(|(newest, _)| newest.pair());
        for (pair, copies) in blocks.copies.iter().enumerate() {
            for (copy, found) in copies.iter().enumerate() {
                if let Err(error) = found {
                    let at = meta_at(pair, copy);
                    let problem = format!("meta block at byte {at}: {error}");
                    if read_only && newest.as_ref().is_ok_and(|newest| *newest != pair) {
                        notes.push(format!("left by a commit that did not end: {problem}"));
                    } else {
                        problems.push(problem);
                    }
                }
            }
            if let [Ok(a), Ok(b)] = copies
                && !a.is_copy_of(b)
            {
                let problem = format!(
                    "meta pair {pair}: its copies hold txn {} and txn {}",
                    a.txn, b.txn
                );
                if read_only && newest.as_ref().is_ok_and(|newest| *newest != pair) {
                    notes.push(format!("left by a commit that did not end: {problem}"));
                } else {
                    problems.push(problem);
                }
            }
        }
        (problems, notes)
    }
}
