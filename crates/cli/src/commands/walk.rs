//! Iterates over the rows of a series in either direction until the caller stops: over all rows, or over those with
//! matching values or texts.
//!
//! The library returns rows that match filters and expressions for one interval at a time. A walk queries one chunk
//! after the other, and each chunk has twice as many rows as the previous one. So a query for ten rows of a billion
//! does not read all of them, and a query for all rows needs few chunks.

use super::filters::{ValueFilter, filtered};
use crate::database::Reader;
use crate::exit::Outcome;
use regex::Regex;
use std::ops::ControlFlow;
use tidalite::{Direction, Row, Series, Steps};

/// Number of rows in the first chunk.
const PIECE_ROWS: u64 = 16 * 1024;

/// Maximum number of rows in a chunk: the matches in a chunk that is read backward are held in memory.
const PIECE_ROWS_MAX: u64 = 4 * 1024 * 1024;

/// The rows that a walk returns.
pub(super) enum Wanted<'a> {
    All,
    /// The rows whose text in the column with this number matches.
    Matching(usize, &'a Regex),
    /// The rows whose values lie in all of these ranges.
    Filtered(Vec<ValueFilter>),
}

/// Callback that receives a row and returns whether the walk continues.
type Take<'t> = dyn FnMut(&Row) -> Outcome<ControlFlow<()>> + 't;

/// A walk over the rows of one series in a range of times.
pub(super) struct Walk<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) series: &'a Series<'a>,
    /// First and last time of the walk, both included.
    pub(super) range: (i64, i64),
    pub(super) wanted: Wanted<'a>,
}

impl Walk<'_> {
    /// Passes the rows in this direction to `take`, skipping the first `offset` rows.
    pub(super) fn each(&self, direction: Direction, offset: u64, take: &mut Take<'_>) -> Outcome {
        if let Wanted::All = self.wanted {
            return self.all(direction, offset, take);
        }
        let mut left = offset;
        let mut take = |row: &Row| {
            if left > 0 {
                left -= 1;
                return Ok(ControlFlow::Continue(()));
            }
            take(row)
        };
        let (mut from, mut to) = self.range;
        let mut rows = PIECE_ROWS;
        while from <= to {
            let edge = self.edge(direction, (from, to), rows)?;
            rows = PIECE_ROWS_MAX.min(rows * 2);
            let (piece, rest) = match direction {
                Direction::Forward => ((from, edge), edge.checked_add(1).map(|from| (from, to))),
                Direction::Backward => ((edge, to), edge.checked_sub(1).map(|to| (from, to))),
            };
            if self.piece(direction, piece, &mut take)?.is_break() {
                break;
            }
            match rest {
                Some(rest) => (from, to) = rest,
                None => break,
            }
        }
        Ok(())
    }

    /// Passes all rows to `take`, with a cursor instead of chunks: a cursor can stop at a limit or at a closed pipe,
    /// and skips rows by the counts in the tree.
    fn all(&self, direction: Direction, offset: u64, take: &mut Take<'_>) -> Outcome {
        let fail = |error: tidalite::Error| self.reader.fail(&error);
        let (from, to) = self.range;
        let before = self.series.query(..Steps(from)).count().map_err(fail)?;
        let mut cursor = self.series.cursor();
        let mut row = match direction {
            Direction::Forward => cursor.nth(before.saturating_add(offset)).map_err(fail)?,
            Direction::Backward => {
                let behind = self.series.query(..=Steps(to)).count().map_err(fail)?;
                match (behind - before).checked_sub(offset.saturating_add(1)) {
                    Some(place) => cursor.nth(before + place).map_err(fail)?,
                    None => None,
                }
            }
        };
        while let Some(own) = row.take().filter(|row| from <= row.time && row.time <= to) {
            if take(&own)?.is_break() {
                break;
            }
            row = match direction {
                Direction::Forward => cursor.next(),
                Direction::Backward => cursor.previous(),
            }
            .map_err(fail)?;
        }
        Ok(())
    }

    /// The last time, in this direction, of a chunk that begins at the start of the range and has this many rows.
    fn edge(&self, direction: Direction, (from, to): (i64, i64), rows: u64) -> Outcome<i64> {
        let fail = |error: tidalite::Error| self.reader.fail(&error);
        let mut cursor = self.series.cursor();
        let edge = match direction {
            Direction::Forward => {
                let before = self.series.query(..Steps(from)).count().map_err(fail)?;
                cursor.nth(before + rows - 1).map_err(fail)?
            }
            Direction::Backward => {
                let behind = self.series.query(..=Steps(to)).count().map_err(fail)?;
                match behind.checked_sub(rows) {
                    Some(place) => cursor.nth(place).map_err(fail)?,
                    None => None,
                }
            }
        };
        Ok(match direction {
            Direction::Forward => edge.map_or(to, |row| row.time.min(to)),
            Direction::Backward => edge.map_or(from, |row| row.time.max(from)),
        })
    }

    /// Passes the matching rows of one chunk to `take`, in this direction.
    fn piece(
        &self,
        direction: Direction,
        (from, to): (i64, i64),
        take: &mut Take<'_>,
    ) -> Outcome<ControlFlow<()>> {
        let fail = |error: tidalite::Error| self.reader.fail(&error);
        let range = self.series.query(Steps(from)..=Steps(to));
        match &self.wanted {
            Wanted::All => Ok(ControlFlow::Continue(())),
            Wanted::Matching(column, regex) => {
                let rows = range.text_matches(*column, |text| regex.is_match(text));
                let rows = rows.map_err(fail)?;
                if let Direction::Backward = direction {
                    let rows = rows.collect::<tidalite::Result<Vec<Row>>>();
                    for row in rows.map_err(fail)?.iter().rev() {
                        if take(row)?.is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    return Ok(ControlFlow::Continue(()));
                }
                for row in rows {
                    if take(&row.map_err(fail)?)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Wanted::Filtered(filters) => {
                let columns: Vec<usize> = (0..self.series.info().schema.columns.len()).collect();
                let query = filtered(range, filters);
                let query = match direction {
                    Direction::Forward => query,
                    Direction::Backward => query.reverse(),
                };
                let mut went = Ok(ControlFlow::Continue(()));
                let read = query.for_each_vector(|vector| {
                    let times = vector.times();
                    for step in 0..times.len() {
                        if !matches!(went, Ok(ControlFlow::Continue(()))) {
                            return;
                        }
                        let place = match direction {
                            Direction::Forward => step,
                            Direction::Backward => times.len() - 1 - step,
                        };
                        let words = columns.iter().map(|&column| vector.words(column)[place]);
                        went = take(&Row {
                            time: times[place],
                            words: words.collect(),
                        });
                    }
                });
                read.map_err(fail)?;
                went
            }
        }
    }
}
