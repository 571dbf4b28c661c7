//! Prefetcher: requests leaves ahead of a scan, in files so large that the kernel reads each page alone
//! (`PageRead::reads_single_pages`).
//!
//! Without it a scan waits for each leaf and reads 10,000 leaves a second; the same disk delivers a hundred times as
//! many bytes if leaves are requested ahead. A `Prefetcher` visits the branches ahead of the cursor and requests their
//! leaves; when it enters a branch it also requests the following branch.
//!
//! Invariants
//! 1. A prefetcher is only a hint: it reads verified pages as any reader does, reports no errors, and stops at damage.
//!    The cursor will meet the same damage.
//! 2. `lead` leaves lie between the cursor and the prefetcher, in the direction of the scan; they have been requested.
//! 3. A prefetcher stays valid while the cursor leaves the last entered leaf by a step in the same direction; after any
//!    other move, or a turn, the cursor makes a new one.
//! 4. A prefetcher begins with the next two leaves and doubles its distance as the scan continues, up to `AHEAD_BYTES`,
//!    so that a short range requests few leaves that it does not need.

use crate::cursor::frame::Frame;
use crate::cursor::sequential_range::SequentialRange;
use crate::page::node::Node;
use crate::page::read_ahead::PageRuns;
use tidalite_pager::{PageRead, Ptr};

/// Maximum number of bytes between cursor and prefetcher: the amount that a disk reads in a millisecond or two, small
/// enough to stay in memory until the cursor arrives.
const AHEAD_BYTES: usize = 2 << 20;
/// Number of leaves requested at the first step.
const FIRST: usize = 2;
/// Factor by which the number of leaves ahead of the cursor grows with each request.
const FURTHER: usize = 2;

pub(super) struct Prefetcher<'r> {
    /// The path from the root to the branch whose leaf was requested last; empty at the end of the table.
    frames: Vec<Frame<'r>>,
    pub(super) forward: bool,
    /// The address of the leaf that the cursor entered last.
    pub(super) entered: u64,
    lead: usize,
    width: usize,
    /// The ranges of the file in which the kernel itself reads ahead; `None` for a backward scan.
    pub(super) sequential: Option<SequentialRange>,
}

impl<'r> Prefetcher<'r> {
    /// Creates a prefetcher at the leaf to which these branches lead.
    pub(super) fn at<R: PageRead>(r: &R, frames: &[Frame<'r>], forward: bool) -> Self {
        Self {
            frames: frames.to_vec(),
            forward,
            entered: 0,
            lead: 0,
            width: FIRST / FURTHER,
            sequential: (forward && r.reads_ahead_in_order()).then(SequentialRange::default),
        }
    }

    /// Called when the cursor moves on to the next leaf: requests more leaves if at most half of the requested leaves
    /// are still ahead of the cursor.
    pub(super) fn follow<R: PageRead>(&mut self, r: &'r R) {
        if self.lead <= self.width / 2 {
            let widest = AHEAD_BYTES / r.page_size();
            self.width = (self.width * FURTHER).clamp(FIRST, widest);
            let mut runs = PageRuns::default();
            while self.lead < self.width
                && let Some(leaf) = self.next_leaf(r)
            {
                let reads = |sequential: &SequentialRange| sequential.reads(&leaf);
                if !self.sequential.as_ref().is_some_and(reads) {
                    runs.add(r, leaf);
                }
                self.lead += 1;
            }
            runs.request(r);

            debug_assert!(self.lead <= self.width, "requests are bounded");
        }
        self.lead = self.lead.saturating_sub(1);
    }

    fn next_leaf<R: PageRead>(&mut self, r: &'r R) -> Option<Ptr> {
        while let Some(branch) = self.frames.last_mut() {
            if step(branch, self.forward) {
                break;
            }
            self.frames.pop();
        }
        loop {
            let above = self.frames.last()?;
            let level = above.shape.level;
            let found = above.node().child(above.index);
            let entered = match found {
                Ok((leaf, _)) if level == 1 => return Some(leaf),
                Ok((branch, _)) => self.enter(r, branch, level - 1),
                Err(_) => None,
            };
            if entered.is_none() {
                self.frames.clear();
                return None;
            }
        }
    }

    /// Enters a branch, and requests the following branch from the disk.
    fn enter<R: PageRead>(&mut self, r: &'r R, ptr: Ptr, level: u8) -> Option<()> {
        let along = |sequential: &SequentialRange| level == 1 && sequential.has_branch(ptr.addr);
        let page = match self.sequential.as_ref().is_some_and(along) {
            true => r.page_in_order(&ptr),
            false => r.page(&ptr),
        };
        let page = page.ok()?;
        let shape = Node::open(&page, level, ptr.addr).ok()?.shape();
        let mut behind = self.frames.last()?.clone();
        if step(&mut behind, self.forward)
            && let Ok((next, _)) = behind.node().child(behind.index)
        {
            r.read_ahead(next.addr, u64::from(next.len));
        }
        let index = if self.forward {
            0
        } else {
            shape.count.checked_sub(1)?
        };
        let branch = Frame {
            page,
            shape,
            at: ptr.addr,
            index,
        };
        if let (1, Some(sequential)) = (level, &mut self.sequential) {
            sequential.enter(&branch, r.page_size());
        }
        debug_assert!(branch.shape.level == level, "a branch of this level");
        self.frames.push(branch);
        Some(())
    }
}

/// Moves to the next entry of a branch in the given direction; returns false if there is no further entry.
fn step(branch: &mut Frame<'_>, forward: bool) -> bool {
    if forward {
        branch.index += 1;
        return branch.index < branch.shape.count;
    }
    let more = branch.index > 0;
    branch.index -= usize::from(more);
    more
}
