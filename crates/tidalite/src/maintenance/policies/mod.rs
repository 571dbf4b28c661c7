//! Applying the retention policies: removing data by age or size, and giving old leaves the cold form.
//!
//! ```text
//! messages    topics, queues, buckets and containers: messages that have expired or exceed a maximum
//! age         rows before a horizon                     counted from the commit clock or from the newest row
//! downsample  old rows replaced by figures of windows
//! size        the oldest leaves, until a cap holds      measured again after each commit
//! repack      leaves out of extents that are partly dead: its space is free only if the whole extent is
//! preview     the rows that age and size would remove
//! ```
//!
//! Invariants: 1. A series loses only its oldest rows, and each cut of a series is part of one commit: a snapshot sees
//! all of it or nothing. 2. Cuts are decided from the series' records and nodes, without reading leaves; whole leaves
//! before the cut are unlinked unread, so a damaged old leaf does not stop it. 3. A cap removes nothing while the bytes
//! in use do not exceed it, and never the newest row of a series.

mod age;
mod background;
mod budget;
mod cuts;
mod downsample;
mod messages;
mod preview;
mod repack;
mod report;
mod run;
mod size;

pub use budget::Budget;
pub(crate) use cuts::raw_time;
pub use preview::{Preview, Removal};
pub use report::{CapState, FailedTable, Holder, Maintained, MaintainedMessages};

use run::{Finished, Run};

use crate::catalog::commit_clock::ClockReading;
use crate::database::handle::Database;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::error::cause::Cause;
use std::collections::BTreeSet;
use std::time::Instant;
use tidalite_time::Timestamp;

impl Database {
    /// Maintains messages, then applies the policies. First, in at most half of the time, it maintains all topics,
    /// queues, buckets and containers that have work, like `maintain` of each, but by the time of the budget.
    /// (Containers are thinned by [`ContainersMut::thin`](crate::containers::ContainersMut::thin) alone.) A table that
    /// fails does not stop the others; [`Maintained::failed`] lists it.
    ///
    /// Then it removes rows beyond their age or size limits, oldest first, in commits of bounded size; no row is removed
    /// for a cap while messages remain to be removed. At last it rewrites old leaves in cold form: at the age that the
    /// policies set, and in all other series from the age [`Budget::cold`].
    ///
    /// A call opens each table of messages, and reads the record of each series that a policy selects, and the nodes of
    /// series that lose rows for a cap. Unless [`Budget::cold`] is `None`, it also examines all series for old leaves,
    /// 0.2 s for 100,000 of them; a call whose time is over reports `more`, and the next one continues at that point. The
    /// space of removed rows is returned once no snapshot sees them any more.
    ///
    /// While the wall clock is ahead ([`Database::clock`]), messages and rows expire by the commit clock;
    /// [`Budget::confirm_clock`] confirms the wall clock.
    ///
    /// # Errors
    /// Errors of reading and committing; `InvalidInput` if a cap for the whole file cannot be met: no row is removed
    /// for any cap then, and no leaf is made cold; `Unsupported` if leaves are to become cold and the build lacks the
    /// feature `cold`. Earlier commits stay.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use std::time::Duration;
    /// use tidalite::{Database, Options, Timestamp};
    /// use tidalite::retention::{Budget, Retention};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let month = Some(Duration::from_secs(30 * 86_400));
    /// tx.set_retention("default", &Retention { keep: month, ..Retention::default() })?;
    /// tx.series("load")?.insert("2014-01-01", 1.0)?;
    /// tx.series("load")?.insert("2014-06-01", 2.0)?;
    /// tx.commit()?;
    /// let now = Some(Timestamp::parse("2014-06-02")?);
    /// let budget = Budget { now, ..Budget::default() };
    /// assert_eq!(db.preview_maintenance(&budget)?.removals[0].rows, 1);
    /// let done = db.maintain(&budget)?;
    /// assert_eq!((done.rows, done.more), (1, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn maintain(&self, budget: &Budget) -> Result<Maintained> {
        let mut finished = self.maintain_with(budget, || self.begin_write().map(Some))?;
        let done = &finished.done;
        if let Some(cap) = &done.cap
            && cap.file_bytes > cap.cap_bytes
            && !done.more
            && finished.rows_ended.is_none()
        {
            let (cap_bytes, used_before) = (cap.cap_bytes, cap.used_before);
            let was_met = cap.used_bytes <= cap_bytes;
            self.shorten_to(cap_bytes)?;
            let mut state = self.cap_state(cap_bytes, used_before)?;
            if state.used_bytes > cap_bytes && was_met {
                // Moving pages towards the front may take a page or two more than the cap allows.
                let mut again = self.maintain_with(budget, || self.begin_write().map(Some))?;
                // Nothing more can be removed, so the cap is missed by a page or two.
                again
                    .rows_ended
                    .take_if(|error| matches!(error.cause(), Cause::CapTooSmall { .. }));
                finished.join(again);
                state = self.cap_state(cap_bytes, used_before)?;
            }
            finished.done.cap = Some(state);
        }
        finished.report()
    }

    /// Applies the policies like `maintain`, with transactions from `begin`; ends early if `begin` returns `None`. Does
    /// not shorten the file.
    pub(crate) fn maintain_with(
        &self,
        budget: &Budget,
        begin: impl Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<Finished> {
        let start = Instant::now();
        let mut run = Run {
            database: self,
            budget,
            begin: &begin,
            clock: budget.clock(),
            done: Maintained::default(),
            more_messages: false,
            failed: None,
            cut: BTreeSet::new(),
        };
        run.confirm_clock()?;
        let (now, ahead) = self.now_for(budget)?;
        let messages = run.maintain_messages(now, ahead);
        let rows = self.maintain_series(&mut run, (now, ahead), start);
        Ok(run.finish(messages, rows))
    }

    /// Removes rows by age and by size, and makes leaves cold.
    fn maintain_series(
        &self,
        run: &mut Run<'_>,
        (now, ahead): (Timestamp, Option<ClockReading>),
        start: Instant,
    ) -> Result<()> {
        if !run.by_age(now, ahead)? {
            return Ok(());
        }
        // While messages are removed, no row is removed that might stay once they are gone.
        let frees_messages = run.more_messages && run.done.messages.commits > 0;
        if !frees_messages && !run.by_size()? {
            return Ok(());
        }
        let snap = self.begin_read()?;
        let mut kept = self.take_kept_hot();
        let due = age::due_to_cool(&snap, now, &kept)?;
        if let Some(reading) = ahead
            && age::due_to_cool(&snap, reading.wall, &kept)? != due
        {
            run.done.clock_ahead = ahead;
        }
        drop(snap);
        let (budget, begin) = (run.budget, run.begin);
        let mut cooled = self.cool_all(&due, &mut kept, &budget.left(start), begin);
        if let Ok(by_policy) = &mut cooled
            && !by_policy.more
        {
            match self.cool_by_default(now, &mut kept, &budget.left(start), begin) {
                Ok(by_default) => by_policy.join(by_default),
                Err(error) => cooled = Err(error),
            }
        }
        self.keep_hot(kept);
        run.done.cold = cooled?;
        run.done.more = run.done.cold.more;
        Ok(())
    }

    /// The time by which the age of rows is measured, and the reading of the clocks if the wall clock is ahead.
    fn now_for(&self, budget: &Budget) -> Result<(Timestamp, Option<ClockReading>)> {
        if let Some(now) = budget.now {
            return Ok((now, None));
        }
        let reading = self.clock()?;
        if budget.confirm_clock {
            return Ok((reading.wall, None));
        }
        Ok((reading.now(), reading.is_ahead.then_some(reading)))
    }
}
