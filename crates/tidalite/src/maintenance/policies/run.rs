//! State of one call of `maintain` while it runs.

use crate::database::handle::Database;
use crate::maintenance::policies::budget::{Budget, BudgetClock};
use crate::maintenance::policies::cuts::Cuts;
use crate::maintenance::policies::report::Maintained;
use crate::txn::write::WriteTxn;
use crate::types::error::kind::ErrorKind;
use crate::types::error::{Error, Result};
use crate::types::instant::Steps;
use std::collections::BTreeSet;
use tidalite_base::SeriesId;

/// Result of one call of `maintain`, before the file is shortened.
pub(crate) struct Finished {
    pub(super) done: Maintained,
    /// Whether messages remain to be maintained.
    more_messages: bool,
    /// The error that ended the work on messages.
    messages_ended: Option<Error>,
    /// The error that ended the work on rows and leaves.
    pub(super) rows_ended: Option<Error>,
    /// The first error of a table of messages.
    table_failed: Option<Error>,
}

impl Finished {
    fn more_rows(&self) -> bool {
        self.done.more && self.rows_ended.is_none()
    }

    /// Whether another call would make progress at once.
    pub(super) fn goes_on(&self) -> bool {
        self.more_rows() || (self.more_messages && self.done.messages.commits > 0)
    }

    /// The error to report, if there is one.
    pub(super) fn error(self) -> Option<Error> {
        let ended = self.rows_ended.or(self.messages_ended);
        ended.or(self.table_failed)
    }

    /// Adds a second pass.
    pub(super) fn join(&mut self, other: Self) {
        let (done, again) = (&mut self.done, other.done);
        done.rows += again.rows;
        done.windows += again.windows;
        done.commits += again.commits;
        done.series = done.series.max(again.series);
        done.messages.add(&again.messages);
        done.failed = again.failed;
        done.clock_ahead = done.clock_ahead.or(again.clock_ahead);
        self.more_messages = other.more_messages;
        self.messages_ended = other.messages_ended;
        self.rows_ended = other.rows_ended;
    }

    /// The report, or the error that ended the work on messages or rows.
    pub(super) fn report(self) -> Result<Maintained> {
        let more = self.more_rows() || self.more_messages;
        match self.rows_ended.or(self.messages_ended) {
            Some(error) => Err(error),
            None => Ok(Maintained { more, ..self.done }),
        }
    }
}

/// State of one call of `maintain`.
pub(super) struct Run<'a> {
    pub(super) database: &'a Database,
    pub(super) budget: &'a Budget,
    /// Begins the next write transaction. If it returns `None`, the call of `maintain` ends.
    pub(super) begin: &'a dyn Fn() -> Result<Option<WriteTxn>>,
    pub(super) clock: BudgetClock,
    pub(super) done: Maintained,
    /// Whether messages remain to be maintained.
    pub(super) more_messages: bool,
    /// The first error of a table of messages.
    pub(super) failed: Option<Error>,
    /// The series from which rows were removed so far.
    pub(super) cut: BTreeSet<SeriesId>,
}

impl Run<'_> {
    /// Makes the commit clock follow the wall clock, if the budget says that the wall clock is right.
    pub(super) fn confirm_clock(&mut self) -> Result<()> {
        let ahead = || Ok::<_, Error>(self.database.clock()?.is_ahead);
        if !self.budget.confirm_clock || self.budget.time.is_zero() || !ahead()? {
            return Ok(());
        }
        if let Some(mut txn) = (self.begin)()? {
            // Confirming the clock must work on a full disk, too, so it may use the reserve.
            txn.free_space();
            txn.confirm_clock();
            txn.commit()?;
        }
        Ok(())
    }

    /// Begins the next transaction; returns `None` if the time is up, or `begin` returns none.
    pub(super) fn begin(&mut self) -> Result<Option<WriteTxn>> {
        let txn = if self.clock.is_over() {
            None
        } else {
            (self.begin)()?
        };
        self.done.more |= txn.is_none();
        Ok(txn)
    }

    /// Removes the rows before these raw times, a bounded number of series per commit. Returns false if the call of
    /// `maintain` must end here.
    pub(super) fn remove(&mut self, cuts: Cuts) -> Result<bool> {
        let cuts: Vec<(SeriesId, i64)> = cuts.into_iter().collect();
        for cuts in cuts.chunks(self.budget.series.max(1)) {
            let Some(mut txn) = self.begin()? else {
                return Ok(false);
            };
            let mut rows = 0;
            for &(id, cut) in cuts {
                let removed = match txn.series_by_id(id) {
                    // The series was removed after this cut was decided.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    series => series?.delete(..Steps(cut))?,
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

    /// The result, after the work on messages and that on rows.
    pub(super) fn finish(self, messages: Result<()>, rows: Result<()>) -> Finished {
        let done = Maintained {
            series: self.cut.len() as u64,
            ..self.done
        };
        Finished {
            done,
            more_messages: self.more_messages,
            messages_ended: messages.err(),
            rows_ended: rows.err(),
            table_failed: self.failed,
        }
    }
}
