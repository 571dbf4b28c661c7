//! Reader slots: one cache line per snapshot.
//!
//! Invariants
//! 1. A slot belongs to the handle named by its owner word. A free slot (owner 0) is idle.
//! 2. Slots are claimed with a compare-and-swap and freed by their owner, or under the setup lock by a handle that
//!    found the owner dead. So the owner word of a dead handle changes only under this lock.
//! 3. A handle keeps some of its idle slots (`idle`, one bit each) so that it takes the next one without a search: a
//!    few of each group, and only low ones. Without this limit sixteen handles could withhold all slots from the others
//!    without holding a snapshot.
//! 4. Cloned snapshots share a slot; `users` counts them. The count is private to this handle.

use super::handle::Lock;
use super::idle_slots::GROUPS;
use super::layout::{HANDLES_MAX, LINE, READERS_MAX};
use super::protocol;
use super::readers::{Reader, ReaderKind};
use crate::error::{Error, Result};
use crate::system::now_ns;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidalite_base::TxnId;

/// Maximum number of idle slots of a group (64 slots) that a handle keeps. A few more are kept if several threads
/// return slots at the same time.
const KEPT_MAX: u32 = 4;
/// A handle keeps only idle slots below this number; higher ones are free for every handle.
const KEPT_END: usize = READERS_MAX / 4;

const STATE: usize = 0;
const OWNER: usize = 1;
const THREAD: usize = 2;
const SINCE: usize = 3;
const FREED_BEFORE: usize = 4;
const HELD: usize = 5;
const _: () = assert!((HELD + 1) * 8 <= LINE && HANDLES_MAX < 1 << 16);

/// A snapshot as it is recorded in the reader table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of the snapshot's slot in the reader table.
    pub slot: usize,
    /// State word of the slot, as [`protocol::evict`] expects it.
    pub word: u64,
    /// Transaction of the commit that the snapshot shows.
    pub txn: u64,
    /// Id of the process that has the snapshot open.
    pub process: u32,
    /// Id of the thread that began the snapshot.
    pub thread: u32,
    /// Time at which the snapshot began, on the clock of [`now_ns`].
    pub since_ns: u64,
    /// Number of pages that all commits had freed when the snapshot began.
    pub freed_before: u64,
    /// Number of pages that the snapshot retained when they were last counted.
    pub retained_pages: u64,
    /// Whether the snapshot belongs to this handle.
    pub own: bool,
}

static GROUP_NEXT: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static GROUP: Cell<usize> = const { Cell::new(usize::MAX) };
    static THREAD_ID: Cell<u32> = const { Cell::new(0) };
}

fn group() -> usize {
    GROUP.with(|group| {
        if group.get() == usize::MAX {
            group.set(GROUP_NEXT.fetch_add(1, Ordering::Relaxed) % GROUPS);
        }
        group.get()
    })
}

pub(super) fn thread_id() -> u64 {
    THREAD_ID.with(|id| {
        if id.get() == 0 {
            #[cfg(not(miri))]
            id.set(
                rustix::thread::gettid()
                    .as_raw_nonzero()
                    .get()
                    .cast_unsigned(),
            );
        }
        u64::from(id.get())
    })
}

impl Lock {
    /// The owner word that marks slots of this handle.
    pub(super) fn owner_word(&self) -> u64 {
        debug_assert!(self.handle < HANDLES_MAX, "a handle has a number");
        self.generation << 16 | (self.handle as u64 + 1)
    }

    pub(super) fn owner_alive(&self, owner: u64) -> bool {
        owner & 0xffff != 0 && self.is_alive((owner & 0xffff) as usize - 1, owner >> 16)
    }

    /// Takes an idle slot that this handle has kept, or claims a free slot. The slot then has one user.
    ///
    /// # Errors
    /// `Limit` if live handles have all slots.
    #[inline]
    pub fn take_slot(&self) -> Result<usize> {
        let start = group();
        for i in 0..GROUPS {
            let group = (start + i) % GROUPS;
            if let Some(row) = protocol::take_idle(&self.slots.idle[group]) {
                return Ok(self.begin_slot(row as usize * GROUPS + group));
            }
        }
        self.claim_slot(start)
    }

    #[inline]
    fn begin_slot(&self, slot: usize) -> usize {
        debug_assert_eq!(
            self.area.slot(slot)[OWNER].load(Ordering::Relaxed),
            self.owner_word(),
            "a reader begins in a slot of another handle"
        );
        let before = self.slots.users[slot].swap(1, Ordering::Relaxed);
        debug_assert!(before <= 1, "a slot with users is taken");
        let line = self.area.slot(slot);
        line[THREAD].store(thread_id(), Ordering::Relaxed);
        line[SINCE].store(now_ns(), Ordering::Relaxed);
        let freed = self.area.freed_pages().load(Ordering::Relaxed);
        line[FREED_BEFORE].store(freed, Ordering::Relaxed);
        line[HELD].store(0, Ordering::Relaxed);
        slot
    }

    #[cold]
    fn claim_slot(&self, start: usize) -> Result<usize> {
        let mine = self.owner_word();
        for attempt in 0..2 {
            // Tries slots with low numbers first, to keep scans of the table short, and among these first a slot of
            // the thread's group.
            for row in 0..READERS_MAX / GROUPS {
                for i in 0..GROUPS {
                    let slot = row * GROUPS + (start + i) % GROUPS;
                    if protocol::claim(&self.area.slot(slot)[OWNER], mine) {
                        self.area
                            .slots_used()
                            .fetch_max(slot as u64 + 1, Ordering::SeqCst);
                        return Ok(self.begin_slot(slot));
                    }
                }
            }
            if attempt == 0 && !self.try_setup(|| self.clean_slots()) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(Error::Limit {
            what: "snapshots held at once, in all processes together",
            found: READERS_MAX as u64 + 1,
            limit: READERS_MAX as u64,
        })
    }

    /// Returns the state word of a slot.
    #[inline]
    pub fn state(&self, slot: usize) -> &AtomicU64 {
        &self.area.slot(slot)[STATE]
    }

    /// Adds a user to a slot that already has one, because snapshots are cloned.
    ///
    /// # Panics
    /// If the slot has no user.
    pub fn share_slot(&self, slot: usize) {
        let before = self.slots.users[slot].fetch_add(1, Ordering::Relaxed);
        assert!(before > 0, "a slot without users is shared");
    }

    /// Removes one user of a slot; when no user is left, the slot is returned. A forked child leaves the slot to its
    /// parent.
    #[inline]
    pub fn leave_slot(&self, slot: usize) {
        if !protocol::is_last(&self.slots.users[slot]) || !self.is_here() {
            return;
        }
        let line = self.area.slot(slot);
        let idle = &self.slots.idle[slot % GROUPS];
        let is_kept = slot < KEPT_END && idle.load(Ordering::Relaxed).count_ones() < KEPT_MAX;
        let kept = is_kept.then_some((idle, (slot / GROUPS) as u32));
        protocol::give_back(&line[STATE], &line[OWNER], kept);
    }

    fn slots_used(&self) -> usize {
        (self.area.slots_used().load(Ordering::SeqCst) as usize).min(READERS_MAX)
    }

    /// Calls `f` for every snapshot of a live handle, and frees the slots of dead handles if the setup lock is free.
    pub fn for_each_reader(&self, mut f: impl FnMut(&Seen)) {
        let mut known: Vec<(u64, bool)> = Vec::new();
        let mut freed_ranges = false;
        for slot in 0..self.slots_used() {
            let line = self.area.slot(slot);
            let word = protocol::load_slot(&line[STATE]);
            let Some(txn) = protocol::held(word) else {
                continue;
            };
            let owner = line[OWNER].load(Ordering::SeqCst);
            let alive = match known.iter().find(|(known, _)| *known == owner) {
                Some((_, alive)) => *alive,
                None => {
                    let alive = self.owner_alive(owner);
                    known.push((owner, alive));
                    alive
                }
            };
            freed_ranges |= !alive;
            if !alive {
                continue;
            }
            let handle = self.area.handle((owner & 0xffff) as usize - 1);
            f(&Seen {
                slot,
                word,
                txn,
                process: handle[1].load(Ordering::Relaxed) as u32,
                thread: line[THREAD].load(Ordering::Relaxed) as u32,
                since_ns: line[SINCE].load(Ordering::Relaxed),
                freed_before: line[FREED_BEFORE].load(Ordering::Relaxed),
                retained_pages: line[HELD].load(Ordering::Relaxed),
                own: owner == self.owner_word(),
            });
        }
        if freed_ranges {
            self.try_setup(|| self.clean_slots());
        }
    }

    /// Describes the snapshot `seen`. `newest` is the newest commit that this handle knows, published or not.
    #[must_use]
    pub fn describe(&self, seen: &Seen, newest: u64, page_bytes: u64) -> Reader {
        let kind = match seen.word {
            word if word & protocol::PARKED != 0 => ReaderKind::Parked,
            word if word & protocol::EVICTABLE != 0 => ReaderKind::Evictable,
            _ => ReaderKind::Read,
        };
        let newest = newest.max(self.area.published().load(Ordering::SeqCst));
        let freed_pages = self.area.freed_pages().load(Ordering::Relaxed);
        Reader {
            slot: seen.slot,
            kind,
            process: seen.process,
            thread: seen.thread,
            own: seen.own,
            txn: TxnId(seen.txn),
            lag_txns: newest.saturating_sub(seen.txn),
            age: Duration::from_nanos(now_ns().saturating_sub(seen.since_ns)),
            retained_bytes: seen.retained_pages.saturating_mul(page_bytes),
            freed_bytes: freed_pages
                .saturating_sub(seen.freed_before)
                .saturating_mul(page_bytes),
        }
    }

    /// Evicts a reader. Returns false if the reader is neither evictable nor parked, or has ended.
    pub fn evict(&self, reader: &Seen) -> bool {
        protocol::evict(&self.area.slot(reader.slot)[STATE], reader.word)
    }

    /// Whether the slot still has the state `word` that its owner entered, so that the reader was not evicted.
    #[inline]
    pub fn still(&self, slot: usize, word: u64) -> bool {
        protocol::still(&self.area.slot(slot)[STATE], word)
    }

    /// Changes the state of a slot of this handle from `from` to `to`, if the slot has exactly one user. Returns false,
    /// without a change, if its reader was evicted, if it has more users, or if it belongs to the parent process of a
    /// fork.
    pub fn exchange(&self, slot: usize, from: u64, to: u64) -> bool {
        self.is_here()
            && self.slots.users[slot].load(Ordering::Acquire) == 1
            && protocol::exchange(&self.area.slot(slot)[STATE], from, to)
    }

    /// Whether any slot has a snapshot. The owner of the slot may be dead.
    pub fn has_readers(&self) -> bool {
        let mut slots = 0..self.slots_used();
        slots
            .any(|slot| protocol::held(protocol::load_slot(&self.area.slot(slot)[STATE])).is_some())
    }

    /// Stores in each reader's slot how many pages the reader retains; `pages_of` returns the number for a commit.
    /// The caller must hold the writer lock.
    pub fn note_retained(&self, pages_of: impl Fn(u64) -> u64) {
        for slot in 0..self.slots_used() {
            let line = self.area.slot(slot);
            if let Some(txn) = protocol::held(protocol::load_slot(&line[STATE])) {
                let pages = pages_of(txn);
                if line[HELD].load(Ordering::Relaxed) != pages {
                    line[HELD].store(pages, Ordering::Relaxed);
                }
            }
        }
    }

    /// Frees the slots of dead handles. The caller must hold the setup lock.
    pub(super) fn clean_slots(&self) {
        let mut known: Vec<(u64, bool)> = Vec::new();
        for slot in 0..self.slots_used() {
            let line = self.area.slot(slot);
            let owner = line[OWNER].load(Ordering::SeqCst);
            if owner == 0 || owner == self.owner_word() {
                continue;
            }
            let alive = match known.iter().find(|(known, _)| *known == owner) {
                Some((_, alive)) => *alive,
                None => {
                    let alive = self.owner_alive(owner);
                    known.push((owner, alive));
                    alive
                }
            };
            if !alive {
                protocol::clean(&line[STATE], &line[OWNER]);
            }
        }
    }

    /// Frees all slots of this handle, which is being closed.
    pub(super) fn release_slots(&self) {
        let mine = self.owner_word();
        for slot in 0..self.slots_used() {
            let line = self.area.slot(slot);
            if line[OWNER].load(Ordering::SeqCst) == mine {
                protocol::clean(&line[STATE], &line[OWNER]);
            }
        }
    }
}
