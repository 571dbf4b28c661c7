//! A walk over the rows of a series, one by one, in either direction.

use crate::series::nearest::Direction;
use crate::series::read::Series;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_codec::Rows;
use tidalite_series::{ReverseScan, Scan, ValueRange};

/// The rows of an interval of a series, one by one.
///
/// Invariant: `rows` are the rows of one vector, copied in the order of the walk; `at` is the index of the next row.
pub(crate) struct RowWalk<'s> {
    scan: Walk<'s>,
    filters: Vec<ValueRange>,
    rows: Rows,
    at: usize,
    /// The words of the row that was returned last.
    words: Vec<u64>,
}

/// The vectors of a series, read in one direction.
enum Walk<'s> {
    Forward(Scan<'s, Pages<'s>>),
    Backward(ReverseScan<'s, Pages<'s>>),
}

impl<'s> RowWalk<'s> {
    /// Creates a walk over the rows `from ..= to`. A forward walk skips vectors in which no row can match the filters.
    pub(crate) fn new(
        series: &'s Series<'_>,
        (from, to): (i64, i64),
        filters: Vec<ValueRange>,
        direction: Direction,
    ) -> Self {
        let columns = series.info().schema.columns.len();
        let all: Vec<usize> = (0..columns).collect();
        let view = series.view();
        let scan = match direction {
            Direction::Backward => Walk::Backward(view.scan_reverse(from, to, &all)),
            Direction::Forward => Walk::Forward(match filters.is_empty() {
                true => view.scan(from, to, &all),
                false => view.matching(filters.clone()).scan(from, to, &all),
            }),
        };
        Self {
            scan,
            filters,
            rows: Rows::new(columns),
            at: 0,
            words: Vec::new(),
        }
    }

    /// Returns the time of the next row, whether or not it matches the filters. Reads the next vector if all rows of
    /// the current one were returned.
    pub(crate) fn peek(&mut self) -> Result<Option<i64>> {
        if self.at == self.rows.len() {
            self.rows.clear();
            self.at = 0;
            let columns = self.rows.columns.iter_mut().enumerate();
            match &mut self.scan {
                Walk::Forward(scan) => {
                    let Some(vector) = scan.next()? else {
                        return Ok(None);
                    };
                    self.rows.times.extend_from_slice(vector.times());
                    columns.for_each(|(c, column)| column.extend_from_slice(vector.words(c)));
                }
                Walk::Backward(scan) => {
                    let Some(vector) = scan.next()? else {
                        return Ok(None);
                    };
                    self.rows.times.extend(vector.times().iter().rev());
                    columns.for_each(|(c, column)| column.extend(vector.words(c).iter().rev()));
                }
            }
        }
        Ok(Some(self.rows.times[self.at]))
    }

    /// Skips the rows before `time`; a backward walk skips the rows after it.
    pub(crate) fn skip_to(&mut self, time: i64) {
        let times = &self.rows.times[self.at..];
        match &mut self.scan {
            Walk::Forward(scan) => {
                self.at += times.partition_point(|&own| own < time);
                scan.skip_to(time);
            }
            Walk::Backward(scan) => {
                self.at += times.partition_point(|&own| own > time);
                scan.skip_to(time);
            }
        }
    }

    /// Copies the words of the next row into `words`. `peek` must have found that row.
    pub(crate) fn look(&self, words: &mut Vec<u64>) {
        words.clear();
        words.extend(self.rows.columns.iter().map(|column| column[self.at]));
    }

    /// Copies the words of the next row into `words`, and advances.
    pub(crate) fn take(&mut self, words: &mut Vec<u64>) {
        self.look(words);
        self.at += 1;
    }

    /// Reads the next row that matches the filters; returns its time and its words.
    pub(crate) fn next_row(&mut self) -> Result<Option<(i64, &[u64])>> {
        while let Some(time) = self.peek()? {
            let columns = &self.rows.columns;
            let contains = |range: &ValueRange| range.contains(columns[range.column()][self.at]);
            let matches = self.filters.iter().all(contains);
            if matches {
                let mut words = std::mem::take(&mut self.words);
                self.take(&mut words);
                self.words = words;
                return Ok(Some((time, &self.words)));
            }
            self.at += 1;
        }
        Ok(None)
    }
}
