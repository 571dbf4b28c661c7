//! Ctrl-C: cancels the running statement.
//!
//! The first signal cancels the statement. If the statement is still running when a later signal arrives, the program
//! ends, as it does if a signal arrives while no statement is running. While a pager shows a result, and at the prompt,
//! signals are ignored: the pager and the line editor handle Ctrl-C.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidalite_sql::CancelHandle;

/// Time after a signal within which further signals count as the same request.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// The current activity of the program, which determines the effect of a signal. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

/// The activity during which a signal may arrive.
#[derive(Debug, Default)]
enum State {
    /// No statement: a signal ends the program.
    #[default]
    Idle,
    /// A pager or the line editor is active and handles Ctrl-C itself.
    Elsewhere,
    /// A statement is running. The time is when the signal that cancelled it arrived.
    Running(CancelHandle, Option<Instant>),
}

/// The effect of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing happens, or the statement is cancelled.
    Goes,
    /// The program ends.
    Ends,
}

impl Interrupt {
    /// Handles the signal of Ctrl-C from now on. If the handler cannot be installed, Ctrl-C ends the program.
    #[must_use]
    pub fn listen() -> Self {
        let own = Self::default();
        #[cfg(unix)]
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT])
        {
            let shared = own.clone();
            std::thread::spawn(move || {
                for signal in &mut signals {
                    if shared.signal(Instant::now()) == Effect::Ends {
                        let _ = signal_hook::low_level::emulate_default_handler(signal);
                    }
                }
            });
        }
        own
    }

    /// From now on, a signal cancels this statement.
    pub(crate) fn running(&self, cancel: CancelHandle) {
        self.set(State::Running(cancel, None));
    }

    /// From now on, a signal has no effect.
    pub(crate) fn elsewhere(&self) {
        self.set(State::Elsewhere);
    }

    /// From now on, a signal ends the program.
    pub(crate) fn idle(&self) {
        self.set(State::Idle);
    }

    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    #[cfg_attr(
        not(any(unix, test)),
        expect(dead_code, reason = "there are no signals")
    )]
    fn signal(&self, now: Instant) -> Effect {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Idle => Effect::Ends,
            State::Elsewhere => Effect::Goes,
            State::Running(_, Some(at)) if now.duration_since(*at) > SAME_REQUEST => Effect::Ends,
            State::Running(cancel, at) => {
                cancel.cancel();
                at.get_or_insert(now);
                Effect::Goes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_ends_the_program() {
        let interrupt = Interrupt::default();
        let start = Instant::now();
        assert_eq!(interrupt.signal(start), Effect::Ends);
        interrupt.running(CancelHandle::default());
        assert_eq!(interrupt.signal(start), Effect::Goes);
        assert_eq!(interrupt.signal(start + SAME_REQUEST), Effect::Goes);
        assert_eq!(interrupt.signal(start + 2 * SAME_REQUEST), Effect::Ends);
        interrupt.running(CancelHandle::default());
        assert_eq!(interrupt.signal(start + 3 * SAME_REQUEST), Effect::Goes);
        interrupt.elsewhere();
        assert_eq!(interrupt.signal(start + 9 * SAME_REQUEST), Effect::Goes);
    }
}
