//! Pending ranges, which are freed but still seen by snapshots. They are stored in memory, and on stacks of list
//! pages in the file.
//!
//! Invariants
//! 1. Each range is recorded under one snapshot. No entry of `ranges` is empty, and no stack is without lists.
//! 2. `pages` is the number of pages of all ranges. (A damaged file may name a page twice; the count is wrong then,
//!    but does not become negative.)

use super::lists::Stack;
use crate::format::meta::FreedRange;
use crate::format::ptr::Ptr;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Freed ranges in memory, by the transaction of the snapshot that retains them.
    pub(super) ranges: BTreeMap<u64, Vec<FreedRange>>,
    /// Number of pages in all freed ranges, including the ranges on the stacks.
    pub(super) pages: u64,
    /// Freed ranges in the file, on stacks of list pages.
    pub(super) stacks: Vec<Stack>,
    /// Pointers to the pages of the directory of the stacks.
    pub(super) directory: Vec<Ptr>,
    /// Whether the directory of the stacks in the file is out of date.
    pub(super) stacks_changed: bool,
    /// List pages taken from the stacks since the last meta record.
    pub(super) popped: Vec<Ptr>,
}

impl Pending {
    /// Asserts that no list and no stack is empty, and that each range has pages and was freed after its birth.
    pub(super) fn check(&self) {
        debug_assert!(
            self.ranges.values().all(|ranges| !ranges.is_empty()),
            "a snapshot retains an empty list"
        );
        debug_assert!(
            self.in_memory()
                .all(|range| range.pages > 0 && range.birth < range.freed),
            "a retained range without pages, or freed before its birth"
        );
        debug_assert!(
            self.stacks.iter().all(|stack| stack.lists > 0),
            "a stack without lists"
        );
    }

    /// Returns the freed ranges that are in memory.
    pub(super) fn in_memory(&self) -> impl Iterator<Item = &FreedRange> {
        self.ranges.values().flatten()
    }

    /// Returns the number of freed pages that each snapshot retains, in ascending order of the snapshots'
    /// transactions.
    pub(super) fn by_snapshot(&self) -> Vec<(u64, u64)> {
        let mut pages = BTreeMap::new();
        for (&snapshot_txn, ranges) in &self.ranges {
            *pages.entry(snapshot_txn).or_default() +=
                ranges.iter().map(|range| range.pages).sum::<u64>();
        }
        for stack in &self.stacks {
            *pages.entry(stack.snapshot_txn).or_default() += stack.pages;
        }
        pages.into_iter().collect()
    }

    /// Records that a snapshot retains freed ranges.
    pub(super) fn add(&mut self, snapshot_txn: u64, ranges: &[FreedRange]) {
        if !ranges.is_empty() {
            self.pages += ranges.iter().map(|range| range.pages).sum::<u64>();
            let known = self.ranges.entry(snapshot_txn).or_default();
            known.extend_from_slice(ranges);
        }
    }

    /// Returns the snapshot that can inherit a stack whose own snapshot has ended, without reading the stack: a
    /// snapshot that retains all ranges of the stack and has no stack itself.
    pub(super) fn successor(&self, stack: &Stack, live: &[u64]) -> Option<u64> {
        let older = live.partition_point(|&snapshot| snapshot < stack.oldest_freed);
        let successor = *live[..older].last()?;
        let mut others = self.stacks.iter();
        let is_free = others.all(|other| other.snapshot_txn != successor);
        (successor >= stack.newest_birth && is_free).then_some(successor)
    }
}
