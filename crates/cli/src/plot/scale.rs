//! The scales of the axes, with ticks at round values and customary times.

use crate::output::rounded_text;
use crate::time::Nanos;
use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

/// The scale of the vertical axis: its range of values, and its ticks.
#[derive(Clone, Debug)]
pub(crate) struct ValueScale {
    /// Value at the bottom of the axis.
    pub low: f64,
    /// Value at the top of the axis, which is greater than `low`.
    pub high: f64,
    /// The ticks: round values between `low` and `high`, with their labels.
    pub ticks: Vec<(f64, String)>,
}

impl ValueScale {
    /// Creates an axis that covers the values from `low` to `high`, with about this many ticks.
    pub(crate) fn over(low: f64, high: f64, ticks_max: usize) -> Self {
        // A line of constant value gets room on both sides. The values are halved before the subtraction, which could
        // overflow otherwise.
        let margin = if low < high {
            (high / 2.0 - low / 2.0) * 0.1
        } else {
            (low.abs() * 0.1).max(if low == 0.0 { 1.0 } else { f64::MIN_POSITIVE })
        };
        let low = (low - margin).max(f64::MIN);
        let high = (high + margin).min(f64::MAX);
        let step = round_step((high / 2.0 - low / 2.0) * 2.0 / ticks_max.max(1) as f64);
        let mut ticks = Vec::new();
        let first = (low / step).ceil();
        // Each tick is computed as a multiple of the step: a running sum would drift, and would not advance if the step
        // is lost in rounding.
        for number in 0..=ticks_max {
            let value = (first + number as f64) * step;
            if !value.is_finite() || value > high {
                break;
            }
            let value = if value == 0.0 { 0.0 } else { value };
            let text = rounded_text(value);
            if ticks.last().is_none_or(|(_, last)| *last != text) {
                ticks.push((value, text));
            }
        }
        Self { low, high, ticks }
    }

    /// Position of a value on the axis: 0 at the bottom, 1 at the top.
    pub(crate) fn place(&self, value: f64) -> f64 {
        ((value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)).clamp(0.0, 1.0)
    }
}

/// The next larger number that is 1, 2 or 5 times a power of ten.
fn round_step(rough: f64) -> f64 {
    if !rough.is_finite() || rough <= f64::MIN_POSITIVE {
        return if rough.is_finite() {
            f64::MIN_POSITIVE
        } else {
            f64::MAX
        };
    }
    let power = 10_f64.powf(rough.log10().floor());
    let times = rough / power;
    let round = if times <= 1.0 {
        1.0
    } else if times <= 2.0 {
        2.0
    } else if times <= 5.0 {
        5.0
    } else {
        10.0
    };
    round * power
}

/// The scale of the horizontal axis: its range of times, and its ticks.
#[derive(Clone, Debug)]
pub(crate) struct TimeScale {
    /// Time at the left end of the axis, in nanoseconds since 1970.
    pub from: Nanos,
    /// Time at the right end of the axis, which is later than `from`.
    pub to: Nanos,
    /// The ticks: round times between `from` and `to`, with their labels.
    pub ticks: Vec<(Nanos, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nanos(i64),
    Days(i64),
    Months(i64),
    Years(i64),
}

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Maximum number of ticks of an axis with little room.
const COARSE_TICKS_MAX: usize = 8;

impl TimeScale {
    /// Creates an axis for the times from `from` to `to`, with at most about this many ticks.
    pub(crate) fn over(from: Nanos, to: Nanos, ticks_max: usize, zone: &TimeZone) -> Self {
        if from >= to {
            return Self::at(from, zone);
        }
        let step = step_for((to - from) / ticks_max.max(1) as i128);
        let ticks = ticks(from, to, step, zone).unwrap_or_default();
        Self { from, to, ticks }
    }

    /// Creates the axis for a single time, which is its only tick.
    fn at(time: Nanos, zone: &TimeZone) -> Self {
        let shown = Timestamp::from_nanosecond(time).map(|timestamp| {
            let at = timestamp.to_zoned(zone.clone()).datetime();
            let is_midnight = at.time() == jiff::civil::Time::midnight();
            let form = if is_midnight { "%F" } else { "%F %H:%M:%S%.f" };
            at.strftime(form).to_string()
        });
        Self {
            from: time - 1,
            to: time + 1,
            ticks: shown.map(|label| (time, label)).into_iter().collect(),
        }
    }

    /// Creates an axis with as many ticks as there is room for their labels; `room` is the width in characters.
    pub(crate) fn fitting(from: Nanos, to: Nanos, room: usize, zone: &TimeZone) -> Self {
        // A short span may lie between two round times of a coarse step: then the next finer step that has a tick is
        // used. If the labels do not fit side by side, the picture omits all but the first.
        let coarse = |ticks_max| Self::over(from, to, ticks_max, zone);
        let mut scale = (2..=COARSE_TICKS_MAX)
            .map(coarse)
            .find(|scale| !scale.ticks.is_empty())
            .unwrap_or_else(|| coarse(2));
        for characters in [14, 11, 9, 7, 6] {
            let finer = Self::over(from, to, room / characters, zone);
            let widest = finer
                .ticks
                .iter()
                .map(|(_, label)| label.chars().count())
                .max();
            let widest = widest.unwrap_or(0);
            // The outermost labels may extend beyond the axis by half of their width.
            if !finer.ticks.is_empty() && (widest + 1) * finer.ticks.len() <= room + widest {
                scale = finer;
            }
        }
        scale
    }

    /// Position of a time on the axis: 0 at the left, 1 at the right.
    pub(crate) fn place(&self, time: Nanos) -> f64 {
        super::distance(self.from, time) / super::distance(self.from, self.to)
    }
}

/// The smallest customary step that has at least this length in nanoseconds.
fn step_for(rough: i128) -> Step {
    let mut small = 1;
    while small < SECOND {
        for times in [1, 2, 5] {
            if i128::from(small * times) >= rough {
                return Step::Nanos(small * times);
            }
        }
        small *= 10;
    }
    let usual = [1, 2, 5, 10, 15, 30].map(|n| n * SECOND);
    let minutes = usual.map(|n| n * 60);
    let hours = [1, 2, 3, 6, 12].map(|n| n * HOUR);
    for nanos in usual.into_iter().chain(minutes).chain(hours) {
        if i128::from(nanos) >= rough {
            return Step::Nanos(nanos);
        }
    }
    for days in [1, 2, 7, 14] {
        if i128::from(days * DAY) >= rough {
            return Step::Days(days);
        }
    }
    for months in [1, 2, 3, 6] {
        if i128::from(months * 31 * DAY) >= rough {
            return Step::Months(months);
        }
    }
    let mut power = 1;
    while power < 10_000 {
        for times in [1, 2, 5] {
            if i128::from(power * times) * i128::from(365 * DAY) >= rough {
                return Step::Years(power * times);
            }
        }
        power *= 10;
    }
    Step::Years(power)
}

/// The ticks of an axis; `None` if a time is beyond the calendar.
fn ticks(from: Nanos, to: Nanos, step: Step, zone: &TimeZone) -> Option<Vec<(Nanos, String)>> {
    let start = Timestamp::from_nanosecond(from)
        .ok()?
        .to_zoned(zone.clone())
        .datetime();
    let mut at = floor(start, step)?;
    let mut ticks: Vec<(Nanos, String)> = Vec::new();
    // The choice of the step bounds the number of ticks; the limit of the loop is for zones with unusual rules.
    for _ in 0..1000 {
        let instant = zone
            .to_ambiguous_timestamp(at)
            .compatible()
            .ok()?
            .as_nanosecond();
        if instant > to {
            break;
        }
        if instant >= from && ticks.last().is_none_or(|(last, _)| *last < instant) {
            ticks.push((instant, label(at, step)));
        }
        at = match step {
            Step::Nanos(nanos) => at.checked_add(SignedDuration::from_nanos(nanos)).ok()?,
            Step::Days(days) => at.checked_add(Span::new().days(days)).ok()?,
            Step::Months(months) => at.checked_add(Span::new().months(months)).ok()?,
            Step::Years(years) => match at.checked_add(Span::new().years(years)) {
                Ok(next) => next,
                Err(_) => break,
            },
        };
    }
    Some(ticks)
}

fn floor(at: DateTime, step: Step) -> Option<DateTime> {
    let midnight = at.date().at(0, 0, 0, 0);
    Some(match step {
        Step::Nanos(nanos) => {
            let since = at.duration_since(midnight).as_nanos();
            let floored = since / i128::from(nanos) * i128::from(nanos);
            let floored = SignedDuration::from_nanos(i64::try_from(floored).ok()?);
            midnight.checked_add(floored).ok()?
        }
        Step::Days(1) => midnight,
        Step::Days(days) => {
            // Weeks begin on Monday, and ticks are on the same days in every picture.
            let monday = date(1970, 1, 5);
            let since = midnight.date().duration_since(monday).as_hours() / 24;
            midnight
                .checked_sub(Span::new().days(since.rem_euclid(days)))
                .ok()?
        }
        Step::Months(months) => {
            let back = i64::from(at.month() - 1) % months;
            at.date()
                .first_of_month()
                .at(0, 0, 0, 0)
                .checked_sub(Span::new().months(back))
                .ok()?
        }
        Step::Years(years) => {
            let back = i64::from(at.year()).rem_euclid(years);
            let first = at.date().first_of_year().at(0, 0, 0, 0);
            first.checked_sub(Span::new().years(back)).unwrap_or(first)
        }
    })
}

/// The label of a tick: the part of the time that changes from tick to tick, or the larger unit if that changes here.
fn label(at: DateTime, step: Step) -> String {
    let text = match step {
        Step::Years(_) => return at.year().to_string(),
        Step::Months(_) if at.month() == 1 => return at.year().to_string(),
        Step::Months(_) => at.strftime("%b"),
        Step::Days(_) if at.month() == 1 && at.day() == 1 => return at.year().to_string(),
        Step::Days(_) => at.strftime("%b %-d"),
        Step::Nanos(_) if at.time() == jiff::civil::Time::midnight() => at.strftime("%b %-d"),
        Step::Nanos(nanos) if nanos >= MINUTE => at.strftime("%H:%M"),
        Step::Nanos(nanos) if nanos >= SECOND => at.strftime("%H:%M:%S"),
        Step::Nanos(_) => at.strftime("%H:%M:%S%.f"),
    };
    text.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{read_any, zone_named};

    fn labels(from: &str, to: &str, ticks_max: usize, zone: &TimeZone) -> Vec<String> {
        let (from, to) = (read_any(from, zone).unwrap(), read_any(to, zone).unwrap());
        let scale = TimeScale::over(from, to, ticks_max, zone);
        scale.ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn round_values() {
        let texts = |low: f64, high: f64| -> Vec<String> {
            ValueScale::over(low, high, 5)
                .ticks
                .into_iter()
                .map(|(_, text)| text)
                .collect()
        };
        assert_eq!(texts(12.02, 98.06), ["20", "40", "60", "80", "100"]);
        assert_eq!(texts(-1.0, 1.0), ["-1", "-0.5", "0", "0.5", "1"]);
        assert_eq!(texts(0.001, 0.002), ["0.001", "0.0015", "0.002"]);
        assert!(texts(5.0, 5.0).contains(&"5".to_owned()));
    }

    #[test]
    fn every_span_of_values_has_an_axis() {
        let odd = [
            0.0,
            -0.0,
            1.0,
            -1e-320,
            1e-320,
            f64::MAX,
            f64::MIN,
            1e16,
            1e16 + 2.0,
        ];
        for low in odd {
            for high in odd.into_iter().filter(|high| *high >= low) {
                let scale = ValueScale::over(low, high, 6);
                assert!(scale.low < scale.high, "{low} {high}");
                assert!(scale.ticks.len() <= 7, "{low} {high}");
                for value in [low, high] {
                    assert!((0.0..=1.0).contains(&scale.place(value)), "{low} {high}");
                }
            }
        }
    }

    #[test]
    fn times_that_people_use() {
        let utc = TimeZone::UTC;
        assert_eq!(
            labels("2013-01-01", "2013-12-31", 12, &utc),
            [
                "2013", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
            ]
        );
        assert_eq!(
            labels("2013-05-01T22:00Z", "2013-05-02T02:00Z", 5, &utc),
            ["22:00", "23:00", "May 2", "01:00", "02:00"]
        );
        assert_eq!(
            labels("1990", "2020", 4, &utc),
            ["1990", "2000", "2010", "2020"]
        );
        assert_eq!(
            labels("2013-07-01", "2013-07-08", 4, &utc),
            ["Jul 2", "Jul 4", "Jul 6", "Jul 8"]
        );
        assert_eq!(
            labels("2013-05-01T10:00:00Z", "2013-05-01T10:00:00.1Z", 2, &utc),
            ["10:00:00", "10:00:00.05", "10:00:00.1"]
        );
    }

    #[test]
    fn an_axis_without_room_for_two_labels_has_one() {
        let utc = TimeZone::UTC;
        let [from, to] =
            ["2014-01-14", "2014-01-18T03:30"].map(|time| read_any(time, &utc).unwrap());
        for room in [5, 8, 13, 20] {
            let scale = TimeScale::fitting(from, to, room, &utc);
            assert!(!scale.ticks.is_empty(), "{room}");
        }
    }

    #[test]
    fn a_single_time_is_the_only_tick() {
        let utc = TimeZone::UTC;
        let at = |time: &str| labels(time, time, 6, &utc);
        assert_eq!(at("2024-01-01"), ["2024-01-01"]);
        assert_eq!(at("2024-01-01T10:00:00.25Z"), ["2024-01-01 10:00:00.25"]);
    }

    #[test]
    fn ticks_follow_the_clocks_of_the_zone() {
        let zone = zone_named("America/New_York").unwrap();
        // The night in which clocks are set back has 25 hours; the ticks stay at 0, 6, 12 and 18 o'clock.
        assert_eq!(
            labels("2013-11-03", "2013-11-04", 5, &zone),
            ["Nov 3", "06:00", "12:00", "18:00", "Nov 4"]
        );
    }

    #[test]
    fn every_span_of_times_has_an_axis() {
        let ends = [
            i128::from(i64::MIN),
            -1,
            0,
            1,
            i128::from(i64::MAX),
            i128::MAX / 4,
        ];
        for from in ends {
            for to in ends.into_iter().filter(|to| *to >= from) {
                let scale = TimeScale::over(from, to, 6, &TimeZone::UTC);
                assert!(
                    scale.ticks.len() <= 14,
                    "{from} {to}: {}",
                    scale.ticks.len()
                );
                assert!((0.0..=1.0).contains(&scale.place(from)));
            }
        }
    }
}
