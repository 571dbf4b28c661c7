//! Time zones, for windows of the calendar.

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use jiff::tz::TimeZone;
use std::fmt;
use tidalite_time::Timestamp;

/// A time zone: the rules by which local clocks are set, with all their changes.
///
/// ```
/// use tidalite::{Grid, Zone};
///
/// let days = Grid::days(1).in_zone(Zone::named("Europe/Berlin")?);
/// # let _ = days;
/// # Ok::<(), tidalite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC, which has no changes.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The zone with this name of the IANA database, `Europe/Berlin`; `UTC`; a fixed offset, `+02:00`; or the rules in
    /// the form of POSIX, `CET-1CEST,M3.5.0,M10.5.0/3`. The database is that of the system, in
    /// `/usr/share/zoneinfo`, or with the feature `bundled-zones` one that is compiled in.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) if there is no such zone.
    pub fn named(name: &str) -> Result<Self> {
        if name.eq_ignore_ascii_case("utc") || name == "Z" {
            return Ok(Self::UTC);
        }
        if let Some(offset) = fixed_offset(name) {
            return Ok(Self(offset));
        }
        let found = TimeZone::get(name).or_else(|_| TimeZone::posix(name));
        found.map(Self).map_err(|_| {
            let problem =
                "no such time zone: give a name like Europe/Berlin, UTC, or an offset like +02:00";
            Error::from(Cause::Zone {
                name: name.to_owned(),
                problem: problem.into(),
            })
        })
    }

    /// The local date at a time.
    pub(crate) fn date_at(&self, time: Timestamp) -> jiff::civil::Date {
        // The years 1677 to 2262 lie within those of jiff.
        let time = jiff::Timestamp::from_nanosecond(time.0.into());
        time.map_or(jiff::civil::Date::ZERO, |time| {
            self.0.to_datetime(time).date()
        })
    }

    pub(crate) fn rules(&self) -> &TimeZone {
        &self.0
    }
}

/// The zone of an offset: `+02:00`, `-0530`, `+2`.
fn fixed_offset(text: &str) -> Option<TimeZone> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let rest = &text[1..];
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let number = |text: &str| -> Option<i32> {
        let digits =
            !text.is_empty() && text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if minutes > 59 {
        return None;
    }
    let offset = jiff::tz::Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()?;
    Some(TimeZone::fixed(offset))
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.0.iana_name() {
            return f.write_str(name);
        }
        match self.0.to_fixed_offset() {
            Ok(offset) => write!(f, "{offset}"),
            Err(_) => f.write_str("a zone without a name"),
        }
    }
}

#[cfg(feature = "jiff")]
impl From<TimeZone> for Zone {
    fn from(zone: TimeZone) -> Self {
        Self(zone)
    }
}

#[cfg(feature = "jiff")]
impl From<Zone> for TimeZone {
    fn from(zone: Zone) -> Self {
        zone.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_names_offsets_and_rules() {
        let offset = |name: &str| {
            let zone = Zone::named(name).ok()?;
            zone.rules().to_fixed_offset().ok().map(|o| o.seconds())
        };
        assert_eq!(offset("UTC"), Some(0));
        assert_eq!(offset("+02:00"), Some(7200));
        assert_eq!(offset("-0530"), Some(-19_800));
        assert_eq!(offset("+2"), Some(7200));
        for wrong in [
            "", "+", "+2:0", "+02:60", "+abc", "+99999", "Mars", "+2:00:00", "+é",
        ] {
            assert!(Zone::named(wrong).is_err(), "{wrong}");
        }
        let rules = Zone::named("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert!(rules.rules().to_fixed_offset().is_err());
        assert_eq!(Zone::named("utc").unwrap().to_string(), "UTC");
    }
}
