//! Joins each left row with one right row: the newest at or before its time, the next one, or the nearest one.

use super::keyed::{Keyed, Target};
use super::reader::{Left, Position, Right, RightRow};
use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use std::sync::Arc;

/// The side of a left row on which its right row is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    Backward,
    Forward,
    Nearest,
}

/// The rule for matching rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AsOf {
    pub(super) direction: Direction,
    /// Whether rows with the same time do not match.
    pub(super) is_strict: bool,
    /// Maximum distance in time.
    pub(super) tolerance: Option<i128>,
}

/// Maximum number of right batches from which a result takes rows. These batches are kept in memory until the result is
/// complete.
const SOURCES_MAX: usize = 16;

/// An execution of the join.
pub(super) struct AsOfJoin {
    left: Left,
    right: Right,
    rule: AsOf,
    schema: SchemaRef,
    /// The position after the rows that may match backward.
    past: Position,
    /// The first row that may match forward, and the end of the rows that have its time.
    ahead: Position,
    run: Option<(Position, Position)>,
}

impl AsOfJoin {
    pub(super) fn new(left: Left, right: Right, rule: AsOf, schema: SchemaRef) -> Self {
        Self {
            left,
            right,
            rule,
            schema,
            past: Position::default(),
            ahead: Position::default(),
            run: None,
        }
    }

    /// The next rows of the result.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some((left, first)) = self.left.current().await? else {
            return Ok(None);
        };
        let mut matches = Matches::default();
        let mut row = first;
        while row < left.len() && matches.sources.len() < SOURCES_MAX {
            matches.push(self.matched(&left, row).await?);
            row += 1;
        }
        self.left.continue_at(row);
        let left = left.batch.slice(first, row - first);
        let mut columns = left.columns().to_vec();
        matches.append_columns(&mut columns, &self.schema)?;
        Ok(Some(RecordBatch::try_new(
            Arc::clone(&self.schema),
            columns,
        )?))
    }

    /// The right row that matches a left row.
    async fn matched(&mut self, left: &Keyed, row: usize) -> Result<Option<RightRow>> {
        let Some(time) = left.joined_time(row) else {
            return Ok(None);
        };
        let key = left.key(row);
        let direction = self.rule.direction;
        let past = match direction {
            Direction::Forward => None,
            _ => self.last_before(key, time).await?,
        };
        let ahead = match direction {
            Direction::Backward => None,
            _ => self.first_after(key, time).await?,
        };
        let needed = match direction {
            Direction::Backward => self.past.batch_before(),
            Direction::Forward => self.ahead.batch,
            Direction::Nearest => self.past.batch_before().min(self.ahead.batch),
        };
        self.right.release(needed);
        let distance = |(batch, row): &RightRow| {
            let other = batch.joined_time(*row).filter(|_| batch.key(*row) == key)?;
            let distance = (time - other).abs();
            self.rule
                .tolerance
                .is_none_or(|most| distance <= most)
                .then_some(distance)
        };
        let with_distance = |row: RightRow| distance(&row).map(|distance| (distance, row));
        let (past, ahead) = (past.and_then(with_distance), ahead.and_then(with_distance));
        // If two rows are equally near, the older one is chosen.
        let nearest = past
            .into_iter()
            .chain(ahead)
            .min_by_key(|(distance, _)| *distance);
        Ok(nearest.map(|(_, row)| row))
    }

    /// The last row before a time; it may have a different key.
    async fn last_before(&mut self, key: &[u8], time: i128) -> Result<Option<RightRow>> {
        let target = Target {
            key,
            time,
            is_behind: !self.rule.is_strict,
        };
        self.past = self.right.seek(self.past, &target).await?;
        Ok(self.right.row_before(self.past))
    }

    /// The last row among those with the next time; it may have a different key.
    async fn first_after(&mut self, key: &[u8], time: i128) -> Result<Option<RightRow>> {
        let target = Target {
            key,
            time,
            is_behind: self.rule.is_strict,
        };
        self.ahead = self.right.seek(self.ahead, &target).await?;
        let Some((batch, row)) = self.right.row(self.ahead) else {
            return Ok(None);
        };
        let Some(time) = batch.joined_time(row) else {
            return Ok(None);
        };
        let end = match self.run {
            Some((ahead, end)) if ahead == self.ahead => end,
            _ => {
                let target = Target {
                    key: batch.key(row),
                    time,
                    is_behind: true,
                };
                self.right.seek(self.ahead, &target).await?
            }
        };
        self.run = Some((self.ahead, end));
        Ok(self.right.row_before(end))
    }
}

impl Position {
    /// The number of the batch that contains the row before this position.
    fn batch_before(self) -> usize {
        self.batch.saturating_sub(usize::from(self.row == 0))
    }
}

/// The right rows of a result.
#[derive(Default)]
struct Matches {
    sources: Vec<Arc<Keyed>>,
    /// For each left row, the number of the source and the row in it, counted from 1; source 0 is a row of nulls.
    rows: Vec<(usize, usize)>,
}

impl Matches {
    fn push(&mut self, found: Option<RightRow>) {
        let Some((batch, row)) = found else {
            self.rows.push((0, 0));
            return;
        };
        let known = self
            .sources
            .iter()
            .rposition(|own| Arc::ptr_eq(own, &batch));
        let source = known.unwrap_or_else(|| {
            self.sources.push(batch);
            self.sources.len() - 1
        });
        self.rows.push((source + 1, row));
    }

    /// Adds the columns of the right rows to the columns of the left rows.
    fn append_columns(&self, columns: &mut Vec<ArrayRef>, schema: &SchemaRef) -> Result<()> {
        let left = columns.len();
        for (column, field) in schema.fields()[left..].iter().enumerate() {
            let nulls = new_null_array(field.data_type(), 1);
            let sources = self
                .sources
                .iter()
                .map(|source| source.batch.column(column).as_ref());
            let sources: Vec<&dyn Array> = [nulls.as_ref()].into_iter().chain(sources).collect();
            columns.push(interleave(&sources, &self.rows)?);
        }
        Ok(())
    }
}
