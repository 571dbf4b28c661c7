//! Merges rows of many series in time order, and rows of equal times in the order of the selection. A backward merge
//! gives exactly the opposite order.
//!
//! Invariant: `heap` contains each source with remaining rows once, as the time of the source's next row and the index
//! of the series. In a backward merge these two numbers are bitwise complements, so that the last row comes first.

use crate::query::many::SelectionQuery;
use crate::query::units;
use crate::series::figures::Figures;
use crate::series::read::Series;
use crate::series::row_walk::RowWalk;
use crate::types::error::Result;
use crate::types::schema::Unit;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use tidalite_series::{Direction, ValueRange};
use tidalite_time::Timestamp;

/// One of the series that are merged.
pub(super) struct Source<'s> {
    rows: RowWalk<'s>,
    unit: Unit,
    direction: Direction,
}

impl<'s> Source<'s> {
    /// Creates a source of the rows `from ..= to` in the series' unit. A forward source skips vectors in which no row
    /// can match the ranges.
    pub(super) fn new(
        series: &'s Series<'_>,
        ends: (i64, i64),
        ranges: Vec<ValueRange>,
        direction: Direction,
    ) -> Self {
        Self {
            rows: RowWalk::new(series, ends, ranges, direction),
            unit: series.info().schema.unit,
            direction,
        }
    }

    /// Returns the time of the next row in nanoseconds; reads the next vector if all rows of the current one were
    /// returned.
    pub(super) fn peek(&mut self) -> Result<Option<i64>> {
        let time = self.rows.peek()?;
        time.map(|time| units::nanos(time, self.unit)).transpose()
    }

    /// Skips the rows before the time `nanos`; in a backward merge, the rows after it.
    pub(super) fn skip_to(&mut self, nanos: i64) {
        self.rows.skip_to(match self.direction {
            Direction::Forward => units::first_at(nanos, self.unit),
            Direction::Backward => units::last_at(nanos, self.unit),
        });
    }

    /// Copies the words of the next row into `words`. `peek` must have found that row.
    pub(super) fn look(&self, words: &mut Vec<u64>) {
        self.rows.look(words);
    }

    /// Copies the words of the next row into `words`, and advances.
    pub(super) fn take(&mut self, words: &mut Vec<u64>) {
        self.rows.take(words);
    }
}

/// The rows of several series in ascending or descending order of time, returned by [`SelectionQuery::rows`].
pub struct MergedRows<'s> {
    sources: Vec<Source<'s>>,
    direction: Direction,
    /// For each series, the filters that its rows must match. Empty in a join, which tests whole results instead.
    filters: Vec<Vec<ValueRange>>,
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    words: Vec<u64>,
}

/// A row, and the series that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedRow<'r> {
    /// Index in the selection of the series that the row belongs to.
    pub series: usize,
    /// Time of the row.
    pub time: Timestamp,
    /// The stored words of the row, one per column of its series.
    pub words: &'r [u64],
}

impl<'s, F: Figures> SelectionQuery<'s, '_, F> {
    /// The rows of all series in time order. A [reversed](Self::reverse) query begins with the newest rows and does not
    /// read earlier ones before they are needed. Holds one decoded vector per series.
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
    /// let mut rows = all.query(..).reverse().rows()?;
    /// assert_eq!(rows.next()?.map(|row| row.time.to_string()).as_deref(), Some("2014-06-02T00:00:00Z"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable block; `InvalidInput` if a row's time does not fit nanoseconds.
    pub fn rows(&self) -> Result<MergedRows<'s>> {
        let times = self.times()?;
        let direction = self.direction;
        let sources = self.members.iter().map(|member| {
            let ends = times.in_unit(member.series.info().schema.unit);
            Source::new(member.series, ends, member.filters.clone(), direction)
        });
        let filters = self.members.iter().map(|member| member.filters.clone());
        Ok(MergedRows {
            filters: filters.collect(),
            ..MergedRows::new(sources.collect(), direction)?
        })
    }
}

/// Converts a row to its heap key, or a heap key to its row. The row with the least key comes first.
fn key(direction: Direction, (time, series): (i64, usize)) -> (i64, usize) {
    match direction {
        Direction::Forward => (time, series),
        Direction::Backward => (!time, !series),
    }
}

impl<'s> MergedRows<'s> {
    /// Creates a merge of these sources in this direction.
    pub(super) fn new(mut sources: Vec<Source<'s>>, direction: Direction) -> Result<Self> {
        let mut heap = BinaryHeap::with_capacity(sources.len());
        for (i, source) in sources.iter_mut().enumerate() {
            let head = source.peek()?;
            heap.extend(head.map(|time| Reverse(key(direction, (time, i)))));
        }
        Ok(Self {
            sources,
            direction,
            filters: Vec::new(),
            heap,
            words: Vec::new(),
        })
    }

    /// Time and index of the series of the next row of each source that has further rows.
    pub(super) fn heads(&self) -> impl Iterator<Item = (i64, usize)> {
        self.heap.iter().map(|head| key(self.direction, head.0))
    }

    /// Skips the rows of all series before the time `nanos`; in a backward merge, the rows after it.
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

    /// Advances the source that is first in the heap, and moves it to the place in the heap that fits its next row.
    /// Removes the source after its last row, and after an error.
    fn step(&mut self, go_on: impl FnOnce(&mut Source<'s>)) -> Result<()> {
        let Some(mut head) = self.heap.peek_mut() else {
            return Ok(());
        };
        let (_, series) = key(self.direction, head.0);
        let source = &mut self.sources[series];
        go_on(source);
        // The heap entry is changed in place: removing and reinserting it would sift the heap twice.
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

    /// Time of the next row, and index of the series that it belongs to.
    pub(super) fn peek(&self) -> Option<(i64, usize)> {
        self.heap.peek().map(|next| key(self.direction, next.0))
    }

    /// Copies the words of the next row into `words`, and advances.
    pub(super) fn take(&mut self, words: &mut Vec<u64>) -> Result<()> {
        self.step(|source| source.take(words))
    }

    /// Reads the next row; returns `None` after the last.
    ///
    /// # Errors
    /// A damaged or unreadable block; `InvalidInput` if a row's time does not fit nanoseconds.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step that lends, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<MergedRow<'_>>> {
        let (time, series) = loop {
            let Some((time, series)) = self.peek() else {
                return Ok(None);
            };
            let mut words = std::mem::take(&mut self.words);
            let taken = self.take(&mut words);
            self.words = words;
            taken?;
            let filters = self.filters.get(series).map_or(&[][..], |own| &own[..]);
            let contains = |range: &ValueRange| range.contains(self.words[range.column()]);
            if filters.iter().all(contains) {
                break (time, series);
            }
        };
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
