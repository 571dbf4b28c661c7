//! The rows affected by damage in the delta.
//!
//! Rows are sorted by key: layout class, series, time. If a range of rows is damaged, its first and last series ids
//! alone do not tell which series are affected; together with the class they do.

use crate::key::Key;
use crate::run::descriptor::Run;
use std::ops::RangeInclusive;
use tidalite_base::{Corrupt, SeriesId};

/// Damage in the delta, with the rows that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaDamage {
    /// Rows that the damage may affect.
    pub hit: Hit,
    /// Description of the damage: its place, and the contents found and expected there.
    pub corrupt: Corrupt,
}

/// Rows of the delta that damage may affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The damage may affect all rows of the delta.
    All,
    /// The damage may affect the rows of one run within a range of keys.
    Rows(HitRows),
    /// The damage affects no rows: it is in bytes between the blocks, or in metadata about their positions.
    Nothing,
}

/// A range of rows of a run; the first and the last key belong to the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitRows {
    first: Key,
    last: Key,
    /// The smallest and the greatest time of the run. They bound the affected times of a series that extends beyond
    /// an end of the range or lies within it.
    times: (i64, i64),
}

impl Hit {
    /// Creates the range of the rows of a run from `first` to `last`, without the rows up to the watermark `after`,
    /// which are hidden because an open compaction has consumed them.
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
    /// Series and time of the first row that the damage may affect.
    #[must_use]
    pub fn from(&self) -> (SeriesId, i64) {
        (self.first.series, self.first.time)
    }

    /// Series and time of the last row that the damage may affect.
    #[must_use]
    pub fn to(&self) -> (SeriesId, i64) {
        (self.last.series, self.last.time)
    }

    /// Range of the series that the damage may affect, each with the class of its layout.
    #[must_use]
    pub fn places(&self) -> RangeInclusive<(u32, SeriesId)> {
        self.first.place()..=self.last.place()
    }

    /// Returns the first and the last time of the affected rows of a series with this layout class; `None` if the
    /// series has no rows in the range.
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
        // In class 0, series 9 sorts after series 7, the first one, and so is in the range, although the last series
        // of the range (in class 1) has the id 3.
        assert_eq!(times(0, 9), Some((10, 90)));
        assert_eq!(times(1, 3), Some((10, 20)));
        assert_eq!(times(1, 7), None);
        assert_eq!((hit.from().1, hit.to().1), (50, 20));
    }
}
