//! Reclaim: when a snapshot, pin or savepoint (a holder) ends, the ranges that it has retained become free, or move
//! to another holder that retains them.
//!
//! The lists of a holder that has ended are taken from its stack a few at a time. So the work stays bounded even when
//! many pages become reclaimable together (after a dropped table or an old pin). Until they are taken, the pages
//! count as held.

use super::free_space::Space;
use super::lists::{List, Stack};
use super::read::ReadPage;
use crate::error::Result;
use crate::format::kind::Kind;
use crate::format::meta::FreedRange;

impl Space {
    /// Frees ranges that no snapshot retains any more, or moves them to another snapshot. Takes at most `lists_max`
    /// list pages from the stacks in the file and returns how many it has taken. `live` is ascending, and contains at
    /// least the transactions of the live snapshots.
    pub(crate) fn reclaim(&mut self, live: &[u64], lists_max: usize, read: ReadPage<'_>) -> usize {
        debug_assert!(
            live.is_sorted_by(|a, b| a < b),
            "the live snapshots are not ascending"
        );
        let is_gone = |snapshot_txn: &u64| live.binary_search(snapshot_txn).is_err();
        let gone: Vec<u64> = self
            .pending
            .ranges
            .keys()
            .copied()
            .filter(is_gone)
            .collect();
        for snapshot_txn in gone {
            for range in self
                .pending
                .ranges
                .remove(&snapshot_txn)
                .unwrap_or_default()
            {
                self.assign(range, live);
            }
        }
        let mut taken = 0;
        let mut number = 0;
        while number < self.pending.stacks.len() {
            let stack = &self.pending.stacks[number];
            if stack.broken || !is_gone(&stack.snapshot_txn) {
                number += 1;
                continue;
            }
            if let Some(successor) = self.pending.successor(stack, live) {
                self.pending.stacks[number].snapshot_txn = successor;
                self.pending.stacks_changed = true;
                continue;
            }
            if taken == lists_max {
                break;
            }
            taken += 1;
            if let Some(list) = self.take_list(number, read) {
                for range in list.ranges {
                    self.assign(range, live);
                }
                if self.pending.stacks[number].lists == 0 {
                    self.pending.stacks.remove(number);
                }
            }
        }
        assert!(taken <= lists_max, "more lists are taken than allowed");
        debug_assert!(
            self.pending
                .ranges
                .keys()
                .all(|snapshot| !is_gone(snapshot)),
            "a snapshot that has ended retains pages"
        );
        taken
    }

    /// Takes the top list from a stack. Returns `None` if the list is damaged; this list and the lists below then
    /// stay as they are, and `check` reports the damage.
    fn take_list(&mut self, number: usize, read: ReadPage<'_>) -> Option<List> {
        let Ok(list) = read_list(&self.pending.stacks[number], read) else {
            self.pending.stacks[number].broken = true;
            return None;
        };
        // In a damaged file the list may contain any page numbers.
        let ranges = list.ranges.iter();
        let (mut sound, mut pages) = (true, 0u64);
        for range in ranges {
            sound &= self.in_file(range.page, range.pages);
            pages = pages.saturating_add(range.pages);
        }
        if !sound {
            self.pending.stacks[number].broken = true;
            return None;
        }
        let stack = &mut self.pending.stacks[number];
        assert!(stack.lists > 0, "a list is taken from an empty stack");
        self.pending.popped.push(stack.top);
        stack.top = list.next;
        stack.lists -= 1;
        stack.pages = stack.pages.saturating_sub(pages);
        self.pending.stacks_changed = true;
        self.work.lists_taken += 1;
        Some(list)
    }

    /// Moves a freed range to the youngest snapshot that retains it, or frees the range if there is none.
    fn assign(&mut self, range: FreedRange, live: &[u64]) {
        debug_assert!(range.pages > 0, "a freed range has pages");
        let older = live.partition_point(|&snapshot| snapshot < range.freed);
        match live[..older].last() {
            Some(&snapshot) if snapshot >= range.birth => {
                self.pending.ranges.entry(snapshot).or_default().push(range);
            }
            _ => {
                self.pending.pages = self.pending.pages.saturating_sub(range.pages);
                // A damaged file may list a page twice, or a page that is free or was truncated. Such a page must not
                // be freed again.
                if self.in_file(range.page, range.pages) && !self.any_free(range.page, range.pages)
                {
                    self.release(range.page, range.pages);
                    self.became_free(range.page, range.pages);
                    self.note(range.page, range.pages, false);
                }
            }
        }
    }
}

/// Reads and decodes the top list page of a stack.
pub(super) fn read_list(stack: &Stack, read: ReadPage<'_>) -> Result<List> {
    let page = super::read::read_kind(read, &stack.top, Kind::FreePending)?;
    List::decode(&page, &stack.top, stack.lists.saturating_sub(1))
}

/// Calls `f` with every list page of a stack and the list on it, from the top down, until `f` returns false.
pub(crate) fn walk(
    stack: &Stack,
    read: ReadPage<'_>,
    f: &mut dyn FnMut(&crate::format::ptr::Ptr, &List) -> bool,
) -> Result<()> {
    let mut at = stack.clone();
    while at.lists > 0 {
        let list = read_list(&at, read)?;
        if !f(&at.top, &list) {
            return Ok(());
        }
        at.top = list.next;
        at.lists -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::base::Base;
    use super::super::lists::Stack;
    use crate::error::{Error, Result};
    use crate::format::meta::FreedRange;
    use crate::format::pages::PageRef;
    use crate::format::ptr::Ptr;
    use crate::space::free_space::Space;

    fn unreadable(ptr: &Ptr) -> Result<PageRef<'static>> {
        Err(Error::Unsupported {
            found: format!("{ptr:?}"),
            expected: "nothing to read".into(),
        })
    }

    /// A stack must be moved unread to the youngest snapshot that retains all of its ranges. If it were moved to an
    /// older snapshot, that snapshot would seem to be the reason for retaining pages that are still retained after it
    /// has ended.
    #[test]
    fn the_youngest_snapshot_that_holds_all_of_a_stack_inherits_it() {
        for (live, successor) in [
            (&[5, 9, 20][..], Some(9)),
            (&[5, 11, 12], Some(11)),
            (&[5, 12], Some(5)),
            (&[4, 12], None),
        ] {
            let mut space = Space::new(512, 100, Base::default(), [1, 0]);
            space.pending.stacks.push(Stack {
                snapshot_txn: 7,
                lists: 1,
                pages: 3,
                newest_birth: 5,
                oldest_freed: 12,
                top: Ptr::NULL,
                broken: false,
            });
            space.reclaim(live, 1, &unreadable);
            // If no snapshot inherits the stack, its top list is read, which in this test marks the stack as broken.
            let stack = &space.pending.stacks[0];
            assert_eq!(
                (!stack.broken).then_some(stack.snapshot_txn),
                successor,
                "{live:?}"
            );
        }
    }

    /// A damaged list may contain pages that are free already and that are truncated by the time the list is taken.
    /// These pages must not become free a second time.
    #[test]
    fn freed_ranges_that_are_free_and_cut_off_stay_away() {
        let mut space = Space::new(512, 100, Base::default(), [1, 0]);
        space.grow(9000);
        // One range lies in the region in which the truncated file ends, and one in a removed region.
        for page in [300, 8000] {
            let freed_ranges = FreedRange {
                page,
                pages: 5,
                birth: 3,
                freed: 9,
            };
            space
                .pending
                .ranges
                .entry(5)
                .or_default()
                .push(freed_ranges);
        }
        space.cut(200);
        let free = space.free_pages();
        space.reclaim(&[20], 1, &unreadable);
        assert_eq!((space.pages(), space.free_pages()), (200, free));
        assert_eq!(space.retained().count(), 0);
    }
}
