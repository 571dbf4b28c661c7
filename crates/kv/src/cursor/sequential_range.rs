//! Which leaves of a walk forward lie one behind the other in the file, as tables filled in order have them: those the system reads
//! ahead by itself, in larger units than anybody could ask for, if they are read where it may (`PageRead::page_of_stretch`).
//!
//! ```text
//! branch                 │ a b c x d e f … │ g h y i …     leaves in the order of keys
//! file     … y …  [a b c   d e f …   ]·[g h   i … ] … x    windows of two branches, the second behind the first
//! ```
//!
//! Invariants
//! 1. The scout judges a branch once, when it enters it, and the cursor goes by that: a leaf that is not asked for is one that is read
//!    as part of a stretch.
//! 2. Around a leaf that lies elsewhere nothing is read: leaves of a stretch lie within their branch's window, which is at most
//!    twice as long as they are.
//! 3. What is read in vain behind the end of a stretch is in proportion to what was walked: `LONG_BYTES` of leaves in windows come before the
//!    first stretch, and each jump to a window elsewhere costs `JUMP_BYTES` of those walked.
//! 4. It is a hint: of a hostile file pages are read another way, and verified as for everybody.

use crate::cursor::frame::Frame;
use std::collections::VecDeque;
use std::ops::Range;
use tidalite_pager::Ptr;

/// So many bytes of leaves in windows come before the system is left to read around them: with 16 MiB a range of 29 MiB took a
/// quarter to two thirds longer, for it begins slowly and reads on behind the end. Tests make do with smaller tables.
const LONG_BYTES: u64 = if cfg!(test) { 16 << 20 } else { 64 << 20 };
/// What a jump may cost: the system reads up to 8 MiB around a page on some disks.
const JUMP_BYTES: u64 = 8 << 20;
/// Of what was walked no more is remembered: else a walk that was long in order could jump often.
const CREDIT_BYTES_MAX: u64 = 2 * LONG_BYTES;
/// Leaves with no more between them belong together: reading that is cheaper than asking again.
const GAP_BYTES: u64 = 64 << 10;
/// A window that begins no further behind the end of the one before is no jump.
const NEAR_BYTES: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Stretch {
    /// The window of the branch that was judged last.
    last: Range<u64>,
    /// Bytes of leaves in windows, less what jumps cost.
    credit: u64,
    /// Branches from the cursor to the scout.
    windows: VecDeque<Window>,
    sorted: Vec<u64>,
}

struct Window {
    branch: u64,
    /// The branch lies where the leaves before it do.
    along: bool,
    /// Where leaves are read as part of a stretch; empty where they are asked for.
    leaves: Range<u64>,
}

impl Stretch {
    /// Whether a branch that the scout is about to enter lies along the stretch.
    pub(super) fn has_branch(&self, at: u64) -> bool {
        let along = self.windows.back().map(|window| &window.leaves);
        along.is_some_and(|leaves| !leaves.is_empty() && self.near().contains(&at))
    }

    /// The scout enters a branch of leaves.
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
        self.windows.push_back(Window {
            branch: branch.at,
            along,
            leaves: if is_long { window } else { 0..0 },
        });
    }

    /// Where the next window is no jump.
    fn near(&self) -> Range<u64> {
        self.last.start..self.last.end.saturating_add(NEAR_BYTES)
    }

    /// Whether a leaf of the branch entered last needs no asking for.
    pub(super) fn reads(&self, leaf: &Ptr) -> bool {
        let newest = self.windows.back();
        newest.is_some_and(|window| window.leaves.contains(&leaf.addr))
    }

    /// Whether the cursor is to read this leaf of this branch as part of a stretch. Forgets the branches before.
    pub(super) fn holds(&mut self, branch: u64, leaf: &Ptr) -> bool {
        let Some(found) = self.find(branch) else {
            return false;
        };
        self.windows.drain(..found);
        self.windows[0].leaves.contains(&leaf.addr)
    }

    /// The same for a branch.
    pub(super) fn holds_branch(&self, branch: &Ptr) -> bool {
        let found = self.find(branch.addr);
        found.is_some_and(|found| self.windows[found].along)
    }

    fn find(&self, branch: u64) -> Option<usize> {
        let mut windows = self.windows.iter();
        windows.position(|window| window.branch == branch)
    }
}

/// Of these addresses the most that belong together: from the first to behind the last, and how many bytes their pages are.
fn densest(sorted: &[u64], page: u64) -> (Range<u64>, u64) {
    let together = |a: &u64, b: &u64| b - a <= page + GAP_BYTES;
    let group = sorted.chunk_by(together).max_by_key(|group| group.len());
    let group = group.unwrap_or_default();
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return (0..0, 0);
    };
    (*first..last.saturating_add(page), page * group.len() as u64)
}
