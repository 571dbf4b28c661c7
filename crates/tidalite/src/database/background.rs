//! Maintenance in a thread of its own, for those who ask for it.
//!
//! Invariants: 1. The thread ends before the last handle of the database is gone: dropping the guard tells it
//! and waits for it. 2. What it fails with is kept until asked for; it goes on with the next round. 3. While the wall clock is ahead it
//! removes by the commits' clock, and tells the logger once that more waits for the clock to be confirmed.

use crate::database::handle::Database;
use crate::maintenance::policies::Budget;
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

/// A running thread; dropping it ends the thread.
pub(crate) struct Background {
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Calls `maintain` every so often. `database` must hold no guard itself.
    pub(crate) fn start(database: Database, every: Duration) -> Result<Self> {
        let board = Arc::<Board>::default();
        let own = Arc::clone(&board);
        let work = move || {
            // Something waits until the clock is confirmed, and the logger has heard of it.
            let mut waits = false;
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
                // It waits in line, so that writers who begin again at once do not keep it out. Whoever ends the thread may hold
                // the write transaction: then it leaves the line.
                let goes_on = || !own.told().stop;
                let done = database
                    .maintain_with(&Budget::default(), || database.begin_write_while(&goes_on));
                let ahead = done.as_ref().ok().and_then(|done| done.clock_ahead);
                if let Some(reading) = ahead
                    && !std::mem::replace(&mut waits, true)
                {
                    database.pager.log_event(&reading.event());
                }
                waits &= ahead.is_some();
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

    /// What the last failed round failed with; asked once, it is forgotten.
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
            // A panic in there was printed by its own thread.
            drop(thread.join());
        }
    }
}
