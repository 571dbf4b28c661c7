//! The intervals of a series.

use crate::series::range::Range;
use crate::series::read::Series;
use crate::types::error::Result;
use crate::types::interval::inclusive;
use crate::types::time::Instant;
use std::ops::RangeBounds;

impl Series<'_> {
    /// Number of rows.
    ///
    /// # Errors
    /// Damage where late rows overlap rows in leaves.
    pub fn count(&self) -> Result<u64> {
        self.all().count()
    }

    /// All rows.
    #[must_use]
    pub fn all(&self) -> Range<'_> {
        self.between(..)
    }

    /// The rows from `t` on.
    ///
    /// # Errors
    /// `Timestamp` if `t` is an invalid text or does not fit the unit.
    pub fn from(&self, t: impl Instant) -> Result<Range<'_>> {
        let (_, first) = t.steps_around(self.state.info.schema.unit)?;
        Ok(self.between(first..))
    }

    /// The rows from the one current at `t` on: from the last row at or before `t`, or from the first row if there is
    /// none. The for-each functions of the LMDB time-series engine begin likewise.
    ///
    /// # Errors
    /// As for `from`; a damaged or unreadable block.
    pub fn from_current(&self, t: impl Instant) -> Result<Range<'_>> {
        let t = t.in_unit(self.state.info.schema.unit)?;
        let current = self.cursor().search(t)?.map_or(t, |row| row.time);
        Ok(self.between(current..))
    }

    /// The rows from the one current at the beginning, as in `from_current`, to the last before the end. The for-each
    /// between two times of the LMDB time-series engine behaves likewise.
    ///
    /// # Errors
    /// As for `from_current`.
    pub fn within_current<T: Instant>(&self, times: std::ops::Range<T>) -> Result<Range<'_>> {
        let (_, end) = times.end.steps_around(self.state.info.schema.unit)?;
        let from = self.from_current(times.start)?.from;
        Ok(self.between(from..end))
    }

    /// The rows of an interval of raw times in the series' unit; `a..b` is a <= t < b.
    #[must_use]
    pub fn between(&self, times: impl RangeBounds<i64>) -> Range<'_> {
        let (from, to) = inclusive(&times);
        Range {
            series: self,
            from,
            to,
        }
    }

    /// The rows of an interval given as [`Instant`]s: timestamps, or texts such as `"2014-06-01"`; `a..b` is a <= t <
    /// b, even if a bound lies between two steps of the series' unit.
    ///
    /// # Errors
    /// `Timestamp` if a bound is an invalid text or does not fit the unit.
    pub fn within<T: Instant>(&self, times: std::ops::Range<T>) -> Result<Range<'_>> {
        let unit = self.state.info.schema.unit;
        // A row is before a time if its step is before the first step at or after that time.
        let (_, start) = times.start.steps_around(unit)?;
        let (_, end) = times.end.steps_around(unit)?;
        Ok(self.between(start..end))
    }
}
