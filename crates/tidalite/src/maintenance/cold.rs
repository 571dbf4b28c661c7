//! Old leaves in cold form: about a seventh smaller, for rows that are seldom read (decision 0414).
//!
//! Leaves get this form only by rewriting: by a call, by maintenance, or by the program's `compact`. A leaf that would
//! not become a tenth smaller stays as it is, unless [`SeriesMut::rewrite_cold`] asks for it. The database remembers
//! such leaves in memory, so that maintenance does not read them again. A build without the
//! feature `cold` returns [`Unsupported`](crate::ErrorKind::Unsupported) when it reads such a leaf; it can still read
//! the rest of the file.

use crate::database::handle::Database;
use crate::maintenance::policies::Budget;
use crate::series::write::SeriesMut;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use crate::types::pattern::SeriesPattern;
use std::collections::BTreeSet;
use std::sync::PoisonError;
use tidalite_base::SeriesId;
use tidalite_series::{Cooling, KeptHot};
use tidalite_time::Timestamp;

/// Number of values read per transaction; rewriting them takes about a tenth of a second.
const VALUES_EACH: u64 = 1 << 20;

/// Leaves are rewritten if that saves one part in this number.
const SAVING_PART: u64 = 10;

/// Maximum number of leaves that are remembered because they stay as they are.
const KEPT_MAX: usize = 1 << 20;

/// Amount of data rewritten in cold form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cooled {
    /// Number of series with leaves that were rewritten; a series is counted once per commit.
    pub series: u64,
    /// Number of rows rewritten.
    pub rows: u64,
    /// Number of leaves rewritten.
    pub leaves: u64,
    /// Size in bytes of the rewritten leaves before.
    pub bytes_before: u64,
    /// Size in bytes of the rewritten leaves afterwards.
    pub bytes_after: u64,
    /// Number of commits made.
    pub commits: u64,
    /// True if the budget was used up before all leaves were rewritten.
    pub more: bool,
}

impl Cooled {
    /// Adds the amounts of a later part of the same call.
    pub(crate) fn join(&mut self, later: Self) {
        self.series += later.series;
        self.rows += later.rows;
        self.leaves += later.leaves;
        self.bytes_before += later.bytes_before;
        self.bytes_after += later.bytes_after;
        self.commits += later.commits;
        self.more = later.more;
    }

    fn add(&mut self, step: &Cooling) {
        self.series += u64::from(step.rows > 0);
        self.rows += step.rows;
        self.leaves += step.leaves;
        self.bytes_before += step.bytes_before;
        self.bytes_after += step.bytes_after;
    }
}

impl SeriesMut<'_> {
    /// Rewrites leaves whose rows are all before the raw time `before` in cold form, until about `rows_max` rows are
    /// rewritten (at least one leaf); `more` in the result reports whether such leaves are left. The rows do not
    /// change; rows not yet in leaves stay where they are.
    ///
    /// # Errors
    /// `Unsupported` in a build without the feature `cold`; a damaged block in the way; a full disk.
    ///
    /// # Cost
    /// About 70 ns per value, and the bytes of the rewritten leaves. Reading a value then takes 6 ns instead of half a
    /// nanosecond.
    pub fn rewrite_cold(&mut self, before: i64, rows_max: u64) -> Result<Cooled> {
        let mut done = Cooled::default();
        let mut step = Cooling {
            // At least one row, so that each step rewrites a leaf instead of only reading nodes.
            rows_left: rows_max.max(1),
            ..Cooling::default()
        };
        done.more = self.cool(before, &mut step, &mut KeptHot::new())?;
        done.add(&step);
        Ok(done)
    }
}

impl Database {
    /// Rewrites leaves in cold form if all their rows are older than `older_than` and a leaf becomes a tenth smaller,
    /// in the series that `pattern` selects. It commits in steps of bounded size until all such leaves are done or the
    /// budget's time is over. It reads the nodes of each series, and the leaves that are not cold yet.
    ///
    /// # Errors
    /// `Unsupported` in a build without the feature `cold`; errors of reading and committing. Earlier commits stay.
    pub fn rewrite_cold(
        &self,
        pattern: &str,
        older_than: Timestamp,
        budget: &Budget,
    ) -> Result<Cooled> {
        let mut kept = KeptHot::new();
        let (begin, horizon) = (|| self.begin_write().map(Some), older_than.0.into());
        if SeriesPattern::parse(pattern)?.selects_all() {
            let (mut from, none) = (SeriesId(0), BTreeSet::new());
            return self.cool_from(&mut from, horizon, &none, &mut kept, budget, begin);
        }
        let due = self.begin_read()?.warm_series(pattern, horizon, &kept)?;
        self.cool_all(&due, &mut kept, budget, begin)
    }

    /// Takes the leaves that maintenance has read and that stay as they are; `keep_hot` puts them back.
    pub(crate) fn take_kept_hot(&self) -> KeptHot {
        let kept = self.shared.kept_hot.lock();
        std::mem::take(&mut *kept.unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers leaves that stay as they are, unless there are very many: most of them no longer exist then.
    pub(crate) fn keep_hot(&self, leaves: KeptHot) {
        if leaves.len() <= KEPT_MAX {
            let kept = self.shared.kept_hot.lock();
            kept.unwrap_or_else(PoisonError::into_inner).extend(leaves);
        }
    }

    /// Rewrites leaves of the given series in cold form, each up to its raw time in `due`, except the leaves in `kept`.
    /// Calls `begin` for each transaction, and ends early if `begin` returns `None`.
    pub(crate) fn cool_all(
        &self,
        due: &[(SeriesId, i64)],
        kept: &mut KeptHot,
        budget: &Budget,
        begin: impl Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<Cooled> {
        let mut clock = budget.clock();
        let mut done = Cooled::default();
        let mut due = due.iter().copied().peekable();
        while due.peek().is_some() {
            if clock.is_over() {
                done.more = true;
                return Ok(done);
            }
            let Some(mut txn) = begin()? else {
                done.more = true;
                return Ok(done);
            };
            let (mut values, mut rows) = (VALUES_EACH, 0);
            while let Some(&(id, before)) = due.peek()
                && values > 0
            {
                let mut series = match txn.series_by_id(id) {
                    // The series was removed after the list `due` was made.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        due.next();
                        continue;
                    }
                    other => other?,
                };
                let width = 1 + series.info().schema.columns.len() as u64;
                let mut step = Cooling {
                    rows_left: (values / width).max(1),
                    saving_part: SAVING_PART,
                    ..Cooling::default()
                };
                if !series.cool(before, &mut step, kept)? {
                    due.next();
                }
                values = values.saturating_sub(step.looked.max(1) * width);
                rows += step.rows;
                done.add(&step);
            }
            if rows > 0 {
                txn.commit()?;
                done.commits += 1;
            }
        }
        Ok(done)
    }
}
