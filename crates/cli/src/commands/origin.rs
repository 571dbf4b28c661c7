//! Windows as specified on the command line: with a fixed width, with midnight in a time zone as origin, or of the
//! calendar.

use crate::args::WindowWidth;
use crate::database::width_in;
use crate::exit::{Failure, Outcome};
use crate::style::Palette;
use crate::time::{Nanos, TimeShow};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::io::Write;
use tidalite::{Grid, Unit, Zone};

/// Windows with this width. Windows of a fixed width begin at `origin`, or at midnight with the offset that the zone
/// has at the time `from`.
pub(crate) fn windows_of(
    width: WindowWidth,
    origin: Option<Nanos>,
    zone: &TimeZone,
    from: Nanos,
) -> Outcome<Grid> {
    let timestamp = |nanos: Nanos| {
        let problem = "--origin lies outside of the years 1678 to 2261";
        let nanos = i64::try_from(nanos).map_err(|_| Failure::usage(problem))?;
        Ok::<_, Failure>(tidalite::Timestamp(nanos))
    };
    let grid = match width {
        WindowWidth::Fixed(width) => {
            let origin = origin.unwrap_or_else(|| midnight_of_1970(zone, from));
            // The origin is moved by whole windows to a time near 1970.
            let origin = origin.rem_euclid(width.into());
            return Ok(Grid::nanos(width).origin(timestamp(origin)?));
        }
        WindowWidth::Days(n) => Grid::days(n),
        WindowWidth::Weeks(n) => Grid::weeks(n),
        WindowWidth::Months(n) => Grid::months(n),
        WindowWidth::Quarters(n) => Grid::quarters(n),
        WindowWidth::Years(n) => Grid::years(n),
    };
    let grid = grid.in_zone(Zone::from(zone.clone()));
    match origin {
        Some(origin) => {
            check_origin(width, origin, zone)?;
            Ok(grid.origin(timestamp(origin)?))
        }
        None => Ok(grid),
    }
}

/// Refuses an origin that is not the start of a calendar window.
fn check_origin(width: WindowWidth, origin: Nanos, zone: &TimeZone) -> Outcome {
    let Ok(time) = Timestamp::from_nanosecond(origin) else {
        return Ok(());
    };
    let local = time.to_zoned(zone.clone());
    let begins_day = local.start_of_day().is_ok_and(|start| start == local);
    let in_months = matches!(
        width,
        WindowWidth::Months(_) | WindowWidth::Quarters(_) | WindowWidth::Years(_)
    );
    if !begins_day {
        return Err(Failure::usage(
            "--origin is not midnight: windows of days and longer ones begin at midnight of --tz",
        )
        .hint("a fixed width, such as 24h, begins at any time of day"));
    }
    if in_months && local.day() != 1 {
        return Err(Failure::usage(
            "--origin is not the first day of a month: windows of months, quarters and years begin on one",
        )
        .hint("give the first of the month"));
    }
    Ok(())
}

/// Midnight of 1970-01-01 with the offset that the zone has at time `at`.
pub(crate) fn midnight_of_1970(zone: &TimeZone, at: Nanos) -> Nanos {
    match Timestamp::from_nanosecond(at) {
        Ok(timestamp) => {
            let offset = timestamp.to_zoned(zone.clone()).offset();
            -Nanos::from(offset.seconds()) * 1_000_000_000
        }
        Err(_) => 0,
    }
}

/// Refuses a width or an origin that is not a whole number of steps of the series' time unit.
pub(crate) fn check_steps(width: WindowWidth, origin: Option<Nanos>, unit: Unit) -> Outcome {
    if let WindowWidth::Fixed(width) = width {
        width_in(unit, width, "--by")?;
        if origin.is_some_and(|origin| origin.rem_euclid(unit.nanos().into()) != 0) {
            let step = unit.nanos();
            return Err(Failure::usage(format!(
                "--origin lies between two steps of the series' time ({step} ns each)"
            )));
        }
    }
    Ok(())
}

/// The first clock change in a range that is not a multiple of `width`: windows after it begin at another time of day.
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

/// Prints a note, once, with the time from which windows of a fixed length no longer begin at midnight of the zone.
pub(crate) fn mention_shift(
    zone: &TimeZone,
    range: (Nanos, Nanos),
    width: WindowWidth,
    messages: Palette,
    told: &mut bool,
) {
    let (WindowWidth::Fixed(width), false) = (width, *told) else {
        return;
    };
    let Some(at) = first_shift(zone, range, width.into()) else {
        return;
    };
    let name = zone.iana_name().unwrap_or("the time zone");
    let _ = writeln!(
        std::io::stderr(),
        "{} clocks in {name} change at {} within this range, and all windows have equal length: windows after the change begin at another time of day. \
         Days, weeks, months and years of the calendar (--by 1d) follow the clocks; or query the ranges before and after separately (--from, --to), or give --tz UTC",
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
        let windows = |origin| windows_of(WindowWidth::Fixed(10), Some(origin), &TimeZone::UTC, 0);
        let at = |origin| Grid::nanos(10).origin(tidalite::Timestamp(origin));
        assert_eq!(windows(-1).unwrap(), at(9));
        assert_eq!(windows(Nanos::MAX).unwrap(), at(7));
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
