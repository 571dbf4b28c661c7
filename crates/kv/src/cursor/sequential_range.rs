//! Detects leaves of a forward scan that are contiguous in the file, as in tables that were filled in order. If such
//! leaves are read through `PageRead::page_in_order`, the kernel reads ahead, in larger units than explicit requests
//! could.
//!
//! ```text
//! branch             │ a b c x d e f … │ g h y i …     leaves in the order of keys
//! file     … y …  [a b c   d e f …   ]·[g h   i … ] … x    windows of two branches, the second after the first
//! ```
//!
//! Invariants
//! 1. The prefetcher classifies a branch once, when it enters it, and the cursor follows that decision: a leaf that the
//!    prefetcher does not request is read as part of a sequential range.
//! 2. No kernel readahead happens around a leaf that lies elsewhere: the leaves of a sequential range lie within their
//!    branch's window, which is at most twice as long as they are.
//! 3. The unneeded bytes that are read after the end of a sequential range are in proportion to the bytes scanned.
//!    Leaves in windows earn a credit of their bytes; a range begins only when the credit is `LONG_BYTES`, and each
//!    jump to a window elsewhere costs `JUMP_BYTES`.
//! 4. It is only a hint: in a hostile file pages may be read by the wrong method, but they are verified as always.

use crate::cursor::frame::Frame;
use std::collections::VecDeque;
use std::ops::Range;
use tidalite_pager::Ptr;

/// Bytes of leaves in windows that must be scanned before kernel readahead is used. With 16 MiB, a range of 29 MiB took
/// a quarter to two thirds longer, because readahead begins slowly and continues after the end. Tests use smaller
/// tables.
const LONG_BYTES: u64 = if cfg!(test) { 16 << 20 } else { 64 << 20 };
/// Number of bytes by which a jump to another window reduces the credit: the kernel reads up to 8 MiB around a page on
/// some disks.
const JUMP_BYTES: u64 = 8 << 20;
/// Maximum credit: without this limit, a scan that was in file order for a long time could jump often.
const CREDIT_BYTES_MAX: u64 = 2 * LONG_BYTES;
/// Maximum gap in bytes between leaves of one window: reading the gap is cheaper than another request.
const GAP_BYTES: u64 = 64 << 10;
/// Maximum distance in bytes from the end of the previous window at which the next window may begin without counting as
/// a jump.
const NEAR_BYTES: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct SequentialRange {
    /// The window of the branch that was classified last.
    last: Range<u64>,
    /// Number of bytes of leaves in windows, less the cost of jumps; kernel readahead is used once the credit is high
    /// enough.
    credit: u64,
    /// The windows of the branches that the prefetcher has entered and the cursor has not left yet.
    windows: VecDeque<Window>,
    sorted: Vec<u64>,
}

struct Window {
    branch: u64,
    /// True if the page of the branch itself lies near the leaves before it.
    along: bool,
    /// The range of the file in which leaves are read sequentially, with kernel readahead; empty if leaves are
    /// requested one by one.
    leaves: Range<u64>,
}

impl SequentialRange {
    /// True if the branch at this address lies near the current sequential range, and should be read as a part of it.
    pub(super) fn has_branch(&self, at: u64) -> bool {
        let along = self.windows.back().map(|window| &window.leaves);
        along.is_some_and(|leaves| !leaves.is_empty() && self.near().contains(&at))
    }

    /// Called when the prefetcher enters a branch above leaves: decides whether these leaves are read as a sequential
    /// range.
    pub(super) fn enter(&mut self, branch: &Frame<'_>, page_size: usize) {
        let page = page_size as u64;
        let node = branch.node();
        let along = self.has_branch(branch.at);
        self.sorted.clear();
        let leaves = (0..branch.shape.count).map_while(|index| node.child(index).ok());
        self.sorted.extend(leaves.map(|(leaf, _)| leaf.addr));
        self.sorted.sort_unstable();
        let (window, bytes) = densest(&self.sorted, page);
        let is_dense =
            2 * bytes >= page * branch.shape.count as u64 && 2 * bytes >= window.end - window.start;
        if !is_dense || !self.near().contains(&window.start) {
            self.credit = self.credit.saturating_sub(JUMP_BYTES);
        }
        let is_long = is_dense && self.credit >= LONG_BYTES;
        if is_dense {
            self.credit = (self.credit + bytes).min(CREDIT_BYTES_MAX);
            self.last = window.clone();
        }
        debug_assert!(self.credit <= CREDIT_BYTES_MAX, "the credit is bounded");
        debug_assert!(window.start <= window.end, "the window is in order");
        self.windows.push_back(Window {
            branch: branch.at,
            along,
            leaves: if is_long { window } else { 0..0 },
        });
    }

    /// The range of addresses in which the next window may begin without counting as a jump.
    fn near(&self) -> Range<u64> {
        self.last.start..self.last.end.saturating_add(NEAR_BYTES)
    }

    /// True if a leaf of the last entered branch lies in a sequential range, so that the prefetcher need not request
    /// it.
    pub(super) fn reads(&self, leaf: &Ptr) -> bool {
        let newest = self.windows.back();
        newest.is_some_and(|window| window.leaves.contains(&leaf.addr))
    }

    /// True if the cursor should read this leaf of this branch as part of a sequential range. Drops the windows of
    /// earlier branches.
    pub(super) fn holds(&mut self, branch: u64, leaf: &Ptr) -> bool {
        let Some(found) = self.find(branch) else {
            return false;
        };
        self.windows.drain(..found);
        debug_assert!(
            self.windows[0].branch == branch,
            "the window of this branch"
        );
        self.windows[0].leaves.contains(&leaf.addr)
    }

    /// As `holds`, for a branch page instead of a leaf.
    pub(super) fn holds_branch(&self, branch: &Ptr) -> bool {
        let found = self.find(branch.addr);
        found.is_some_and(|found| self.windows[found].along)
    }

    fn find(&self, branch: u64) -> Option<usize> {
        let mut windows = self.windows.iter();
        windows.position(|window| window.branch == branch)
    }
}

/// The largest group of nearby page addresses: the range that the group covers, and the total length in bytes of its
/// pages.
fn densest(sorted: &[u64], page: u64) -> (Range<u64>, u64) {
    let together = |a: &u64, b: &u64| b - a <= page + GAP_BYTES;
    let group = sorted.chunk_by(together).max_by_key(|group| group.len());
    let group = group.unwrap_or_default();
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return (0..0, 0);
    };
    (*first..last.saturating_add(page), page * group.len() as u64)
}
