//! Runs the reader table under a model checker: every interleaving of readers and a writer, and every value that a
//! weakly ordered load may return.
//!
//! `crates/disk/src/lock/protocol.rs` is included unchanged, except that its atomics are loom's. The pager's snapshots
//! and reader table pass it only words, so the model covers the order of their steps: a reader enters its slot before
//! it checks the newest states, and clears the slot before it releases it. A page that only state 1 references
//! represents all pages: the writer overwrites it if the table shows no reader of state 1.

#![allow(
    dead_code,
    unfulfilled_lint_expectations,
    reason = "the protocol is taken as it is, with what this model does not use"
)]

mod strong;
mod weak;

use loom::sync::Arc;
use loom::thread;

const OLD: u64 = 10;
const NEW: u64 = 20;
const DEAD: u64 = 7;
const LIVING: u64 = 8;

macro_rules! table {
    ($name:ident, $with:ident) => {
        mod $name {
            use super::*;
            use crate::$with::protocol;
            use crate::$with::sync::{AtomicU64, Ordering, fence};

            /// The reader slots; the owner, users and idle bits of the handle that has the first slot; the published
            /// state; the newest state of the reader's own handle; and the page.
            pub(crate) struct Table {
                pub(crate) slots: [AtomicU64; 2],
                pub(crate) owner: AtomicU64,
                pub(crate) users: AtomicU64,
                pub(crate) idle: AtomicU64,
                pub(crate) published: AtomicU64,
                pub(crate) local: AtomicU64,
                pub(crate) page: AtomicU64,
            }

            impl Table {
                pub(crate) fn new() -> Arc<Self> {
                    Arc::new(Self {
                        slots: [AtomicU64::new(0), AtomicU64::new(0)],
                        owner: AtomicU64::new(DEAD),
                        users: AtomicU64::new(2),
                        idle: AtomicU64::new(1),
                        published: AtomicU64::new(1),
                        local: AtomicU64::new(1),
                        page: AtomicU64::new(OLD),
                    })
                }

                /// Enters a published state into a slot; returns false if a newer state was published meanwhile.
                fn enters(&self, slot: &AtomicU64, word: u64, known: u64) -> bool {
                    protocol::enter(slot, word, &[(&self.published, known)])
                }

                /// Works like `Snapshot::begin`: enters the known state into the slot, then checks that no newer state
                /// was published.
                fn begin(&self, slot: &AtomicU64) {
                    let mut known = 1;
                    while !self.enters(slot, known, known) {
                        known = self.published.load(Ordering::SeqCst);
                    }
                    if known == 1 {
                        self.look_at_page();
                    }
                }

                pub(crate) fn read(&self, slot: usize) {
                    let slot = &self.slots[slot];
                    self.begin(slot);
                    protocol::give_back(slot, &self.owner, Some((&self.idle, 1)));
                }

                /// A reader in the same process as the writer, which also sees commits that are not published yet.
                pub(crate) fn read_own(&self, slot: usize) {
                    let slot = &self.slots[slot];
                    let newest = [(&self.published, 1), (&self.local, 1)];
                    if protocol::enter(slot, 1, &newest) {
                        self.look_at_page();
                    }
                    protocol::give_back(slot, &self.owner, Some((&self.idle, 1)));
                }

                /// The writer makes state 2 visible only to its own handle.
                pub(crate) fn write_own(&self) {
                    self.local.store(2, Ordering::SeqCst);
                    self.overwrite();
                }

                /// Works like the writer: publishes state 2, and overwrites pages that no reader holds.
                pub(crate) fn write(&self) {
                    protocol::publish(&self.published, 2);
                    self.overwrite();
                }

                fn overwrite(&self) {
                    let seen = |slot: &AtomicU64| protocol::held(protocol::load_slot(slot));
                    if self.slots.iter().all(|slot| seen(slot) != Some(1)) {
                        self.page.store(NEW, Ordering::Relaxed);
                    }
                }

                /// Works like an evictable reader: the copy that it reads counts only if the slot still belongs to the
                /// reader.
                pub(crate) fn copy(&self, slot: usize) {
                    let slot = &self.slots[slot];
                    let word = 1 | protocol::EVICTABLE;
                    if !self.enters(slot, word, 1) {
                        protocol::give_back(slot, &self.owner, Some((&self.idle, 1)));
                        return;
                    }
                    let seen = self.page.load(Ordering::Relaxed);
                    let mine = protocol::still(slot, word);
                    assert!(
                        !mine || seen == OLD,
                        "a copy that counts is of another state"
                    );
                }

                /// Enters state 1 into the first slot at the start of the model.
                pub(crate) fn enter(&self) {
                    assert!(self.enters(&self.slots[0], 1, 1));
                }

                pub(crate) fn is_idle(&self) -> bool {
                    protocol::load_slot(&self.slots[0]) == protocol::IDLE
                }

                fn look_at_page(&self) {
                    let seen = self.page.load(Ordering::Relaxed);
                    assert_eq!(seen, OLD, "a page that is held was overwritten");
                }

                /// Parks a snapshot (gives up its pages for a while) after a read, and reads again if it was not
                /// evicted.
                pub(crate) fn park(&self, slot: usize) {
                    let slot = &self.slots[slot];
                    let parked = 1 | protocol::PARKED;
                    if self.enters(slot, 1, 1) {
                        self.look_at_page();
                        let is_parked = protocol::exchange(slot, 1, parked);
                        assert!(is_parked, "nobody takes the snapshot of who reads");
                        if protocol::exchange(slot, parked, 1) {
                            self.look_at_page();
                        }
                    }
                    protocol::give_back(slot, &self.owner, Some((&self.idle, 1)));
                }

                /// One of two users of the first slot, into which a state was entered before.
                pub(crate) fn share(&self) {
                    self.look_at_page();
                    if protocol::is_last(&self.users) {
                        protocol::give_back(&self.slots[0], &self.owner, Some((&self.idle, 1)));
                    }
                }

                /// Reads through the one idle slot of the handle, if that slot is available.
                pub(crate) fn read_idle(&self) -> bool {
                    let Some(bit) = protocol::take_idle(&self.idle) else {
                        return false;
                    };
                    assert_eq!(bit, 0);
                    let slot = &self.slots[0];
                    let before = protocol::load_slot(slot);
                    assert_eq!(before, protocol::IDLE, "two have the slot");
                    self.begin(slot);
                    protocol::give_back(slot, &self.owner, Some((&self.idle, bit)));
                    true
                }

                /// Cleans the first slot after its owner was found dead.
                pub(crate) fn clean(&self) {
                    protocol::clean(&self.slots[0], &self.owner);
                }

                /// Claims the first slot, if it is free, and reads.
                pub(crate) fn claim(&self) {
                    if protocol::claim(&self.owner, LIVING) {
                        self.begin(&self.slots[0]);
                        let mine = protocol::load_slot(&self.slots[0]);
                        assert_ne!(mine, protocol::IDLE, "a slot that is held was cleared");
                        protocol::give_back(&self.slots[0], &self.owner, None);
                    }
                }

                /// Publishes state 2, and overwrites the page if all readers of the page can be evicted.
                pub(crate) fn evict(&self) {
                    protocol::publish(&self.published, 2);
                    for slot in &self.slots {
                        let seen = protocol::load_slot(slot);
                        let free = match protocol::held(seen) {
                            Some(1) => protocol::evict(slot, seen),
                            _ => true,
                        };
                        if !free {
                            return;
                        }
                    }
                    // A system call writes the page, which acts as a memory barrier.
                    fence(Ordering::SeqCst);
                    self.page.store(NEW, Ordering::Relaxed);
                }
            }

            /// Runs every interleaving of these threads and `last`, on a table that `first` has prepared; then `end`
            /// checks the table.
            pub(crate) fn model(
                first: fn(&Table),
                threads: &'static [fn(&Table)],
                last: fn(&Table),
                end: fn(&Table),
            ) {
                loom::model(move || {
                    let table = Table::new();
                    first(&table);
                    let begun = threads.iter().map(|act| {
                        let table = Arc::clone(&table);
                        thread::spawn(move || act(&table))
                    });
                    let begun: Vec<_> = begun.collect();
                    last(&table);
                    for thread in begun {
                        thread.join().unwrap();
                    }
                    end(&table);
                });
            }
        }
    };
}

table!(sound, strong);
table!(weakened, weak);

#[test]
fn a_page_that_a_reader_holds_is_never_overwritten() {
    sound::model(
        |_| (),
        &[|t| t.read(0), |t| t.read(1)],
        |t| t.write(),
        |_| (),
    );
}

#[test]
fn a_page_of_a_state_that_one_handle_sees_is_never_overwritten() {
    sound::model(
        |_| (),
        &[|t| t.read_own(0), |t| t.read_own(1)],
        |t| t.write_own(),
        |_| (),
    );
}

/// A slot must be cleared before its next owner can take it, because a late clear by the previous owner would remove
/// the next owner's state.
#[test]
fn a_slot_that_is_given_back_is_cleared_before_others_have_it() {
    sound::model(
        |t| t.clean(),
        &[|t| t.claim()],
        |t| t.claim(),
        |t| assert!(t.is_idle(), "a state stayed in the slot"),
    );
}

#[test]
fn a_reader_that_comes_again_is_protected_again() {
    let twice: &[fn(&sound::Table)] = &[|t| {
        t.read(0);
        t.read(0);
    }];
    sound::model(|_| (), twice, |t| t.write(), |_| ());
}

#[test]
fn a_copy_counts_only_while_the_slot_was_not_ousted() {
    sound::model(|_| (), &[|t| t.copy(0)], |t| t.evict(), |_| ());
}

#[test]
fn a_parked_reader_resumes_only_if_not_evicted() {
    sound::model(|_| (), &[|t| t.park(0)], |t| t.evict(), |_| ());
}

#[test]
fn the_last_holder_of_a_shared_slot_frees_it() {
    sound::model(
        |t| t.enter(),
        &[|t| t.share(), |t| t.share()],
        |t| t.write(),
        |t| {
            assert!(t.is_idle(), "nobody left the slot");
        },
    );
}

#[test]
fn an_idle_slot_is_taken_by_one() {
    loom::model(|| {
        let table = sound::Table::new();
        let other = Arc::clone(&table);
        let reader = thread::spawn(move || other.read_idle());
        let mine = table.read_idle();
        table.write();
        assert!(reader.join().unwrap() || mine, "it was there for one");
    });
}

#[test]
fn a_slot_of_the_dead_is_cleaned_before_others_have_it() {
    sound::model(
        |t| t.enter(),
        &[|t| t.clean(), |t| t.claim()],
        |t| t.write(),
        |_| (),
    );
}

/// Shows that the model detects errors: with weaker memory orderings, a page is overwritten while a reader holds it.
#[test]
#[should_panic(expected = "a page that is held was overwritten")]
fn weaker_orderings_are_found_out() {
    weakened::model(|_| (), &[|t| t.read(0)], |t| t.write(), |_| ());
}

#[test]
#[should_panic(expected = "a copy that counts is of another state")]
fn weaker_orderings_are_found_out_by_copies_too() {
    weakened::model(|_| (), &[|t| t.copy(0)], |t| t.evict(), |_| ());
}
