//! The starts of bins in local time: an origin plus multiples of the width.
//!
//! A local time is the number of nanoseconds since 1970-01-01 00:00 on a local clock that is never adjusted.

use super::width::Width;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Default origin of bins of days and parts of days. It is a Monday, so that weeks begin on Mondays.
const MONDAY: DateTime = DateTime::constant(2000, 1, 3, 0, 0, 0, 0);
/// Default origin of bins of months.
const NEW_YEAR: DateTime = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
const MONTHS_PER_YEAR: i64 = 12;

/// The local times `origin + n * width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lattice {
    width: Width,
    origin: i128,
}

impl Lattice {
    pub(super) fn new(width: Width, origin: Option<i128>) -> Self {
        let default = match width {
            Width::Nanos(_) => MONDAY,
            Width::Months(_) => NEW_YEAR,
        };
        Self {
            width,
            origin: origin.or_else(|| nanos_of(default)).unwrap_or(0),
        }
    }

    pub(super) fn origin(&self) -> i128 {
        self.origin
    }

    /// The last start of a bin at or before a local time; `None` outside the calendar of `jiff`.
    pub(super) fn begin(&self, local: i128) -> Option<i128> {
        self.at(self.index(local)?)
    }

    /// The first start of a bin after a local time.
    pub(super) fn next(&self, local: i128) -> Option<i128> {
        self.at(self.index(local)? + 1)
    }

    fn index(&self, local: i128) -> Option<i128> {
        match self.width {
            Width::Nanos(nanos) => Some((local - self.origin).div_euclid(nanos)),
            Width::Months(months) => {
                let month =
                    |at: DateTime| i64::from(at.year()) * MONTHS_PER_YEAR + i64::from(at.month());
                let distance = month(civil(local)?) - month(civil(self.origin)?);
                let index = i128::from(distance.div_euclid(months));
                // The month of the local time belongs to the previous bin if the time is before the origin's position
                // within the month.
                Some(index - i128::from(self.at(index)? > local))
            }
        }
    }

    fn at(&self, index: i128) -> Option<i128> {
        match self.width {
            Width::Nanos(nanos) => self.origin.checked_add(index.checked_mul(nanos)?),
            Width::Months(months) => {
                let months = i64::try_from(index).ok()?.checked_mul(months)?;
                let distance = Span::new().try_months(months).ok()?;
                nanos_of(civil(self.origin)?.checked_add(distance).ok()?)
            }
        }
    }
}

/// Date and time of a local time.
pub(super) fn civil(local: i128) -> Option<DateTime> {
    let as_if_utc = Timestamp::from_nanosecond(local).ok()?;
    Some(TimeZone::UTC.to_datetime(as_if_utc))
}

/// Local time of a date and time.
fn nanos_of(at: DateTime) -> Option<i128> {
    let as_if_utc = TimeZone::UTC.to_timestamp(at).ok()?;
    Some(as_if_utc.as_nanosecond())
}
