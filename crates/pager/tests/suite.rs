//! The tests of the pager, in one program: linked once, and with a thread for each processor. Tests that break
//! the write protocol on purpose are in `unwatched.rs`; tests that start or fork processes, or that examine the whole process,
//! are programs of their own.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod harness;
mod toy;

mod basics;
mod blocks;
mod check_head;
mod choices;
mod durability;
mod early;
mod epochs;
mod errors;
mod events;
mod healing;
mod in_place;
mod large;
mod lengths;
mod lost;
mod network;
mod readers;
mod redo;
mod second;
mod small;
mod small_files;
mod space;
mod takeover;
mod tasks;
mod unreadable;
mod unrecorded;
mod unwritten;
mod waiting;
