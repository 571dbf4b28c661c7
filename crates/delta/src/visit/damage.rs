//! The rows affected by damage in the delta.
//!
//! Rows are sorted by key: layout class, series, time. If a range of rows is damaged, its first and last series ids
//! alone do not tell which series are affected; together with the class they do.

use crate::key::Key;
use crate::run::descriptor::Run;
use std::ops::RangeInclusive;
use tidalite_base::{Corrupt, SeriesId};

/// Damage in the delta, and the rows that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaDamage {
    /// The rows that may be affected.
    pub hit: Hit,
    /// Description of the damage.
    pub corrupt: Corrupt,
}

/// The part of the delta that may be affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// Every row.
    All,
    /// A range of rows.
    Rows(HitRows),
    /// No rows: bytes between the blocks, or metadata about their positions.
    Nothing,
}

/// A range of rows of a run, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitRows {
    first: Key,
    last: Key,
    /// The smallest and the greatest time of the run. They bound the times of a series at an end of the range.
    times: (i64, i64),
}

impl Hit {
    /// The rows of a run from `first` to `last`, except those up to `after`, which are hidden because an open
    /// compaction has consumed them.
    pub(crate) fn of(run: &Run, after: Option<Key>, first: Key, last: Key) -> Self {
        let first = match after.map(|after| after.next()) {
            None => first,
            Some(Some(next)) => first.max(next),
            Some(None) => return Self::Nothing,
        };
        if last < first {
            return Self::Nothing;
        }
        Self::Rows(HitRows {
            first,
            last,
            times: (run.time_least, run.time_greatest),
        })
    }

    pub(crate) fn with(self, corrupt: Corrupt) -> DeltaDamage {
        DeltaDamage { hit: self, corrupt }
    }
}

impl HitRows {
    /// The first row that may be affected: its series and time.
    #[must_use]
    pub fn from(&self) -> (SeriesId, i64) {
        (self.first.series, self.first.time)
    }

    /// The last row that may be affected.
    #[must_use]
    pub fn to(&self) -> (SeriesId, i64) {
        (self.last.series, self.last.time)
    }

    /// The layout classes and series that may be affected.
    #[must_use]
    pub fn places(&self) -> RangeInclusive<(u32, SeriesId)> {
        self.first.place()..=self.last.place()
    }

    /// The first and the last time that may be affected, of a series with this class; `None` if the series has no
    /// rows in the range.
    #[must_use]
    pub fn times_of(&self, class: u32, id: SeriesId) -> Option<(i64, i64)> {
        let place = (class, id);
        let (mut from, mut to) = self.times;
        if place == self.first.place() {
            from = self.first.time;
        }
        if place == self.last.place() {
            to = self.last.time;
        }
        let inside = self.first.place() <= place && place <= self.last.place();
        inside.then_some((from, to.max(from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ends_of_an_interval_are_cut_in_time() {
        let key = |class, id, time| Key::new(class, SeriesId(id), time);
        let hit = HitRows {
            first: key(0, 7, 50),
            last: key(1, 3, 20),
            times: (10, 90),
        };
        let times = |class, id| hit.times_of(class, SeriesId(id));
        assert_eq!(times(0, 6), None);
        assert_eq!(times(0, 7), Some((50, 90)));
        // A series whose id is higher than the one of the last row, in the class before.
        assert_eq!(times(0, 9), Some((10, 90)));
        assert_eq!(times(1, 3), Some((10, 20)));
        assert_eq!(times(1, 7), None);
        assert_eq!((hit.from().1, hit.to().1), (50, 20));
    }
}
