//! Epochs (sections) inside a write transaction: the basis of savepoints, nested transactions, and reads of
//! uncommitted data from other threads.
//!
//! A *holder* (a [`Savepoint`], or an `UncommittedRead`) holds the state of the transaction at the time the
//! holder is made, and begins a new epoch. A page of an earlier epoch that a live holder sees is no longer changed in
//! place: `PageWrite::shadow` returns a copy under a new address, as it does for committed pages.
//! `PageWrite::may_change` reports whether a page may still be changed in place. Code that keeps pointers to its own
//! pages between operations (to a tail leaf, for example) must check again after a holder was made. Sealing a page
//! needs no copy, since it does not change the content.
//!
//! Invariants
//! 1. `later` has the ranges allocated in epochs after the first; all other ranges of the transaction are of epoch 0.
//! 2. A range allocated in epoch a and freed in epoch f is *parked* while there is a live holder of an epoch h with
//!    a <= h < f. A parked range still belongs to the transaction, and its pages stay unchanged. A rollback to a holder
//!    therefore only discards later changes.
//! 3. While a holder lives, `freed` logs the ranges of earlier transactions that are freed, in order.

use super::pin_changes::PinNames;
use crate::space::TxnSpace;
use crate::space::ranges::RangeSet;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// State that the transaction shares with a savepoint or a reader of uncommitted data.
#[derive(Debug, Default)]
pub(crate) struct Token {
    ended: AtomicBool,
}

impl Token {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// A state of a write transaction to which the transaction can be rolled back. Dropping a savepoint costs nothing and
/// releases the pages that only the savepoint needs.
#[derive(Debug)]
pub struct Savepoint {
    token: Arc<Token>,
}

#[derive(Debug)]
struct Holder {
    epoch: u64,
    token: Weak<Token>,
    /// Length of the list `freed` when the savepoint or reader was created.
    freed: usize,
    kept: SavedState,
}

#[derive(Clone, Copy, Debug)]
struct Parked {
    page: u64,
    pages: u64,
    /// Epochs (sections between savepoints) in which the range was allocated (`born`) and freed.
    born: u64,
    freed: u64,
}

/// State of a transaction outside its pages, saved when a savepoint or a reader of uncommitted data is created.
#[derive(Clone, Debug)]
pub(crate) struct SavedState {
    pub(crate) user: Arc<[u8]>,
    pub(crate) extent_bytes_written: u64,
    pub(crate) pins: PinNames,
}

/// State outside the pages, to which a rollback returns.
pub(crate) struct Restored {
    pub(crate) kept: SavedState,
    /// Ranges allocated since the savepoint, which the caller must release.
    pub(crate) released: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
pub(crate) struct Epochs {
    current: u64,
    holders: Vec<Holder>,
    later: BTreeMap<u64, RangeSet>,
    parked: Vec<Parked>,
    parked_all: RangeSet,
    freed: Vec<(u64, u64, u64)>,
}

impl Epochs {
    /// Epoch (section between savepoints) of new allocations.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// Whether no savepoint and no reader of uncommitted data of this transaction exists.
    pub(crate) fn is_quiet(&self) -> bool {
        self.holders.is_empty()
    }

    /// Asserts that savepoints and readers are in the order of their epochs, and that the lists of parked ranges
    /// agree.
    fn check(&self) {
        debug_assert!(
            self.holders
                .is_sorted_by(|a, b| a.epoch < b.epoch && a.freed <= b.freed),
            "savepoints out of order"
        );
        assert!(
            self.holders
                .last()
                .is_none_or(|last| last.epoch < self.current && last.freed <= self.freed.len()),
            "a savepoint of a later epoch"
        );
        assert!(
            self.later
                .last_key_value()
                .is_none_or(|(&epoch, _)| epoch <= self.current),
            "an allocation of a later epoch"
        );
        debug_assert!(
            self.parked.iter().all(|range| {
                range.born < range.freed && self.parked_all.contains(range.page, range.pages)
            }),
            "a parked range is unknown"
        );
    }

    fn hold(&mut self, kept: SavedState) -> Arc<Token> {
        let token = Arc::new(Token::default());
        self.holders.push(Holder {
            epoch: self.current,
            token: Arc::downgrade(&token),
            freed: self.freed.len(),
            kept,
        });
        self.current += 1;
        self.check();
        token
    }

    pub(crate) fn savepoint(&mut self, kept: SavedState) -> Savepoint {
        let token = self.hold(kept);
        Savepoint { token }
    }

    pub(crate) fn reader(&mut self) -> Arc<Token> {
        self.hold(SavedState {
            user: Arc::from([]),
            extent_bytes_written: 0,
            pins: PinNames::default(),
        })
    }

    /// Whether a live savepoint or reader sees a range that was allocated in epoch `born` and exists up to epoch
    /// `until`.
    fn is_held(&self, born: u64, until: u64) -> bool {
        let sees = |holder: &Holder| {
            born <= holder.epoch && holder.epoch < until && holder.token.strong_count() > 0
        };
        self.holders.iter().rev().any(sees)
    }

    /// Whether pages allocated in epoch `born` may be changed in place.
    #[inline]
    pub(crate) fn may_change(&self, born: u64) -> bool {
        self.holders.is_empty() || !self.is_held(born, self.current)
    }

    pub(crate) fn allocated(&mut self, page: u64, pages: u64) {
        if self.current > 0 {
            let fresh = self
                .later
                .entry(self.current)
                .or_default()
                .insert(page, pages);
            debug_assert!(fresh, "pages {page}+{pages} are allocated twice");
        }
    }

    /// Frees a range that this transaction allocated. Returns `Some(true)` if the caller must release the range now,
    /// `Some(false)` if a savepoint or reader still needs it, and `None` if there is an error: the range belongs to
    /// several epochs or was freed already.
    pub(crate) fn free_own(&mut self, page: u64, pages: u64) -> Option<bool> {
        if self.current == 0 {
            return Some(true);
        }
        if self.parked_all.overlaps(page, pages) {
            return None;
        }
        let mut born = 0;
        for (&epoch, ranges) in self.later.iter().rev() {
            if ranges.contains(page, pages) {
                born = epoch;
                break;
            }
            if ranges.overlaps(page, pages) {
                return None;
            }
        }
        if self.is_held(born, self.current) {
            let fresh = self.parked_all.insert(page, pages);
            assert!(fresh, "pages {page}+{pages} are parked twice");
            self.parked.push(Parked {
                page,
                pages,
                born,
                freed: self.current,
            });
            return Some(false);
        }
        if let Some(ranges) = self.later.get_mut(&born) {
            let removed = ranges.remove(page, pages);
            assert!(removed, "pages {page}+{pages} are of another epoch");
        }
        Some(true)
    }

    /// Records that the transaction freed a range of an earlier transaction.
    pub(crate) fn freed_old(&mut self, page: u64, pages: u64, birth: u64) {
        if !self.holders.is_empty() {
            self.freed.push((page, pages, birth));
        }
    }

    /// Removes savepoints and readers that were dropped; returns the ranges that are no longer needed, which the
    /// caller must release.
    pub(crate) fn prune(&mut self) -> Vec<(u64, u64)> {
        self.holders
            .retain(|holder| holder.token.strong_count() > 0);
        if self.holders.is_empty() {
            self.freed.clear();
        }
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|range| self.is_held(range.born, range.freed));
        self.parked = kept;
        self.forget_parked(&gone);
        self.check();
        for range in &gone {
            if let Some(ranges) = self.later.get_mut(&range.born) {
                ranges.remove(range.page, range.pages);
            }
        }
        gone.iter().map(|range| (range.page, range.pages)).collect()
    }

    fn forget_parked(&mut self, ranges: &[Parked]) {
        for range in ranges {
            let removed = self.parked_all.remove(range.page, range.pages);
            assert!(removed, "a range was parked that is unknown");
        }
    }

    /// Rolls back to a savepoint. Returns `None` if the savepoint does not belong to this transaction, or was undone
    /// by a rollback to an earlier savepoint.
    pub(crate) fn roll_back(
        &mut self,
        savepoint: &Savepoint,
        space: &mut TxnSpace,
    ) -> Option<Restored> {
        let token = Arc::as_ptr(&savepoint.token);
        let index = self
            .holders
            .iter()
            .position(|holder| std::ptr::eq(holder.token.as_ptr(), token))?;
        for later in self.holders.drain(index + 1..) {
            end(&later);
        }
        let holder = self.holders.get(index)?;
        let (epoch, freed) = (holder.epoch, holder.freed);
        let saved_then = holder.kept.clone();
        for (page, pages, birth) in self.freed.drain(freed..).rev() {
            space.unfree(page, pages, birth);
        }
        let (kept, undone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|range| range.freed <= epoch);
        self.parked = kept;
        self.forget_parked(&undone);
        let after = self.later.split_off(&(epoch + 1));
        let released = after.values().flat_map(RangeSet::iter).collect();
        self.current += 1;
        self.check();
        Some(Restored {
            kept: saved_then,
            released,
        })
    }

    pub(crate) fn end_readers(&self) {
        self.holders.iter().for_each(end);
    }

    /// Ends the transaction and its readers of uncommitted data. Returns the ranges that were kept for them, which
    /// the caller must release.
    pub(crate) fn finish(&mut self) -> Vec<(u64, u64)> {
        self.end_readers();
        self.holders.clear();
        let parked = self.prune();
        assert!(
            self.parked.is_empty(),
            "a parked range outlives its holders"
        );
        parked
    }
}

fn end(holder: &Holder) {
    if let Some(token) = holder.token.upgrade() {
        token.ended.store(true, Ordering::Release);
    }
}
