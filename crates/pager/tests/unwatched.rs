//! Tests that break the write protocol on purpose: deliberate bugs of the pager, records that no writer makes. They are one
//! program, since the monitor of the protocol, which all other tests use, holds for a whole process.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod harness;
mod toy;

mod crash;
mod faults;
mod hostile;
mod lazy;
