//! Pending ranges, which are freed but still seen by snapshots: in memory, and on the stacks of lists in the file.
//!
//! Invariants
//! 1. Each range is recorded under one snapshot. No entry of `ranges` is empty, and no stack is without lists.
//! 2. `pages` is the number of pages of all ranges. (A damaged file may name a page twice; the count is wrong then, but
//!    does not become negative.)

use super::lists::Stack;
use crate::format::meta::FreedRange;
use crate::format::ptr::Ptr;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Ranges in memory, by the snapshot that retains them.
    pub(super) ranges: BTreeMap<u64, Vec<FreedRange>>,
    /// Pages of all ranges, those on the stacks included.
    pub(super) pages: u64,
    /// Ranges on disk.
    pub(super) stacks: Vec<Stack>,
    /// Pages of the directory of the stacks.
    pub(super) directory: Vec<Ptr>,
    /// True if the directory on disk is out of date.
    pub(super) stacks_changed: bool,
    /// Lists taken from the stacks since the last record.
    pub(super) popped: Vec<Ptr>,
}

impl Pending {
    /// Asserts the invariants.
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

    /// The ranges in memory.
    pub(super) fn in_memory(&self) -> impl Iterator<Item = &FreedRange> {
        self.ranges.values().flatten()
    }

    /// Number of pages by snapshot, ascending.
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

    /// Adds ranges under a snapshot.
    pub(super) fn add(&mut self, snapshot_txn: u64, ranges: &[FreedRange]) {
        if !ranges.is_empty() {
            self.pages += ranges.iter().map(|range| range.pages).sum::<u64>();
            let known = self.ranges.entry(snapshot_txn).or_default();
            known.extend_from_slice(ranges);
        }
    }

    /// The snapshot that can inherit a stack whose holder has ended, without reading it: the snapshot holds all ranges
    /// of the stack and has no stack itself.
    pub(super) fn successor(&self, stack: &Stack, live: &[u64]) -> Option<u64> {
        let older = live.partition_point(|&snapshot| snapshot < stack.oldest_freed);
        let successor = *live[..older].last()?;
        let mut others = self.stacks.iter();
        let is_free = others.all(|other| other.snapshot_txn != successor);
        (successor >= stack.newest_birth && is_free).then_some(successor)
    }
}
