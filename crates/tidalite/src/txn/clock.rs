//! The commit clock of a transaction.

use crate::catalog::commit_clock::{ClockReading, CommitClock};
use crate::catalog::roots::Roots;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;

impl<S: ReadSource> Reading<S> {
    /// The wall clock and the commit clock, as read now, and thus the time that decides which messages and objects of
    /// this state have expired. See [`Database::clock`](crate::Database::clock).
    #[must_use]
    pub fn clock(&self) -> ClockReading {
        let base = self.cache.roots.clock;
        let base = base.unwrap_or(CommitClock::at(self.pages.base_time_ns()));
        let (now, opened) = self.pages.clocks();
        base.read(&now, &opened)
    }
}

impl WriteTxn {
    /// Confirms that the wall clock is right, however far it is ahead of the commit clock: when this transaction
    /// commits, the commit clock is set to the wall clock. See [`Database::clock`](crate::Database::clock).
    pub fn confirm_clock(&mut self) {
        self.clock_confirmed = true;
    }

    /// The wall clock and the commit clock, as read now. See [`Database::clock`](crate::Database::clock).
    #[must_use]
    pub fn clock(&self) -> ClockReading {
        let (now, opened) = self.pages.clocks();
        let reading = self.base_clock().read(&now, &opened);
        ClockReading {
            is_ahead: reading.is_ahead && !self.clock_confirmed,
            ..reading
        }
    }

    /// The effective current time in nanoseconds since 1970.
    pub(crate) fn now_ns(&self) -> i64 {
        self.clock().now().0
    }

    fn base_clock(&self) -> CommitClock {
        let base = self.roots.clock;
        base.unwrap_or(CommitClock::at(self.pages.base_time_ns()))
    }

    /// The encoded roots for the commit. If the transaction has changed anything, they contain the new commit clock;
    /// without changes they stay equal, so that no commit is made.
    pub(crate) fn app_with_clock(&mut self) -> Vec<u8> {
        let mut app = self.roots.encode();
        if app != self.pages.app() || self.clock_confirmed {
            let clock = self.next_clock();
            self.roots.clock = Some(clock);
            Roots::put_clock(&mut app, &clock);
        }
        app
    }

    /// The commit clock to store with this commit. Reports an event if the wall clock has moved ahead of it.
    fn next_clock(&self) -> CommitClock {
        let (now, opened) = self.pages.clocks();
        let base = self.base_clock();
        let reading = base.read(&now, &opened);
        let ahead = reading.is_ahead && !self.clock_confirmed;
        if ahead && !base.ahead {
            self.pages.log_event(&reading.event());
        }
        let time = if ahead { reading.commits } else { reading.wall };
        CommitClock {
            time_ns: time.0,
            boot: now.boot,
            since_boot_ns: now.since_boot_ns,
            ahead,
        }
    }
}
