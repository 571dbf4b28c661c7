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
//! 2. The commit that `published` names is always retained, so a reader whose slot has the published commit was
//!    protected all the time.
//! 3. A slot has one owner. It is claimed when free, and freed, after its state was cleared, by its owner or by a
//!    handle that found the owner dead. If snapshots of the owner share it, the last one clears it.
//! 4. Only the owner of a slot writes a snapshot into it. Others change an evictable or parked state to `EVICTED`
//!    with one compare-and-swap, and clean the slot when its owner is dead.

use super::sync::{AtomicU64, Ordering};

/// State word of a slot that has no snapshot.
pub const IDLE: u64 = 0;
/// Owner word of a slot that no handle has claimed.
pub const FREE: u64 = 0;
/// State word of a slot whose snapshot was evicted, so that its pages may be overwritten.
pub const EVICTED: u64 = u64::MAX;
/// Flag in a state word: the reader may be evicted, since it copies its pages and checks afterwards that the snapshot
/// still exists.
pub const EVICTABLE: u64 = 1 << 62;
/// Flag in a state word: the reader is idle and may be evicted; it checks that its snapshot still exists before it
/// continues.
pub const PARKED: u64 = 1 << 63;

/// Returns the transaction of the snapshot in a slot's state word; `None` if the slot has no snapshot.
#[inline]
pub fn held(word: u64) -> Option<u64> {
    match word {
        IDLE | EVICTED => None,
        word => Some(word & !(EVICTABLE | PARKED)),
    }
}

/// Whether the reader with this state word may be evicted.
pub fn may_be_evicted(word: u64) -> bool {
    word != EVICTED && word & (EVICTABLE | PARKED) != 0
}

/// Stores a state word in a slot that the caller owns. `newest` has the words that contain the newest commit of all
/// processes and of this handle, each with the value that the reader expects. Returns false if a newer commit was
/// published meanwhile: the pages of the expected commit may then have been overwritten before the slot was visible.
#[inline]
pub fn enter(slot: &AtomicU64, word: u64, newest: &[(&AtomicU64, u64)]) -> bool {
    slot.store(word, Ordering::SeqCst);
    let mut newest = newest.iter();
    newest.all(|(newest, known)| newest.load(Ordering::SeqCst) == *known)
}

/// Ends the reader of a slot. The release store orders the reads of this reader before any write to its pages.
#[inline]
fn leave(slot: &AtomicU64) {
    slot.store(IDLE, Ordering::Release);
}

/// Publishes the commit `txn` to all readers that begin from now on.
pub fn publish(published: &AtomicU64, txn: u64) {
    published.store(txn, Ordering::SeqCst);
}

/// Loads the state word of a slot, for a writer that wants to overwrite pages.
pub fn load_slot(slot: &AtomicU64) -> u64 {
    slot.load(Ordering::SeqCst)
}

/// Evicts the reader of a slot if it is evictable or parked. Returns false if it is neither, or if the slot has
/// changed from `seen`.
pub fn evict(slot: &AtomicU64, seen: u64) -> bool {
    may_be_evicted(seen)
        && slot
            .compare_exchange(seen, EVICTED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
}

/// Changes the state word of a slot that the caller owns, between reading and parked. Returns false if the reader was
/// evicted meanwhile.
pub fn exchange(slot: &AtomicU64, from: u64, to: u64) -> bool {
    slot.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

/// Whether the slot still has the state `word`. If so, data copied before this call belong to the snapshot in that
/// state.
#[inline]
pub fn still(slot: &AtomicU64, word: u64) -> bool {
    super::sync::fence(Ordering::Acquire);
    slot.load(Ordering::Acquire) == word
}

/// Claims a free slot for a handle, whose owner word is `mine`. Returns false if another handle has the slot.
pub fn claim(owner: &AtomicU64, mine: u64) -> bool {
    owner.load(Ordering::Relaxed) == FREE
        && owner
            .compare_exchange(FREE, mine, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
}

/// Frees a slot whose state word was cleared before.
#[inline]
fn free(owner: &AtomicU64) {
    owner.store(FREE, Ordering::SeqCst);
}

/// Clears and frees a slot whose owner is closed or dead.
pub fn clean(slot: &AtomicU64, owner: &AtomicU64) {
    leave(slot);
    free(owner);
}

/// Removes one user of a slot that several snapshots share; returns true if it was the last one. Only a user can add
/// another user, so a count of 1 cannot change meanwhile.
#[inline]
pub fn is_last(users: &AtomicU64) -> bool {
    users.load(Ordering::Acquire) == 1 || users.fetch_sub(1, Ordering::AcqRel) == 1
}

/// Clears a slot that has no users any more. With `idle`, the owner keeps the slot by setting this bit among its idle
/// slots; otherwise all handles may claim the slot.
#[inline]
pub fn give_back(slot: &AtomicU64, owner: &AtomicU64, idle: Option<(&AtomicU64, u32)>) {
    leave(slot);
    match idle {
        Some((idle, bit)) => give_idle(idle, bit),
        None => free(owner),
    }
}

/// Takes the idle slot with the lowest bit from a word of the idle bitmap; returns its bit number.
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

/// Marks a slot as idle in the bitmap of its owner.
#[inline]
fn give_idle(idle: &AtomicU64, bit: u32) {
    idle.fetch_or(1 << bit, Ordering::Release);
}
