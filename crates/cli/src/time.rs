//! Parses and formats times and widths.
//!
//! ```text
//! in    2014-06-01T00:10:00Z   2014-06-01 00:10[:00[.5]]   2014-06-01   1401581400[.25]
//!       1401581400250 (ms)     ... us, ns by magnitude      any strftime pattern
//!       2014-06-01T02:10:00[Europe/Paris]   2014-06-01T02:10:00+02:00[Europe/Paris]
//! out   2014-06-01T00:10:00Z, or with the offset of the selected zone
//! ```
//!
//! Times without an offset belong to a zone (UTC unless the user names one). A local time that clocks repeat or skip
//! has a [`Moment`] variant of its own: an import decides with `import::local_times` which instant it stands for; on
//! the command line it is the first of two, or the instant after the gap. A zone in brackets applies to its time; an
//! offset before it must be one that the zone has then.
//!
//! `24:00` is midnight at the end of its day. The second 60 of a leap second is rejected: time since 1970 cannot
//! represent it, and it would replace the second before or after it.

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// Nanoseconds since 1970 in UTC: wide enough for every unit of a series.
pub(crate) type Nanos = i128;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND;

/// The meaning of a written time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// One instant.
    At(Nanos),
    /// Two instants: a local time that occurs twice, because clocks are set back.
    Ambiguous {
        /// Before the clock change.
        earlier: Nanos,
        /// After the clock change.
        later: Nanos,
    },
    /// No instant: a local time that clocks skip when they are set forward.
    Missing {
        /// The instant after the gap: the time that clocks would have shown had they been set forward later.
        shifted: Nanos,
    },
}

impl Moment {
    /// The instant, the first of two instants, or the instant after a gap.
    pub(crate) fn compatible(self) -> Nanos {
        match self {
            Self::At(instant)
            | Self::Ambiguous {
                earlier: instant, ..
            }
            | Self::Missing { shifted: instant } => instant,
        }
    }
}

/// Maximum digits of the whole part in any unit: 2^63 seconds in nanoseconds have that many, and as many seconds fit in
/// 128 bits as nanoseconds.
const WHOLE_DIGITS_MAX: usize = 28;

/// Unit of a number that counts from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epoch {
    /// Seconds, also with a fraction.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Minutes, also with a fraction; these and longer units are never guessed.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
}

impl Epoch {
    /// The unit in nanoseconds.
    pub(crate) const fn nanos(self) -> i128 {
        match self {
            Self::Seconds => NANOS_PER_SECOND,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
            Self::Minutes => 60 * NANOS_PER_SECOND,
            Self::Hours => 3_600 * NANOS_PER_SECOND,
            Self::Days => NANOS_PER_DAY,
        }
    }

    /// The unit in which a number of this magnitude is a date between 1973 and 5138: measured
    /// data are rarely older, and the four ranges do not overlap.
    pub(crate) fn of_magnitude(value: i128) -> Self {
        match value.unsigned_abs() {
            0..100_000_000_000 => Self::Seconds,
            100_000_000_000..100_000_000_000_000 => Self::Millis,
            100_000_000_000_000..100_000_000_000_000_000 => Self::Micros,
            _ => Self::Nanos,
        }
    }
}

/// Format of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    /// RFC 3339, or date and time of day without an offset, or a date.
    Iso,
    /// A number that counts from 1970.
    Epoch(Epoch),
    /// A number of days in Excel's calendar: 1 is 1900-01-01, and the fraction is the time of day.
    Excel,
    /// A strftime pattern.
    Pattern(String),
}

impl std::fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Iso => write!(f, "date and time (ISO 8601)"),
            Self::Epoch(Epoch::Seconds) => write!(f, "seconds since 1970"),
            Self::Epoch(Epoch::Millis) => write!(f, "milliseconds since 1970"),
            Self::Epoch(Epoch::Micros) => write!(f, "microseconds since 1970"),
            Self::Epoch(Epoch::Nanos) => write!(f, "nanoseconds since 1970"),
            Self::Epoch(Epoch::Minutes) => write!(f, "minutes since 1970"),
            Self::Epoch(Epoch::Hours) => write!(f, "hours since 1970"),
            Self::Epoch(Epoch::Days) => write!(f, "days since 1970"),
            Self::Excel => write!(f, "days of Excel"),
            Self::Pattern(pattern) => write!(f, "pattern {pattern}"),
        }
    }
}

impl TimeFormat {
    /// Parses the value of `--time-format`.
    pub(crate) fn named(text: &str) -> Result<Self, String> {
        Ok(match text {
            "iso" | "rfc3339" => Self::Iso,
            "s" => Self::Epoch(Epoch::Seconds),
            "ms" => Self::Epoch(Epoch::Millis),
            "us" => Self::Epoch(Epoch::Micros),
            "ns" => Self::Epoch(Epoch::Nanos),
            "min" => Self::Epoch(Epoch::Minutes),
            "h" => Self::Epoch(Epoch::Hours),
            "d" => Self::Epoch(Epoch::Days),
            "excel" => Self::Excel,
            _ if text.contains('%') => Self::Pattern(text.to_owned()),
            _ => {
                return Err(format!(
                    "`{text}` is not a time format: give iso, s, ms, us, ns, min, h, d, excel, or a pattern such as \
                     '%d.%m.%Y %H:%M'"
                ));
            }
        })
    }

    /// The format that matches all of these times, if there is one.
    pub(crate) fn detect<'a>(samples: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for text in samples {
            let this = match decimal(text) {
                Some(_) if is_compact_date(text) => Self::Pattern(COMPACT_DATE.to_owned()),
                Some((whole, _)) => Self::Epoch(Epoch::of_magnitude(whole)),
                None if read_iso(text, &TimeZone::UTC).is_ok() => Self::Iso,
                None => return None,
            };
            found = match found {
                None => Some(this),
                Some(known) if known == this => Some(known),
                // Small numbers look like seconds: the largest number decides.
                Some(Self::Epoch(a)) => match this {
                    Self::Epoch(b) => Some(Self::Epoch(if a.nanos() < b.nanos() { a } else { b })),
                    // Among other numbers, one that could be a compact date is a number too.
                    Self::Pattern(_) => Some(Self::Epoch(a)),
                    Self::Iso | Self::Excel => return None,
                },
                Some(Self::Pattern(_)) if matches!(this, Self::Epoch(_)) => Some(this),
                Some(_) => return None,
            };
        }
        found
    }
}

/// A date such as 20140601.
const COMPACT_DATE: &str = "%Y%m%d";

/// Whether a number is a date between 1900 and 2199: as seconds such numbers would lie in the early seventies.
fn is_compact_date(text: &str) -> bool {
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<i16>().ok();
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (part(0..4), part(4..6), part(6..8)) else {
        return false;
    };
    let short = |number: i16| i8::try_from(number).unwrap_or(0);
    (1900..2200).contains(&year) && Date::new(year, short(month), short(day)).is_ok()
}

/// Parses times of one format and zone.
#[derive(Clone, Debug)]
pub(crate) struct TimeReader {
    format: TimeFormat,
    zone: TimeZone,
}

impl TimeReader {
    pub(crate) fn new(format: TimeFormat, zone: TimeZone) -> Self {
        Self { format, zone }
    }

    pub(crate) fn format(&self) -> &TimeFormat {
        &self.format
    }

    /// Zone of times without an offset.
    pub(crate) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Whether a time without an offset may stand for two instants or for none. A time with a zone in brackets always
    /// may.
    pub(crate) fn is_local(&self) -> bool {
        !matches!(self.format, TimeFormat::Epoch(_)) && self.zone.to_fixed_offset().is_err()
    }

    /// Parses a time.
    pub(crate) fn read(&self, text: &str) -> Result<Moment, String> {
        let text = text.trim();
        match &self.format {
            TimeFormat::Iso => read_iso(text, &self.zone),
            TimeFormat::Epoch(epoch) => read_epoch(text, *epoch).map(Moment::At),
            TimeFormat::Excel => read_excel(text, &self.zone),
            TimeFormat::Pattern(pattern) => read_pattern(text, pattern, &self.zone),
        }
    }
}

/// Parses a time on the command line (`--from`, `--to`, `--origin`) in any known format, or relative to the present.
pub(crate) fn read_any(text: &str, zone: &TimeZone) -> Result<Nanos, String> {
    let text = text.trim();
    if is_relative(text) {
        let (now, zone) = (
            tidalite::Timestamp::now(),
            tidalite::Zone::from(zone.clone()),
        );
        let time = zone.parse_relative(text, now);
        return time.map(|time| time.0.into()).map_err(|_| {
            format!("`{text}` is not a time like now, today, -1d, now-6h or today+8h")
        });
    }
    let moment = match decimal(text) {
        // Four digits are a year: `--from 2014` means its first day.
        Some((year, 0)) if text.len() == 4 => read_iso(&format!("{year}-01-01"), zone),
        Some(_) if is_compact_date(text) => read_pattern(text, COMPACT_DATE, zone),
        Some((whole, _)) => read_epoch(text, Epoch::of_magnitude(whole)).map(Moment::At),
        None if text.len() == 7 && text.as_bytes().get(4) == Some(&b'-') => {
            read_iso(&format!("{text}-01"), zone)
        }
        None => read_iso(text, zone),
    };
    moment.map(Moment::compatible)
}

/// Whether a text is meant as a time relative to the present: it begins with a word for a time, or is a signed number
/// with a unit.
pub(crate) fn is_relative(text: &str) -> bool {
    let words = ["now", "today", "yesterday", "tomorrow"];
    let is_step = text.starts_with(['+', '-']) && text.ends_with(|c: char| c.is_ascii_alphabetic());
    is_step || words.iter().any(|word| text.starts_with(word))
}

fn read_iso(text: &str, zone: &TimeZone) -> Result<Moment, String> {
    let complaint =
        || format!("`{text}` is not a time like 2014-06-01T00:10:00Z or 2014-06-01 00:10");
    let bytes = text.as_bytes();
    // A date has two hyphens; a sign after it belongs to an offset.
    if bytes.len() < 8 || !bytes[0].is_ascii_digit() {
        return Err(complaint());
    }
    let swapped;
    let text = if bytes[4] == b'/' && bytes.is_ascii() {
        swapped = text.replacen('/', "-", 2);
        &swapped
    } else {
        text
    };
    let padded;
    let text = match text.as_bytes().get(10..13) {
        // An hour of one digit: `2014-06-01 9:05`.
        Some([b' ' | b'T', b'0'..=b'9', b':']) => {
            padded = format!("{}0{}", &text[..11], &text[11..]);
            &padded
        }
        _ => text,
    };
    let ended;
    let text = match at_end_of_day(text) {
        Some(next_day) => {
            ended = next_day;
            &ended
        }
        None => text,
    };
    if let Some((written, annotation)) = text.split_once('[') {
        return read_annotated(text, written, annotation);
    }
    if has_offset(text) {
        let instant = text.parse::<Timestamp>().map_err(|_| complaint())?;
        let nanos = instant.as_nanosecond();
        if nanos.div_euclid(NANOS_PER_SECOND).rem_euclid(60) == 59 && says_second_60(text) {
            return Err(leap_second(text));
        }
        return Ok(Moment::At(nanos));
    }
    let civil = text.parse::<DateTime>().map_err(|_| complaint())?;
    if civil.second() == 59 && says_second_60(text) {
        return Err(leap_second(text));
    }
    in_zone(civil, zone).map_err(|_| complaint())
}

fn has_offset(text: &str) -> bool {
    let rest = text.as_bytes().get(10..).unwrap_or_default();
    rest.iter()
        .any(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-'))
}

/// Offset of the time of day in a date with one.
fn time_of_day(text: &str) -> Option<usize> {
    let at = text
        .bytes()
        .position(|byte| matches!(byte, b'T' | b't' | b' '))?;
    Some(at + 1)
}

/// Rewrites a time at 24:00 to the same instant at 0:00 of the next day.
fn at_end_of_day(text: &str) -> Option<String> {
    let at = time_of_day(text)?;
    let rest = text.get(at..)?.strip_prefix("24")?;
    let nothing = rest
        .bytes()
        .take_while(|byte| !matches!(byte, b'Z' | b'z' | b'+' | b'-' | b'['))
        .all(|byte| matches!(byte, b'0' | b':' | b'.' | b',' | b' '));
    let next = text[..at - 1].parse::<Date>().ok()?.tomorrow().ok()?;
    nothing.then(|| format!("{next}{}00{rest}", &text[at - 1..at]))
}

/// Whether the second is written as 60, which jiff parses as 59.
fn says_second_60(text: &str) -> bool {
    let Some(rest) = time_of_day(text).and_then(|at| text.get(at..)) else {
        return false;
    };
    match rest.as_bytes() {
        [_, _, b':', _, _, b':', b'6', b'0', ..] => true,
        [_, _, minute, _, b'6', b'0', ..] => minute.is_ascii_digit(),
        _ => false,
    }
}

fn leap_second(text: &str) -> String {
    format!(
        "`{text}` is a leap second, which times since 1970 cannot represent: write :59 or the next minute"
    )
}

/// A time with its zone in brackets, as Java's `ZonedDateTime` and JavaScript's Temporal write it. Other annotations of
/// RFC 9557, such as a calendar, are rejected, because jiff would ignore them.
fn read_annotated(text: &str, written: &str, annotation: &str) -> Result<Moment, String> {
    if annotation.find(']') != Some(annotation.len() - 1) || annotation.contains('=') {
        return Err(format!(
            "`{text}`: only one time zone in brackets is allowed, at the end: write it like 2014-06-01T02:10:00[Europe/Paris]"
        ));
    }
    let complaint = |why| {
        format!(
            "`{text}` is not a time in the zone that it names ({why}): correct the zone or the offset, or omit one of them"
        )
    };
    let zoned: Zoned = text.parse().map_err(complaint)?;
    if zoned.second() == 59 && says_second_60(text) {
        return Err(leap_second(text));
    }
    if has_offset(written) {
        return Ok(Moment::At(zoned.timestamp().as_nanosecond()));
    }
    let civil = written.parse::<DateTime>().map_err(complaint)?;
    in_zone(civil, zoned.time_zone()).map_err(complaint)
}

fn in_zone(civil: DateTime, zone: &TimeZone) -> Result<Moment, jiff::Error> {
    let at = |offset: Offset| offset.to_timestamp(civil).map(Timestamp::as_nanosecond);
    Ok(match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => Moment::At(at(offset)?),
        AmbiguousOffset::Fold { before, after } => Moment::Ambiguous {
            earlier: at(before)?,
            later: at(after)?,
        },
        AmbiguousOffset::Gap { before, .. } => Moment::Missing {
            shifted: at(before)?,
        },
    })
}

/// Whole part (truncated) and nanoseconds of its fraction (0..10^9, same sign as the number).
fn decimal(text: &str) -> Option<(i128, i128)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || whole.len() > WHOLE_DIGITS_MAX {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    let mut billionths = 0_i128;
    for place in 0..9 {
        let digit = fraction
            .as_bytes()
            .get(place)
            .map_or(0, |byte| i128::from(byte - b'0'));
        billionths = billionths * 10 + digit;
    }
    Some(if negative {
        (-whole, -billionths)
    } else {
        (whole, billionths)
    })
}

fn read_epoch(text: &str, epoch: Epoch) -> Result<Nanos, String> {
    let Some((whole, billionths)) = decimal(text) else {
        return Err(format!(
            "`{text}` is not a number of {}",
            TimeFormat::Epoch(epoch)
        ));
    };
    Ok(whole * epoch.nanos() + billionths * epoch.nanos() / NANOS_PER_SECOND)
}

/// A day number of Excel, which is a local time. Excel counts a day that did not exist, 1900-02-29, so numbers before
/// March of 1900 are refused. The fraction is rounded to the millisecond, finer than the display of Excel.
fn read_excel(text: &str, zone: &TimeZone) -> Result<Moment, String> {
    /// The day numbers of 1900-03-01 and of the end of the calendar.
    const DAYS: std::ops::Range<i128> = 61..2_958_466;
    const NANOS_PER_MILLI: i128 = 1_000_000;
    let complaint = || format!("`{text}` is not a day number of Excel, such as 45292.5");
    let (days, billionths) = decimal(text)
        .filter(|(days, _)| DAYS.contains(days))
        .ok_or_else(complaint)?;
    let nanos = days * NANOS_PER_DAY + billionths * NANOS_PER_DAY / 1_000_000_000;
    let millis = (nanos + NANOS_PER_MILLI / 2) / NANOS_PER_MILLI;
    let millis = i64::try_from(millis).map_err(|_| complaint())?;
    let civil = jiff::civil::date(1899, 12, 30)
        .at(0, 0, 0, 0)
        .checked_add(jiff::SignedDuration::from_millis(millis))
        .map_err(|_| complaint())?;
    in_zone(civil, zone).map_err(|_| complaint())
}

fn read_pattern(text: &str, pattern: &str, zone: &TimeZone) -> Result<Moment, String> {
    let complaint =
        |why: jiff::Error| format!("`{text}` does not fit the pattern {pattern}: {why}");
    let (broken, at_end) = match BrokenDownTime::parse(pattern, text) {
        Ok(broken) => (broken, false),
        // 24:00 is midnight at the end of the day.
        Err(why) => match text.contains("24:00") {
            false => return Err(complaint(why)),
            true => {
                let begin = text.replacen("24:00", "00:00", 1);
                let broken = BrokenDownTime::parse(pattern, &begin);
                let midnight =
                    |broken: &BrokenDownTime| broken.to_time().is_ok_and(|t| t == Time::midnight());
                match broken {
                    Ok(broken) if midnight(&broken) => (broken, true),
                    _ => return Err(complaint(why)),
                }
            }
        },
    };
    if broken.second() == Some(59) && pattern_says_second_60(text, pattern) {
        return Err(leap_second(text));
    }
    if broken.offset().is_some() || broken.timestamp().is_some() {
        let instant = broken.to_timestamp().map_err(complaint)?;
        let more = if at_end { NANOS_PER_DAY } else { 0 };
        return Ok(Moment::At(instant.as_nanosecond() + more));
    }
    let mut date = broken.to_date().map_err(complaint)?;
    if at_end {
        date = date.tomorrow().map_err(complaint)?;
    }
    let civil = match broken.to_time() {
        Ok(time) => date.to_datetime(time),
        Err(_) => date.at(0, 0, 0, 0),
    };
    in_zone(civil, zone).map_err(complaint)
}

/// Whether a text parsed with second 59 says 60: if one of its `60` cannot be replaced by 61, that one is the second.
fn pattern_says_second_60(text: &str, pattern: &str) -> bool {
    text.match_indices("60").any(|(at, found)| {
        let other = format!("{}61{}", &text[..at], &text[at + found.len()..]);
        BrokenDownTime::parse(pattern, other).is_err()
    })
}

/// Whether this text begins like a date, to distinguish a line of data from a header.
pub(crate) fn looks_like_date(text: &str) -> bool {
    read_iso(text, &TimeZone::UTC).is_ok()
}

/// Parses the zone of `--tz`.
pub(crate) fn zone_named(name: &str) -> Result<TimeZone, String> {
    if name.eq_ignore_ascii_case("local") {
        return Ok(TimeZone::system());
    }
    tidalite::Zone::named(name)
        .map(TimeZone::from)
        .map_err(|_| {
            format!(
                "`{name}` is not a time zone: give one like Europe/Berlin, UTC, local or +02:00"
            )
        })
}

/// The duration of a width or an age, which are not negative.
pub(crate) fn duration(nanos: i64) -> std::time::Duration {
    std::time::Duration::from_nanos(nanos.unsigned_abs())
}

/// Parses a maximum age: a width, or zero (`0`, `0s`).
pub(crate) fn age_nanos(text: &str) -> Result<i64, String> {
    let unit = text.trim().trim_start_matches('0');
    let none = text.trim().starts_with('0') && !unit.starts_with(|c: char| c.is_ascii_digit());
    match none && (unit.is_empty() || width_nanos(&format!("1{unit}")).is_ok()) {
        true => Ok(0),
        false => width_nanos(text),
    }
}

/// Parses a width such as `15m`, `1h30m`, `1d` to nanoseconds; always positive.
pub(crate) fn width_nanos(text: &str) -> Result<i64, String> {
    const EXAMPLES: &str = "give one like 500ms, 10s, 15m, 1h30m, 1d or 1w";
    let bad = || format!("`{text}` is not a duration: {EXAMPLES}");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad());
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail
            .bytes()
            .take_while(|byte| !byte.is_ascii_digit())
            .count();
        let (unit, tail) = tail.split_at(letters);
        let number: i64 = number.parse().map_err(|_| bad())?;
        let nanos: i64 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60 * 1_000_000_000,
            "h" => 3_600 * 1_000_000_000,
            "d" => 86_400 * 1_000_000_000,
            "w" => 7 * 86_400 * 1_000_000_000,
            "mo" | "month" | "y" | "year" => {
                return Err(format!(
                    "`{text}`: months and years differ in length, so they are no duration; {EXAMPLES}"
                ));
            }
            _ => return Err(bad()),
        };
        total = number
            .checked_mul(nanos)
            .and_then(|n| total.checked_add(n))
            .ok_or_else(bad)?;
        rest = tail;
    }
    if total == 0 {
        return Err(format!(
            "`{text}`: a width must be greater than zero; {EXAMPLES}"
        ));
    }
    Ok(total)
}

/// Formats times in one zone.
#[derive(Clone, Debug)]
pub(crate) struct TimeShow {
    zone: TimeZone,
}

impl TimeShow {
    pub(crate) fn new(zone: TimeZone) -> Self {
        Self { zone }
    }

    /// RFC 3339; beyond the calendar (years after 9999) the number of nanoseconds.
    pub(crate) fn show(&self, nanos: Nanos) -> String {
        let Ok(timestamp) = Timestamp::from_nanosecond(nanos) else {
            return format!("{nanos}ns");
        };
        if self.zone == TimeZone::UTC {
            return timestamp.to_string();
        }
        let zoned = timestamp.to_zoned(self.zone.clone());
        let offset = zoned.offset();
        timestamp.display_with_offset(offset).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTC: TimeZone = TimeZone::UTC;

    fn seconds(text: &str) -> i128 {
        read_any(text, &UTC).unwrap() / NANOS_PER_SECOND
    }

    #[test]
    fn the_usual_ways_to_write_an_instant_agree() {
        for text in [
            "2014-06-01T00:10:00Z",
            "2014-06-01t00:10:00z",
            "2014-06-01T02:10:00+02:00",
            "2014-06-01 00:10:00+00:00",
            "2014-06-01 00:10:00.000",
            "2014-06-01 00:10",
            "2014/06/01 00:10",
            "1401581400",
            "1401581400.0",
            "1401581400000",
            "1401581400000000",
            "1401581400000000000",
        ] {
            assert_eq!(seconds(text), 1_401_581_400, "{text}");
        }
        assert_eq!(seconds("2014-06-01"), 1_401_580_800);
        assert_eq!(seconds("2014-06"), 1_401_580_800);
        assert_eq!(seconds("2014"), 1_388_534_400);
    }

    #[test]
    fn fractions_keep_their_nanoseconds() {
        assert_eq!(read_any("1.000000001", &UTC), Ok(1_000_000_001));
        assert_eq!(read_any("-1.5", &UTC), Ok(-1_500_000_000));
        assert_eq!(
            read_any("1970-01-01T00:00:00.123456789Z", &UTC),
            Ok(123_456_789)
        );
    }

    #[test]
    fn garbage_is_named() {
        for text in [
            "",
            "x",
            "13.06.2014",
            "06/01/2014",
            "2014-13-01",
            "2014-06-01T25:00Z",
            "1e9",
            "é0000000000",
        ] {
            let error = read_any(text, &UTC).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_zone_applies_to_times_without_offset_only() {
        let zone = zone_named("America/New_York").unwrap();
        let hour = 3_600 * NANOS_PER_SECOND;
        let utc = read_any("2013-01-01 06:00", &UTC).unwrap();
        assert_eq!(read_any("2013-01-01 01:00", &zone), Ok(utc));
        assert_eq!(read_any("2013-01-01T06:00:00Z", &zone), Ok(utc));
        // Clocks go back at 2:00: the first 1:30 is taken; forward: 2:30 means 3:30.
        let fold = read_any("2013-11-03 01:30", &zone).unwrap();
        assert_eq!(fold, read_any("2013-11-03T05:30:00Z", &UTC).unwrap());
        let gap = read_any("2013-03-10 02:30", &zone).unwrap();
        assert_eq!(gap, read_any("2013-03-10 01:30", &zone).unwrap() + hour);
        assert!(zone_named("Mars/Olympus").is_err());
    }

    #[test]
    fn a_zone_in_brackets_holds_for_its_time() {
        let noon = read_any("2014-06-01T12:00:00Z", &UTC).unwrap();
        let other = zone_named("America/New_York").unwrap();
        for text in [
            "2014-06-01T14:00:00[Europe/Paris]",
            "2014-06-01 14:00[Europe/Paris]",
            "2014/06/01 14:00[Europe/Paris]",
            "2014-06-01T14:00:00+02:00[Europe/Paris]",
            "2014-06-01T12:00:00Z[Europe/Paris]",
            "2014-06-01T08:00:00[America/Port-au-Prince]",
            "2014-06-01T14:00:00[+02:00]",
        ] {
            for zone in [&UTC, &other] {
                assert_eq!(read_any(text, zone), Ok(noon), "{text}");
            }
            assert_eq!(TimeFormat::detect([text]), Some(TimeFormat::Iso), "{text}");
        }
        // Clocks go back from 3:00 to 2:00: without an offset 2:30 is the first of two instants.
        let first = read_any("2014-10-26T02:30:00[Europe/Paris]", &UTC);
        assert_eq!(first, read_any("2014-10-26T00:30:00Z", &UTC));
        let second = read_any("2014-10-26T02:30:00+01:00[Europe/Paris]", &UTC);
        assert_eq!(second, read_any("2014-10-26T01:30:00Z", &UTC));
        for text in [
            "2014-06-01T14:00:00+01:00[Europe/Paris]",
            "2014-06-01T14:00:00[Mars/Olympus]",
            "2014-06-01T14:00:00[]",
            "2014-06-01T14:00:00[Europe/Paris",
            "2014-06-01T14:00:00[Europe/Paris] ?",
            "2014-06-01T14:00:00[Europe/Paris][u-ca=iso8601]",
            "2014-06-01T14:00:00Z[u-ca=hebrew]",
            "2014-06-01[u-ca=hebrew]",
        ] {
            let error = read_any(text, &UTC).unwrap_err();
            assert!(error.contains(text), "{error}");
            assert_eq!(TimeFormat::detect([text]), None, "{text}");
        }
    }

    #[test]
    fn detection_picks_a_format_that_fits_all_samples() {
        let detect = |samples: &[&str]| TimeFormat::detect(samples.iter().copied());
        assert_eq!(
            detect(&["2014-06-01", "2014-06-01T00:10:00Z"]),
            Some(TimeFormat::Iso)
        );
        assert_eq!(
            detect(&["1401581400"]),
            Some(TimeFormat::Epoch(Epoch::Seconds))
        );
        assert_eq!(
            detect(&["0", "1401581400000"]),
            Some(TimeFormat::Epoch(Epoch::Millis))
        );
        assert_eq!(detect(&["1401581400", "2014-06-01"]), None);
        assert_eq!(detect(&["01.06.2014"]), None);
        let dates = Some(TimeFormat::Pattern(COMPACT_DATE.to_owned()));
        assert_eq!(detect(&["20140601", "20140602"]), dates);
        let seconds = Some(TimeFormat::Epoch(Epoch::Seconds));
        assert_eq!(detect(&["20140601", "20140661"]), seconds);
        assert_eq!(detect(&["20141301", "20140601"]), seconds);
        assert_eq!(detect(&["20140601", "2014-06-01"]), None);
        assert_eq!(detect(&[]), None);
    }

    #[test]
    fn patterns_with_and_without_time_of_day_and_offset() {
        let read = |pattern: &str, text: &str| {
            let format = TimeFormat::named(pattern).unwrap();
            TimeReader::new(format, UTC)
                .read(text)
                .map(Moment::compatible)
        };
        let day = Ok(1_401_580_800 * NANOS_PER_SECOND);
        assert_eq!(read("%d.%m.%Y", "01.06.2014"), day);
        assert_eq!(read("%d.%m.%Y %H:%M", "01.06.2014 00:00"), day);
        assert_eq!(read("%m/%d/%Y %I:%M %p", "06/01/2014 12:00 AM"), day);
        assert_eq!(read("%d.%m.%Y %H:%M %z", "01.06.2014 02:00 +0200"), day);
        assert!(read("%d.%m.%Y", "2014-06-01").is_err());
        assert!(TimeFormat::named("sometimes").is_err());
    }

    #[test]
    fn a_local_time_can_be_ambiguous_or_missing() {
        let at = |text| read_any(text, &UTC).unwrap();
        let twice = |earlier, later| {
            Ok(Moment::Ambiguous {
                earlier: at(earlier),
                later: at(later),
            })
        };
        let berlin = zone_named("Europe/Berlin").unwrap();
        let lord_howe = zone_named("Australia/Lord_Howe").unwrap();
        for (zone, text, expected) in [
            (
                &berlin,
                "2024-10-27 02:30",
                twice("2024-10-27T00:30Z", "2024-10-27T01:30Z"),
            ),
            (
                &UTC,
                "2024-10-27T02:30[Europe/Berlin]",
                twice("2024-10-27T00:30Z", "2024-10-27T01:30Z"),
            ),
            (
                &lord_howe,
                "2024-04-07 01:45",
                twice("2024-04-06T14:45Z", "2024-04-06T15:15Z"),
            ),
            (
                &berlin,
                "2024-03-31T02:30",
                Ok(Moment::Missing {
                    shifted: at("2024-03-31T01:30Z"),
                }),
            ),
            (
                &berlin,
                "2024-10-27T02:30+01:00",
                Ok(Moment::At(at("2024-10-27T01:30Z"))),
            ),
        ] {
            assert_eq!(read_iso(text, zone), expected, "{text}");
        }
        let german = read_pattern("27.10.2024 02:30", "%d.%m.%Y %H:%M", &berlin);
        assert_eq!(german, twice("2024-10-27T00:30Z", "2024-10-27T01:30Z"));
    }

    #[test]
    fn the_end_of_a_day_may_be_written_as_24() {
        let berlin = zone_named("Europe/Berlin").unwrap();
        for (text, zone, same) in [
            ("2024-02-28 24:00", &UTC, "2024-02-29 00:00"),
            ("2024-12-31T24:00:00.000Z", &UTC, "2025-01-01T00:00Z"),
            ("2024-12-31T24:00+01:00", &UTC, "2024-12-31T23:00Z"),
            ("2024/06/30 24:00", &berlin, "2024-07-01 00:00"),
            ("20240630T240000", &UTC, "2024-07-01 00:00"),
            ("2024-06-30T24:00[Europe/Berlin]", &UTC, "2024-06-30T22:00Z"),
        ] {
            assert_eq!(read_any(text, zone), read_any(same, zone), "{text}");
            assert!(read_any(text, zone).is_ok(), "{text}");
        }
        for wrong in [
            "2024-06-30 24:01",
            "2024-06-30 24:00:01",
            "2024-06-31 24:00",
        ] {
            assert!(read_any(wrong, &UTC).is_err(), "{wrong}");
        }
        let pattern = |text| read_pattern(text, "%d.%m.%Y %H:%M:%S %z", &UTC);
        assert_eq!(
            pattern("31.12.2024 24:00:00 +0100"),
            pattern("01.01.2025 00:00:00 +0100")
        );
        assert!(pattern("31.12.2024 24:00:01 +0100").is_err());
        let pattern = |text| read_pattern(text, "%d.%m.%Y %H:%M", &berlin);
        assert_eq!(pattern("31.12.2024 24:00"), pattern("01.01.2025 00:00"));
    }

    #[test]
    fn a_leap_second_is_refused() {
        for text in [
            "2016-12-31T23:59:60Z",
            "2016-12-31 23:59:60.5",
            "20161231T235960Z",
            "2017-01-01T00:59:60+01:00",
            "2017-01-01T00:59:60[Europe/Berlin]",
        ] {
            let error = read_any(text, &UTC).unwrap_err();
            assert!(error.contains("leap second"), "{error}");
        }
        assert!(read_any("2016-12-31T23:59:59.60Z", &UTC).is_ok());
        let pattern = |text| read_pattern(text, "%d.%m.%Y %H:%M:%S%.f", &UTC);
        assert!(pattern("31.12.1960 23:59:60.60").is_err());
        assert!(pattern("31.12.1960 23:59:59.60").is_ok());
    }

    #[test]
    fn days_of_excel_are_local_times() {
        let berlin = zone_named("Europe/Berlin").unwrap();
        for (text, zone, same) in [
            ("45292", &UTC, "2024-01-01T00:00Z"),
            ("45292.5", &UTC, "2024-01-01T12:00Z"),
            // 0:15, as Excel writes it with ten digits.
            ("45292.0104166667", &UTC, "2024-01-01T00:15Z"),
            ("45474.5", &berlin, "2024-07-01T10:00Z"),
            ("61", &UTC, "1900-03-01T00:00Z"),
        ] {
            let reader = TimeReader::new(TimeFormat::Excel, zone.clone());
            let read = reader.read(text).map(Moment::compatible);
            assert_eq!(read, read_any(same, &UTC), "{text}");
        }
        for wrong in ["60", "-1", "x", "99999999"] {
            let reader = TimeReader::new(TimeFormat::Excel, UTC);
            assert!(reader.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn eight_digits_are_a_date() {
        assert_eq!(seconds("20140601"), 1_401_580_800);
        assert_eq!(seconds("20140601T000000Z"), 1_401_580_800);
        assert_eq!(seconds("20141399"), 20_141_399);
    }

    #[test]
    fn widths() {
        assert_eq!(width_nanos("15m"), Ok(900_000_000_000));
        assert_eq!(width_nanos("1h30m"), Ok(5_400_000_000_000));
        assert_eq!(width_nanos("1d"), Ok(86_400_000_000_000));
        for bad in ["", "0s", "5", "h", "-1h", "1mo", "1.5h", "99999999w"] {
            assert!(width_nanos(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_shown_in_the_requested_zone() {
        let show = TimeShow::new(UTC);
        assert_eq!(
            show.show(1_357_020_000 * NANOS_PER_SECOND),
            "2013-01-01T06:00:00Z"
        );
        assert_eq!(show.show(1_500_000_000), "1970-01-01T00:00:01.5Z");
        let show = TimeShow::new(zone_named("America/New_York").unwrap());
        assert_eq!(
            show.show(1_357_020_000 * NANOS_PER_SECOND),
            "2013-01-01T01:00:00-05:00"
        );
        assert!(show.show(i128::MAX / 2).ends_with("ns"));
    }
}
