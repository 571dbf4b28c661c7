//! The types of a time argument: steps of a series' unit, timestamps, and texts.

use crate::types::error::Result;
use crate::types::schema::Unit;
use std::cmp::Ordering;
use std::fmt;
use tidalite_time::Timestamp;

/// A time as a series stores it: a number of steps of the series' [`Unit`].
///
/// The number has no meaning without the series. `Steps` is a type of its own, so that nanoseconds are not taken for
/// the milliseconds of a series by accident. It can be compared with a bare number.
///
/// ```
/// use tidalite::{Steps, Unit};
/// let day = Steps(86_400);
/// assert_eq!(day, 86_400);
/// assert_eq!(Unit::Seconds.text(day.0), "1970-01-02T00:00:00Z");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Steps(pub i64);

impl PartialEq<i64> for Steps {
    fn eq(&self, other: &i64) -> bool {
        self.0 == *other
    }
}

impl PartialOrd<i64> for Steps {
    fn partial_cmp(&self, other: &i64) -> Option<Ordering> {
        self.0.partial_cmp(other)
    }
}

impl From<Steps> for i64 {
    fn from(steps: Steps) -> Self {
        steps.0
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A time that an [`Instant`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A time on the clock, with the same meaning in every series.
    Clock(Timestamp),
    /// A number of steps of the unit of the series that is queried.
    Step(Steps),
}

impl Moment {
    /// The last step of `unit` at or before the moment.
    #[inline]
    pub(crate) fn floor(self, unit: Unit) -> i64 {
        match self {
            Self::Clock(t) => t.0.div_euclid(unit.nanos()) + unit.steps_to_1970(),
            Self::Step(steps) => steps.0,
        }
    }

    /// The part of a step of `unit` by which the moment is later than its floor, below 1.
    pub(crate) fn fraction(self, unit: Unit) -> f64 {
        match self {
            Self::Clock(t) => t.0.rem_euclid(unit.nanos()) as f64 / unit.nanos() as f64,
            Self::Step(_) => 0.0,
        }
    }

    /// The first step of `unit` at or after the moment.
    pub(crate) fn ceil(self, unit: Unit) -> i64 {
        let between = match self {
            Self::Clock(t) => t.0.rem_euclid(unit.nanos()) > 0,
            Self::Step(_) => false,
        };
        self.floor(unit) + i64::from(between)
    }
}

/// A time argument of a series: a [`Timestamp`], a text that [`Timestamp::parse`] reads, or [`Steps`] of the series'
/// own unit. A row is stored at the last whole step of the unit at or before the time; a query about a time between
/// two steps is answered for exactly that time.
///
/// [`Steps`] are not checked: in a series of milliseconds they are milliseconds, whatever was intended. A timestamp has
/// the same meaning in every series.
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{Options, Schema, Steps, Timestamp, Unit};
/// use tidalite::storage::MemoryStorage;
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let in_millis = Schema { unit: Unit::Millis, ..Schema::point() };
/// let mut tx = db.begin_write()?;
/// let mut wind = tx.series_with("wind", &in_millis)?;
/// wind.insert(Timestamp::from_secs(1_400_000_000)?, 7.0)?;
/// wind.insert(Steps(1_400_000_000_000), 7.1)?; // the same time, in milliseconds: the row takes its place
/// wind.insert(Steps(1_400_000_000), 7.2)?; // 17 January 1970: seconds that were taken as milliseconds
/// assert_eq!(wind.view()?.count()?, 2);
/// assert!(wind.view()?.at("1970-01-17T04:53:20Z")?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Instant: Copy {
    /// The time that this argument stands for, not yet converted to the unit of a series.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a text that is not a time.
    fn moment(self) -> Result<Moment>;

    /// The time as a number of steps of `unit`, rounded down.
    ///
    /// # Errors
    /// As for `moment`.
    #[inline]
    fn in_unit(self, unit: Unit) -> Result<i64> {
        Ok(self.moment()?.floor(unit))
    }

    /// The last step of `unit` at or before the time, and the first step at or after it; if the time is a whole step,
    /// both are equal to it.
    ///
    /// # Errors
    /// As for `moment`.
    fn steps_around(self, unit: Unit) -> Result<(i64, i64)> {
        let moment = self.moment()?;
        Ok((moment.floor(unit), moment.ceil(unit)))
    }
}

impl Instant for Steps {
    #[inline]
    fn moment(self) -> Result<Moment> {
        Ok(Moment::Step(self))
    }
}

impl Instant for Timestamp {
    #[inline]
    fn moment(self) -> Result<Moment> {
        Ok(Moment::Clock(self))
    }
}

impl Instant for &str {
    fn moment(self) -> Result<Moment> {
        Ok(Moment::Clock(Timestamp::parse(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_both_ways_and_print_the_year_one() {
        let t = Timestamp::parse("2020-01-02T12:00:00Z").unwrap();
        for unit in [
            Unit::Nanos,
            Unit::Micros,
            Unit::Millis,
            Unit::Seconds,
            Unit::Ticks,
        ] {
            let raw = t.in_unit(unit).unwrap();
            assert_eq!(unit.timestamp(raw), Some(t), "{unit:?}");
            assert_eq!(unit.text(raw), "2020-01-02T12:00:00Z");
        }
        // This is the value of `DateTime(2020, 1, 2, 12, 0, 0).Ticks` in .NET.
        assert_eq!(t.in_unit(Unit::Ticks).unwrap(), 637_135_632_000_000_000);
        assert_eq!(Unit::Ticks.text(0), "0001-01-01T00:00:00Z");
        assert_eq!(Unit::Ticks.timestamp(0), None);
        assert_eq!(Timestamp(-1).in_unit(Unit::Seconds).unwrap(), -1);
    }

    #[test]
    fn a_time_between_two_steps_has_one_on_each_side() {
        let around = |t: i64, unit| Timestamp(t).steps_around(unit).unwrap();
        assert_eq!(around(-1, Unit::Seconds), (-1, 0));
        assert_eq!(around(1, Unit::Micros), (0, 1));
        assert_eq!(around(-2_000_000, Unit::Millis), (-2, -2));
        for unit in [Unit::Nanos, Unit::Millis, Unit::Ticks] {
            for t in [i64::MIN, i64::MAX] {
                let (before, after) = around(t, unit);
                let step = i128::from(unit.nanos());
                let nanos = |raw: i64| (i128::from(raw) - i128::from(unit.steps_to_1970())) * step;
                assert!(nanos(before) <= t.into() && nanos(after) >= t.into());
                assert!(nanos(after) - nanos(before) < 2 * step);
            }
        }
        assert_eq!(
            "1970-01-01T00:00:01.5Z"
                .steps_around(Unit::Seconds)
                .unwrap(),
            (1, 2)
        );
        assert_eq!(Steps(7).steps_around(Unit::Seconds).unwrap(), (7, 7));
    }
}
