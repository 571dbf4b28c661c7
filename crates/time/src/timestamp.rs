//! Timestamps: nanoseconds since 1970, parsed from and formatted as text.

use crate::error::TimestampError;
use jiff::civil;
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time, as nanoseconds since 1970-01-01 UTC; covers 1677 to 2262.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The earliest time, in the year 1677.
    pub const MIN: Self = Self(i64::MIN);

    /// The latest time, in the year 2262.
    pub const MAX: Self = Self(i64::MAX);

    /// Parses a date, or a date with a time of day, in one of these forms of ISO 8601; white space around the text is
    /// ignored.
    ///
    /// ```text
    /// date     2014-06-01   20140601   +002014-06-01
    /// time     after a T, a t or a blank: 00:10:00.25   00:10:00,25   00:10:00   00:10   00, each also without colons
    /// offset   after a time: Z   z   +02:00   +02:00:00   +0200   +02; without one the time is in UTC
    /// ```
    ///
    /// A date alone means its first instant in UTC. A fraction has one to nine digits. A second 60 is read as 59.
    ///
    /// The library has no time zone database, so it refuses a zone in brackets, as Java's `ZonedDateTime` and
    /// JavaScript's Temporal write it, and all other annotations of RFC 9557. Write the offset from UTC instead.
    ///
    /// # Errors
    /// If the text has none of these forms, or the time is out of range.
    ///
    /// ```
    /// use tidalite_time::Timestamp;
    /// let t = Timestamp::parse("2014-06-01T02:10+02:00")?;
    /// assert_eq!(t, Timestamp::parse("2014-06-01 00:10:00")?);
    /// assert_eq!(t.to_string(), "2014-06-01T00:10:00Z");
    /// assert!(Timestamp::parse("2014-06-01T02:10[Europe/Paris]").is_err());
    /// # Ok::<(), tidalite_time::TimestampError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let fail = |problem: String| TimestampError {
            text: text.to_owned(),
            problem,
        };
        let trimmed = text.trim();
        // jiff accepts and ignores an annotation of a time without an offset; the result would be another instant than
        // the annotation says.
        if trimmed.contains('[') {
            return Err(fail(
                "a time zone or another annotation in brackets is not read: write the offset from UTC instead, as in \
                 2014-06-01T02:10:00+02:00"
                    .to_owned(),
            ));
        }
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

    /// The current time by the system's wall clock.
    #[must_use]
    pub fn now() -> Self {
        Self(i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX))
    }

    /// The time this number of nanoseconds after 1970-01-01 UTC.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The time this number of microseconds after 1970-01-01 UTC.
    ///
    /// # Errors
    /// For a time before 1677 or after 2262.
    pub fn from_micros(micros: i64) -> Result<Self, TimestampError> {
        Self::from_steps(micros, 1_000, "Micros")
    }

    /// The time this number of milliseconds after 1970-01-01 UTC.
    ///
    /// # Errors
    /// As for `from_micros`.
    pub fn from_millis(millis: i64) -> Result<Self, TimestampError> {
        Self::from_steps(millis, 1_000_000, "Millis")
    }

    /// The time this number of seconds after 1970-01-01 UTC.
    ///
    /// ```
    /// use tidalite_time::Timestamp;
    /// assert_eq!(Timestamp::from_secs(86_400)?, Timestamp::parse("1970-01-02")?);
    /// assert!(Timestamp::from_secs(i64::MAX).is_err());
    /// # Ok::<(), tidalite_time::TimestampError>(())
    /// ```
    ///
    /// # Errors
    /// As for `from_micros`.
    pub fn from_secs(secs: i64) -> Result<Self, TimestampError> {
        Self::from_steps(secs, 1_000_000_000, "Seconds")
    }

    /// The time this number of steps after 1970; `unit` is the name of the step in the error.
    fn from_steps(steps: i64, nanos: i64, unit: &str) -> Result<Self, TimestampError> {
        steps
            .checked_mul(nanos)
            .map(Self)
            .ok_or_else(|| TimestampError {
                text: steps.to_string(),
                problem: format!("in {unit} it is outside of the years 1677 to 2262"),
            })
    }

    /// Adds a duration; `None` after the year 2262.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidalite_time::Timestamp;
    /// let t = Timestamp::parse("2014-06-01")?;
    /// let later = t.checked_add(Duration::from_secs(90));
    /// assert_eq!(later, Some(Timestamp::parse("2014-06-01T00:01:30Z")?));
    /// assert_eq!(later.and_then(|later| later.duration_since(t)), Some(Duration::from_secs(90)));
    /// assert_eq!((t + Duration::from_secs(90)) - t, Duration::from_secs(90));
    /// # Ok::<(), tidalite_time::TimestampError>(())
    /// ```
    #[must_use]
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        self.moved(1, duration)
    }

    /// Subtracts a duration; `None` before the year 1677.
    #[must_use]
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        self.moved(-1, duration)
    }

    fn moved(self, sign: i128, duration: Duration) -> Option<Self> {
        // The cast is safe: a `Duration` is less than 2^94 nanoseconds.
        let nanos = i128::from(self.0) + sign * duration.as_nanos() as i128;
        i64::try_from(nanos).ok().map(Self)
    }

    /// The duration since `earlier`; `None` if this time is before `earlier`.
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> Option<Duration> {
        (earlier <= self).then(|| Duration::from_nanos(self.0.abs_diff(earlier.0)))
    }
}

impl TryFrom<SystemTime> for Timestamp {
    type Error = TimestampError;

    /// # Errors
    /// For a time before 1677 or after 2262.
    fn try_from(time: SystemTime) -> Result<Self, TimestampError> {
        let moved = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(0).checked_add(after),
            Err(before) => Self(0).checked_sub(before.duration()),
        };
        moved.ok_or_else(|| TimestampError::out_of_range(&time))
    }
}

impl From<Timestamp> for SystemTime {
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use tidalite_time::Timestamp;
    /// let time = SystemTime::from(Timestamp::from_secs(-5)?);
    /// assert_eq!(time, SystemTime::UNIX_EPOCH - Duration::from_secs(5));
    /// assert_eq!(Timestamp::try_from(time)?, Timestamp::from_secs(-5)?);
    /// # Ok::<(), tidalite_time::TimestampError>(())
    /// ```
    fn from(t: Timestamp) -> Self {
        let distance = Duration::from_nanos(t.0.unsigned_abs());
        // The addition cannot overflow: the clocks of all systems cover more than 292 years around 1970.
        match t.0 < 0 {
            true => UNIX_EPOCH - distance,
            false => UNIX_EPOCH + distance,
        }
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// # Panics
    /// After the year 2262, as [`SystemTime`] does; [`checked_add`](Timestamp::checked_add) does not.
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration)
            .expect("overflow when adding a duration to a timestamp")
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    /// # Panics
    /// Before the year 1677, as [`SystemTime`] does; [`checked_sub`](Timestamp::checked_sub) does not.
    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration)
            .expect("overflow when subtracting a duration from a timestamp")
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    /// # Panics
    /// If this time is before `earlier`; [`duration_since`](Timestamp::duration_since) does not.
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
            .expect("a later timestamp subtracted from an earlier one")
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl SubAssign<Duration> for Timestamp {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Writes the time as `Display` does.
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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

    /// Every form in the documentation is parsed, and similar texts are refused.
    #[test]
    fn the_listed_forms_are_read_and_no_others() {
        const MIDNIGHT: i64 = 1_401_580_800_000_000_000;
        const MINUTES: i64 = MIDNIGHT + 600_000_000_000;
        const QUARTER: i64 = MINUTES + 250_000_000;
        for (text, nanos) in [
            ("2014-06-01", MIDNIGHT),
            ("20140601", MIDNIGHT),
            ("+002014-06-01", MIDNIGHT),
            ("\t2014-06-01\n", MIDNIGHT),
            ("2014-06-01T00", MIDNIGHT),
            ("2014-06-01T00Z", MIDNIGHT),
            ("2014-06-01T00:10", MINUTES),
            ("2014-06-01T0010", MINUTES),
            ("2014-06-01T00:10:00", MINUTES),
            ("2014-06-01t00:10:00z", MINUTES),
            ("2014-06-01 00:10:00", MINUTES),
            ("20140601T001000Z", MINUTES),
            ("2014-06-01T02:10:00+02:00", MINUTES),
            ("2014-06-01T02:10:00+02:00:00", MINUTES),
            ("2014-06-01T02:10+0200", MINUTES),
            ("2014-06-01 02:10+02", MINUTES),
            ("2014-05-31T18:40:00-05:30", MINUTES),
            ("2014-06-01T00:10:00.25Z", QUARTER),
            ("2014-06-01T00:10:00,25", QUARTER),
            ("20140601T001000.25", QUARTER),
            ("2014-06-01T00:10:00.250000001Z", QUARTER + 1),
            ("2014-06-01T00:09:60Z", MINUTES - 1_000_000_000),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap(), Timestamp(nanos), "{text}");
        }
        for text in [
            // These texts have an annotation in brackets, which is refused whether or not it agrees with the offset.
            "2014-06-01T00:10:00[Europe/Paris]",
            "2014-06-01T02:10:00+02:00[Europe/Paris]",
            "2014-06-01T02:10:00+01:00[Europe/Paris]",
            "2014-06-01T00:10:00Z[Europe/Paris]",
            "2014-06-01T00:10:00Z[UTC]",
            "2014-06-01T00:10:00[+02:00]",
            "2014-06-01T00:10:00[!Europe/Paris]",
            "2014-06-01[Europe/Paris]",
            "2014-06-01[u-ca=hebrew]",
            "2014-06-01T00:10:00Z[u-ca=hebrew]",
            "2014-06-01T00:10:00+02:00[Europe/Paris][u-ca=iso8601]",
        ] {
            let error = Timestamp::parse(text).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
            assert!(error.contains("write the offset"), "{error}");
        }
        for text in [
            "2014-06",
            "2014-6-1",
            "2014/06/01",
            "2014-0601",
            "2014-06-01Z",
            "2014-06-01+02:00",
            "2014-06-01T",
            "2014-06-01T24:00Z",
            "2014-06-01T00:60Z",
            "2014-06-01T00:10:00.1234567890Z",
            "2014-06-01T00:10:00 Z",
            "2014-06-01T00:10:00 Europe/Paris",
            "2014-06-01T00:10:00+02:00]",
            "2014-06-01T00:10:00+26:00",
            "2014-02-29",
            "2014-W22-7",
            "1401581400",
            "+002300-06-01",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn steps_and_durations_at_the_edges() {
        let (least, most) = (Timestamp::MIN, Timestamp::MAX);
        let nano = Duration::from_nanos(1);
        assert_eq!(
            (most.checked_add(nano), least.checked_sub(nano)),
            (None, None)
        );
        assert_eq!(Timestamp(-1).checked_add(nano), Some(Timestamp(0)));
        assert_eq!(most.checked_sub(Duration::MAX), None);
        let whole = most.duration_since(least).unwrap();
        assert_eq!(whole, Duration::from_nanos(u64::MAX));
        assert_eq!(least.checked_add(whole), Some(most));
        assert_eq!(least.duration_since(most), None);
        assert_eq!(most.duration_since(most), Some(Duration::ZERO));
        assert_eq!((most - least, most - most), (whole, Duration::ZERO));
        for t in [least, Timestamp(-1), Timestamp(0), most] {
            assert_eq!(Timestamp::try_from(SystemTime::from(t)).unwrap(), t);
        }
        let far = SystemTime::from(most) + nano;
        assert!(Timestamp::try_from(far).is_err());
        let of = [
            Timestamp::from_micros,
            Timestamp::from_millis,
            Timestamp::from_secs,
        ];
        for (from, step) in of.into_iter().zip([1_000, 1_000_000, 1_000_000_000]) {
            assert_eq!(from(-7).unwrap(), Timestamp::from_nanos(-7 * step));
            let most = i64::MAX / step;
            assert_eq!(from(most).unwrap(), Timestamp(most * step));
            for beyond in [most + 1, -most - 1, i64::MIN] {
                assert!(from(beyond).is_err());
            }
        }
    }
}
