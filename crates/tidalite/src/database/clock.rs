//! The wall clock and the commit clock, as seen by users.

use crate::catalog::commit_clock::ClockReading;
use crate::database::handle::Database;
use crate::database::tuning::Tuning;
use crate::types::error::Result;
use tidalite_pager::{ClockSource, Clocks};

impl Tuning {
    /// Reads the time from `clocks` instead of the system's clocks: for tests that depend on time.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Timestamp, Tuning};
    /// use tidalite::retention::Clocks;
    /// use tidalite::storage::MemoryStorage;
    /// let noon = Timestamp::parse("2014-06-01T12:00")?.0;
    /// let clocks = move || Clocks { wall_ns: noon, since_boot_ns: 60_000_000_000, boot: 1 };
    /// let with_clock = Options::new().tuning(Tuning::new().clock(clocks));
    /// let db = with_clock.open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("config")?.put(b"speed", b"7")?;
    /// tx.commit()?;
    /// assert_eq!(db.begin_read()?.commit_time().0, noon);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clocks: impl Fn() -> Clocks + Send + Sync + 'static) -> Self {
        self.store.clock = ClockSource::new(clocks);
        self
    }
}

impl Database {
    /// The wall clock and the commit clock, and thus the effective current time for [`maintain`](Self::maintain).
    ///
    /// A wall clock that jumps ahead, as after an empty battery or with a wrong time server, would make rows old too
    /// early. It is therefore trusted only up to the time of the newest commit plus the time elapsed since then and one
    /// hour. The elapsed time is known as long as the system is not restarted. After a restart, or on
    /// another computer, a correct wall clock is ahead, too, if the newest commit is more than an hour old: the cases
    /// cannot be distinguished. [`confirm_clock`](Self::confirm_clock) confirms that the wall clock is right.
    ///
    /// # Errors
    /// As for [`begin_read`](Self::begin_read).
    pub fn clock(&self) -> Result<ClockReading> {
        Ok(self.begin_read()?.clock())
    }

    /// Confirms, with a durable commit, that the wall clock is right: from then on the commit clock follows it.
    ///
    /// # Errors
    /// As for a commit.
    pub fn confirm_clock(&self) -> Result<()> {
        let mut tx = self.begin_write()?;
        tx.confirm_clock();
        tx.commit()?;
        Ok(())
    }
}
