//! Checks the heads of both files: superblocks and meta blocks.

use super::Check;
use crate::format::layout::{meta_at, superblock_at};
use crate::format::meta_blocks::MetaBlocks;
use crate::format::superblock;
use std::time::Duration;

/// Number of times that the head is read again while it looks damaged. Each pause is longer by `HEAD_PAUSE` than the
/// pause before.
const HEAD_ATTEMPTS: u32 = 4;
const HEAD_PAUSE: Duration = Duration::from_millis(10);

/// End of the problem text of a damaged block of the head that can be repaired.
const HEALED: &str =
    "the next handle that opens the file for writing rewrites it from a whole copy";
/// End of the note on a block that a crash has left incomplete.
const INTERRUPTED: &str = "left by an unfinished commit, and rewritten by the next handle that opens the file for writing";

/// Findings in the heads of both files.
#[derive(Default)]
struct Heads {
    /// Damaged blocks without an intact copy.
    problems: Vec<String>,
    /// Damaged blocks that the next writer repairs.
    healable: Vec<String>,
    /// Traces of a crash, which are not damage.
    notes: Vec<String>,
}

impl Heads {
    fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.healable.is_empty() && self.notes.is_empty()
    }
}

impl Check {
    /// Checks the heads of the files, and reports commits that were found missing at opening. Returns the notes, and
    /// the number of problems that the next writer repairs. A meta record that is just being written looks like
    /// damage, but only for a moment; the head is therefore read several times.
    pub(super) fn check_head(&mut self) -> (Vec<String>, u64) {
        let mut heads = self.heads();
        if !heads.is_sound() {
            // Reads the heads again under the writer lock, so that no meta record is being written. (In a read-only
            // handle, this lock does not keep writers of other processes out.)
            let guard = self.pager.inner.lock_writer();
            heads = self.heads();
            drop(guard);
        }
        for attempt in 1..=HEAD_ATTEMPTS {
            if heads.is_sound() || !self.written_since() {
                break;
            }
            std::thread::sleep(HEAD_PAUSE * attempt);
            heads = self.heads();
        }
        if let Some(lost) = self.pager.inner.recovery.lost {
            let gone_on = self.captured.meta.txn > lost.found.0;
            match self.pager.inner.files.options.read_only && !gone_on {
                true => heads.problems.push(lost.to_string()),
                // A handle has accepted the loss of commits and opened the file for writing.
                false => heads
                    .notes
                    .push(format!("accepted when it was opened: {lost}")),
            }
        }
        let healable = heads.healable.len() as u64;
        for problem in heads.problems.into_iter().chain(heads.healable) {
            self.problem(problem);
        }
        (heads.notes, healable)
    }

    /// Whether a new meta record was written since the check began.
    fn written_since(&self) -> bool {
        let blocks = MetaBlocks::load(&*self.pager.inner.files.storage, &self.pager.uuid());
        let newest = blocks.newest();
        newest.is_ok_and(|(newest, _)| newest.sequence != self.captured.meta.sequence)
    }

    /// Reads the heads of both files, and separates damage from the traces of a crash.
    ///
    /// A crash during a commit may leave any bytes in one pair of meta blocks, and the next open for writing repairs
    /// that pair. It may be the pair with the newest meta record: power may fail when one copy of a new meta record
    /// is complete and the other is not. A torn block alone is therefore not a problem. Damage of a single block
    /// looks the same, and loses no commit either. Only these are problems: damaged blocks in both pairs, an
    /// unreadable block, and damage that a handle finds although it has repaired the file at opening.
    ///
    /// A crash never damages the superblocks and the head of the second file: they are synced before a meta record
    /// relies on them, and rewritten only to repair a copy that was already damaged. (A second file that no meta
    /// record names yet may be incomplete.)
    fn heads(&self) -> Heads {
        let mut heads = Heads::default();
        let storage = self.pager.inner.files.storage.clone();
        match superblock::load(&*storage) {
            Ok((_, damaged)) => {
                for (copy, error) in damaged.into_iter().enumerate() {
                    if let Some(error) = error {
                        let at = superblock_at(copy);
                        let problem = format!("superblock copy at byte {at}: {error}; {HEALED}");
                        heads.healable.push(problem);
                    }
                }
            }
            Err(error) => heads.problems.push(format!("superblock: {error}")),
        }
        let named = !self.captured.meta.large.is_null();
        if let Some(large) = self.pager.inner.files.large.as_ref().filter(|_| named) {
            let damaged = large.damaged_heads(self.pager.inner.files.page_size);
            let (one, list) = match damaged.len() {
                0 | 1 => (format!("; {HEALED}"), &mut heads.healable),
                _ => (String::new(), &mut heads.problems),
            };
            let text = |(_, error)| format!("head of the second file: {error}{one}");
            list.extend(damaged.into_iter().map(text));
        }
        let blocks = MetaBlocks::load(&*storage, &self.pager.uuid());
        let read_only = self.pager.inner.files.options.read_only;
        let found_whole = blocks.newest().is_ok();
        let mut torn: [Vec<String>; 2] = Default::default();
        let mut unreadable = false;
        for (pair, copies) in blocks.copies.iter().enumerate() {
            for (copy, found) in copies.iter().enumerate() {
                if let Err(error) = found {
                    unreadable |= error.is_io();
                    let at = meta_at(pair, copy);
                    torn[pair].push(format!("meta block at byte {at}: {error}"));
                }
            }
            if let [Ok(a), Ok(b)] = copies
                && !a.is_copy_of(b)
            {
                let (a, b) = (a.txn, b.txn);
                torn[pair].push(format!(
                    "meta pair {pair}: its copies hold txn {a} and txn {b}"
                ));
            }
        }
        let one_pair = torn.iter().any(Vec::is_empty);
        let traces = found_whole && read_only && one_pair && !unreadable;
        for problem in torn.into_iter().flatten() {
            match found_whole {
                true if traces => heads.notes.push(format!("{INTERRUPTED}: {problem}")),
                true => heads.healable.push(format!("{problem}; {HEALED}")),
                false => heads.problems.push(problem),
            }
        }
        heads
    }
}
