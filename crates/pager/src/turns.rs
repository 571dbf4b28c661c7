//! The queue of writers: first come, first served, and not tied to a thread.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

#[derive(Debug, Default)]
struct Tickets {
    next: u64,
    serving: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Turns {
    tickets: Mutex<Tickets>,
    moved: Condvar,
}

/// The right to write; given on when dropped, from whatever thread.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
}

impl Turns {
    pub(crate) fn wait(self: &Arc<Self>) -> Turn {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = tickets.next;
        tickets.next += 1;
        while tickets.serving != mine {
            tickets = self
                .moved
                .wait(tickets)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Turn {
            turns: Arc::clone(self),
        }
    }

    pub(crate) fn try_take(self: &Arc<Self>) -> Option<Turn> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.serving != tickets.next {
            return None;
        }
        tickets.next += 1;
        Some(Turn {
            turns: Arc::clone(self),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut tickets = self
            .turns
            .tickets
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        tickets.serving += 1;
        self.turns.moved.notify_all();
    }
}
