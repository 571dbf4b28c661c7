//! How readers and the writer agree which snapshots are alive: the part of the reader table that is nothing
//! but atomics. It uses only `super::sync`, so that a model (loom) can take this file as it is, with
//! `#[path]`, beside a `sync` of its own.
//!
//! ```text
//! reader                                       writer
//! slot := txn                                  published := new
//! published = what I know?  yes: registered    (later) for every slot: what is there holds its pages
//!                           no: renew, again   pages that nobody holds are written over
//! ```
//!
//! Invariants
//! 1. Every access to a slot's word and to `published` is sequentially consistent: either the reader sees
//!    the newer `published`, or the writer sees the slot.
//! 2. The state that `published` names is always held, so a reader that found its state to be that one
//!    was never without protection.
//! 3. A slot has one owner: it is claimed where it is free, and freed by its owner, or by who found that dead, after its state was cleared.
//!    Of the snapshots of its owner that share it the last one clears it.
//! 4. Only the owner of a slot writes a state into it. Others change it from an evictable or parked state
//!    to `OUSTED` with one compare-and-swap, and clean it when its owner is dead.

use super::sync::{AtomicU64, Ordering};

/// Nobody reads here.
pub(crate) const IDLE: u64 = 0;
/// The owner of a slot that nobody has.
pub(crate) const FREE: u64 = 0;
/// The snapshot was taken away.
pub(crate) const OUSTED: u64 = u64::MAX;
/// Flag of a reader that copies what it reads and looks again afterwards.
pub(crate) const EVICTABLE: u64 = 1 << 62;
/// Flag of a reader that is not reading now and asks before it goes on.
pub(crate) const PARKED: u64 = 1 << 63;

/// The transaction of a slot's word; `None` when it holds nothing.
#[inline]
pub(crate) fn held(word: u64) -> Option<u64> {
    match word {
        IDLE | OUSTED => None,
        word => Some(word & !(EVICTABLE | PARKED)),
    }
}

/// True when the state may be taken from its reader.
pub(crate) fn can_be_ousted(word: u64) -> bool {
    word != OUSTED && word & (EVICTABLE | PARKED) != 0
}

/// Enters a state into a slot of one's own. `newest`: the words that name the newest state, of all processes and of this handle, each
/// with what the reader knows it to be. False: something newer was shown, and the state may have lost its pages before the slot was
/// seen.
#[inline]
pub(crate) fn enter(slot: &AtomicU64, word: u64, newest: &[(&AtomicU64, u64)]) -> bool {
    slot.store(word, Ordering::SeqCst);
    let mut newest = newest.iter();
    newest.all(|(newest, known)| newest.load(Ordering::SeqCst) == *known)
}

/// Ends a reader. What it has read comes before whatever is written over it.
#[inline]
fn leave(slot: &AtomicU64) {
    slot.store(IDLE, Ordering::Release);
}

/// Shows a state to all who begin from now on.
pub(crate) fn publish(published: &AtomicU64, txn: u64) {
    published.store(txn, Ordering::SeqCst);
}

/// What a slot holds, for who wants to write over pages.
pub(crate) fn look(slot: &AtomicU64) -> u64 {
    slot.load(Ordering::SeqCst)
}

/// Takes the state from an evictable or parked reader. False: the slot has changed since.
pub(crate) fn oust(slot: &AtomicU64, seen: u64) -> bool {
    can_be_ousted(seen)
        && slot
            .compare_exchange(seen, OUSTED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
}

/// Changes a slot of one's own between reading and parked. False: it was ousted.
pub(crate) fn exchange(slot: &AtomicU64, from: u64, to: u64) -> bool {
    slot.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

/// True when the slot still holds the state; what was copied before is then what that state saw.
#[inline]
pub(crate) fn still(slot: &AtomicU64, word: u64) -> bool {
    super::sync::fence(Ordering::Acquire);
    slot.load(Ordering::Acquire) == word
}

/// Takes a slot that is free for a handle. False: it is another's.
pub(crate) fn claim(owner: &AtomicU64, mine: u64) -> bool {
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

/// Clears and frees a slot whose owner closes, or is dead.
pub(crate) fn clean(slot: &AtomicU64, owner: &AtomicU64) {
    leave(slot);
    free(owner);
}

/// One of those who share a slot goes; true for the last one. Who is alone stays alone: only a user makes another one.
#[inline]
pub(crate) fn is_last(users: &AtomicU64) -> bool {
    users.load(Ordering::Acquire) == 1 || users.fetch_sub(1, Ordering::AcqRel) == 1
}

/// Gives back a slot that nobody of its owner uses any more: to the idle slots of the owner, as this bit, or to everybody.
#[inline]
pub(crate) fn give_back(slot: &AtomicU64, owner: &AtomicU64, idle: Option<(&AtomicU64, u32)>) {
    leave(slot);
    match idle {
        Some((idle, bit)) => give_idle(idle, bit),
        None => free(owner),
    }
}

/// Takes one of the idle slots that these bits stand for: the lowest.
#[inline]
pub(crate) fn take_idle(idle: &AtomicU64) -> Option<u32> {
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

/// Gives an idle slot back.
#[inline]
fn give_idle(idle: &AtomicU64, bit: u32) {
    idle.fetch_or(1 << bit, Ordering::Release);
}
