//! Statistics of the bins of a series.
//!
//! Bins of equal width are the windows of one query of the series. Calendar bins are read in stretches of consecutive
//! bins with the same length, one query for each stretch: a month, or all days between two clock changes.

use crate::aggregate::keys::Bin;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::bucket::Buckets;
use crate::metric::layout::Part;
use tidalite::{Aggregate, Direction, Series, Steps, Unit};

/// Statistics of the columns by group. Each item begins with the step at which its group begins.
pub(crate) type Found = Vec<(i64, Vec<Aggregate>)>;

/// The first or the last bins that contain rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outermost {
    pub(crate) bins: usize,
    pub(crate) are_last: bool,
}

/// The statistics of a whole interval.
pub(crate) fn whole(
    series: &Series<'_>,
    numbers: &[usize],
    (from, to): (i64, i64),
) -> Result<Found> {
    let query = series.query(Steps(from)..=Steps(to));
    let aggregates = numbers.iter().map(|&number| query.aggregate(number));
    Ok(vec![(from, aggregates.collect::<tidalite::Result<_>>()?)])
}

/// Bins, measured in steps of a series.
pub(crate) enum Bins<'b> {
    Even(Even),
    Calendar(Calendar<'b>),
}

/// Bins of equal width.
#[derive(Clone, Copy)]
pub(crate) struct Even {
    width: i64,
    origin: i64,
}

/// Bins that begin at times of the calendar.
pub(crate) struct Calendar<'b> {
    buckets: &'b Buckets,
    part: &'b Part,
}

impl<'b> Bins<'b> {
    pub(crate) fn of(part: &'b Part, bin: &'b Bin) -> Self {
        let unit = part.info.schema.unit;
        match bin {
            Bin::Even {
                width_ns,
                origin_ns,
            } => Self::Even(Even {
                width: width_ns / unit.nanos(),
                origin: origin_ns / unit.nanos() + unit.steps_to_1970(),
            }),
            Bin::Calendar(buckets) => Self::Calendar(Calendar { buckets, part }),
        }
    }

    /// The statistics of the bins that contain rows.
    pub(crate) fn read(
        &self,
        series: &Series<'_>,
        numbers: &[usize],
        interval: (i64, i64),
    ) -> Result<Found> {
        let mut found = Found::new();
        match self {
            Self::Even(even) => even.read(series, numbers, interval, &mut found)?,
            Self::Calendar(calendar) => calendar.read(series, numbers, interval, &mut found)?,
        }
        Ok(found)
    }

    /// The usual number of steps in a bin.
    fn width(&self) -> i64 {
        match self {
            Self::Even(even) => even.width,
            Self::Calendar(calendar) => {
                let unit = i128::from(calendar.unit().nanos());
                i64::try_from(calendar.buckets.usual_length() / unit).unwrap_or(i64::MAX)
            }
        }
    }

    /// The statistics of the first or the last bins that contain rows, and possibly of further bins. The interval grows
    /// until it contains enough bins.
    pub(crate) fn outermost(
        &self,
        series: &Series<'_>,
        numbers: &[usize],
        interval: (i64, i64),
        outermost: Outermost,
    ) -> Result<Found> {
        let Some((from, to)) = within_span(series, interval) else {
            return Ok(Found::new());
        };
        let mut reach = self.width().saturating_mul(outermost.bins.max(1) as i64);
        loop {
            let (begin, end) = match outermost.are_last {
                true => (to.saturating_sub(reach).max(from), to),
                false => (from, from.saturating_add(reach).min(to)),
            };
            let mut found = self.read(series, numbers, (begin, end))?;
            // The interval may cut the innermost bin; its statistics are then incomplete.
            let is_cut = (begin, end) != (from, to);
            if !is_cut || found.len() > outermost.bins {
                match outermost.are_last {
                    true => drop(found.drain(..usize::from(is_cut))),
                    false => found.truncate(found.len() - usize::from(is_cut)),
                }
                return Ok(found);
            }
            reach = reach.saturating_mul(4);
        }
    }
}

impl Even {
    fn read(
        self,
        series: &Series<'_>,
        numbers: &[usize],
        (from, to): (i64, i64),
        found: &mut Found,
    ) -> Result<()> {
        let query = series.query(Steps(from)..=Steps(to));
        let query = query.columns(numbers.iter().copied());
        let windows = (Steps(self.width), Steps(self.origin));
        query.for_each_window(windows, |column, window| match column {
            0 => {
                let mut aggregates = Vec::with_capacity(numbers.len());
                aggregates.push(window.aggregate);
                found.push((window.start, aggregates));
            }
            _ => {
                if let Some((_, aggregates)) = found.last_mut() {
                    aggregates.push(window.aggregate);
                }
            }
        })?;
        Ok(())
    }
}

impl Calendar<'_> {
    fn unit(&self) -> Unit {
        self.part.info.schema.unit
    }

    fn read(
        &self,
        series: &Series<'_>,
        numbers: &[usize],
        interval: (i64, i64),
        found: &mut Found,
    ) -> Result<()> {
        let Some((mut from, to)) = within_span(series, interval) else {
            return Ok(());
        };
        // The calendar has bins up to here, so each stretch ends where the next begins.
        self.begin(to)?;
        let mut begin = self.begin(from)?;
        loop {
            let stretch = self.buckets.stretch(begin);
            let length = stretch.length / i128::from(self.unit().nanos());
            let bins = Even {
                width: i64::try_from(length).unwrap_or(i64::MAX),
                origin: i64::try_from(self.step(begin)).map_err(|_| self.beyond())?,
            };
            let end = self.step(stretch.end);
            let last = i64::try_from(end - 1).unwrap_or(i64::MAX).min(to);
            let before = found.len();
            bins.read(series, numbers, (from, last), found)?;
            if last == to {
                return Ok(());
            }
            (from, begin) = (last + 1, stretch.end);
            if found.len() == before {
                // Bins without rows are skipped.
                match series.nearest(Steps(from), Direction::Forward)? {
                    Some(row) if row.time <= to => from = row.time,
                    _ => return Ok(()),
                }
                begin = self.begin(from)?;
            }
        }
    }

    /// The start of the bin that contains a step, in nanoseconds since 1970.
    fn begin(&self, step: i64) -> Result<i128> {
        let since_1970 = i128::from(step) - i128::from(self.unit().steps_to_1970());
        let begin = self
            .buckets
            .begin(since_1970 * i128::from(self.unit().nanos()));
        begin.ok_or_else(|| self.beyond())
    }

    /// The step at which a bin begins. It is always a whole number.
    fn step(&self, nanos: i128) -> i128 {
        let since_1970 = nanos.div_euclid(self.unit().nanos().into());
        since_1970.saturating_add(self.unit().steps_to_1970().into())
    }

    fn beyond(&self) -> Error {
        let label = self.part.info.label();
        let problem = format!("a time of {label} lies beyond the calendar of years -9999 to 9999");
        Error::new(ErrorKind::Execution, problem)
    }
}

/// The part of an interval that lies within the span of a series; `None` if the series has no rows in it.
fn within_span(series: &Series<'_>, (from, to): (i64, i64)) -> Option<(i64, i64)> {
    let (first, last) = series.span()?;
    let (from, to) = (from.max(first), to.min(last));
    (from <= to).then_some((from, to))
}
