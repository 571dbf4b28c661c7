//! Leaves asked for ahead of a walk, in files so large that the system reads each page alone (`PageRead::reads_alone`).
//!
//! Without it a walk waits for each leaf: 10,000 a second on a disk that reads a hundred times as many bytes when it is told what comes. A scout
//! goes over the branches ahead of the cursor and asks for the leaves that it comes by; the branch behind the one that it enters it asks for, too.
//!
//! Invariants
//! 1. It is a hint and nothing else: it goes over pages that are verified as for everybody, reports nothing, and ends at damage. The cursor
//!    meets that, too.
//! 2. `lead` leaves lie between the cursor and the scout, in the direction in which both go: those were asked for.
//! 3. It holds as long as the cursor leaves the leaf that it entered last by a step; whoever has moved otherwise, or turned, gets another one.
//! 4. It begins with the next two leaves and goes further as the walk does, up to `AHEAD_BYTES`: a short range asks for little in vain.

use crate::cursor::frame::Frame;
use crate::cursor::sequential_range::Stretch;
use crate::page::node::Node;
use crate::page::read_ahead::Runs;
use tidalite_pager::{PageRead, Ptr};

/// It goes no further ahead: what a disk reads in a millisecond or two, and little enough to stay in memory until the cursor comes.
const AHEAD_BYTES: usize = 2 << 20;
/// Leaves asked for at the first step.
const FIRST: usize = 2;
/// How much further it goes each time.
const FURTHER: usize = 2;

pub(super) struct Scout<'r> {
    /// The way to the branch of the leaf that was asked for last; empty at the end.
    frames: Vec<Frame<'r>>,
    pub(super) forward: bool,
    /// The leaf that the cursor entered last.
    pub(super) entered: u64,
    lead: usize,
    width: usize,
    /// Where the system reads ahead by itself; none on the way back.
    pub(super) stretch: Option<Stretch>,
}

impl<'r> Scout<'r> {
    /// One at the leaf that these branches lead to.
    pub(super) fn at<R: PageRead>(r: &R, frames: &[Frame<'r>], forward: bool) -> Self {
        Self {
            frames: frames.to_vec(),
            forward,
            entered: 0,
            lead: 0,
            width: FIRST / FURTHER,
            stretch: (forward && r.reads_stretches()).then(Stretch::default),
        }
    }

    /// The cursor goes on to the next leaf: asks for more when half of those asked for have been entered.
    pub(super) fn follow<R: PageRead>(&mut self, r: &'r R) {
        if self.lead <= self.width / 2 {
            let widest = AHEAD_BYTES / r.page_size();
            self.width = (self.width * FURTHER).clamp(FIRST, widest);
            let mut runs = Runs::default();
            while self.lead < self.width
                && let Some(leaf) = self.next_leaf(r)
            {
                let reads = |stretch: &Stretch| stretch.reads(&leaf);
                if !self.stretch.as_ref().is_some_and(reads) {
                    runs.add(r, leaf);
                }
                self.lead += 1;
            }
            runs.ask(r);
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

    /// Goes into a branch, and asks for the one behind it.
    fn enter<R: PageRead>(&mut self, r: &'r R, ptr: Ptr, level: u8) -> Option<()> {
        let along = |stretch: &Stretch| level == 1 && stretch.has_branch(ptr.addr);
        let page = match self.stretch.as_ref().is_some_and(along) {
            true => r.page_of_stretch(&ptr),
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
        if let (1, Some(stretch)) = (level, &mut self.stretch) {
            stretch.enter(&branch, r.page_size());
        }
        self.frames.push(branch);
        Some(())
    }
}

/// To the next entry of a branch; false at its end.
fn step(branch: &mut Frame<'_>, forward: bool) -> bool {
    if forward {
        branch.index += 1;
        return branch.index < branch.shape.count;
    }
    let more = branch.index > 0;
    branch.index -= usize::from(more);
    more
}
