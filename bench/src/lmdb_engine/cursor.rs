//! Reads one series: search, step, for-each. Points are borrowed from the memory map, never copied.

#![cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "the article's cursor whole, and tested; its programs use a part"
    )
)]

use super::key::{self, Guid};
use super::lmdb::{Cursor, Entry, Result};
use super::segment::{Point, points_of};

/// Result of a search for the last point at or before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The series has no points.
    Empty,
    /// The cursor is at the newest point before the requested time; there is no point at that time.
    Less,
    /// The cursor is at a point of exactly the requested time.
    Equal,
    /// All points are later than the requested time; the cursor is at the first point.
    Greater,
}

/// A stored segment, and the keys of its neighbours.
pub(crate) struct Place<'t, P> {
    pub(crate) points: &'t [P],
    pub(crate) key: i64,
    pub(crate) is_first: bool,
    /// Key of the next segment of the series; `None` for the last segment.
    pub(crate) next: Option<i64>,
}

/// Finds the segment for `time`: the last segment that begins at or before `time`, or the first segment of the series
/// if all begin later.
pub(crate) fn floor_segment<'t, P: Point>(
    cursor: &mut Cursor<'t>,
    series: Guid,
    time: i64,
) -> Result<Option<Place<'t, P>>> {
    let Some((key, points, is_floor)) = seek_floor(cursor, series, time)? else {
        return Ok(None);
    };
    // Looks at both neighbours of the segment: one step back, a seek forward again, then one step further.
    let is_first = !is_floor || mine::<P>(cursor.previous()?, series).is_none();
    cursor.seek(&key::encode(series, key))?;
    let next = mine::<P>(cursor.next()?, series).map(|(key, _)| key);
    Ok(Some(Place {
        points,
        key,
        is_first,
        next,
    }))
}

/// Moves the LMDB cursor to the segment for `time`; also returns whether that segment begins at or before `time`.
fn seek_floor<'t, P: Point>(
    cursor: &mut Cursor<'t>,
    series: Guid,
    time: i64,
) -> Result<Option<(i64, &'t [P], bool)>> {
    // LMDB stops at the first entry at or after the key, which is usually one entry too far.
    let at_or_after = cursor.seek(&key::encode(series, time))?;
    let after = mine(at_or_after, series);
    if let Some((key, points)) = after
        && key == time
    {
        return Ok(Some((key, points, true)));
    }
    let before = if at_or_after.is_some() {
        cursor.previous()?
    } else {
        cursor.last()?
    };
    if let Some((key, points)) = mine(before, series) {
        return Ok(Some((key, points, true)));
    }
    // There is no earlier segment, so this returns the first segment of the series, if there is one.
    let Some((key, points)) = after else {
        return Ok(None);
    };
    cursor.seek(&key::encode(series, key))?;
    Ok(Some((key, points, false)))
}

fn mine<'t, P: Point>(entry: Option<Entry<'t>>, series: Guid) -> Option<(i64, &'t [P])> {
    let (key, value) = entry?;
    Some((key::time_of(key, series)?, points_of(value)))
}

/// A cursor over the stored points of one series.
///
/// Invariant: `segment` is at the position of the LMDB cursor, and `at < segment.len()` unless empty.
pub(crate) struct SeriesCursor<'t, P> {
    cursor: Cursor<'t>,
    series: Guid,
    segment: &'t [P],
    at: usize,
}

impl<'t, P: Point> SeriesCursor<'t, P> {
    pub(super) fn new(cursor: Cursor<'t>, series: Guid) -> Result<Self> {
        Ok(Self {
            cursor,
            series,
            segment: &[],
            at: 0,
        })
    }

    /// Switches the cursor to another series; the cursor then has no position.
    pub(crate) fn change_timeseries(&mut self, series: Guid) {
        self.series = series;
        self.segment = &[];
        self.at = 0;
    }

    /// The point at the cursor; `None` if the cursor has no position.
    pub(crate) fn current(&self) -> Option<&'t P> {
        self.segment.get(self.at)
    }

    /// Moves to the last point at or before `time`.
    pub(crate) fn search(&mut self, time: i64) -> Result<Found> {
        let Some((_, points, _)) = seek_floor(&mut self.cursor, self.series, time)? else {
            self.change_timeseries(self.series);
            return Ok(Found::Empty);
        };
        self.segment = points;
        let after = points.partition_point(|p: &P| p.time() <= time);
        self.at = after.saturating_sub(1);
        Ok(match self.current().map(|p| p.time().cmp(&time)) {
            None => Found::Empty,
            Some(std::cmp::Ordering::Less) => Found::Less,
            Some(std::cmp::Ordering::Equal) => Found::Equal,
            Some(std::cmp::Ordering::Greater) => Found::Greater,
        })
    }

    /// Moves to the first point; returns false if the series is empty.
    pub(crate) fn first(&mut self) -> Result<bool> {
        Ok(self.search(i64::MIN)? != Found::Empty)
    }

    /// Moves to the last point; returns false if the series is empty.
    pub(crate) fn last(&mut self) -> Result<bool> {
        Ok(self.search(i64::MAX)? != Found::Empty)
    }

    /// Moves to the next point; at the end of the series, stays there and returns false.
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.at + 1 < self.segment.len() {
            self.at += 1;
            return Ok(true);
        }
        let Some(current) = self.current().map(Point::time) else {
            return Ok(false);
        };
        match mine(self.cursor.next()?, self.series) {
            Some((_, points)) => {
                self.segment = points;
                self.at = 0;
                Ok(true)
            }
            None => {
                self.search(current)?;
                Ok(false)
            }
        }
    }

    /// Moves to the previous point; at the beginning of the series, stays there and returns false.
    pub(crate) fn previous(&mut self) -> Result<bool> {
        if self.at > 0 {
            self.at -= 1;
            return Ok(true);
        }
        let Some(current) = self.current().map(Point::time) else {
            return Ok(false);
        };
        match mine(self.cursor.previous()?, self.series) {
            Some((_, points)) => {
                self.segment = points;
                self.at = points.len().saturating_sub(1);
                Ok(true)
            }
            None => {
                self.search(current)?;
                Ok(false)
            }
        }
    }

    /// Calls `f` with the points of every segment.
    #[inline]
    pub(crate) fn for_each_segment(&mut self, mut f: impl FnMut(&[P])) -> Result<()> {
        let mut entry = self.cursor.seek(&key::encode(self.series, i64::MIN))?;
        while let Some((_, points)) = mine(entry, self.series) {
            f(points);
            entry = self.cursor.next()?;
        }
        Ok(())
    }

    /// Calls `f` with every point; returns the number of points.
    #[inline]
    pub(crate) fn for_each(&mut self, mut f: impl FnMut(&P)) -> Result<usize> {
        let mut count = 0;
        self.for_each_segment(|points| {
            points.iter().for_each(&mut f);
            count += points.len();
        })?;
        Ok(count)
    }

    /// Calls `f` with every point from the last one at or before `start` on; returns the number of points.
    pub(crate) fn for_each_from(&mut self, start: i64, f: impl FnMut(&P)) -> Result<usize> {
        self.for_each_until(start, None, f)
    }

    /// Like `for_each_from`, up to the last point before `end`.
    pub(crate) fn for_each_between(
        &mut self,
        start: i64,
        end: i64,
        f: impl FnMut(&P),
    ) -> Result<usize> {
        self.for_each_until(start, Some(end), f)
    }

    fn for_each_until(
        &mut self,
        start: i64,
        end: Option<i64>,
        mut f: impl FnMut(&P),
    ) -> Result<usize> {
        let mut count = 0;
        if self.search(start)? == Found::Empty {
            return Ok(0);
        }
        let mut points = &self.segment[self.at..];
        loop {
            let before_end = end.map_or(points.len(), |end| {
                points.partition_point(|p| p.time() < end)
            });
            points[..before_end].iter().for_each(&mut f);
            count += before_end;
            if before_end < points.len() {
                return Ok(count);
            }
            match mine(self.cursor.next()?, self.series) {
                Some((_, next)) => points = next,
                None => return Ok(count),
            }
        }
    }
}
