//! Times relative to the present, as people type them: `now`, `-1d`, `today+6h`.

use crate::types::calendar::{Calendar, CalendarUnit};
use crate::types::error::Result;
use crate::types::zone::Zone;
use jiff::{Span, Zoned};
use tidalite_time::{Timestamp, TimestampError};

/// Words for times, and how many days their date lies after today; `None` for the present itself.
const WORDS: [(&str, Option<i128>); 4] = [
    ("now", None),
    ("today", Some(0)),
    ("yesterday", Some(-1)),
    ("tomorrow", Some(1)),
];

impl Zone {
    /// Parses a time relative to `now`: one of the words `now`, `today`, `yesterday` and `tomorrow` (the begin of that
    /// date in this zone), followed by any number of steps such as `-1d` or `+6h`; steps alone count from `now`. Units
    /// are `ns`, `us`, `ms`, `s`, `m` (minutes), `h`, and units of the calendar in this zone: `d`, `w`, `mo`, `y`.
    /// Every other text is parsed by [`Timestamp::parse`].
    ///
    /// ```
    /// use tidalite::{Timestamp, Zone};
    ///
    /// let now = Timestamp::parse("2024-03-31T12:00:00Z")?;
    /// let time = |text: &str| Zone::UTC.parse_relative(text, now);
    /// assert_eq!(time("-90m")?, Timestamp::parse("2024-03-31T10:30:00Z")?);
    /// assert_eq!(time("today-1mo")?, Timestamp::parse("2024-02-29T00:00:00Z")?);
    /// assert_eq!(time("2024-01-01")?, Timestamp::parse("2024-01-01")?);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a text that is no such time, and for a time before 1677 or
    /// after 2262.
    pub fn parse_relative(&self, text: &str, now: Timestamp) -> Result<Timestamp> {
        let trimmed = text.trim();
        let is_step =
            trimmed.starts_with(['+', '-']) && trimmed.ends_with(|c: char| c.is_ascii_alphabetic());
        let word = WORDS
            .iter()
            .find_map(|(word, days)| Some((trimmed.strip_prefix(word)?, days)));
        let (steps, days) = match word {
            Some((steps, days)) => (steps, *days),
            None if is_step => (trimmed, None),
            None => return Ok(Timestamp::parse(text)?),
        };
        let refused = |problem: &str| TimestampError {
            text: text.to_owned(),
            problem: problem.to_owned(),
        };
        let start = match days {
            None => i128::from(now.0),
            Some(days) => {
                let calendar = Calendar {
                    unit: CalendarUnit::Days,
                    count: 1,
                    anchor: 0,
                    zone: self.clone(),
                };
                calendar.start(calendar.index(now.0.into()) + days)
            }
        };
        let beyond = "it lies outside of the years 1678 to 2261";
        let start = jiff::Timestamp::from_nanosecond(start).map_err(|_| refused(beyond))?;
        let mut time = start.to_zoned(self.rules().clone());
        let mut rest = steps;
        while !rest.is_empty() {
            let (step, behind) = first_step(rest).ok_or_else(|| {
                refused(
                    "steps look like -1d or +6h, with the units ns, us, ms, s, m, h, d, w, mo, y",
                )
            })?;
            time = add(&time, step).ok_or_else(|| refused(beyond))?;
            rest = behind;
        }
        let nanos = time.timestamp().as_nanosecond();
        let nanos = i64::try_from(nanos).map_err(|_| refused(beyond))?;
        Ok(Timestamp(nanos))
    }
}

/// The first step of a text, and the rest of the text after it.
fn first_step(text: &str) -> Option<((i64, &str), &str)> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let text = &text[1..];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, text) = text.split_at(digits);
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (unit, rest) = text.split_at(letters);
    Some(((sign * number.parse::<i64>().ok()?, unit), rest))
}

/// The time after a step; `None` for an unknown unit or a time that is too far away.
fn add(time: &Zoned, (number, unit): (i64, &str)) -> Option<Zoned> {
    let span = Span::new();
    let span = match unit {
        "ns" => span.try_nanoseconds(number),
        "us" => span.try_microseconds(number),
        "ms" => span.try_milliseconds(number),
        "s" => span.try_seconds(number),
        "m" | "min" => span.try_minutes(number),
        "h" => span.try_hours(number),
        "d" => span.try_days(number),
        "w" => span.try_weeks(number),
        "mo" => span.try_months(number),
        "y" => span.try_years(number),
        _ => return None,
    };
    time.checked_add(span.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_the_present() {
        let zone = Zone::named("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        // 14:00 local, on the day on which clocks were set forward at 2:00.
        let now = Timestamp::parse("2024-03-31T12:00:00Z").unwrap();
        for (text, expected) in [
            ("now", "2024-03-31T12:00:00Z"),
            ("+0s", "2024-03-31T12:00:00Z"),
            ("-1h", "2024-03-31T11:00:00Z"),
            ("-1h30m", ""),
            ("-1h-30m", "2024-03-31T10:30:00Z"),
            // The same local time of the day before, 23 hours ago.
            ("-1d", "2024-03-30T13:00:00Z"),
            ("-24h", "2024-03-30T12:00:00Z"),
            ("now-1w+2d", "2024-03-26T13:00:00Z"),
            ("-1mo", "2024-02-29T13:00:00Z"),
            ("+1y", "2025-03-31T12:00:00Z"),
            ("today", "2024-03-30T23:00:00Z"),
            ("tomorrow", "2024-03-31T22:00:00Z"),
            ("yesterday", "2024-03-29T23:00:00Z"),
            ("today+6h", "2024-03-31T05:00:00Z"),
            (" today-1d ", "2024-03-29T23:00:00Z"),
            ("2024-02-29", "2024-02-29T00:00:00Z"),
            ("-1ms+1us-1ns", "2024-03-31T11:59:59.999000999Z"),
            ("today 6h", ""),
            ("now-", ""),
            ("-d", ""),
            ("-1x", ""),
            ("nowhere", ""),
            ("-5", ""),
            ("+1é", ""),
            ("-99999999999999999999d", ""),
            ("-400y", ""),
            ("+9223372036854775807ns", ""),
        ] {
            let found = zone.parse_relative(text, now);
            match expected {
                "" => assert!(found.is_err(), "{text}: {found:?}"),
                _ => assert_eq!(found.unwrap().to_string(), expected, "{text}"),
            }
        }
    }
}
