//! Time bins: of fixed length, of months, or in a time zone.
//!
//! ```text
//! width    Width     the length of a bin, from an interval or a text
//! local    Lattice   starts of bins in local time: origin + n * width
//! zoned    Zoned     instants of those local times in a time zone
//! stretch  Stretch   consecutive bins with the same length
//! ```
//!
//! Invariants
//! 1. Bins have neither gaps nor overlaps: a bin ends where the next one begins.
//! 2. A bin begins at an instant at which local clocks show a start time of the lattice. Where clocks skip that time,
//!    the bin begins at the change. Where clocks show it twice, bins of whole days or months begin at the first
//!    instant, and shorter bins at each of the two, so that an hour stays an hour.

mod local;
mod stretch;
mod width;
mod zoned;

use super::args;
use crate::types::constant_nanos;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::common::{Result, ScalarValue, plan_err};
use jiff::tz::TimeZone;
use local::Lattice;
use std::fmt;
pub(crate) use stretch::Stretch;
use tidalite::Zone;
use width::Width;
use zoned::Zoned;

/// The bins of a call of `time_bucket`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buckets {
    width: Width,
    lattice: Lattice,
    /// The time zone, unless it is UTC.
    zone: Option<Zoned>,
}

impl Buckets {
    /// Reads the constant arguments of a call on times of this type: the width, and the arguments after the time.
    /// `None` if the width is null.
    pub(crate) fn new(
        function: &str,
        width: &ScalarValue,
        time: &DataType,
        options: &[ScalarValue],
    ) -> Result<Option<Self>> {
        let Some(width) = Width::new(function, width)? else {
            return Ok(None);
        };
        let (mut zone, mut origin) = (None, None);
        for option in options {
            if option.is_null() {
                continue;
            }
            let is_new = match read_option(function, option)? {
                Extra::Zone(found) => zone.replace(found).is_none(),
                Extra::Origin(found) => origin.replace(found).is_none(),
            };
            if !is_new {
                return plan_err!("{function}: {option} repeats an argument");
            }
        }
        if zone.is_none() && !args::is_utc(time) {
            // The times have a zone of their own, from `AT TIME ZONE`.
            if let DataType::Timestamp(_, Some(name)) = time {
                zone = Some(named_zone(function, name)?);
            }
        }
        let zone = zone.filter(|zone| *zone != TimeZone::UTC).map(Zoned::new);
        let origin = match (origin, &zone) {
            (Some(origin), Some(zone)) => zone.local(origin),
            (origin, _) => origin,
        };
        Ok(Some(Self {
            lattice: Lattice::new(width, origin),
            width,
            zone,
        }))
    }

    /// Start of the bin that contains a time, in nanoseconds since 1970; `None` outside the years -9999 to 9999.
    pub(crate) fn begin(&self, nanos: i128) -> Option<i128> {
        match &self.zone {
            None => self.lattice.begin(nanos),
            Some(zone) => zone.begin(&self.lattice, self.width, nanos),
        }
    }

    /// The start of the bin after the one that begins at `begin`.
    pub(super) fn next(&self, begin: i128) -> Option<i128> {
        match &self.zone {
            None => self.lattice.next(begin),
            Some(zone) => zone.next(&self.lattice, self.width, begin),
        }
    }

    /// The bin that begins at `begin`, together with the following bins of the same length up to the next clock change.
    pub(crate) fn stretch(&self, begin: i128) -> Stretch {
        let Some(next) = self.next(begin) else {
            // This is the last bin of the calendar.
            return Stretch::endless(i128::MAX);
        };
        match (self.width, &self.zone) {
            (Width::Months(_), _) => Stretch::single(begin, next),
            (Width::Nanos(length), None) => Stretch::endless(length),
            (Width::Nanos(length), Some(zone)) => zone.stretch((begin, next), length),
        }
    }

    /// Whether all bins begin at multiples of this number of nanoseconds, which must be a divisor of a second.
    pub(crate) fn are_multiples_of(&self, step: i64) -> bool {
        debug_assert!(
            args::NANOS_PER_SECOND % step == 0,
            "clocks change at whole seconds"
        );
        let is_multiple = |nanos: i128| nanos % i128::from(step) == 0;
        is_multiple(self.lattice.origin())
            && match self.width {
                Width::Nanos(nanos) => is_multiple(nanos),
                Width::Months(_) => true,
            }
    }

    /// The usual length of a bin in nanoseconds; for bins of months, the greatest length.
    pub(crate) fn usual_length(&self) -> i128 {
        const DAYS_OF_MONTH: i128 = 31;
        match self.width {
            Width::Nanos(nanos) => nanos,
            Width::Months(months) => i128::from(months) * DAYS_OF_MONTH * width::NANOS_PER_DAY,
        }
    }

    /// The interval and the origin (in nanoseconds since 1970) of a call of `date_bin` with the same bins. The origin
    /// is `None` if `date_bin`'s default, 1970-01-01, gives the same bins.
    pub(super) fn as_date_bin(&self) -> Option<(IntervalMonthDayNano, Option<i64>)> {
        if self.zone.is_some() {
            return None;
        }
        let interval = self.width.interval()?;
        let origin = match self.lattice.begin(0)? {
            0 => None,
            _ => Some(i64::try_from(self.lattice.origin()).ok()?),
        };
        Some((interval, origin))
    }
}

/// Writes the width, and the zone unless it is UTC: `1 month, Europe/Berlin`.
impl fmt::Display for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            Width::Nanos(nanos) => write!(f, "{nanos} ns")?,
            Width::Months(1) => f.write_str("1 month")?,
            Width::Months(months) => write!(f, "{months} months")?,
        }
        match &self.zone {
            Some(zone) => write!(f, ", {zone}"),
            None => Ok(()),
        }
    }
}

/// A constant argument after the time.
enum Extra {
    Zone(TimeZone),
    Origin(i128),
}

fn read_option(function: &str, option: &ScalarValue) -> Result<Extra> {
    if let Some(text) = args::text(option) {
        if let Ok(zone) = named_zone(function, text) {
            return Ok(Extra::Zone(zone));
        }
        return match string_to_timestamp_nanos(text) {
            Ok(origin) => Ok(Extra::Origin(origin.into())),
            Err(_) => {
                plan_err!("{function}: '{text}' is neither a time zone nor a time for the origin")
            }
        };
    }
    match constant_nanos(option) {
        Some(origin) => Ok(Extra::Origin(origin)),
        None => {
            plan_err!("{function}: found {option}, expected a time zone or a time for the origin")
        }
    }
}

fn named_zone(function: &str, name: &str) -> Result<TimeZone> {
    if args::is_utc_name(name) {
        return Ok(TimeZone::UTC);
    }
    match Zone::named(name) {
        Ok(zone) => Ok(zone.into()),
        Err(error) => plan_err!("{function}: {error}"),
    }
}
