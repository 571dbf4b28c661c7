//! A thread that repeats its work while the database is open.
//!
//! Invariants: 1. The thread ends before the last handle of the database is dropped: dropping the guard stops it and
//! waits for it. 2. An error is kept until it is read; the thread continues with the next round.

use crate::types::error::{Error, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

#[derive(Default)]
struct Told {
    stop: bool,
    failed: Option<Error>,
}

#[derive(Default)]
struct Board {
    told: Mutex<Told>,
    changed: Condvar,
}

impl Board {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does one round of the work. Its argument returns false when the thread should end.
pub(crate) type Round = Box<dyn FnMut(&dyn Fn() -> bool) -> Result<()> + Send>;

/// A running thread; dropping it ends the thread.
pub(crate) struct Background {
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Runs a round at this interval. `round` must not hold a guard itself.
    pub(crate) fn start(mut round: Round, every: Duration) -> Result<Self> {
        let board = Arc::<Board>::default();
        let own = Arc::clone(&board);
        let work = move || {
            let mut told = own.told();
            loop {
                let waited = own
                    .changed
                    .wait_timeout_while(told, every, |told| !told.stop);
                told = waited.unwrap_or_else(PoisonError::into_inner).0;
                if told.stop {
                    return;
                }
                drop(told);
                let done = round(&|| !own.told().stop);
                told = own.told();
                if let Err(error) = done {
                    told.failed = Some(error);
                }
            }
        };
        let thread = std::thread::Builder::new().name("tidalite-maintain".to_owned());
        let thread = thread
            .spawn(work)
            .map_err(|source| tidalite_pager::Error::Io {
                what: "start of the thread for maintenance".to_owned(),
                at: 0,
                source,
            })?;
        Ok(Self {
            board,
            thread: Some(thread),
        })
    }

    /// The error of the last failed round; reading it clears it.
    pub(crate) fn take_error(&self) -> Option<Error> {
        self.board.told().failed.take()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.board.told().stop = true;
        self.board.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic in the thread was already printed by the thread itself.
            drop(thread.join());
        }
    }
}
