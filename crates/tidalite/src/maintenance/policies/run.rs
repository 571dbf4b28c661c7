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

/// State of one call of `maintain`.
pub(super) struct Run<'a> {
    pub(super) database: &'a Database,
    pub(super) budget: &'a Budget,
    /// Begins the next write transaction. If it returns `None`, the call of `maintain` ends.
    pub(super) begin: &'a dyn Fn() -> Result<Option<WriteTxn>>,
    pub(super) clock: BudgetClock,
    pub(super) done: Maintained,
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

    pub(super) fn finish(self) -> Maintained {
        Maintained {
            series: self.cut.len() as u64,
            ..self.done
        }
    }
}
