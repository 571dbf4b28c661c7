//! Joins each left row with aggregates of the right rows in a window around its time.
//!
//! Windows only move forward. An aggregate that can remove values exactly is updated as the window moves; other
//! aggregates, such as sums of floating-point numbers, are recomputed from the rows of each window.

use super::keyed::{Keyed, Target};
use super::reader::{Left, Position, Right};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use std::ops::Range;
use std::sync::Arc;

/// A window: the distances of its first and its last time from the time of the left row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window {
    pub(super) from: i128,
    pub(super) to: i128,
}

/// An aggregate.
struct Aggregate {
    expr: Arc<AggregateFunctionExpr>,
    /// Whether it can be updated as the window moves.
    is_exact: bool,
    /// The state for the last window, if the aggregate can be updated.
    running: Option<(Position, Position, Box<dyn Accumulator>)>,
}

/// An execution of the join.
pub(super) struct WindowJoin {
    left: Left,
    right: Right,
    window: Window,
    aggregates: Vec<Aggregate>,
    schema: SchemaRef,
    low: Position,
    high: Position,
}

impl WindowJoin {
    pub(super) fn new(
        (left, right): (Left, Right),
        window: Window,
        aggregates: &[Arc<AggregateFunctionExpr>],
        schema: SchemaRef,
    ) -> Result<Self> {
        let of_right = right.schema();
        let aggregates = aggregates
            .iter()
            .map(|expr| Aggregate::new(expr, &of_right));
        Ok(Self {
            left,
            right,
            window,
            aggregates: aggregates.collect::<Result<_>>()?,
            schema,
            low: Position::default(),
            high: Position::default(),
        })
    }

    /// The next rows of the result.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some((left, first)) = self.left.current().await? else {
            return Ok(None);
        };
        let mut values: Vec<Vec<ScalarValue>> = vec![Vec::new(); self.aggregates.len()];
        for row in first..left.len() {
            // Computing a large window takes long, so the statement can be cancelled before each window.
            tokio::task::consume_budget().await;
            let window = self.window_of(&left, row).await?;
            for (number, aggregate) in self.aggregates.iter_mut().enumerate() {
                values[number].push(aggregate.value(&self.right, number, window)?);
            }
            self.right.release(window.0.batch);
        }
        self.left.continue_at(left.len());
        let rows = left.batch.slice(first, left.len() - first);
        let mut columns = rows.columns().to_vec();
        for values in values {
            columns.push(ScalarValue::iter_to_array(values)?);
        }
        Ok(Some(RecordBatch::try_new(
            Arc::clone(&self.schema),
            columns,
        )?))
    }
    /// The right rows in the window of a left row.
    async fn window_of(&mut self, left: &Keyed, row: usize) -> Result<(Position, Position)> {
        let Some(time) = left.joined_time(row) else {
            return Ok((self.low, self.low));
        };
        let key = left.key(row);
        let place = |distance: i128, is_behind| Target {
            key,
            time: time + distance,
            is_behind,
        };
        let Window { from, to } = self.window;
        self.low = self.right.seek(self.low, &place(from, false)).await?;
        let high = self.high.max(self.low);
        self.high = self.right.seek(high, &place(to, true)).await?;
        Ok((self.low, self.high))
    }
}

impl Aggregate {
    fn new(expr: &Arc<AggregateFunctionExpr>, schema: &Schema) -> Result<Self> {
        let moving = expr.create_sliding_accumulator();
        let mut is_exact = moving.is_ok_and(|state| state.supports_retract_batch());
        for argument in expr.expressions() {
            is_exact &= !argument.data_type(schema)?.is_floating();
        }
        Ok(Self {
            expr: Arc::clone(expr),
            is_exact,
            running: None,
        })
    }

    /// The value of an aggregate for a window; `number` is the index of the aggregate.
    fn value(
        &mut self,
        right: &Right,
        number: usize,
        (low, high): (Position, Position),
    ) -> Result<ScalarValue> {
        let slices = |from, to| {
            right
                .rows(from, to)
                .map(|(batch, rows)| sliced(&batch.values[number], rows))
        };
        if !self.is_exact {
            let mut state = self.expr.create_accumulator()?;
            for slice in slices(low, high) {
                state.update_batch(&slice)?;
            }
            return state.evaluate();
        }
        let (begin, end, mut state) = match self.running.take() {
            Some(running) if running.0 <= low && low <= running.1 && running.1 <= high => running,
            _ => (low, low, self.expr.create_sliding_accumulator()?),
        };
        for slice in slices(end, high) {
            state.update_batch(&slice)?;
        }
        for slice in slices(begin, low) {
            state.retract_batch(&slice)?;
        }
        let value = state.evaluate()?;
        self.running = Some((low, high, state));
        Ok(value)
    }
}

fn sliced(values: &[ArrayRef], rows: Range<usize>) -> Vec<ArrayRef> {
    let slice = |array: &ArrayRef| array.slice(rows.start, rows.len());
    values.iter().map(slice).collect()
}
