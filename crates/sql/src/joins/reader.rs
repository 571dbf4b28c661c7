//! Reads both inputs of a join, from beginning to end.
//!
//! The batches of the right input are kept in memory from the first row that is still needed to the last row that was
//! read. Positions in this input only move forward.

use super::keyed::{Encoder, Keyed, Target};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The left input.
pub(super) struct Left {
    stream: SendableRecordBatchStream,
    encoder: Encoder,
    /// The current batch, and the index of the first row in it that is not joined yet.
    current: Option<(Arc<Keyed>, usize)>,
}

impl Left {
    pub(super) fn new(stream: SendableRecordBatchStream, encoder: Encoder) -> Self {
        Self {
            stream,
            encoder,
            current: None,
        }
    }

    /// The batch that contains the next row, and the row's index.
    pub(super) async fn current(&mut self) -> Result<Option<(Arc<Keyed>, usize)>> {
        loop {
            if let Some((batch, row)) = self
                .current
                .as_ref()
                .filter(|(batch, row)| *row < batch.len())
            {
                return Ok(Some((Arc::clone(batch), *row)));
            }
            match self.stream.next().await {
                None => return Ok(None),
                Some(batch) => self.current = Some((Arc::new(self.encoder.encode(batch?)?), 0)),
            }
        }
    }

    /// Sets the index of the next row in the current batch.
    pub(super) fn continue_at(&mut self, next: usize) {
        if let Some((_, row)) = &mut self.current {
            *row = next;
        }
    }
}

/// A position in the right input: the number of a batch, and a row in it. The end is row 0 of the batch number after
/// the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) batch: usize,
    pub(super) row: usize,
}

/// A row of the right input.
pub(super) type RightRow = (Arc<Keyed>, usize);

/// The right input.
pub(super) struct Right {
    stream: SendableRecordBatchStream,
    encoder: Encoder,
    /// The batches in memory. No batch is empty.
    batches: VecDeque<Arc<Keyed>>,
    /// Number of the first batch in memory.
    first: usize,
    is_ended: bool,
    memory: MemoryReservation,
}

impl Right {
    pub(super) fn new(
        stream: SendableRecordBatchStream,
        encoder: Encoder,
        memory: MemoryReservation,
    ) -> Self {
        Self {
            stream,
            encoder,
            batches: VecDeque::new(),
            first: 0,
            is_ended: false,
            memory,
        }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// Reads up to the batch with this number; `None` if the input ends earlier.
    async fn batch(&mut self, number: usize) -> Result<Option<&Arc<Keyed>>> {
        let at = number - self.first;
        while at >= self.batches.len() && !self.is_ended {
            let Some(batch) = self.stream.next().await else {
                self.is_ended = true;
                break;
            };
            let batch = self.encoder.encode(batch?)?;
            if batch.len() > 0 {
                self.memory.try_grow(batch.bytes())?;
                self.batches.push_back(Arc::new(batch));
            }
        }
        Ok(self.batches.get(at))
    }

    /// The first row at or after `from` that does not come before the target.
    pub(super) async fn seek(&mut self, from: Position, target: &Target<'_>) -> Result<Position> {
        let mut at = from;
        while let Some(batch) = self.batch(at.batch).await? {
            let row = batch.seek(at.row, target);
            if row < batch.len() {
                return Ok(Position { row, ..at });
            }
            at = Position {
                batch: at.batch + 1,
                row: 0,
            };
        }
        Ok(at)
    }

    /// The row at a position; `None` at the end.
    pub(super) fn row(&self, at: Position) -> Option<RightRow> {
        let batch = self.batches.get(at.batch - self.first)?;
        Some((Arc::clone(batch), at.row))
    }

    /// The row before a position, if it is in memory.
    pub(super) fn row_before(&self, at: Position) -> Option<RightRow> {
        if let Some(row) = at.row.checked_sub(1) {
            return self.row(Position { row, ..at });
        }
        let batch = self.batches.get(at.batch.checked_sub(self.first + 1)?)?;
        Some((Arc::clone(batch), batch.len() - 1))
    }

    /// The rows between two positions, batch by batch. They must be in memory.
    pub(super) fn rows(
        &self,
        from: Position,
        to: Position,
    ) -> impl Iterator<Item = (&Keyed, Range<usize>)> {
        let parts = (from.batch..=to.batch).filter_map(move |number| {
            let batch = self.batches.get(number - self.first)?;
            let begin = if number == from.batch { from.row } else { 0 };
            let end = if number == to.batch {
                to.row
            } else {
                batch.len()
            };
            Some((&**batch, begin..end))
        });
        parts.filter(|(_, rows)| !rows.is_empty())
    }

    /// Drops the batches before the one with this number.
    pub(super) fn release(&mut self, before: usize) {
        while self.first < before {
            let Some(batch) = self.batches.pop_front() else {
                break;
            };
            self.memory.shrink(batch.bytes());
            self.first += 1;
        }
    }
}
