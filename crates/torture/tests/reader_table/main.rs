//! The reader table under a model checker: every interleaving of readers and a writer, and every value that a weakly
//! ordered load may give.
//!
//! `crates/pager/src/lock/protocol.rs` is taken as it is; only its atomics are loom's. A page that state 1 alone shows stands
//! for all pages: the writer overwrites it when the table says that nobody holds state 1.

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

macro_rules! table {
    ($name:ident, $with:ident) => {
        mod $name {
            use super::*;
            use crate::$with::protocol;
            use crate::$with::sync::{AtomicU64, Ordering, fence};

            /// Slots, what is published, and the page.
            pub(crate) struct Table {
                pub(crate) slots: [AtomicU64; 2],
                pub(crate) published: AtomicU64,
                pub(crate) page: AtomicU64,
            }

            impl Table {
                pub(crate) fn new() -> Arc<Self> {
                    Arc::new(Self {
                        slots: [AtomicU64::new(0), AtomicU64::new(0)],
                        published: AtomicU64::new(1),
                        page: AtomicU64::new(OLD),
                    })
                }

                /// As `Snapshot::begin` does it: the state that is known, entered, and looked at again.
                pub(crate) fn read(&self, slot: usize) {
                    let slot = &self.slots[slot];
                    let mut known = 1;
                    while !protocol::enter(slot, known, &self.published, known) {
                        known = self.published.load(Ordering::SeqCst);
                    }
                    if known == 1 {
                        let seen = self.page.load(Ordering::Relaxed);
                        assert_eq!(seen, OLD, "a page that is held was overwritten");
                    }
                    protocol::leave(slot);
                }

                /// As the writer does it: shows state 2, and writes over what nobody holds.
                pub(crate) fn write(&self) {
                    protocol::publish(&self.published, 2);
                    let seen = |slot: &AtomicU64| protocol::held(protocol::look(slot));
                    if self.slots.iter().all(|slot| seen(slot) != Some(1)) {
                        self.page.store(NEW, Ordering::Relaxed);
                    }
                }

                /// An evictable reader: what it copied counts only if its slot is still its own.
                pub(crate) fn copy(&self, slot: usize) -> bool {
                    let slot = &self.slots[slot];
                    let word = 1 | protocol::EVICTABLE;
                    if !protocol::enter(slot, word, &self.published, 1) {
                        protocol::leave(slot);
                        return false;
                    }
                    let seen = self.page.load(Ordering::Relaxed);
                    let mine = protocol::still(slot, word);
                    assert!(
                        !mine || seen == OLD,
                        "a copy that counts is of another state"
                    );
                    mine
                }

                /// Shows state 2, and takes the page from whoever lets itself be ousted.
                pub(crate) fn oust(&self) {
                    protocol::publish(&self.published, 2);
                    for slot in &self.slots {
                        let seen = protocol::look(slot);
                        let free = match protocol::held(seen) {
                            Some(1) => protocol::oust(slot, seen),
                            _ => true,
                        };
                        if !free {
                            return;
                        }
                    }
                    // Pages are written by a system call, which is a barrier.
                    fence(Ordering::SeqCst);
                    self.page.store(NEW, Ordering::Relaxed);
                }
            }
        }
    };
}

table!(sound, strong);
table!(weakened, weak);

#[test]
fn a_page_that_a_reader_holds_is_never_overwritten() {
    loom::model(|| {
        let table = sound::Table::new();
        let readers = [0, 1].map(|slot| {
            let table = Arc::clone(&table);
            thread::spawn(move || table.read(slot))
        });
        table.write();
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_reader_that_comes_again_is_protected_again() {
    loom::model(|| {
        let table = sound::Table::new();
        let other = Arc::clone(&table);
        let reader = thread::spawn(move || {
            other.read(0);
            other.read(0);
        });
        table.write();
        reader.join().unwrap();
    });
}

#[test]
fn a_copy_counts_only_while_the_slot_was_not_ousted() {
    loom::model(|| {
        let table = sound::Table::new();
        let other = Arc::clone(&table);
        let reader = thread::spawn(move || other.copy(0));
        table.oust();
        reader.join().unwrap();
    });
}

/// The model sees what it is there for: with orderings that do not order, a page is overwritten under its reader.
#[test]
#[should_panic(expected = "a page that is held was overwritten")]
fn weaker_orderings_are_found_out() {
    loom::model(|| {
        let table = weakened::Table::new();
        let other = Arc::clone(&table);
        let reader = thread::spawn(move || other.read(0));
        table.write();
        reader.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "a copy that counts is of another state")]
fn weaker_orderings_are_found_out_by_copies_too() {
    loom::model(|| {
        let table = weakened::Table::new();
        let other = Arc::clone(&table);
        let reader = thread::spawn(move || other.copy(0));
        table.oust();
        reader.join().unwrap();
    });
}
