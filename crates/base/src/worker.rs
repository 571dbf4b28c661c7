//! The threads of the library: how they are named, started, woken, stopped and joined, and how the end of a thread is
//! reported even if it panics.
//!
//! ```text
//! owner   start ──> run ... wake, stop ... drop: stop, wake, join (unless detached)
//! thread            park or sleep while there is no work; ends when it is stopped, or by itself; `at_end` runs last
//! ```
//!
//! Invariants
//! 1. Dropping a worker stops its thread. A joined thread has ended when the drop returns, except when the thread drops
//!    its own worker; a detached thread ends soon after.
//! 2. No wake is lost: a wake that comes before the thread parks ends the next park at once.
//! 3. `at_end` runs exactly once in a thread that was started, whether the work returns or panics.
//!
//! The thread itself prints the message of a panic in the work. The panic reaches the owner only through
//! [`Worker::join`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

/// Prefix of the name of every thread; the role of the thread follows.
const PREFIX: &str = "tidalite-";

fn builder(role: &str) -> thread::Builder {
    thread::Builder::new().name(format!("{PREFIX}{role}"))
}

/// The requests that the owner has made to the thread, stop or wake, as the thread sees them.
#[derive(Clone, Debug, Default)]
pub struct Signal {
    stopped: Arc<AtomicBool>,
}

impl Signal {
    /// Whether the owner has asked the thread to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Waits until the owner wakes or stops the thread; may return without a reason. Returns false if the thread should
    /// end.
    #[must_use]
    pub fn park(&self) -> bool {
        if !self.is_stopped() {
            thread::park();
        }
        !self.is_stopped()
    }

    /// Waits like [`Signal::park`], but at most this long.
    #[must_use]
    pub fn park_for(&self, time: Duration) -> bool {
        if !self.is_stopped() {
            thread::park_timeout(time);
        }
        !self.is_stopped()
    }

    /// Waits this long. A wake does not end the wait, but a stop does. Returns false if the thread should end.
    #[must_use]
    pub fn sleep(&self, time: Duration) -> bool {
        let Some(until) = Instant::now().checked_add(time) else {
            while self.park() {}
            return false;
        };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.park_for(left) {
                return !self.is_stopped();
            }
        }
    }
}

/// Runs a function when it is dropped.
struct AtEnd<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        if let Some(at_end) = self.0.take() {
            at_end();
        }
    }
}

/// The owner's handle of a thread of the library.
#[derive(Debug)]
pub struct Worker {
    signal: Signal,
    thread: Thread,
    /// Handle to join the thread; `None` for a detached thread, and after `join` or `forget`.
    handle: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread that is joined when the worker is dropped. Its name is `tidalite-` and the role.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(role: &str, work: impl FnOnce(&Signal) + Send + 'static) -> io::Result<Self> {
        Self::start_with_end(role, work, || {})
    }

    /// Starts a thread like [`Worker::start`], if other threads wait for its end: `at_end` runs last, even after a
    /// panic.
    ///
    /// # Errors
    /// If the system refuses a thread. `at_end` then does not run.
    pub fn start_with_end(
        role: &str,
        work: impl FnOnce(&Signal) + Send + 'static,
        at_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let signal = Signal::default();
        let own = signal.clone();
        let run = move || {
            let _at_end = AtEnd(Some(at_end));
            work(&own);
        };
        let handle = builder(role).spawn(run)?;
        Ok(Self {
            signal,
            thread: handle.thread().clone(),
            handle: Some(handle),
        })
    }

    /// Starts a thread like [`Worker::start`], but dropping the worker does not wait for the end of the thread.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start_detached(
        role: &str,
        work: impl FnOnce(&Signal) + Send + 'static,
    ) -> io::Result<Self> {
        let mut worker = Self::start(role, work)?;
        worker.handle = None;
        Ok(worker)
    }

    /// Starts a thread that ends by itself; nothing waits for it.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn run_once(role: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        builder(role).spawn(work).map(drop)
    }

    /// Starts a thread that may borrow from its surroundings, and that ends within the scope.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start_scoped<'scope, T: Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        role: &str,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        builder(role).spawn_scoped(scope, work)
    }

    /// Ends the current park of the thread, or else the next one. Costs a system call if the thread is parked.
    pub fn wake(&self) {
        self.thread.unpark();
    }

    /// Asks the thread to end, and wakes it.
    pub fn stop(&self) {
        self.signal.stopped.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits until the thread ends by itself, and passes a panic of the thread on.
    ///
    /// # Panics
    /// If the work panicked.
    pub fn join(mut self) {
        if let Some(handle) = self.handle.take()
            && let Err(panic) = handle.join()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// Gives up the worker in a forked child process, in which the thread does not exist.
    pub fn forget(mut self) {
        std::mem::forget(self.handle.take());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
        if let Some(handle) = self.handle.take()
            && handle.thread().id() != thread::current().id()
        {
            drop(handle.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Worker;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_worker_has_a_name_is_woken_and_has_ended_after_its_drop() {
        let (send, names) = channel();
        let rounds = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&rounds);
        let worker = Worker::start("test", move |signal| {
            while signal.park() {
                counted.fetch_add(1, Ordering::SeqCst);
                send.send(std::thread::current().name().map(str::to_owned))
                    .unwrap();
            }
        });
        let worker = worker.unwrap();
        for _ in 0..3 {
            worker.wake();
            let name = names.recv_timeout(LONG).unwrap();
            assert_eq!(name.as_deref(), Some("tidalite-test"));
        }
        drop(worker);
        assert_eq!(Arc::strong_count(&rounds), 1, "the thread has ended");
        assert!(rounds.load(Ordering::SeqCst) >= 3);
        let ended = names.recv_timeout(LONG);
        assert!(ended.is_ok() || ended == Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_sleep_ends_in_time_and_at_once_when_the_worker_is_stopped() {
        let (send, slept) = channel();
        let worker = Worker::start("test", move |signal| {
            let begun = Instant::now();
            let goes_on = signal.sleep(Duration::from_millis(20));
            send.send((goes_on, begun.elapsed())).unwrap();
            send.send((signal.sleep(Duration::MAX), begun.elapsed()))
                .unwrap();
        });
        let worker = worker.unwrap();
        // A wake does not end a sleep.
        worker.wake();
        let (goes_on, took) = slept.recv_timeout(LONG).unwrap();
        assert!(goes_on && took >= Duration::from_millis(20), "{took:?}");
        drop(worker);
        assert!(!slept.recv_timeout(LONG).unwrap().0);
    }

    #[test]
    fn a_panic_runs_the_end_callback_and_reaches_join() {
        let (send, ended) = channel();
        let work = |_: &super::Signal| panic!("on purpose");
        let worker = Worker::start_with_end("test", work, move || send.send(()).unwrap());
        let worker = worker.unwrap();
        ended.recv_timeout(LONG).unwrap();
        let joined = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.join()));
        assert_eq!(joined.unwrap_err().downcast_ref(), Some(&"on purpose"));
        // Dropping a worker ignores the panic of its thread.
        drop(Worker::start("test", |_| panic!("on purpose")).unwrap());
    }

    #[test]
    fn a_detached_worker_is_stopped_but_not_waited_for() {
        let (go, wait) = channel::<()>();
        let (send, ended) = channel();
        let worker = Worker::start_detached("test", move |signal| {
            wait.recv_timeout(LONG).unwrap();
            send.send(signal.is_stopped()).unwrap();
        });
        drop(worker.unwrap());
        go.send(()).unwrap();
        assert!(ended.recv_timeout(LONG).unwrap(), "it was stopped before");
    }
}
