//! A background thread that repeats its work while the database is open.
//!
//! Invariants: 1. The thread ends before the last handle of the database is dropped: dropping the guard stops it and
//! waits for it. 2. An error is kept until it is read; the thread continues with the next round.

use crate::types::error::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidalite_base::{Signal, Worker};
use tidalite_pager::DiskError;

/// Error of the last failed round of work, shared by the thread and its owner.
#[derive(Default)]
struct Failed(Mutex<Option<Error>>);

impl Failed {
    fn lock(&self) -> MutexGuard<'_, Option<Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The function that does one round of work. It returns true if the next round should begin at once, and an error if
/// there was one. Its argument is a function that returns false once the thread should end.
pub(crate) type Round = Box<dyn FnMut(&dyn Fn() -> bool) -> (bool, Option<Error>) + Send>;

/// A running background thread. Dropping this value ends the thread and waits for it.
pub(crate) struct Background {
    failed: Arc<Failed>,
    _worker: Worker,
}

impl Background {
    /// Starts a thread that calls `round` at the interval `every`, and again at once while it returns true. `round`
    /// must not own a `Background`: its drop would make the thread wait for itself.
    pub(crate) fn start(mut round: Round, every: Duration) -> Result<Self> {
        let failed = Arc::<Failed>::default();
        let own = Arc::clone(&failed);
        let work = move |signal: &Signal| {
            while signal.sleep(every) {
                let mut more = true;
                while more && !signal.is_stopped() {
                    let (goes_on, failed) = round(&|| !signal.is_stopped());
                    more = goes_on;
                    if failed.is_some() {
                        *own.lock() = failed;
                    }
                }
            }
        };
        let started = Worker::start("maintain", work);
        let worker = started.map_err(|source| {
            let what = "start of the thread for maintenance";
            tidalite_pager::Error::from(DiskError::of_call(what, 0, source))
        })?;
        Ok(Self {
            failed,
            _worker: worker,
        })
    }

    /// Returns and clears the error of the last failed round.
    pub(crate) fn take_error(&self) -> Option<Error> {
        self.failed.lock().take()
    }
}
