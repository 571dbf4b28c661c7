//! Arguments that the commands for topics, queues, objects and containers share.

use crate::time::{read_any, width_nanos};
use clap::{Args, ValueHint};
use jiff::tz::TimeZone;
use std::path::PathBuf;
use tidalite::Timestamp;

/// A time, which may depend on the clock of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// This number of nanoseconds from now.
    After(i64),
    /// This time.
    At(Timestamp),
}

impl When {
    /// The time, if it is `now`.
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::After(width) => Timestamp(now.0.saturating_add(width)),
            Self::At(time) => time,
        }
    }
}

/// Parses a duration from now, or a time.
pub(crate) fn when(text: &str) -> Result<When, String> {
    if let Ok(width) = width_nanos(text) {
        return Ok(When::After(width));
    }
    let time = read_any(text, &TimeZone::UTC).map_err(|_| {
        format!(
            "`{text}` is neither a duration like 10m or 2d nor a time like 2030-06-01T12:00:00Z"
        )
    })?;
    let time = i64::try_from(time);
    time.map(|time| When::At(Timestamp(time)))
        .map_err(|_| format!("`{text}` is beyond the times that can be stored: 1677 to 2262"))
}

/// Parses a time that may be before the present: `now`, `-5m`, or a time.
pub(crate) fn instant(text: &str) -> Result<When, String> {
    let text = text.trim();
    let ago = text.strip_prefix('-').map(width_nanos);
    match (text, ago) {
        ("now", _) => Ok(When::After(0)),
        (_, Some(Ok(width))) => Ok(When::After(-width)),
        _ => {
            let time = read_any(text, &TimeZone::UTC);
            let time = time.map_err(|_| {
                format!("`{text}` is neither now, a time before it like -5m, nor a time like 2030-06-01T12:00:00Z")
            })?;
            let time = i64::try_from(time);
            time.map(|time| When::At(Timestamp(time))).map_err(|_| {
                format!("`{text}` is beyond the times that can be stored: 1677 to 2262")
            })
        }
    }
}

/// Like `when`; `never` is `None`.
pub(crate) fn when_or_never(text: &str) -> Result<Option<When>, String> {
    match text {
        "never" => Ok(None),
        text => when(text).map(Some),
    }
}

/// Parses NAME=VALUE.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// The payload of a message.
#[derive(Debug, Args)]
pub(crate) struct PayloadArgs {
    /// Payload, stored as typed; - reads the bytes of standard input unchanged
    #[arg(allow_negative_numbers = true, conflicts_with = "payload_file")]
    pub payload: Option<String>,

    /// Take the payload from this file, byte for byte
    #[arg(long = "file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub payload_file: Option<PathBuf>,

    /// Read the payload as hex digits
    #[arg(long, conflicts_with = "payload_file")]
    pub hex: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_durations_or_instants() {
        assert_eq!(when("10m"), Ok(When::After(600_000_000_000)));
        assert_eq!(
            when("1970-01-01T00:00:01Z"),
            Ok(When::At(Timestamp(1_000_000_000)))
        );
        assert_eq!(when_or_never("never"), Ok(None));
        for wrong in ["", "10", "0s", "soon", "9999-01-01", "-5m x", "1mo"] {
            let parsed = when(wrong);
            // Ten is a number of seconds since 1970.
            assert_eq!(parsed.is_err(), wrong != "10", "{wrong}: {parsed:?}");
        }
        assert_eq!(instant("now"), Ok(When::After(0)));
        assert_eq!(instant("-5m"), Ok(When::After(-300_000_000_000)));
        assert_eq!(
            instant("1970-01-01T00:00:01Z"),
            Ok(When::At(Timestamp(1_000_000_000)))
        );
        for wrong in ["", "soon", "9999-01-01", "-", "-x"] {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
        let now = Timestamp(5);
        assert_eq!(When::After(i64::MAX).at(now), Timestamp::MAX);
        assert_eq!(When::At(Timestamp(7)).at(now), Timestamp(7));
    }

    #[test]
    fn pairs_have_a_name() {
        assert_eq!(pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(pair("a="), Ok(("a".into(), String::new())));
        assert!(pair("=b").is_err() && pair("ab").is_err());
    }
}
