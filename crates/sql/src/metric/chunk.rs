//! Reads the rows of a member in pieces, so that a query can pause between two pieces and continue later.

use crate::error::{Error, ErrorKind, Result};
use crate::metric::filters::ValueRange;
use crate::metric::layout::{Layout, Member, Part};
use crate::pieces;
use arrow::array::{ArrayRef, UInt64Array, new_null_array};
use arrow::datatypes::DataType;
use std::ops::Bound;
use tidalite::AnyRead;
use tidalite::{Series, SeriesInfo, Steps};

/// Some rows of a part, in ascending order of time, and the position at which the next rows begin.
struct Rows {
    times: Vec<i64>,
    /// The words of the wanted columns.
    words: Vec<Vec<u64>>,
    /// The first step that was not read; `None` after the last row.
    next: Option<i64>,
}

/// The remaining rows of each part of a member: the first and the last step, in steps of the part; `None` for a part
/// without further rows.
pub(crate) type Left = Vec<Option<(i64, i64)>>;

/// Reads the rows of a member within an interval, which is given in steps of each of its parts.
pub(crate) struct MemberRows<'q> {
    layout: &'q Layout,
    member: &'q Member,
    /// The value columns to read, by their numbers in the table.
    columns: &'q [usize],
    ranges: &'q [ValueRange],
    left: Left,
}

/// Rows of a member as arrays: the times, and the wanted columns.
pub(crate) struct Piece {
    pub(crate) times: Vec<i64>,
    pub(crate) columns: Vec<ArrayRef>,
}

impl<'q> MemberRows<'q> {
    /// The rows between two times of the table, both included.
    pub(crate) fn new(
        layout: &'q Layout,
        member: &'q Member,
        (from, to): (i64, i64),
        (columns, ranges): (&'q [usize], &'q [ValueRange]),
    ) -> Self {
        let part = |part: &Part| {
            let (from, to) = (part.clock.steps(from).0, part.clock.steps(to).1);
            (from <= to).then_some((from, to))
        };
        Self {
            layout,
            member,
            columns,
            ranges,
            left: member.parts.iter().map(part).collect(),
        }
    }

    /// Continues at the position where an earlier scan of the same member stopped.
    pub(crate) fn resume(self, left: Left) -> Self {
        Self { left, ..self }
    }

    /// The position of the next piece; `None` if no rows remain.
    pub(crate) fn left(self) -> Option<Left> {
        self.left.iter().any(Option::is_some).then_some(self.left)
    }

    /// Reads about `rows` rows, but at least one if any remain.
    pub(crate) fn next(&mut self, snapshot: &AnyRead, rows: usize) -> Result<Option<Piece>> {
        match &self.member.parts[..] {
            [part] => {
                let Some((from, to)) = self.left[0] else {
                    return Ok(None);
                };
                let series = open(snapshot, &part.info)?;
                let found = self.read(&series, 0, (from, to), rows)?;
                self.left[0] = found.next.map(|next| (next, to));
                let rows = found.times.len();
                Ok(Some(Piece {
                    times: table_times(part, found.times)?,
                    columns: self.arrays(&[&series], vec![found.words], (rows, None))?,
                }))
            }
            _ => self.next_joined(snapshot, rows),
        }
    }

    /// Reads rows of several parts, joined on their time.
    fn next_joined(&mut self, snapshot: &AnyRead, rows: usize) -> Result<Option<Piece>> {
        if self.left.iter().all(Option::is_none) {
            return Ok(None);
        }
        let parts = &self.member.parts;
        let series = parts
            .iter()
            .map(|part| open(snapshot, &part.info))
            .collect::<Result<Vec<_>>>()?;
        let mut times: Vec<Vec<i64>> = Vec::new();
        let mut words = Vec::new();
        // If a part stopped early, its rows are complete only before the time at which it will continue.
        let mut complete_to = i64::MAX;
        for (at, part) in parts.iter().enumerate() {
            let found = match self.left[at] {
                Some(ends) => self.read(&series[at], at, ends, rows)?,
                None => Rows {
                    times: Vec::new(),
                    words: self.no_words(at),
                    next: None,
                },
            };
            if let Some(next) = found.next {
                complete_to =
                    complete_to.min(part.clock.time(next).unwrap_or(i64::MAX).saturating_sub(1));
            }
            times.push(table_times(part, found.times)?);
            words.push(found.words);
        }
        for (at, part) in parts.iter().enumerate() {
            let kept = times[at].partition_point(|&time| time <= complete_to);
            times[at].truncate(kept);
            for words in &mut words[at] {
                words.truncate(kept);
            }
            if let Some((from, to)) = self.left[at] {
                let next = match complete_to.checked_add(1) {
                    Some(next) => part.clock.steps(next).0.max(from),
                    None => i64::MAX,
                };
                self.left[at] = (complete_to < i64::MAX && next <= to).then_some((next, to));
            }
        }
        let (joined, takes) = join(&times);
        let series: Vec<_> = series.iter().collect();
        let columns = self.arrays(&series, words, (joined.len(), Some(&takes)))?;
        Ok(Some(Piece {
            times: joined,
            columns,
        }))
    }

    /// The wanted columns that belong to a part.
    fn columns_of(&self, part: usize) -> impl Iterator<Item = usize> + '_ {
        self.columns
            .iter()
            .filter_map(move |&column| match self.member.columns[column] {
                Some((own, number)) if own == part => Some(number),
                _ => None,
            })
    }

    fn no_words(&self, part: usize) -> Vec<Vec<u64>> {
        self.columns_of(part).map(|_| Vec::new()).collect()
    }

    /// Reads about `rows` rows of a part. Rows with the same time are never separated.
    fn read(
        &self,
        series: &Series<'_>,
        part: usize,
        (from, to): (i64, i64),
        rows: usize,
    ) -> Result<Rows> {
        let columns: Vec<usize> = self.columns_of(part).collect();
        let mut query = series
            .query(Steps(from)..=Steps(to))
            .columns(columns.iter().copied());
        // A row of a joined member has values of several series, so the values of one series cannot exclude it.
        if self.member.parts.len() == 1 {
            for range in self.ranges {
                // A part without the column has nulls in it, and no comparison selects null.
                let Some((_, number)) = self.member.columns[range.column] else {
                    return Ok(Rows {
                        times: Vec::new(),
                        words: self.no_words(part),
                        next: None,
                    });
                };
                if may_skip(series, number, range)? {
                    query = query.filter(number, (range.low, range.high));
                }
            }
        }
        let keeps_several = series.info().several;
        let mut found = Rows {
            times: Vec::with_capacity(rows),
            words: columns.iter().map(|_| Vec::with_capacity(rows)).collect(),
            next: None,
        };
        let mut scan = query.vectors()?;
        while let Some(vector) = scan.next()? {
            found.times.extend_from_slice(vector.times());
            for (words, &column) in found.words.iter_mut().zip(&columns) {
                words.extend_from_slice(vector.words(column));
            }
            let (first, last) = (found.times[0], found.times[found.times.len() - 1]);
            if found.times.len() < rows || last == to {
                continue;
            }
            if !keeps_several {
                found.next = Some(last + 1);
                break;
            }
            // The next vector may contain more rows with the last time.
            if first < last {
                let kept = found.times.partition_point(|&time| time < last);
                found.times.truncate(kept);
                found
                    .words
                    .iter_mut()
                    .for_each(|words| words.truncate(kept));
                found.next = Some(last);
                break;
            }
        }
        Ok(found)
    }

    /// The wanted columns as arrays with the types of the table and this number of rows. `takes` contains, for each
    /// part, the index of its row for each joined row.
    fn arrays(
        &self,
        series: &[&Series<'_>],
        words: Vec<Vec<Vec<u64>>>,
        (rows, takes): (usize, Option<&[UInt64Array]>),
    ) -> Result<Vec<ArrayRef>> {
        let mut words: Vec<_> = words.into_iter().map(Vec::into_iter).collect();
        let mut arrays = Vec::with_capacity(self.columns.len());
        for &column in self.columns {
            let field = self
                .layout
                .schema
                .field(1 + self.layout.tags.len() + column);
            let Some((part, number)) = self.member.columns[column] else {
                arrays.push(new_null_array(field.data_type(), rows));
                continue;
            };
            let own = words[part].next().unwrap_or_default();
            let array = pieces::column(series[part], number, own)?;
            let array = match takes {
                Some(takes) => arrow::compute::take(&array, &takes[part], None)?,
                None => array,
            };
            arrays.push(cast(array, field.data_type())?);
        }
        Ok(arrays)
    }
}

pub(crate) fn open<'s>(snapshot: &'s AnyRead, info: &SeriesInfo) -> Result<Series<'s>> {
    let gone = || {
        Error::new(
            ErrorKind::Execution,
            format!("series {} was removed", info.label()),
        )
    };
    snapshot.series_by_id(info.id)?.ok_or_else(gone)
}

fn cast(array: ArrayRef, ty: &DataType) -> Result<ArrayRef> {
    match array.data_type() == ty {
        true => Ok(array),
        false => Ok(arrow::compute::cast(&array, ty)?),
    }
}

/// Whether rows outside a range may be skipped. In the database no range contains NaN, but in comparisons of Arrow NaN
/// is greater than every number.
fn may_skip(series: &Series<'_>, number: usize, range: &ValueRange) -> Result<bool> {
    let bounded = !matches!(range.high, Bound::Unbounded);
    Ok(bounded || series.query(..).aggregate(number)?.nan_count() == 0)
}

/// Converts steps of a part to times of the table.
pub(crate) fn table_times(part: &Part, mut steps: Vec<i64>) -> Result<Vec<i64>> {
    if part.clock.is_same() {
        return Ok(steps);
    }
    for step in &mut steps {
        *step = part.clock.time(*step).ok_or_else(|| {
            let (label, unit) = (part.info.label(), part.info.schema.unit);
            let problem = format!(
                "time {} of series {label} is beyond the range of timestamps",
                unit.text(*step)
            );
            Error::new(ErrorKind::Execution, problem)
        })?;
    }
    Ok(steps)
}

/// Joins ascending lists of times. Returns all times, and for each list the index of its row at each time. If a time
/// occurs several times in several lists, their first rows are paired, then their second rows, and so on.
fn join(lists: &[Vec<i64>]) -> (Vec<i64>, Vec<UInt64Array>) {
    let mut at = vec![0_usize; lists.len()];
    let mut times = Vec::new();
    let mut takes: Vec<Vec<Option<u64>>> = lists.iter().map(|_| Vec::new()).collect();
    while let Some(&time) = lists
        .iter()
        .zip(&at)
        .filter_map(|(list, &at)| list.get(at))
        .min()
    {
        times.push(time);
        for ((list, at), takes) in lists.iter().zip(&mut at).zip(&mut takes) {
            let is_here = list.get(*at) == Some(&time);
            takes.push(is_here.then_some(*at as u64));
            *at += usize::from(is_here);
        }
    }
    (times, takes.into_iter().map(UInt64Array::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_times_are_joined_and_equal_times_paired() {
        let (times, takes) = join(&[vec![1, 2, 2, 5], vec![2, 3, 3]]);
        assert_eq!(times, [1, 2, 2, 3, 3, 5]);
        let rows = |list: usize| takes[list].iter().collect::<Vec<_>>();
        assert_eq!(rows(0), [Some(0), Some(1), Some(2), None, None, Some(3)]);
        assert_eq!(rows(1), [None, Some(0), None, Some(1), Some(2), None]);
    }
}
