//! The standing leader: a thread that leads one flush after the other while many wait.
//!
//! Whoever waits for a commit leads the flush when nobody does, and at its end wakes another one to lead the next. Until that one
//! runs the medium is idle: 20 to 40 us where the processors are busy with those whose commits have just become durable, a third of a flush
//! of the log. So where `STANDING_FROM` or more are left waiting when a flush ends, a thread of the library takes over, that begins the next flush as
//! soon as it has woken whom the last one was for, until nobody waits any more. InnoDB's log writer is such a thread; this one is on duty only
//! under load: one or two threads never meet it. It begins with the first such flush and ends with the handle.
//!
//! Invariants
//! 1. Where the standing leader is on duty (`Stages::on_duty`) nobody else begins a flush. It goes off duty under the lock, and either nobody
//!    waits then, or all who wait are woken.
//! 2. Before it wakes the last ones whom it flushed for, it lets go of the handle, so that these may close it. (Who finds out by itself, or
//!    leaves before, may be faster: then the file is closed by this thread, a moment later.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};

/// So many that wait when a flush ends are worth waking the thread for. With two threads that commit one waits at most.
pub(super) const STANDING_FROM: usize = 2;

/// The thread, if there is one yet.
#[derive(Debug, Default)]
pub(crate) struct StandingLeader {
    thread: OnceLock<Thread>,
    wanted: AtomicBool,
    /// Somebody starts it, or has: there is one at most.
    started: AtomicBool,
}

impl StandingLeader {
    /// Whether there is one; where not, one is wanted from now on.
    pub(super) fn is_there(&self) -> bool {
        let is_there = self.thread.get().is_some();
        if !is_there {
            self.wanted.store(true, Ordering::Relaxed);
        }
        is_there
    }

    /// Wakes it, if there is one: to lead, or to end where the handle is gone.
    pub(crate) fn call(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Begins the thread, if one is wanted. Where the system gives none everything stays as it is, and the next one tries again. `lead` flushes
    /// for a handle while somebody waits, and returns whom to wake at last.
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
        let builder = thread::Builder::new().name("tidalite-leader".into());
        match builder.spawn(move || run(&weak, lead)) {
            Ok(thread) => drop(self.thread.set(thread.thread().clone())),
            Err(_) => self.started.store(false, Ordering::SeqCst),
        }
    }
}

fn run<T>(handle: &Weak<T>, lead: fn(&T) -> Vec<Thread>) {
    loop {
        thread::park();
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
