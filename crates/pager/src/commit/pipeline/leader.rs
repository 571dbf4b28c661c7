//! The leader thread: a thread that leads consecutive flushes while many threads wait.
//!
//! Without the leader thread, a waiting thread leads the flush and at its end wakes another thread to lead the next
//! flush. Until that thread runs the medium is idle: 20 to 40 us when the processors are busy with the threads just
//! woken, a third of a log flush. If `LEADER_FROM` or more threads still wait when a flush ends, the leader thread
//! takes over. It starts the next flush as soon as it has woken the threads of the last one, until no thread waits.
//! InnoDB's log writer is such a thread, but this one is on duty only under load: with one or two committing threads
//! it is never used. It is started when first needed and ends with the handle.
//!
//! Invariants
//! 1. While the leader thread is on duty (`Stages::on_duty`) no other thread begins a flush. It stops leading only
//!    under the lock, and then either no thread waits or all waiters are woken.
//! 2. The thread drops its reference to the handle before it wakes the last waiters, so that they can close the handle.
//!    (A waiter that is not woken, because it sees the durable commit by itself or gives up, may be faster. The leader
//!    thread then holds the last reference and closes the file a moment later.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;
use tidalite_base::{Signal, Worker};

/// Minimum number of threads that still wait at the end of a flush for the leader thread to lead the next flush. With
/// two committing threads at most one waits.
pub(super) const LEADER_FROM: usize = 2;

/// The thread that leads flushes while many threads wait, started on demand.
#[derive(Debug, Default)]
pub(crate) struct LeaderThread {
    worker: OnceLock<Worker>,
    wanted: AtomicBool,
    /// Set by the thread that starts the leader thread, so that only one leader thread is started.
    started: AtomicBool,
}

impl LeaderThread {
    /// Whether the leader thread exists. If not, requests that it be started.
    pub(super) fn is_running(&self) -> bool {
        let is_running = self.worker.get().is_some();
        if !is_running {
            self.wanted.store(true, Ordering::Relaxed);
        }
        is_running
    }

    /// Wakes the leader thread, if it exists, to lead flushes.
    pub(crate) fn call(&self) {
        if let Some(worker) = self.worker.get() {
            worker.wake();
        }
    }

    /// Starts the leader thread if it was requested. If the system cannot start a thread, the next request tries
    /// again. `lead` flushes for a handle while threads wait, and returns the last threads to wake.
    #[inline]
    pub(crate) fn start_if_wanted<T: Send + Sync + 'static>(
        &self,
        handle: &Arc<T>,
        lead: fn(&T) -> Vec<Thread>,
    ) {
        let wanted =
            self.wanted.load(Ordering::Relaxed) && self.wanted.swap(false, Ordering::Relaxed);
        if !wanted || self.started.swap(true, Ordering::SeqCst) {
            return;
        }
        let weak = Arc::downgrade(handle);
        match Worker::start_detached("leader", move |signal| run(signal, &weak, lead)) {
            Ok(worker) => drop(self.worker.set(worker)),
            Err(_) => self.started.store(false, Ordering::SeqCst),
        }
    }
}

fn run<T>(signal: &Signal, handle: &Weak<T>, lead: fn(&T) -> Vec<Thread>) {
    while signal.park() {
        let Some(handle) = handle.upgrade() else {
            return;
        };
        let last = lead(&handle);
        drop(handle);
        unpark(last);
    }
}

pub(super) fn unpark(threads: impl IntoIterator<Item = Thread>) {
    for thread in threads {
        thread.unpark();
    }
}
