//! Counts the points of an import that replace others at the same time in the same series, and decides whether that is
//! accepted.
//!
//! The times of rows are not kept. A row after all rows of its series is new, which one comparison shows. The rows of
//! the series are counted before the commit only if some row was not after all others; the number of replaced points is
//! then the number of rows written minus the number of rows added.
//!
//! These counts tell exactly whether points of the import itself or older points were replaced, unless the import both
//! overlaps older rows of a series and goes back in time within it. In that case as many replaced points as possible
//! are counted as older points.

use crate::exit::Failure;
use crate::output::{grouped, printable};
use tidalite::{Result, Series, Steps};

/// An import is refused if it replaces more than 1/`OWN_REPLACED_PART` of its own points.
const OWN_REPLACED_PART: u64 = 1000;

/// A summary of the times of the rows that an import adds to one series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Time of the last row that the series had before the import.
    older_last: Option<i64>,
    /// Times of the first and the last row of the import.
    own: Option<(i64, i64)>,
    /// Whether some row of the import was not later than all rows that the import had added before it.
    goes_back: bool,
    /// Whether some row of this transaction was not later than all rows of the series.
    may_replace: bool,
    /// Number of rows in this transaction; `committed` is the number in the import's earlier transactions.
    rows: u64,
    committed: u64,
}

/// Number of replaced points, and number of points that were not stored because their times already had rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// Number of replaced points of the import itself.
    pub own: u64,
    /// Number of replaced points that were stored before the import.
    pub older: u64,
    /// Number of points that the merge policy of their series left out.
    pub left_out: u64,
}

impl Times {
    /// Sets the time of the last row of a series that already exists.
    pub(crate) fn begin_behind(&mut self, last: Option<i64>) {
        self.older_last = self.older_last.max(last);
    }

    /// Adds the time of one row.
    pub(crate) fn push(&mut self, time: i64) {
        let (first, last) = self.own.unwrap_or((time, i64::MIN));
        let goes_back = self.own.is_some() && time <= last;
        self.goes_back |= goes_back;
        self.may_replace |= goes_back || self.older_last.is_some_and(|last| time <= last);
        self.own = Some((first.min(time), last.max(time)));
        self.rows += 1;
    }

    /// Whether the rows of the series must be counted to know how many points were replaced.
    pub(crate) fn may_replace(&self) -> bool {
        self.may_replace
    }

    /// Compares the series before and after the rows of this transaction were written. `replaces` is true if the merge
    /// policy of the series is `Replace`.
    pub(crate) fn replaced(
        &self,
        before: Option<&Series<'_>>,
        after: &Series<'_>,
        replaces: bool,
    ) -> Result<Replaced> {
        let count_before = before.map_or(Ok(0), Series::count)?;
        let missing = (count_before + self.rows).saturating_sub(after.count()?);
        if !replaces {
            return Ok(Replaced {
                left_out: missing,
                ..Replaced::default()
            });
        }
        let own = match (self.goes_back, self.own, before) {
            (false, ..) | (_, None, _) => 0,
            (true, Some((first, _)), _) if self.older_last.is_none_or(|last| last < first) => {
                missing
            }
            (true, Some((first, last)), Some(before)) => {
                let older = before.query(Steps(first)..=Steps(last)).count()?;
                missing.saturating_sub(older.saturating_sub(self.committed))
            }
            (true, Some(_), None) => missing,
        };
        Ok(Replaced {
            own,
            older: missing - own,
            left_out: 0,
        })
    }

    /// Starts the counts of the next transaction. Called after a commit.
    pub(crate) fn end_transaction(&mut self) {
        self.committed += std::mem::take(&mut self.rows);
        self.may_replace = false;
    }
}

impl Replaced {
    pub(crate) fn add(&mut self, other: Self) {
        self.own += other.own;
        self.older += other.older;
        self.left_out += other.left_out;
    }

    /// Whether so many of the import's own points were replaced that a mistake is likely.
    pub(crate) fn is_suspicious(&self, points: u64) -> bool {
        self.own.saturating_mul(OWN_REPLACED_PART) > points
    }

    /// The error of an import that loses too many of its own points. `example` is the name of a series that loses some.
    pub(crate) fn refusal(&self, points: u64, example: &str) -> Failure {
        Failure::bad_input(format!(
            "{} of {} points would be replaced by other points of this import, at the same time in the same series (such as {})",
            grouped(self.own),
            grouped(points),
            printable(example)
        ))
        .hint(
            "nothing since the last commit was stored; name the column that tells the series apart: --tag COLUMN; \
             of local times, name the zone, whose clocks may repeat an hour: --tz ZONE; or, if the last row \
             of a time shall win, say so: --merge replace",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_behind_all_others_replace_nothing() {
        let mut times = Times::default();
        times.begin_behind(Some(10));
        for time in [11, 12, 20] {
            times.push(time);
        }
        assert!(!times.may_replace());
        times.push(20);
        assert!(times.may_replace());
        times.end_transaction();
        times.push(21);
        assert!(!times.may_replace());
        let mut times = Times::default();
        times.begin_behind(Some(10));
        times.push(10);
        assert!(times.may_replace());
    }

    #[test]
    fn one_in_a_thousand_is_let_pass() {
        let own = |own| Replaced {
            own,
            ..Replaced::default()
        };
        assert!(!own(0).is_suspicious(0));
        assert!(!own(1).is_suspicious(1000));
        assert!(own(1).is_suspicious(999));
        assert!(own(2).is_suspicious(1999));
    }
}
