//! Windows of the calendar: days, weeks, months and years in a time zone.
//!
//! A window is a number of whole days or whole months of local dates. Its limits are instants:
//!
//! 1. A date begins at the first instant at which local clocks show it, or a later date if clocks skip it. Where clocks
//!    are set back over midnight, the repeated end of the day before belongs to the new date.
//! 2. Windows have no gaps and no overlaps: a window ends where the next one begins. So a day has 23 or 25 hours where
//!    clocks are set, and a date that a zone skipped altogether is an empty window.
//! 3. Windows have numbers, which ascend with time. Dates that the calendar does not cover (before the year -9998 and
//!    after 9998) belong to its first and to its last window.

use crate::types::zone::Zone;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::AmbiguousOffset;

/// The units that windows consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalendarUnit {
    Days,
    Months,
}

/// Windows of `count` days or months each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Calendar {
    pub(crate) unit: CalendarUnit,
    /// Units in a window, at least 1.
    pub(crate) count: i64,
    /// A unit at which a window begins, counted from January 1970.
    pub(crate) anchor: i64,
    pub(crate) zone: Zone,
}

/// Nanoseconds since 1970, wide enough for every unit of time of a series.
type Nanos = i128;

const EPOCH: Date = Date::constant(1970, 1, 1);
const MONTHS_A_YEAR: i64 = 12;
/// The calendar of `jiff` ends with the years -9999 and 9999; a year is left on each side, so that offsets and the
/// limits of windows stay inside.
const YEARS: std::ops::RangeInclusive<i16> = -9998..=9998;

impl CalendarUnit {
    /// The number of the unit that contains a date: 0 on 1970-01-01.
    pub(crate) fn number_of(self, date: Date) -> i64 {
        match self {
            Self::Days => i64::from(EPOCH.until(date).map_or(0, |span| span.get_days())),
            Self::Months => {
                let years = i64::from(date.year()) - i64::from(EPOCH.year());
                years * MONTHS_A_YEAR + i64::from(date.month()) - 1
            }
        }
    }

    /// The first date of a unit; `None` for the first day of [`YEARS`] and outside of them.
    fn first_date(self, number: i64) -> Option<Date> {
        let date = match self {
            Self::Days => {
                let days = i32::try_from(number).ok()?;
                EPOCH
                    .checked_add(jiff::Span::new().try_days(days).ok()?)
                    .ok()?
            }
            Self::Months => {
                let year = number.div_euclid(MONTHS_A_YEAR) + i64::from(EPOCH.year());
                let month = number.rem_euclid(MONTHS_A_YEAR) as i8 + 1;
                Date::new(i16::try_from(year).ok()?, month, 1).ok()?
            }
        };
        // The first window has no begin.
        let has_begin = date > Date::constant(*YEARS.start(), 1, 1) && date.year() <= *YEARS.end();
        has_begin.then_some(date)
    }
}

impl Calendar {
    /// The local date and time at an instant, within [`YEARS`].
    fn local(&self, nanos: Nanos) -> DateTime {
        let (low, high) = (*YEARS.start(), *YEARS.end());
        let local = Timestamp::from_nanosecond(nanos).map(|t| self.zone.rules().to_datetime(t));
        match local {
            Ok(local) if YEARS.contains(&local.year()) => local,
            _ if nanos < 0 => DateTime::constant(low, 1, 1, 0, 0, 0, 0),
            _ => DateTime::constant(high, 12, 31, 23, 59, 59, 999_999_999),
        }
    }

    /// The number of the window that contains an instant.
    pub(crate) fn index(&self, nanos: Nanos) -> i128 {
        let number = self.unit.number_of(self.local(nanos).date());
        let own = i128::from((number - self.anchor).div_euclid(self.count));
        // Clocks were set back over midnight, so that they show the date before again.
        if self.start(own + 1) <= nanos {
            own + 1
        } else {
            own
        }
    }

    /// The instant at which a window begins; the smallest or the largest number outside of the calendar.
    pub(crate) fn start(&self, index: i128) -> Nanos {
        let number = index
            .checked_mul(self.count.into())
            .and_then(|units| units.checked_add(self.anchor.into()))
            .and_then(|number| i64::try_from(number).ok());
        let Some(date) = number.and_then(|number| self.unit.first_date(number)) else {
            return if index < 0 { Nanos::MIN } else { Nanos::MAX };
        };
        let midnight = date.to_datetime(jiff::civil::Time::midnight());
        let rules = self.zone.rules();
        let midnight = rules.to_ambiguous_timestamp(midnight);
        let is_skipped = matches!(midnight.offset(), AmbiguousOffset::Gap { .. });
        // The first of two midnights.
        let instant = midnight.compatible().map(|instant| {
            // In a gap `compatible` is as far behind the change as midnight is behind the begin of the gap.
            let change = rules.preceding(instant).next().filter(|_| is_skipped);
            let change = change.map(|change| change.timestamp());
            let has_date = |change: &Timestamp| rules.to_datetime(*change).date() >= date;
            change.filter(has_date).unwrap_or(instant)
        });
        match instant {
            Ok(instant) => instant.as_nanosecond(),
            Err(_) if index < 0 => Nanos::MIN,
            Err(_) => Nanos::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(zone: &str) -> Calendar {
        Calendar {
            unit: CalendarUnit::Days,
            count: 1,
            anchor: 0,
            zone: Zone::named(zone).unwrap(),
        }
    }

    fn nanos(text: &str) -> Nanos {
        text.parse::<Timestamp>().unwrap().as_nanosecond()
    }

    /// The begin of the window that contains an instant, as text in UTC.
    fn begin(calendar: &Calendar, instant: &str) -> String {
        let start = calendar.start(calendar.index(nanos(instant)));
        Timestamp::from_nanosecond(start).unwrap().to_string()
    }

    #[test]
    fn days_begin_when_local_clocks_first_show_their_date() {
        // (zone, instant, begin of its day): rules are given as POSIX texts where the database of the system might lack
        // them.
        for (zone, instant, expected) in [
            (
                "UTC",
                "2024-02-29T23:59:59.999999999Z",
                "2024-02-29T00:00:00Z",
            ),
            ("+05:30", "2024-01-01T00:00:00Z", "2023-12-31T18:30:00Z"),
            // 23 and 25 hours.
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2024-03-31T21:59:59Z",
                "2024-03-30T23:00:00Z",
            ),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2024-03-31T22:00:00Z",
                "2024-03-31T22:00:00Z",
            ),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2024-10-27T22:59:59Z",
                "2024-10-26T22:00:00Z",
            ),
            // Midnight is skipped: the day begins at 1:00 (as in Cairo and Beirut).
            (
                "EET-2EEST,M4.5.5/0,M10.5.4/24",
                "2024-04-26T12:00:00Z",
                "2024-04-25T22:00:00Z",
            ),
            // 23:30 is followed by 0:30 of the next date.
            (
                "AAA0BBB,M4.1.0/23:30,M10.1.0/2",
                "2024-04-08T03:00:00Z",
                "2024-04-07T23:30:00Z",
            ),
            // Midnight comes twice, with an hour between: the first one counts.
            (
                "CST5CDT,M3.2.0/0,M11.1.0/1",
                "2024-11-03T12:00:00Z",
                "2024-11-03T04:00:00Z",
            ),
            // At 0:01 clocks are set back to 23:01 of the date before, as in Newfoundland until 2011.
            (
                "NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01",
                "2024-11-03T02:30:30Z",
                "2024-11-03T02:30:00Z",
            ),
            (
                "NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01",
                "2024-11-03T03:15:00Z",
                "2024-11-03T02:30:00Z",
            ),
            (
                "NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01",
                "2024-11-04T03:29:00Z",
                "2024-11-03T02:30:00Z",
            ),
        ] {
            assert_eq!(begin(&days(zone), instant), expected, "{zone} {instant}");
        }
    }

    #[test]
    fn months_and_anchors_divide_time() {
        let months = |count, anchor| Calendar {
            unit: CalendarUnit::Months,
            count,
            anchor,
            zone: Zone::UTC,
        };
        let at = "2024-05-31T12:00:00Z";
        assert_eq!(begin(&months(1, 0), at), "2024-05-01T00:00:00Z");
        assert_eq!(begin(&months(3, 0), at), "2024-04-01T00:00:00Z");
        assert_eq!(begin(&months(12, 0), at), "2024-01-01T00:00:00Z");
        // Years that begin in June.
        assert_eq!(begin(&months(12, 5), at), "2023-06-01T00:00:00Z");
        assert_eq!(
            begin(&months(1, 0), "1969-12-31T23:59:59Z"),
            "1969-12-01T00:00:00Z"
        );
        let weeks = Calendar {
            count: 7,
            anchor: -3,
            ..days("UTC")
        };
        assert_eq!(
            begin(&weeks, "2024-05-26T23:59:59Z"),
            "2024-05-20T00:00:00Z"
        );
        assert_eq!(
            begin(&weeks, "2024-05-27T00:00:00Z"),
            "2024-05-27T00:00:00Z"
        );
        assert_eq!(
            begin(&weeks, "1970-01-01T00:00:00Z"),
            "1969-12-29T00:00:00Z"
        );
    }

    /// Every instant of a set around each change of the clocks lies in exactly one window, whose limits have its date.
    #[test]
    fn windows_have_no_gaps_and_no_overlaps() {
        const HOUR: Nanos = 3_600_000_000_000;
        for zone in [
            "CET-1CEST,M3.5.0,M10.5.0/3",
            "EET-2EEST,M4.5.5/0,M10.5.4/24",
            "AAA0BBB,M4.1.0/23:30,M10.1.0/2",
            "NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01",
            "-03",
        ] {
            for (unit, count) in [
                (CalendarUnit::Days, 1),
                (CalendarUnit::Days, 7),
                (CalendarUnit::Months, 1),
                (CalendarUnit::Months, 5),
            ] {
                let calendar = Calendar {
                    unit,
                    count,
                    ..days(zone)
                };
                let mut at = nanos("2023-12-30T00:00:00Z");
                let mut last = calendar.index(at - 1);
                while at < nanos("2025-01-03T00:00:00Z") {
                    let index = calendar.index(at);
                    let (start, end) = (calendar.start(index), calendar.start(index + 1));
                    assert!(start <= at && at < end, "{zone} {at}");
                    assert!(
                        index == last || index == last + 1,
                        "{zone} {at}: {last}, {index}"
                    );
                    last = index;
                    at += HOUR / 4;
                }
            }
        }
    }

    #[test]
    fn windows_end_with_the_calendar() {
        let calendar = days("+14:00");
        for at in [
            Nanos::MIN,
            Nanos::from(i64::MIN) * 1_000_000_000,
            i64::MAX.into(),
            Nanos::MAX,
        ] {
            let index = calendar.index(at);
            assert!(calendar.start(index) <= at, "{at}");
            assert!(at < calendar.start(index + 1) || at == Nanos::MAX, "{at}");
        }
        assert_eq!(calendar.start(i128::MAX), Nanos::MAX);
        assert_eq!(calendar.start(i128::MIN), Nanos::MIN);
    }
}
