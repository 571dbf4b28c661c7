//! Compares the rows of a series in two versions. The comparison uses the texts themselves and not their numbers,
//! because an equal text may get another number when it is written again.

use super::change::{Change, Tell};
use crate::series::read::Series;
use crate::txn::pages::Pages;
use crate::types::error::Result;

/// Reports the rows of a series that differ between two versions. `ranges` are the times at which the delta may differ.
/// If a resolution is given, a range that spans no more than the resolution is reported without a comparison.
pub(super) fn diff_series(
    series: &Series<'_>,
    older: Option<&Series<'_>>,
    mut ranges: Vec<(i64, i64)>,
    resolution: Option<u64>,
    f: &mut Tell<'_>,
) -> Result<()> {
    let Some(older) = older else {
        // The older version lacks the series, so all rows are new and no page needs to be read.
        return match series.span() {
            Some((from, to)) => f(Change::Rows {
                series: series.info(),
                from,
                to,
            }),
            None => Ok(()),
        };
    };
    series.leaves_changed_since(older, &mut ranges)?;
    ranges.sort_unstable();
    for (from, to) in joined(ranges, 0) {
        if resolution.is_some_and(|resolution| to.abs_diff(from) <= resolution) {
            f(Change::Rows {
                series: series.info(),
                from,
                to,
            })?;
        } else {
            diff_rows(series, older, (from, to), f)?;
        }
    }
    Ok(())
}

/// Maximum number of separate ranges of a series. More ranges are joined to a single one.
const RANGES_MAX: usize = 1024;

pub(super) fn merge_range(ranges: &mut Vec<(i64, i64)>, new: (i64, i64)) {
    ranges.push(new);
    if ranges.len() > RANGES_MAX {
        ranges.sort_unstable();
        *ranges = joined(std::mem::take(ranges), 0);
        if ranges.len() > RANGES_MAX / 2 {
            let last = ranges.iter().map(|(_, to)| *to).max().unwrap_or_default();
            *ranges = vec![(ranges[0].0, last)];
        }
    }
}

/// Joins sorted ranges that overlap or are at most `steps` apart.
pub(super) fn joined(sorted: Vec<(i64, i64)>, steps: u64) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    for (from, to) in sorted {
        match found.last_mut() {
            Some(last) if from <= last.1 || from.abs_diff(last.1) <= steps => {
                last.1 = last.1.max(to);
            }
            _ => found.push((from, to)),
        }
    }
    found
}

/// The rows of one version, read one vector at a time.
struct Side<'s> {
    series: &'s Series<'s>,
    scan: Option<tidalite_series::Scan<'s, Pages<'s>>>,
    times: Vec<i64>,
    words: Vec<Vec<u64>>,
    at: usize,
}

impl<'s> Side<'s> {
    fn new(series: &'s Series<'s>, (from, to): (i64, i64)) -> Result<Self> {
        Ok(Self {
            series,
            scan: Some(series.between(from, to).scan()?),
            times: Vec::new(),
            words: Vec::new(),
            at: 0,
        })
    }

    /// Time of the next row, or `None` at the end; reads the next vector if necessary. `fills` has a word per column,
    /// for rows written before the column was added.
    fn time(&mut self, fills: &[u64]) -> Result<Option<i64>> {
        if self.at == self.times.len()
            && let Some(scan) = &mut self.scan
        {
            self.at = 0;
            self.times.clear();
            self.words.clear();
            match scan.next()? {
                Some(vector) => {
                    self.times.extend_from_slice(vector.times());
                    let rows = vector.times().len();
                    let column = |(c, &fill): (usize, &u64)| {
                        let words = vector.words(c);
                        if words.is_empty() {
                            vec![fill; rows]
                        } else {
                            words.to_vec()
                        }
                    };
                    self.words = fills.iter().enumerate().map(column).collect();
                }
                None => self.scan = None,
            }
        }
        Ok(self.times.get(self.at).copied())
    }

    /// Whether the next rows of both versions have equal values. `self` must have all columns of `other`.
    fn is_alike(&self, other: &Self) -> Result<bool> {
        for (c, (own, its)) in self.words.iter().zip(&other.words).enumerate() {
            let (own, its) = (own[self.at], its[other.at]);
            if own != its && !self.series.says_the_same(c, own, (other.series, its))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn diff_rows(
    new: &Series<'_>,
    old: &Series<'_>,
    (from, to): (i64, i64),
    f: &mut Tell<'_>,
) -> Result<()> {
    let types = new.info().schema.word_types();
    let fills: Vec<u64> = types.iter().map(|ty| ty.fill()).collect();
    let (mut a, mut b) = (Side::new(new, (from, to))?, Side::new(old, (from, to))?);
    let mut open: Option<(i64, i64)> = None;
    let mut close = |open: &mut Option<(i64, i64)>| match open.take() {
        Some((from, to)) => f(Change::Rows {
            series: new.info(),
            from,
            to,
        }),
        None => Ok(()),
    };
    loop {
        let (left, right) = (a.time(&fills)?, b.time(&fills)?);
        let time = match (left, right) {
            (None, None) => break,
            (Some(a), Some(b)) => a.min(b),
            (Some(t), None) | (None, Some(t)) => t,
        };
        if left == right && a.is_alike(&b)? {
            close(&mut open)?;
        } else {
            open.get_or_insert((time, time)).1 = time;
        }
        a.at += usize::from(left == Some(time));
        b.at += usize::from(right == Some(time));
    }
    close(&mut open)
}
