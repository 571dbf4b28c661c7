//! Points in time: nanoseconds since 1970, read from and written as text, and given to series in
//! their own units.

use crate::error::{Error, Result};
use crate::schema::Unit;
use jiff::civil;
use std::fmt;

/// Nanoseconds since 1970-01-01 UTC (1677 to 2262).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads `2014-06-01T00:10:00Z`, with an offset, with a blank for the `T`, without a zone (taken
    /// as UTC), without seconds, or a date alone.
    ///
    /// # Errors
    /// `Error::Timestamp` when the text is none of these or out of range.
    ///
    /// ```
    /// use tidalite::Timestamp;
    /// let t = Timestamp::parse("2014-06-01T02:10+02:00")?;
    /// assert_eq!(t, Timestamp::parse("2014-06-01 00:10:00")?);
    /// assert_eq!(t.to_string(), "2014-06-01T00:10:00Z");
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let fail = |problem: String| Error::Timestamp {
            text: text.to_owned(),
            problem,
        };
        let trimmed = text.trim();
        let instant = trimmed.parse::<jiff::Timestamp>().or_else(|zoned| {
            let local = trimmed
                .parse::<civil::DateTime>()
                .or_else(|_| {
                    trimmed
                        .parse::<civil::Date>()
                        .map(|date| date.at(0, 0, 0, 0))
                })
                .map_err(|_| zoned)?;
            jiff::tz::TimeZone::UTC.to_timestamp(local)
        });
        let instant = instant.map_err(|error| fail(error.to_string()))?;
        let nanos = i64::try_from(instant.as_nanosecond());
        nanos
            .map(Self)
            .map_err(|_| fail("outside of the years 1677 to 2262".to_owned()))
    }

    /// The current wall-clock time.
    #[must_use]
    pub fn now() -> Self {
        Self(i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(instant) => instant.fmt(f),
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

/// Something that a series can take as a time: a raw number in the series' own unit, or a
/// [`Timestamp`], which is converted. A row is stored at the last whole step of the unit at or before it; what is asked about a time
/// between two steps is answered for just that time.
pub trait Instant {
    /// The time in steps of `unit`, rounded down to a whole one.
    ///
    /// # Errors
    /// `Error::Timestamp` when the unit cannot hold it.
    fn in_unit(self, unit: Unit) -> Result<i64>;

    /// The last step of `unit` at or before the time, and the first one at or after it; twice the same for a whole step.
    ///
    /// # Errors
    /// As for `in_unit`.
    fn steps_around(self, unit: Unit) -> Result<(i64, i64)>
    where
        Self: Sized,
    {
        let step = self.in_unit(unit)?;
        Ok((step, step))
    }
}

impl Instant for i64 {
    #[inline]
    fn in_unit(self, _unit: Unit) -> Result<i64> {
        Ok(self)
    }
}

impl Instant for Timestamp {
    fn in_unit(self, unit: Unit) -> Result<i64> {
        Ok(self.0.div_euclid(unit.nanos()) + unit.steps_to_1970())
    }

    fn steps_around(self, unit: Unit) -> Result<(i64, i64)> {
        let before = self.in_unit(unit)?;
        let between = self.0.rem_euclid(unit.nanos()) > 0;
        Ok((before, before + i64::from(between)))
    }
}

impl Instant for &str {
    fn in_unit(self, unit: Unit) -> Result<i64> {
        Timestamp::parse(self)?.in_unit(unit)
    }

    fn steps_around(self, unit: Unit) -> Result<(i64, i64)> {
        Timestamp::parse(self)?.steps_around(unit)
    }
}

impl Unit {
    /// A raw time of this unit as a [`Timestamp`], where that can hold it.
    #[must_use]
    pub fn timestamp(self, raw: i64) -> Option<Timestamp> {
        let steps = i128::from(raw) - i128::from(self.steps_to_1970());
        i64::try_from(steps * i128::from(self.nanos()))
            .ok()
            .map(Timestamp)
    }

    /// A raw time of this unit as text: RFC 3339 where the calendar has it, else the bare number.
    #[must_use]
    pub fn text(self, raw: i64) -> String {
        let steps = i128::from(raw) - i128::from(self.steps_to_1970());
        match jiff::Timestamp::from_nanosecond(steps * i128::from(self.nanos())) {
            Ok(instant) => instant.to_string(),
            Err(_) => raw.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_several_forms_mean_the_same() {
        let expected = Timestamp(1_401_581_400_000_000_000);
        for text in [
            "2014-06-01T00:10:00Z",
            "2014-06-01 00:10:00",
            "2014-06-01T00:10",
            "2014-06-01T02:10:00+02:00",
            " 2014-06-01 00:10:00.000 ",
        ] {
            assert_eq!(Timestamp::parse(text).unwrap(), expected, "{text}");
        }
        assert_eq!(
            Timestamp::parse("1970-01-02").unwrap(),
            Timestamp(86_400_000_000_000)
        );
        for text in ["", "yesterday", "2014-13-01", "9000-01-01"] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

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
        // .NET's DateTime(2020, 1, 2, 12, 0, 0).Ticks
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
        assert_eq!(7_i64.steps_around(Unit::Seconds).unwrap(), (7, 7));
    }
}
