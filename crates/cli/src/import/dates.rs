//! Recognises dates that are not ISO 8601: `13.06.2014 00:10` and `13/06/2014 00:10`.
//!
//! With points the day comes first everywhere. With slashes or hyphens the order depends on the country; a day after
//! the twelfth shows it. If no date of the sample shows it, the user must name the format.

use crate::time::{TimeFormat, TimeReader};
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The dates, and the times of day that may follow one.
const DAYS: [&str; 9] = [
    "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y",
    "%d %b %Y",
];
const TIMES_OF_DAY: [&str; 4] = ["", " %H:%M", " %H:%M:%S", " %H:%M:%S%.f"];
const TIMES_OF_DAY_12: [&str; 2] = [" %I:%M %p", " %I:%M:%S %p"];

/// Formats that match all of these texts. There are two if the order of day and month is not known.
pub(crate) fn formats(texts: &[&str]) -> Vec<TimeFormat> {
    let Some(first) = texts.first() else {
        return Vec::new();
    };
    let times_of_day = match first.ends_with(['M', 'm']) {
        true => &TIMES_OF_DAY_12[..],
        false => &TIMES_OF_DAY,
    };
    let mut found = Vec::new();
    for day in DAYS {
        let patterns = times_of_day.iter().map(|time| format!("{day}{time}"));
        let format = patterns.map(TimeFormat::Pattern).find(|format| {
            let reader = TimeReader::new(format.clone(), TimeZone::UTC);
            texts.iter().all(|text| reader.read(text).is_ok())
        });
        found.extend(format);
    }
    found
}

/// Whether a text may be a date: day and month or month and day, and a year of four digits, with the same separator
/// between them; or the year first.
pub(crate) fn may_be_date(text: &str) -> bool {
    let date = text.split_once(':').map_or(text, |(date, _)| date);
    let Some(separator) = date.find(['.', '/', '-', ' ']) else {
        return false;
    };
    let mut parts = date.split(&date[separator..=separator]);
    let mut part = || parts.next().unwrap_or_default();
    let (first, second, third) = (part(), part(), part());
    let is_short =
        |part: &str| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = second.len() == 3 && second.bytes().all(|byte| byte.is_ascii_alphabetic());
    let has_year = third.len() >= 4 && third.bytes().take(4).all(|byte| byte.is_ascii_digit());
    let day = third.split(' ').next().unwrap_or_default();
    let begins_with_year = first.len() == 4 && first.bytes().all(|byte| byte.is_ascii_digit());
    is_short(first) && (is_name || is_short(second)) && has_year
        || begins_with_year && is_short(second) && is_short(day)
}

/// The pattern of times such as 20140601001000, a date with the time of day to the second.
pub(crate) const COMPACT_SECONDS: &str = "%Y%m%d%H%M%S";

/// The pattern of a time that is written as a number without separators: year and day of the year, or year, month, day
/// and hour, perhaps with minute and second. The years are 1900 to 2099.
pub(crate) fn compact(text: &str) -> Option<&'static str> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i16>().ok();
    let year = part(0, 4).filter(|year| (1900..2100).contains(year))?;
    if text.len() == 7 {
        return (1..=366).contains(&part(4, 7)?).then_some("%Y%j");
    }
    let (month, day) = (part(4, 6)?, part(6, 8)?);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let is_below = |from: usize, limit: i16| part(from, from + 2).is_some_and(|own| own < limit);
    let fits = is_below(8, 24)
        && (text.len() < 12 || is_below(10, 60))
        && (text.len() < 14 || is_below(12, 60));
    match text.len() {
        _ if !fits => None,
        10 => Some("%Y%m%d%H"),
        12 => Some("%Y%m%d%H%M"),
        14 => Some(COMPACT_SECONDS),
        _ => None,
    }
}

/// Whether a text is a time of day, such as `00:10`, `9:05:30.5` or `9:05 AM`.
pub(crate) fn is_time_of_day(text: &str) -> bool {
    let half = ["AM", "PM", "am", "pm"];
    let text = half
        .iter()
        .find_map(|half| text.strip_suffix(half))
        .map_or(text, str::trim_end);
    let mut parts = text.split(':');
    let is_pair = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let hour = parts.next().unwrap_or_default();
    let minute = parts.next().unwrap_or_default();
    let second = parts.next().unwrap_or("00");
    let second = second.split('.').next().unwrap_or_default();
    (is_pair(hour) || hour.len() == 1 && hour.bytes().all(|byte| byte.is_ascii_digit()))
        && is_pair(minute)
        && is_pair(second)
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_day_and_month_is_known_or_not() {
        for (texts, expected) in [
            (&["01.06.2014"][..], &["%d.%m.%Y"][..]),
            (
                &["01.06.2014 00:10", "13.06.2014 24:00"],
                &["%d.%m.%Y %H:%M"],
            ),
            (&["1.6.2014 00:10:05.5"], &["%d.%m.%Y %H:%M:%S%.f"]),
            (&["01/06/2014", "13/06/2014"], &["%d/%m/%Y"]),
            (&["06/01/2014", "06/13/2014"], &["%m/%d/%Y"]),
            (
                &["06/01/2014 12:10 AM", "06/13/2014 1:10 PM"],
                &["%m/%d/%Y %I:%M %p"],
            ),
            (&["06/01/2014", "07/02/2014"], &["%d/%m/%Y", "%m/%d/%Y"]),
            (&["01-Jun-2014"], &["%d-%b-%Y"]),
            (&["2014-06-01 9:05 AM"], &["%Y-%m-%d %I:%M %p"]),
            (&["2014/6/1 9:05"], &["%Y/%m/%d %H:%M"]),
            (&["06/01/2014", "2014"], &[]),
            (&["1.5"], &[]),
        ] {
            let found: Vec<String> = formats(texts)
                .into_iter()
                .map(|format| match format {
                    TimeFormat::Pattern(pattern) => pattern,
                    other => other.to_string(),
                })
                .collect();
            assert_eq!(found, expected, "{texts:?}");
        }
    }

    #[test]
    fn numbers_that_may_be_dates() {
        for (text, pattern) in [
            ("2024001", Some("%Y%j")),
            ("2024010112", Some("%Y%m%d%H")),
            ("202401011200", Some("%Y%m%d%H%M")),
            ("20240101120059", Some(COMPACT_SECONDS)),
            ("2024367", None),
            ("2024000", None),
            ("2024010124", None),
            ("202401011260", None),
            ("202402301200", None),
            ("20240101120060", None),
            ("1704067200", None),
            ("1704067200000", None),
            ("20240101", None),
            ("2024", None),
            ("", None),
        ] {
            assert_eq!(compact(text), pattern, "{text}");
        }
    }

    #[test]
    fn times_of_day() {
        for text in [
            "00:10",
            "9:05",
            "24:00",
            "09:05:30",
            "09:05:30.25",
            "9:05 AM",
            "12:05pm",
        ] {
            assert!(is_time_of_day(text), "{text}");
        }
        for text in [
            "",
            "10",
            "1:5",
            "10:5",
            "a:10",
            "10:10:10:10",
            "2014-06-01 00:10",
        ] {
            assert!(!is_time_of_day(text), "{text}");
        }
    }
}
