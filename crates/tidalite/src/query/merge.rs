//! Merges rows of many series in time order; at equal times in the order of the selection. Backward in exactly the
//! opposite order.
//!
//! Invariants: 1. `heap` contains each source with remaining rows once, with the time of its next row; in a backward
//! merge both are complements, so that the last comes first. 2. A source's `rows` are the rows of one vector, copied in
//! the order of the walk; `at` is the next of them.

use crate::query::selection::Selection;
use crate::query::units;
use crate::series::read::Series;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use crate::types::interval::Interval;
use crate::types::schema::Unit;
use crate::types::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use tidalite_codec::Rows;
use tidalite_series::{Direction, ReverseScan, Scan, ValueRange};

/// One series of a merge.
pub(super) struct Source<'s> {
    scan: Walk<'s>,
    unit: Unit,
    rows: Rows,
    at: usize,
}

/// The vectors of a series in one direction.
enum Walk<'s> {
    Forward(Scan<'s, Pages<'s>>),
    Backward(ReverseScan<'s, Pages<'s>>),
}

impl<'s> Source<'s> {
    /// The rows `from ..= to`, in the series' unit; a forward source skips vectors in which no row can match the
    /// ranges.
    pub(super) fn new(
        series: &'s Series<'_>,
        (from, to): (i64, i64),
        ranges: Vec<ValueRange>,
        direction: Direction,
    ) -> Self {
        let columns = series.info().schema.columns.len();
        let all: Vec<usize> = (0..columns).collect();
        let view = series.view();
        let scan = match direction {
            Direction::Backward => Walk::Backward(view.scan_reverse(from, to, &all)),
            Direction::Forward => Walk::Forward(match ranges.is_empty() {
                true => view.scan(from, to, &all),
                false => view.matching(ranges).scan(from, to, &all),
            }),
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
        units::nanos(self.rows.times[self.at], self.unit).map(Some)
    }

    /// Skips the rows before `nanos`; backward the rows after it.
    pub(super) fn skip_to(&mut self, nanos: i64) {
        let times = &self.rows.times[self.at..];
        match &mut self.scan {
            Walk::Forward(scan) => {
                let first = units::first_at(nanos, self.unit);
                self.at += times.partition_point(|&time| time < first);
                scan.skip_to(first);
            }
            Walk::Backward(scan) => {
                let last = units::last_at(nanos, self.unit);
                self.at += times.partition_point(|&time| time > last);
                scan.skip_to(last);
            }
        }
    }

    /// Copies the words of the next row, which `peek` has found.
    pub(super) fn look(&self, words: &mut Vec<u64>) {
        words.clear();
        words.extend(self.rows.columns.iter().map(|column| column[self.at]));
    }

    /// Copies the next row's words and advances.
    pub(super) fn take(&mut self, words: &mut Vec<u64>) {
        self.look(words);
        self.at += 1;
    }
}

/// Rows of all series of a selection, ascending in time, or descending; see [`Selection::rows`] and
/// [`Selection::rows_reverse`].
pub struct MergedRows<'s> {
    sources: Vec<Source<'s>>,
    direction: Direction,
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    words: Vec<u64>,
}

/// A row, and its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedRow<'r> {
    /// The index of its series in the selection.
    pub series: usize,
    /// Its time.
    pub time: Timestamp,
    /// One word per column of that series.
    pub words: &'r [u64],
}

impl Selection<'_> {
    /// The rows of all series within `times` in time order. Holds one decoded vector per series.
    ///
    /// # Errors
    /// A damaged or unreadable block; `Timestamp` if a row's time does not fit nanoseconds.
    pub fn rows(&self, times: impl Interval) -> Result<MergedRows<'_>> {
        self.merged(times, Direction::Forward)
    }

    /// Like `rows`, the last row first: reads the newest rows of all series, without the earlier ones.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::Options;
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.series("a")?.insert("2014-06-01", 1.0)?;
    /// tx.series("b")?.insert("2014-06-02", 2.0)?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let all = snap.select("")?;
    /// let mut rows = all.rows_reverse(..)?;
    /// assert_eq!(rows.next()?.map(|row| row.time.to_string()).as_deref(), Some("2014-06-02T00:00:00Z"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `rows`.
    pub fn rows_reverse(&self, times: impl Interval) -> Result<MergedRows<'_>> {
        self.merged(times, Direction::Backward)
    }

    fn merged(&self, times: impl Interval, direction: Direction) -> Result<MergedRows<'_>> {
        let times = times.ends()?;
        let sources = self.series().iter().map(|series| {
            let (from, to) = times.in_unit(series.info().schema.unit);
            Source::new(series, (from, to), Vec::new(), direction)
        });
        MergedRows::new(sources.collect(), direction)
    }
}

/// Converts a row to its heap key, and back: the least comes first.
fn key(direction: Direction, (time, series): (i64, usize)) -> (i64, usize) {
    match direction {
        Direction::Forward => (time, series),
        Direction::Backward => (!time, !series),
    }
}

impl<'s> MergedRows<'s> {
    /// A merge of sources with this direction.
    pub(super) fn new(mut sources: Vec<Source<'s>>, direction: Direction) -> Result<Self> {
        let mut heap = BinaryHeap::with_capacity(sources.len());
        for (i, source) in sources.iter_mut().enumerate() {
            let head = source.peek()?;
            heap.extend(head.map(|time| Reverse(key(direction, (time, i)))));
        }
        Ok(Self {
            sources,
            direction,
            heap,
            words: Vec::new(),
        })
    }

    /// Time and series of the next row of each source that has one.
    pub(super) fn heads(&self) -> impl Iterator<Item = (i64, usize)> {
        self.heap.iter().map(|head| key(self.direction, head.0))
    }

    /// Skips the rows of all series before `nanos`; backward the rows after it.
    pub(super) fn skip_to(&mut self, nanos: i64) -> Result<()> {
        let backward = self.direction == Direction::Backward;
        let passed = |(time, _): (i64, usize)| match backward {
            true => time > nanos,
            false => time < nanos,
        };
        while self.peek().is_some_and(passed) {
            self.step(|source| source.skip_to(nanos))?;
        }
        Ok(())
    }

    /// Advances the first source, and moves it to the position of its next row; removes it after its last one, and
    /// after an error.
    fn step(&mut self, go_on: impl FnOnce(&mut Source<'s>)) -> Result<()> {
        let Some(mut head) = self.heap.peek_mut() else {
            return Ok(());
        };
        let (_, series) = key(self.direction, head.0);
        let source = &mut self.sources[series];
        go_on(source);
        // In place: removing and reinserting it would sift twice.
        match source.peek() {
            Ok(Some(time)) => *head = Reverse(key(self.direction, (time, series))),
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
        self.heap.peek().map(|next| key(self.direction, next.0))
    }

    /// Copies the next row's words into `words` and advances.
    pub(super) fn take(&mut self, words: &mut Vec<u64>) -> Result<()> {
        self.step(|source| source.take(words))
    }

    /// The next row; `None` after the last.
    ///
    /// # Errors
    /// A damaged or unreadable block; `Timestamp` if a row's time does not fit nanoseconds.
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

impl AsRef<[u64]> for MergedRow<'_> {
    fn as_ref(&self) -> &[u64] {
        self.words
    }
}
