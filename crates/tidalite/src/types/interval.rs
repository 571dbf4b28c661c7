//! Intervals of times, as arguments of queries and deletions.

use crate::types::error::Result;
use crate::types::instant::{Instant, Moment};
use crate::types::schema::Unit;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// The interval of all times, as first and last time.
pub(crate) const EVER: (i64, i64) = (i64::MIN, i64::MAX);
/// The empty interval: its last time is before its first.
pub(crate) const NOTHING: (i64, i64) = (0, -1);

/// An interval of times: `a..b`, `a..=b`, `a..`, `..b`, `..=b` or `..`, or a pair of [`Bound`]s, of anything that is
/// an [`Instant`]. A row lies in `a..b` if a <= t < b, even if a bound lies between two steps of a series' unit.
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{Options, Steps, Timestamp};
/// use tidalite::storage::MemoryStorage;
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut wind = tx.series("wind")?;
/// wind.insert("2019-12-31", 6.0)?;
/// wind.insert("2020-01-01", 7.0)?;
/// let wind = wind.view()?;
/// assert_eq!(wind.query("2020-01-01"..).count()?, 1);
/// assert_eq!(wind.query(..Timestamp::now()).count()?, 2);
/// assert_eq!(wind.query(Steps(0)..=Steps(1)).count()?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Interval {
    /// The bounds of the interval, not yet converted to the unit of a series.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a text that is not a time.
    fn ends(self) -> Result<Ends>;
}

/// The start and the end of an [`Interval`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    start: Bound<Moment>,
    end: Bound<Moment>,
}

impl Ends {
    /// The interval of all times.
    pub(crate) const ALL: Self = Self {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    };

    fn of<T: Instant>(start: Bound<T>, end: Bound<T>) -> Result<Self> {
        let moment = |bound: Bound<T>| -> Result<Bound<Moment>> {
            Ok(match bound {
                Bound::Included(t) => Bound::Included(t.moment()?),
                Bound::Excluded(t) => Bound::Excluded(t.moment()?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        Ok(Self {
            start: moment(start)?,
            end: moment(end)?,
        })
    }

    /// Start of the interval.
    pub(crate) fn start(&self) -> Bound<Moment> {
        self.start
    }

    /// End of the interval.
    pub(crate) fn end(&self) -> Bound<Moment> {
        self.end
    }

    /// First and last step of `unit`, both included, whose times lie within the interval; [`NOTHING`] if there are
    /// none.
    pub(crate) fn in_unit(&self, unit: Unit) -> (i64, i64) {
        let from = match self.start {
            Bound::Included(t) => Some(t.ceil(unit)),
            Bound::Excluded(t) => t.floor(unit).checked_add(1),
            Bound::Unbounded => Some(i64::MIN),
        };
        match (from, self.last_in(unit)) {
            (Some(from), Some(to)) if from <= to => (from, to),
            _ => NOTHING,
        }
    }

    /// The last step of `unit` that is not after the end of the interval; `None` if there is none.
    pub(crate) fn last_in(&self, unit: Unit) -> Option<i64> {
        match self.end {
            Bound::Included(t) => Some(t.floor(unit)),
            Bound::Excluded(t) => t.ceil(unit).checked_sub(1),
            Bound::Unbounded => Some(i64::MAX),
        }
    }

    /// The last step of `unit` at or before the start of the interval; `i64::MIN` if the interval has no start.
    pub(crate) fn current_in(&self, unit: Unit) -> i64 {
        match self.start {
            Bound::Included(t) | Bound::Excluded(t) => t.floor(unit),
            Bound::Unbounded => i64::MIN,
        }
    }
}

impl Interval for Ends {
    fn ends(self) -> Result<Ends> {
        Ok(self)
    }
}

impl Interval for RangeFull {
    fn ends(self) -> Result<Ends> {
        Ok(Ends::ALL)
    }
}

impl<T: Instant> Interval for (Bound<T>, Bound<T>) {
    fn ends(self) -> Result<Ends> {
        Ends::of(self.0, self.1)
    }
}

impl<T: Instant> Interval for Range<T> {
    fn ends(self) -> Result<Ends> {
        Ends::of(Bound::Included(self.start), Bound::Excluded(self.end))
    }
}

impl<T: Instant> Interval for RangeInclusive<T> {
    fn ends(self) -> Result<Ends> {
        Ends::of(Bound::Included(*self.start()), Bound::Included(*self.end()))
    }
}

impl<T: Instant> Interval for RangeFrom<T> {
    fn ends(self) -> Result<Ends> {
        Ends::of(Bound::Included(self.start), Bound::Unbounded)
    }
}

impl<T: Instant> Interval for RangeTo<T> {
    fn ends(self) -> Result<Ends> {
        Ends::of(Bound::Unbounded, Bound::Excluded(self.end))
    }
}

impl<T: Instant> Interval for RangeToInclusive<T> {
    fn ends(self) -> Result<Ends> {
        Ends::of(Bound::Unbounded, Bound::Included(self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_time::Timestamp;

    fn interval(times: impl Interval, unit: Unit) -> (i64, i64) {
        times.ends().unwrap().in_unit(unit)
    }

    #[test]
    fn an_interval_holds_the_rows_whose_nanoseconds_lie_in_it() {
        let t = Timestamp;
        let second = 1_000_000_000;
        assert_eq!(interval(t(1)..t(second), Unit::Seconds), (0, -1));
        assert_eq!(interval(t(0)..t(second), Unit::Seconds), (0, 0));
        assert_eq!(interval(t(0)..=t(second), Unit::Seconds), (0, 1));
        assert_eq!(interval(t(-1)..t(1), Unit::Seconds), (0, 0));
        assert_eq!(interval(t(-second - 1)..t(0), Unit::Seconds), (-1, -1));
        assert_eq!(interval(t(5)..t(5), Unit::Nanos), (0, -1));
        assert_eq!(interval(t(5)..=t(5), Unit::Nanos), (5, 5));
        assert_eq!(interval(.., Unit::Ticks), (i64::MIN, i64::MAX));
        assert_eq!(
            interval(
                (Bound::Excluded(t(0)), Bound::<Timestamp>::Unbounded),
                Unit::Micros
            ),
            (1, i64::MAX)
        );
        let zero = Unit::Ticks.steps_to_1970();
        assert_eq!(interval(t(0)..t(250), Unit::Ticks), (zero, zero + 2));
        let ends = interval(t(i64::MIN)..=t(i64::MAX), Unit::Nanos);
        assert_eq!(ends, (i64::MIN, i64::MAX));
    }
}
