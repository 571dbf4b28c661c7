//! Rows of many series in order of time; at equal times in the order of the selection.
//!
//! Invariants: 1. `heap` holds each source that has rows left once, with the time of its next row.
//! 2. A source's `rows` are those of one vector, copied out; `at` is the next of them.

use super::{Selection, clock};
use crate::error::Result;
use crate::pages::Pages;
use crate::schema::Unit;
use crate::series::Series;
use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::RangeBounds;
use tidalite_codec::Rows;
use tidalite_series::{Scan, ValueRange};

/// One series of a merge.
pub(super) struct Source<'s> {
    scan: Scan<'s, Pages<'s>>,
    unit: Unit,
    rows: Rows,
    at: usize,
}

impl<'s> Source<'s> {
    /// The rows `from ..= to`, in the series' unit; vectors in which none can match the ranges are left out.
    pub(super) fn new(
        series: &'s Series<'_>,
        (from, to): (i64, i64),
        ranges: Vec<ValueRange>,
    ) -> Self {
        let columns = series.info().schema.columns.len();
        let all: Vec<usize> = (0..columns).collect();
        let view = series.view();
        let scan = match ranges.is_empty() {
            true => view.scan(from, to, &all),
            false => view.matching(ranges).scan(from, to, &all),
        };
        Self {
            scan,
            unit: series.info().schema.unit,
            rows: Rows::new(columns),
            at: 0,
        }
    }

    /// The time of the next row in nanoseconds; reads the next vector when this one is used up.
    pub(super) fn peek(&mut self) -> Result<Option<i64>> {
        if self.at == self.rows.len() {
            self.rows.clear();
            self.at = 0;
            let Some(vector) = self.scan.next()? else {
                return Ok(None);
            };
            self.rows.times.extend_from_slice(vector.times());
            for (c, column) in self.rows.columns.iter_mut().enumerate() {
                column.extend_from_slice(vector.words(c));
            }
        }
        clock::nanos(self.rows.times[self.at], self.unit).map(Some)
    }

    /// Leaves out the rows before `nanos`.
    fn skip_to(&mut self, nanos: i64) {
        let first = clock::first_at(nanos, self.unit);
        self.at += self.rows.times[self.at..].partition_point(|&time| time < first);
        self.scan.skip_to(first);
    }

    /// Copies the next row's words and steps over it.
    pub(super) fn take(&mut self, words: &mut Vec<u64>) {
        words.clear();
        words.extend(self.rows.columns.iter().map(|column| column[self.at]));
        self.at += 1;
    }
}

/// Rows of all series of a selection, ascending in time.
pub struct MergedRows<'s> {
    sources: Vec<Source<'s>>,
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    words: Vec<u64>,
}

/// A row, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedRow<'r> {
    /// The place of its series in the selection.
    pub series: usize,
    /// Its time.
    pub time: Timestamp,
    /// One word a column of that series.
    pub words: &'r [u64],
}

impl Selection<'_> {
    /// The rows of all series within `times` in order of time. Holds one decoded vector a series.
    ///
    /// # Errors
    /// A damaged or unreadable block; `Timestamp` for a row whose time does not fit nanoseconds.
    pub fn rows(&self, times: impl RangeBounds<Timestamp>) -> Result<MergedRows<'_>> {
        let sources = self.series().iter().map(|series| {
            let (from, to) = clock::interval(&times, series.info().schema.unit);
            Source::new(series, (from, to), Vec::new())
        });
        MergedRows::new(sources.collect())
    }
}

impl<'s> MergedRows<'s> {
    pub(super) fn new(mut sources: Vec<Source<'s>>) -> Result<Self> {
        let mut heap = BinaryHeap::with_capacity(sources.len());
        for (i, source) in sources.iter_mut().enumerate() {
            heap.extend(source.peek()?.map(|time| Reverse((time, i))));
        }
        Ok(Self {
            sources,
            heap,
            words: Vec::new(),
        })
    }

    /// Time and series of the next row of each that has one.
    pub(super) fn heads(&self) -> impl Iterator<Item = (i64, usize)> {
        self.heap.iter().map(|head| head.0)
    }

    /// Leaves out the rows before `nanos`, of all series.
    pub(super) fn skip_to(&mut self, nanos: i64) -> Result<()> {
        while self.peek().is_some_and(|(time, _)| time < nanos) {
            self.step(|source| source.skip_to(nanos))?;
        }
        Ok(())
    }

    /// Moves the source that is first on, and puts it where its next row belongs; it is gone behind its last one, and after an error.
    fn step(&mut self, go_on: impl FnOnce(&mut Source<'s>)) -> Result<()> {
        let Some(mut head) = self.heap.peek_mut() else {
            return Ok(());
        };
        let Reverse((_, series)) = *head;
        let source = &mut self.sources[series];
        go_on(source);
        // In place: to take it out and to put it in again would sift twice.
        match source.peek() {
            Ok(Some(time)) => *head = Reverse((time, series)),
            Ok(None) => drop(PeekMut::pop(head)),
            Err(error) => {
                PeekMut::pop(head);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Time and series of the next row.
    pub(super) fn peek(&self) -> Option<(i64, usize)> {
        self.heap.peek().map(|next| next.0)
    }

    /// Takes the next row's words into `words` and goes on.
    pub(super) fn take(&mut self, words: &mut Vec<u64>) -> Result<()> {
        self.step(|source| source.take(words))
    }

    /// The next row; `None` behind the last.
    ///
    /// # Errors
    /// A damaged or unreadable block; `Timestamp` for a row whose time does not fit nanoseconds.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step that lends, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<MergedRow<'_>>> {
        let Some((time, series)) = self.peek() else {
            return Ok(None);
        };
        let mut words = std::mem::take(&mut self.words);
        let taken = self.take(&mut words);
        self.words = words;
        taken?;
        Ok(Some(MergedRow {
            series,
            time: Timestamp(time),
            words: &self.words,
        }))
    }
}
