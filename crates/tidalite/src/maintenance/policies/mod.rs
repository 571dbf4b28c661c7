//! Keeping to the retention policies: removing what is too old or too much, and giving old leaves the cold form.
//!
//! ```text
//! age      rows before a horizon                     counted from the clock (clock.rs) or from the newest row
//! size     the oldest leaves, until a cap holds      measured again after each commit
//! repack   leaves out of extents that are partly dead: their room is free only when the whole extent is
//! preview  what age and size would remove
//! ```
//!
//! Invariants: 1. A series loses its oldest rows only, and each cut of a series is part of one commit: a snapshot sees all of it or nothing.
//! 2. What is cut is decided from the series' records and nodes, without reading leaves; whole leaves behind the cut are unlinked unread, so a
//!    damaged old leaf is no obstacle. 3. A cap removes nothing while no more than the cap is in use, and never the newest row of a series.

mod age;
mod background;
mod preview;
mod repack;
mod size;

pub use preview::{Preview, Removal};

use crate::catalog::commit_clock::ClockReading;
use crate::database::handle::Database;
use crate::maintenance::cold::Cooled;
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;
use crate::types::error::{Error, Result};
use crate::types::schema::Unit;
use crate::types::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tidalite_base::{SeriesId, TxnId};

/// How much one call of [`Database::maintain`] may do.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// No commit is begun after this time, but for the first that removes rows and the first that makes leaves cold: so each call gets on,
    /// however long it takes to look at a million series. Without any time nothing is done, and [`Maintained::more`] says what there is.
    pub time: Duration,
    /// Series that are cut in one commit.
    pub series: usize,
    /// What counts as now, whatever the clocks show. `None`: what [`Database::clock`] says.
    pub now: Option<Timestamp>,
    /// The wall clock is right, however far ahead of the commits' clock: see [`Database::clock`].
    pub confirm_clock: bool,
}

impl Default for Budget {
    /// A second, a thousand series a commit, the wall clock as far as the commits' clock bears it out.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            series: 1000,
            now: None,
            confirm_clock: false,
        }
    }
}

impl Budget {
    pub(crate) fn clock(&self) -> BudgetClock {
        BudgetClock {
            deadline: Instant::now().checked_add(self.time),
            first: !self.time.is_zero(),
        }
    }
}

/// Says when the time of a budget is over.
pub(crate) struct BudgetClock {
    deadline: Option<Instant>,
    /// The first step is still to be taken, whatever the time.
    first: bool,
}

impl BudgetClock {
    /// Whether there is no time for the next step.
    pub(crate) fn is_over(&mut self) -> bool {
        !std::mem::take(&mut self.first)
            && self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Something that keeps pages of an old version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A pin.
    Pin {
        /// Its name.
        name: String,
        /// The version that it keeps.
        txn: TxnId,
    },
    /// A snapshot that somebody reads.
    Reader {
        /// Its process.
        process: u32,
        /// The version that it sees.
        txn: TxnId,
    },
}

/// A file under a cap for the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapState {
    /// The cap: the least of them, where there are several.
    pub cap_bytes: u64,
    /// Bytes in use before, as the cap counts them.
    pub used_before: u64,
    /// Bytes in use now. More than the cap only where nothing is left that could be removed, or where the time was up.
    pub used_bytes: u64,
    /// Bytes of the file now.
    pub file_bytes: u64,
    /// Bytes of pages that only old versions need.
    pub held_bytes: u64,
    /// The pins and readers of these versions, where the file is longer than the cap.
    pub holders: Vec<Holder>,
}

/// What maintenance did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Series that were cut.
    pub series: u64,
    /// Rows that were removed.
    pub rows: u64,
    /// Commits.
    pub commits: u64,
    /// What became cold; its commits are counted there.
    pub cold: Cooled,
    /// True when the budget ended before the work did.
    pub more: bool,
    /// How the file stands to a cap for the whole file, where more was in use than the cap or the file is longer.
    pub cap: Option<CapState>,
    /// The wall clock is ahead, and by it there would be more to remove or to make cold: that waits until the clock is confirmed.
    pub clock_ahead: Option<ClockReading>,
}

/// One call of `maintain`.
struct Run<'a> {
    database: &'a Database,
    budget: &'a Budget,
    /// Where its transactions come from; when that gives none, the call ends.
    begin: &'a dyn Fn() -> Result<Option<WriteTxn>>,
    clock: BudgetClock,
    done: Maintained,
    /// Series that were cut, each once.
    cut: BTreeSet<SeriesId>,
}

/// Raw times before which rows go.
type Cuts = BTreeMap<SeriesId, i64>;

/// Adds a cut; of two of one series the later one counts.
fn add_cut(cuts: &mut Cuts, id: SeriesId, raw: i64) {
    let cut = cuts.entry(id).or_insert(raw);
    *cut = raw.max(*cut);
}

/// A raw time as nanoseconds since 1970, in 128 bits: every unit's times fit.
fn clock_of(unit: Unit, raw: i64) -> i128 {
    (i128::from(raw) - i128::from(unit.steps_to_1970())) * i128::from(unit.nanos())
}

/// The first raw time at or after `nanos`.
fn raw_time(unit: Unit, nanos: i128) -> i64 {
    let raw = -(-nanos).div_euclid(unit.nanos().into()) + i128::from(unit.steps_to_1970());
    raw.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Database {
    /// Keeps to the policies: removes what is too old or too much, oldest first, in commits of bounded size; then gives old leaves the
    /// cold form. Reads the record of each series that a policy selects, and the nodes of those that lose rows for a cap or are to become cold. Space comes back when no snapshot sees it any more.
    ///
    /// While the wall clock is ahead ([`Database::clock`]) the commits' clock says how old rows are; [`Budget::confirm_clock`] confirms the wall clock.
    ///
    /// # Errors
    /// What reading and committing report; `Unsupported` where leaves are to become cold and the build has not the feature `cold`.
    /// Commits done before stay.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use std::time::Duration;
    /// use tidalite::{Budget, Database, MemoryStorage, Options, Retention, Timestamp};
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
        let mut done = self.maintain_with(budget, || self.begin_write().map(Some))?;
        if let Some(cap) = &done.cap
            && cap.file_bytes > cap.cap_bytes
            && !done.more
        {
            let (cap_bytes, used_before) = (cap.cap_bytes, cap.used_before);
            self.shorten_to(cap_bytes)?;
            let mut state = self.cap_state(cap_bytes, used_before)?;
            if state.used_bytes > cap_bytes && cap.used_bytes <= cap_bytes {
                // What is moved down may take a page or two more than before.
                let again = self.maintain_with(budget, || self.begin_write().map(Some))?;
                done.rows += again.rows;
                done.commits += again.commits;
                done.series = done.series.max(again.series);
                state = self.cap_state(cap_bytes, used_before)?;
            }
            done.cap = Some(state);
        }
        Ok(done)
    }

    /// As `maintain`, with transactions from `begin`; ends when that gives none.
    pub(crate) fn maintain_with(
        &self,
        budget: &Budget,
        begin: impl Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<Maintained> {
        let start = Instant::now();
        let mut run = Run {
            database: self,
            budget,
            begin: &begin,
            clock: budget.clock(),
            done: Maintained::default(),
            cut: BTreeSet::new(),
        };
        run.confirm_clock()?;
        let (now, ahead) = self.now_for(budget)?;
        let goes_on = run.by_age(now, ahead)? && run.by_size()?;
        let mut done = run.finish();
        if !goes_on {
            return Ok(done);
        }
        let mut rest = budget.time.saturating_sub(start.elapsed());
        if !budget.time.is_zero() {
            // For one step there always is.
            rest = rest.max(Duration::from_nanos(1));
        }
        let snap = self.begin_read()?;
        let due = age::due_to_cool(&snap, now)?;
        if let Some(reading) = ahead
            && age::due_to_cool(&snap, reading.wall)? != due
        {
            done.clock_ahead = ahead;
        }
        drop(snap);
        let budget = Budget {
            time: rest,
            ..*budget
        };
        done.cold = self.cool_all(&due, &budget, begin)?;
        done.more = done.cold.more;
        Ok(done)
    }

    /// What counts as now, and the reading of the clocks where the wall clock is ahead.
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

impl Run<'_> {
    /// Makes the commits' clock follow the wall clock, where that was confirmed.
    fn confirm_clock(&mut self) -> Result<()> {
        let ahead = || Ok::<_, Error>(self.database.clock()?.is_ahead);
        if !self.budget.confirm_clock || self.budget.time.is_zero() || !ahead()? {
            return Ok(());
        }
        if let Some(mut txn) = (self.begin)()? {
            // On a full disk, too.
            txn.free_space();
            txn.confirm_clock();
            txn.commit()?;
        }
        Ok(())
    }

    /// The next transaction; `None` when the time is up, or there is none to be had.
    fn begin(&mut self) -> Result<Option<WriteTxn>> {
        let txn = if self.clock.is_over() {
            None
        } else {
            (self.begin)()?
        };
        self.done.more |= txn.is_none();
        Ok(txn)
    }

    /// Removes the rows before these raw times, a bounded number of series a commit; false when the call has to end.
    fn remove(&mut self, cuts: Cuts) -> Result<bool> {
        let cuts: Vec<(SeriesId, i64)> = cuts.into_iter().collect();
        for cuts in cuts.chunks(self.budget.series.max(1)) {
            let Some(mut txn) = self.begin()? else {
                return Ok(false);
            };
            let mut rows = 0;
            for &(id, cut) in cuts {
                let removed = match txn.series_by_id(id) {
                    // Removed since the cut was decided.
                    Err(Error::NoSuchSeries { .. }) => continue,
                    series => series?.delete(..cut)?,
                };
                if removed > 0 {
                    self.cut.insert(id);
                    rows += removed;
                }
            }
            if rows > 0 {
                txn.commit()?;
                self.done.rows += rows;
                self.done.commits += 1;
            }
        }
        Ok(true)
    }

    fn finish(self) -> Maintained {
        Maintained {
            series: self.cut.len() as u64,
            ..self.done
        }
    }
}

impl ReadTxn {
    /// The series of the pattern that have leaves, not cold yet, all of whose rows are before `nanos`; and that time as they count.
    pub(crate) fn warm_series(&self, pattern: &str, nanos: i128) -> Result<Vec<(SeriesId, i64)>> {
        let mut warm = Vec::new();
        for info in self.list(pattern)? {
            let tree = self.tree_of(&info)?;
            let raw = raw_time(info.schema.unit, nanos);
            if tree.has_warm_leaves(&self.pages, raw)? {
                warm.push((info.id, raw));
            }
        }
        Ok(warm)
    }
}
