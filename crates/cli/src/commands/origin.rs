//! Where windows begin: midnight of a time zone, in steps of a series.

use crate::time::Nanos;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tidalite::Unit;

/// Midnight of 1970-01-01 under the offset that the zone has at this time.
pub(crate) fn midnight_of_1970(zone: &TimeZone, at: Nanos) -> Nanos {
    match Timestamp::from_nanosecond(at) {
        Ok(timestamp) => {
            let offset = timestamp.to_zoned(zone.clone()).offset();
            -Nanos::from(offset.seconds()) * 1_000_000_000
        }
        Err(_) => 0,
    }
}

/// The origin in steps, moved by whole windows to where every unit can hold it: near zero.
pub(crate) fn origin_within(unit: Unit, origin: Nanos, width: i64) -> i64 {
    let step = Nanos::from(unit.nanos());
    let steps = origin.div_euclid(step) + Nanos::from(unit.steps_to_1970());
    i64::try_from(steps.rem_euclid(Nanos::from(width))).unwrap_or(0)
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
}
