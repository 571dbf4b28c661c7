//! Bins in a time zone.
//!
//! The time zones come from `jiff`, which the library also uses for its calendar windows, so the bins of a query are
//! the windows of the library. `jiff` also knows when a zone changes its offset, which is needed for bins at such a
//! change.

use super::local::{Lattice, civil};
use super::stretch::Stretch;
use super::width::Width;
use crate::functions::args::NANOS_PER_SECOND;
use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use std::fmt;
use tidalite::Zone;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Zoned(TimeZone);

/// A change of a zone's offset: the instant, and the offsets before and after it.
struct Change {
    at: i128,
    before: Offset,
    after: Offset,
}

impl Zoned {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self(zone)
    }

    /// The local time at an instant.
    pub(super) fn local(&self, nanos: i128) -> Option<i128> {
        let instant = Timestamp::from_nanosecond(nanos).ok()?;
        Some(nanos + offset_nanos(self.0.to_offset(instant)))
    }

    /// The start of the bin that contains an instant.
    pub(super) fn begin(&self, lattice: &Lattice, width: Width, nanos: i128) -> Option<i128> {
        let local = self.local(nanos)?;
        let begin = self.last_until(lattice.begin(local)?, width, nanos)?;
        let ambiguous = self.0.to_ambiguous_timestamp(civil(local)?);
        let AmbiguousOffset::Fold { after, .. } = ambiguous.offset() else {
            return Some(begin);
        };
        if offset_nanos(after) != local - nanos {
            return Some(begin);
        }
        // Clocks have been set back and show this time again. If a bin began before the change at a later local time,
        // it is the current one.
        let change = self.last_change(nanos)?;
        let last_local = change.at - 1 + offset_nanos(change.before);
        let earlier = self.last_until(lattice.begin(last_local)?, width, change.at - 1)?;
        Some(begin.max(earlier))
    }

    /// The start of the bin after the one that begins at an instant.
    pub(super) fn next(&self, lattice: &Lattice, width: Width, begin: i128) -> Option<i128> {
        let mut local = self.local(begin)?;
        let next = loop {
            local = lattice.next(local)?;
            let (first, second) = self.instants(local)?;
            // All starts that clocks skip lie at the change itself.
            match (first > begin, second > begin) {
                (true, _) => break first,
                (false, true) if !width.is_calendar() => break second,
                _ => {}
            }
        };
        if width.is_calendar() {
            return Some(next);
        }
        // If clocks are set back in between, they show starts of bins again.
        let Some(change) = self.next_change(begin).filter(|change| change.at < next) else {
            return Some(next);
        };
        let local = lattice.next(change.at - 1 + offset_nanos(change.after))?;
        let repeated = local - offset_nanos(change.after);
        Some(next.min(repeated.max(change.at)))
    }

    /// The bin from `begin` to `next`, and the following bins of the same length that end before the next change. The
    /// bin that contains the change, or ends at it, can have another length.
    pub(super) fn stretch(&self, (begin, next): (i128, i128), length: i128) -> Stretch {
        if next - begin != length {
            return Stretch::single(begin, next);
        }
        match self.next_change(begin) {
            None => Stretch::endless(length),
            Some(change) if change.at <= next => Stretch::single(begin, next),
            Some(change) => Stretch {
                length,
                end: begin + (change.at - 1 - begin).div_euclid(length) * length,
            },
        }
    }

    /// The last instant up to `limit` at which a bin with this local start begins.
    fn last_until(&self, local: i128, width: Width, limit: i128) -> Option<i128> {
        let (first, second) = self.instants(local)?;
        let is_second = !width.is_calendar() && second <= limit;
        Some(if is_second { second } else { first })
    }

    /// The first and the last instant at which clocks show a local time. If clocks skip it, both are the instant of the
    /// change.
    fn instants(&self, local: i128) -> Option<(i128, i128)> {
        let at = |offset: Offset| local - offset_nanos(offset);
        match self.0.to_ambiguous_timestamp(civil(local)?).offset() {
            AmbiguousOffset::Unambiguous { offset } => Some((at(offset), at(offset))),
            AmbiguousOffset::Fold { before, after } => Some((at(before), at(after))),
            AmbiguousOffset::Gap { before, .. } => {
                let change = self.last_change(at(before))?.at;
                Some((change, change))
            }
        }
    }

    /// The last change at or before an instant.
    fn last_change(&self, nanos: i128) -> Option<Change> {
        let behind = Timestamp::from_nanosecond(nanos + 1).ok()?;
        let change = self.0.preceding(behind).next()?;
        self.change(change.timestamp(), change.offset())
    }

    /// The first change after an instant.
    fn next_change(&self, nanos: i128) -> Option<Change> {
        let instant = Timestamp::from_nanosecond(nanos).ok()?;
        let change = self.0.following(instant).next()?;
        self.change(change.timestamp(), change.offset())
    }

    fn change(&self, at: Timestamp, after: Offset) -> Option<Change> {
        let at = at.as_nanosecond();
        let before = Timestamp::from_nanosecond(at - 1).ok()?;
        Some(Change {
            at,
            before: self.0.to_offset(before),
            after,
        })
    }
}

impl fmt::Display for Zoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Zone::from(self.0.clone()).fmt(f)
    }
}

fn offset_nanos(offset: Offset) -> i128 {
    i128::from(offset.seconds()) * i128::from(NANOS_PER_SECOND)
}
