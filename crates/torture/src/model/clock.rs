//! The clock of the databases under test: each thread sets its own time.
//!
//! Leases, delays and expiry depend on the time of a call. The workload sets the time before each of its calls, so that
//! the model knows it. Everything that compares a content with the model reads it at `PAST`, when nothing has expired
//! yet.

use std::cell::Cell;
use tidalite::Tuning;
use tidalite::retention::Clocks;

/// A time before all others: every stored message and object is visible.
const PAST: i64 = 0;
/// Time of the first call of a workload, in nanoseconds since 1970.
pub const START: i64 = 1_700_000_000_000_000_000;
/// A unit of time of the workload in nanoseconds. Most leases, delays and expiries last a few units.
pub(crate) const UNIT: i64 = 10_000_000;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(PAST) };
}

/// Sets the time of this thread, in nanoseconds since 1970.
pub fn set(now: i64) {
    NOW.set(now);
}

/// Sets the time of this thread to the time with which a thread begins.
pub(crate) fn reset() {
    NOW.set(PAST);
}

/// Calls `f` at this time, and sets the time back after it.
pub fn at<T>(now: i64, f: impl FnOnce() -> T) -> T {
    let before = NOW.replace(now);
    let done = f();
    NOW.set(before);
    done
}

/// Calls `f` at a time before all others.
pub fn in_the_past<T>(f: impl FnOnce() -> T) -> T {
    at(PAST, f)
}

/// Tuning parameters of a database that reads the time of the calling thread.
pub fn of_thread(tuning: Tuning) -> Tuning {
    tuning.clock(|| {
        let wall_ns = NOW.get();
        Clocks {
            wall_ns,
            since_boot_ns: wall_ns.unsigned_abs(),
            boot: 1,
        }
    })
}
