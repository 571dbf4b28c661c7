//! How readers and the writer agree which snapshots are alive: the part of the reader table that consists only of
//! atomics. It uses only `super::sync`, so that a model checker (loom) can include this file unchanged, with `#[path]`,
//! beside its own `sync`.
//!
//! ```text
//! reader                                       writer
//! slot := txn                                  published := new
//! published as expected?   yes: registered      (later) for every slot: its state retains its pages
//!                          no: renew, retry     pages that no slot retains are overwritten
//! ```
//!
//! Invariants
//! 1. Every access to a slot's word and to `published` is sequentially consistent: either the reader sees the newer
//!    `published`, or the writer sees the slot.
//! 2. The state that `published` names is always retained, so a reader whose state is the published one was protected
//!    all the time.
//! 3. A slot has one owner. It is claimed when free, and freed, after its state was cleared, by its owner or by a
//!    handle that found the owner dead. If snapshots of the owner share it, the last one clears it.
//! 4. Only the owner of a slot writes a state into it. Others change an evictable or parked state to `EVICTED` with one
//!    compare-and-swap, and clean the slot when its owner is dead.

use super::sync::{AtomicU64, Ordering};

/// State of a slot without a snapshot.
pub const IDLE: u64 = 0;
/// Owner word of a free slot.
pub const FREE: u64 = 0;
/// The snapshot was evicted.
pub const EVICTED: u64 = u64::MAX;
/// Flag of an evictable reader, which copies its pages and validates its snapshot afterwards.
pub const EVICTABLE: u64 = 1 << 62;
/// Flag of a reader that is idle and validates its snapshot before it continues.
pub const PARKED: u64 = 1 << 63;

/// The transaction in a slot's word; `None` if there is none.
#[inline]
pub fn held(word: u64) -> Option<u64> {
    match word {
        IDLE | EVICTED => None,
        word => Some(word & !(EVICTABLE | PARKED)),
    }
}

/// True if the reader may be evicted.
pub fn may_be_evicted(word: u64) -> bool {
    word != EVICTED && word & (EVICTABLE | PARKED) != 0
}

/// Enters a state into a slot of the caller. `newest` has the words that name the newest state, of all processes and of
/// this handle, each with the value that the reader expects. Returns false if a newer state was published: the entered
/// state may then have lost its pages before the slot was visible.
#[inline]
pub fn enter(slot: &AtomicU64, word: u64, newest: &[(&AtomicU64, u64)]) -> bool {
    slot.store(word, Ordering::SeqCst);
    let mut newest = newest.iter();
    newest.all(|(newest, known)| newest.load(Ordering::SeqCst) == *known)
}

/// Ends a reader. Its reads are ordered before any write over its pages.
#[inline]
fn leave(slot: &AtomicU64) {
    slot.store(IDLE, Ordering::Release);
}

/// Publishes a state to all readers that begin from now on.
pub fn publish(published: &AtomicU64, txn: u64) {
    published.store(txn, Ordering::SeqCst);
}

/// Word of a slot, for a writer that wants to overwrite pages.
pub fn load_slot(slot: &AtomicU64) -> u64 {
    slot.load(Ordering::SeqCst)
}

/// Evicts an evictable or parked reader. Returns false if the slot has changed in the meantime.
pub fn evict(slot: &AtomicU64, seen: u64) -> bool {
    may_be_evicted(seen)
        && slot
            .compare_exchange(seen, EVICTED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
}

/// Switches the caller's slot between reading and parked. Returns false if the reader was evicted.
pub fn exchange(slot: &AtomicU64, from: u64, to: u64) -> bool {
    slot.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

/// Whether the slot still holds the state. If so, data copied before this call belongs to that state.
#[inline]
pub fn still(slot: &AtomicU64, word: u64) -> bool {
    super::sync::fence(Ordering::Acquire);
    slot.load(Ordering::Acquire) == word
}

/// Claims a free slot for a handle. Returns false if another handle has it.
pub fn claim(owner: &AtomicU64, mine: u64) -> bool {
    owner.load(Ordering::Relaxed) == FREE
        && owner
            .compare_exchange(FREE, mine, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
}

/// Frees a slot whose state was cleared.
#[inline]
fn free(owner: &AtomicU64) {
    owner.store(FREE, Ordering::SeqCst);
}

/// Clears and frees a slot whose owner closes or is dead.
pub fn clean(slot: &AtomicU64, owner: &AtomicU64) {
    leave(slot);
    free(owner);
}

/// Removes one user of a shared slot; true for the last one. A single user stays single, since only a user adds
/// another.
#[inline]
pub fn is_last(users: &AtomicU64) -> bool {
    users.load(Ordering::Acquire) == 1 || users.fetch_sub(1, Ordering::AcqRel) == 1
}

/// Returns a slot without users: as this bit to the owner's idle slots, or otherwise to all handles.
#[inline]
pub fn give_back(slot: &AtomicU64, owner: &AtomicU64, idle: Option<(&AtomicU64, u32)>) {
    leave(slot);
    match idle {
        Some((idle, bit)) => give_idle(idle, bit),
        None => free(owner),
    }
}

/// Takes the lowest idle slot in these bits.
#[inline]
pub fn take_idle(idle: &AtomicU64) -> Option<u32> {
    let mut bits = idle.load(Ordering::Relaxed);
    while bits != 0 {
        let rest = bits & (bits - 1);
        match idle.compare_exchange_weak(bits, rest, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Some(bits.trailing_zeros()),
            Err(now) => bits = now,
        }
    }
    None
}

/// Returns an idle slot.
#[inline]
fn give_idle(idle: &AtomicU64, bit: u32) {
    idle.fetch_or(1 << bit, Ordering::Release);
}
