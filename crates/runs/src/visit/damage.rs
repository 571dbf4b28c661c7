//! The rows that damage of the front takes along.
//!
//! Rows lie in the order of their keys: layout class, series, time. Of two rows with damage between them, the numbers of
//! the series alone do not say which series lie there; with the class they do.

use crate::key::Key;
use crate::run::descriptor::Run;
use std::ops::RangeInclusive;
use tidalite_base::{Corrupt, SeriesId};

/// Damage in the front, and the rows that it takes along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontDamage {
    /// The rows that may be hit.
    pub hit: Hit,
    /// What is damaged.
    pub corrupt: Corrupt,
}

/// What of the front may be hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// Every row.
    All,
    /// Those of a stretch.
    Rows(HitRows),
    /// None: bytes between the blocks, or what is known of where they lie.
    Nothing,
}

/// A stretch of rows of a run, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitRows {
    first: Key,
    last: Key,
    /// The least and the greatest time of the run: the bound of what is hit of a series whose rows go on to the end of the stretch.
    times: (i64, i64),
}

impl Hit {
    /// The rows of a run from `first` to `last`, but for those up to `after`, which are not seen there any more: an open merge has passed
    /// them.
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

    pub(crate) fn with(self, corrupt: Corrupt) -> FrontDamage {
        FrontDamage { hit: self, corrupt }
    }
}

impl HitRows {
    /// The first row that may be hit: its series and time.
    #[must_use]
    pub fn from(&self) -> (SeriesId, i64) {
        (self.first.series, self.first.time)
    }

    /// The last one.
    #[must_use]
    pub fn to(&self) -> (SeriesId, i64) {
        (self.last.series, self.last.time)
    }

    /// Where rows that may be hit lie: classes of layouts and series.
    #[must_use]
    pub fn places(&self) -> RangeInclusive<(u32, SeriesId)> {
        self.first.place()..=self.last.place()
    }

    /// The first and the last time of a series, whose layout has this class, that may be hit; none where its rows lie elsewhere.
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
    fn only_the_ends_of_a_stretch_are_cut_in_time() {
        let key = |class, id, time| Key::new(class, SeriesId(id), time);
        let hit = HitRows {
            first: key(0, 7, 50),
            last: key(1, 3, 20),
            times: (10, 90),
        };
        let times = |class, id| hit.times_of(class, SeriesId(id));
        assert_eq!(times(0, 6), None);
        assert_eq!(times(0, 7), Some((50, 90)));
        // A series of a higher number than that of the last row, in the class before.
        assert_eq!(times(0, 9), Some((10, 90)));
        assert_eq!(times(1, 3), Some((10, 20)));
        assert_eq!(times(1, 7), None);
        assert_eq!((hit.from().1, hit.to().1), (50, 20));
    }
}
