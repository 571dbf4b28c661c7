//! Origin of windows: midnight of a time zone, in steps of a series.

use crate::style::Palette;
use crate::time::{Nanos, TimeShow};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::io::Write;
use tidalite::Unit;

/// Midnight of 1970-01-01 under the offset that the zone has at time `at`.
pub(crate) fn midnight_of_1970(zone: &TimeZone, at: Nanos) -> Nanos {
    match Timestamp::from_nanosecond(at) {
        Ok(timestamp) => {
            let offset = timestamp.to_zoned(zone.clone()).offset();
            -Nanos::from(offset.seconds()) * 1_000_000_000
        }
        Err(_) => 0,
    }
}

/// The origin in steps, moved by whole windows to near zero, which every unit can represent.
pub(crate) fn origin_within(unit: Unit, origin: Nanos, width: i64) -> i64 {
    let step = Nanos::from(unit.nanos());
    let steps = origin.div_euclid(step) + Nanos::from(unit.steps_to_1970());
    i64::try_from(steps.rem_euclid(Nanos::from(width))).unwrap_or(0)
}

/// The first clock change in a range by other than a multiple of `width`: later windows begin at another time of day.
fn first_shift(zone: &TimeZone, (from, to): (Nanos, Nanos), width: Nanos) -> Option<Nanos> {
    let from = Timestamp::from_nanosecond(from).ok()?;
    let offset = zone.to_offset(from).seconds();
    let shift = |other: i32| Nanos::from(other - offset) * 1_000_000_000;
    let change = zone
        .following(from)
        .take_while(|change| change.timestamp().as_nanosecond() <= to)
        .find(|change| shift(change.offset().seconds()) % width != 0)?;
    Some(change.timestamp().as_nanosecond())
}

/// Prints, once, from which time on windows of a fixed length no longer begin at midnight of the zone.
pub(crate) fn mention_shift(
    zone: &TimeZone,
    range: (Nanos, Nanos),
    width: Nanos,
    messages: Palette,
    told: &mut bool,
) {
    if *told {
        return;
    }
    let Some(at) = first_shift(zone, range, width) else {
        return;
    };
    let name = zone.iana_name().unwrap_or("the time zone");
    let _ = writeln!(
        std::io::stderr(),
        "{} clocks in {name} change at {} within this range, and all windows have equal length: windows after the change begin at another time of day. \
         Query the ranges before and after separately (--from, --to), or give --tz UTC",
        messages.warning("note:"),
        TimeShow::new(zone.clone()).show(at),
    );
    *told = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{read_any, zone_named};

    #[test]
    fn days_begin_at_midnight_of_the_zone() {
        let zone = zone_named("America/New_York").unwrap();
        let winter = read_any("2013-01-15", &zone).unwrap();
        let summer = read_any("2013-07-15", &zone).unwrap();
        let hour = 3_600_000_000_000;
        assert_eq!(midnight_of_1970(&zone, winter), 5 * hour);
        assert_eq!(midnight_of_1970(&zone, summer), 4 * hour);
        assert_eq!(midnight_of_1970(&TimeZone::UTC, summer), 0);
    }

    #[test]
    fn an_origin_keeps_its_place_among_the_windows() {
        assert_eq!(origin_within(Unit::Nanos, -1, 10), 9);
        assert_eq!(origin_within(Unit::Seconds, 25_000_000_000, 10), 5);
        let day = 864_000_000_000;
        assert_eq!(origin_within(Unit::Ticks, 0, day), 0);
    }

    #[test]
    fn a_change_of_the_clocks_shifts_days_and_not_hours() {
        let zone = zone_named("Europe/Berlin").unwrap();
        let time = |text: &str| read_any(text, &zone).unwrap();
        let hour = 3_600_000_000_000;
        let autumn = (time("2016-10-28"), time("2016-11-02"));
        let change = time("2016-10-30T01:00:00Z");
        assert_eq!(first_shift(&zone, autumn, 24 * hour), Some(change));
        assert_eq!(first_shift(&zone, autumn, hour), None);
        assert_eq!(first_shift(&zone, autumn, hour / 4), None);
        let winter = (time("2016-11-28"), time("2016-12-02"));
        assert_eq!(first_shift(&zone, winter, 24 * hour), None);
        assert_eq!(first_shift(&TimeZone::UTC, autumn, 24 * hour), None);
    }
}
